package kindwatch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a page of whole objects may take. How large objects are shows with the first page, and with each one again.
const (
	firstPage    = 50
	largestPage  = 500
	smallestPage = 10
	pageBytes    = 1 << 20 // as JSON, roughly
)

// firstList lists once it is this kind's turn. A kind that failed before does not wait for one: pauses keep such kinds apart, and a
// server that hangs shall cost the others one turn at most.
func (k *kind) firstList(ctx context.Context) error {
	if k.failures == 0 {
		end, err := lists.take(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	return k.list(ctx)
}

// list reads every object page by page and puts the result in place of what was known. Without a resourceVersion the server
// answers with its latest state: another one could be older than what was already seen.
func (k *kind) list(ctx context.Context) error {
	listed := map[string]metav1.Object{}
	options := metav1.ListOptions{LabelSelector: k.options.LabelSelector, Limit: firstPage}
	k.report(func(s *State) { s.Refused = "" })
	k.mu.RLock()
	relists := k.relists
	k.mu.RUnlock()
	answer := k.ask(ctx, options)
	for {
		page, err := answer()
		if err != nil && isExpired(err) && options.Continue != "" {
			// The list took longer than the server keeps its state: once more, in one piece.
			clear(listed)
			options = metav1.ListOptions{LabelSelector: options.LabelSelector}
			answer = k.ask(ctx, options)
			continue
		}
		if err != nil {
			return err
		}
		options.Limit, options.Continue = nextPage(page.Items), page.GetContinue()
		more := options.Continue != ""
		if more {
			answer = k.ask(ctx, options)
		}
		for i := range page.Items {
			u := &page.Items[i]
			listed[Key(u.GetNamespace(), u.GetName())] = k.transform(u)
		}
		if !more {
			k.continueAt(page.GetResourceVersion())
			k.replace(listed, relists)
			return nil
		}
	}
}

// ask sends for a page and returns how to wait for it: the server works on the next one while this one is reduced.
func (k *kind) ask(ctx context.Context, o metav1.ListOptions) func() (*unstructured.UnstructuredList, error) {
	type answer struct {
		page *unstructured.UnstructuredList
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		page, err := k.page(ctx, o)
		answers <- answer{page, err}
	}()
	return func() (*unstructured.UnstructuredList, error) {
		a := <-answers
		return a.page, a.err
	}
}

// nextPage is how many objects like these make up a page.
func nextPage(items []unstructured.Unstructured) int64 {
	if len(items) == 0 {
		return firstPage
	}
	bytes := 0
	for i := range items {
		bytes += weigh(items[i].Object)
	}
	return min(max(int64(pageBytes*len(items)/max(bytes, 1)), smallestPage), largestPage)
}

// weigh estimates the size of a decoded value as JSON.
func weigh(v any) int {
	const other = 6 // a number, a boolean, quotes and what is between values
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
	late := fmt.Errorf("%w within %s", errNoAnswer, k.options.ListTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, k.options.ListTimeout, late)
	defer cancel()
	page, err := k.options.Client.Resource(k.resource).List(ctx, o)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return page, err
}
