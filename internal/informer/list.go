package informer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/internal/answer"
)

// These are the numbers of objects in a page of a list, and the intended size of a page in bytes. The size of an object
// is estimated from the first page, and again from each later page.
const (
	firstPage   = 50
	maxPageSize = 500
	minPageSize = 10
	pageBytes   = 1 << 20 // approximate, as JSON
)

// These are the limits of a list. Without them, a server could send any number of pages or objects.
const (
	maxPages   = 2000
	maxObjects = 100_000 // objects of a kind
	// maxContinueLength is the maximum size of the token for the next page, in bytes.
	maxContinueLength = 8 << 10
)

// firstList lists the objects of the kind. It first waits for a slot (see slots), because only a few kinds may begin a
// list at the same time. If the last attempt failed, it does not wait, because the pauses after failures already spread
// the lists over time. If a server hangs, each of its kinds therefore takes a slot only once.
func (k *kind) firstList(ctx context.Context) error {
	if k.streaks.failures == 0 {
		end, err := lists.take(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	return k.list(ctx)
}

// list reads every object page by page, and replaces the stored objects. The request has no resourceVersion, so that
// the server returns its latest state. Any other state could be older than the stored objects.
func (k *kind) list(ctx context.Context) error {
	options := metav1.ListOptions{LabelSelector: k.set.options.LabelSelector, Limit: firstPage}
	k.report(func(s *State) { s.Refused = "" })
	relists := k.orders.asked()
	listed := k.newListing(relists)
	defer func() { k.recount() }()
	next, expiries := k.ask(ctx, options), 0
	defer func() { next.drop() }()
	for pages := 1; ; pages++ {
		if pages > maxPages {
			return &answer.TooLargeError{What: "the list", Bound: fmt.Sprintf("%d pages", maxPages)}
		}
		page, err := next.wait()
		switch {
		case err == nil:
		case isExpired(err) && options.Continue != "":
			// The list took longer than the server keeps its state, so that the list must begin again. The first time, it is
			// again read page by page. The second time, it is read as one request.
			listed.begin()
			options = metav1.ListOptions{LabelSelector: options.LabelSelector, Limit: firstPage}
			if expiries++; expiries > 1 {
				options.Limit = 0
			}
		case answer.IsTooLarge(err) && options.Limit > 1: // try a smaller page, because the objects may be large
			options.Limit = max(options.Limit/minPageSize, 1)
		default:
			return err
		}
		if err != nil {
			next.drop()
			next = k.ask(ctx, options)
			continue
		}
		if err := checkList(page); err != nil {
			return err
		}
		options.Limit, options.Continue = nextPage(page.Items), page.GetContinue()
		done, more := next.done, options.Continue != ""
		if more {
			next = k.ask(ctx, options)
		}
		err = k.collect(listed, page.Items)
		done()
		if err != nil {
			return err
		}
		if len(listed.objects) > maxObjects {
			return &answer.TooLargeError{What: "the list", Bound: fmt.Sprintf("%d objects", maxObjects)}
		}
		if !more {
			k.continueAt(page.GetResourceVersion())
			k.replace(listed.objects, relists)
			return nil
		}
	}
}

// collect transforms the objects of a page and adds them to the list. The part that is stored of an object stays if the
// object has not changed, so that a repeated list needs no more memory. An object whose name is too long is not added,
// so that the list does not keep the name.
func (k *kind) collect(listed *listing, page []unstructured.Unstructured) error {
	for i := range page {
		u := &page[i]
		if err := checkTexts(u.GetNamespace(), u.GetName(), "", ""); err != nil {
			k.refuse(u.GetNamespace(), u.GetName(), err)
			continue
		}
		key := Key(u.GetNamespace(), u.GetName())
		object := k.objects[key]
		if listed.relisted || u.GetResourceVersion() == "" || !same(object, u) {
			object = k.transform(u)
		}
		if err := listed.add(key, object); err != nil {
			return err
		}
	}
	return nil
}

// request is a running request for one page of a list. Its memory counts against the memory budget for the server until
// done is called.
type request struct {
	answers <-chan pageOrError
	done    func()
	cancel  context.CancelFunc
}

type pageOrError struct {
	page *unstructured.UnstructuredList
	err  error
}

func (r request) wait() (*unstructured.UnstructuredList, error) {
	got := <-r.answers
	return got.page, got.err
}

// drop cancels the request. Its memory no longer counts against the memory budget.
func (r request) drop() {
	r.cancel()
	r.done()
}

// ask starts a request for a page. The request runs while the caller processes the previous page.
func (k *kind) ask(ctx context.Context, o metav1.ListOptions) request {
	ctx, cancel := context.WithCancel(ctx)
	kept, done := answer.Keep(ctx)
	answers := make(chan pageOrError, 1)
	go func() {
		page, err := k.page(kept, o)
		answers <- pageOrError{page, err}
	}()
	return request{answers, done, cancel}
}

// nextPage returns the number of objects to request in the next page, so that the page has about pageBytes. It
// estimates the size of an object from the objects of this page.
func nextPage(items []unstructured.Unstructured) int64 {
	if len(items) == 0 {
		return firstPage
	}
	bytes := 0
	for i := range items {
		bytes += weigh(items[i].Object)
	}
	return min(max(int64(pageBytes*len(items)/max(bytes, 1)), minPageSize), maxPageSize)
}

// weigh estimates the length of a decoded value as JSON, in bytes.
func weigh(v any) int {
	const other = 6 // bytes for a number, a boolean, or quotes and separators
	switch v := v.(type) {
	case string:
		return len(v) + other
	case map[string]any:
		n := other
		for key, value := range v {
			n += len(key) + other + weigh(value)
		}
		return n
	case []any:
		n := other
		for _, value := range v {
			n += weigh(value)
		}
		return n
	}
	return other
}

func (k *kind) page(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	late := fmt.Errorf("%w within %s", errNoAnswer, k.set.options.ListTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, k.set.options.ListTimeout, late)
	defer cancel()
	page, err := k.server().List(ctx, o)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return page, err
}
