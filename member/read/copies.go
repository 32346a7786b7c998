package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/member/epoch"
)

const (
	copiesPage = 250
	// maxCopiesPages is the maximum number of pages that are read of one kind. maxListedKinds is the maximum number of
	// kinds that are listed.
	maxCopiesPages = 200
	maxListedKinds = 500
	maxCopiesNotes = 20
)

// ListerOptions has the functions and clients for one member. All fields are required.
type ListerOptions struct {
	// Client lists only the metadata of objects. Every request has a timeout.
	Client dynamic.Interface
	// Groups returns the API groups that the member serves. Kinds returns the kinds of a group that can be listed.
	Groups func(context.Context) ([]string, error)
	Kinds  func(ctx context.Context, group string) ([]discovery.Kind, error)
	// HubUID is the value of the label hanse.dev/hub on the copies of this hub.
	HubUID types.UID
}

// Lister lists copies on one member. It keeps no state.
type Lister struct{ options ListerOptions }

// NewLister returns a Lister.
func NewLister(o ListerOptions) *Lister { return &Lister{o} }

// listing is the state of one call of Copies.
type listing struct {
	ctx   context.Context
	limit int
	keep  func(member.Copy) (bool, error)
	out   member.Copies
	// failed is the error that the caller's function keep returned. After such an error, the listing ends.
	failed error
}

func (l *listing) note(format string, args ...any) {
	if len(l.out.Notes) < maxCopiesNotes {
		l.out.Notes = append(l.out.Notes, member.Line(fmt.Sprintf(format, args...), 256))
	}
}

func (l *listing) full() bool { return len(l.out.Copies) >= l.limit }

func (l *listing) late() bool { return l.ctx.Err() != nil }

// Copies lists the copies on the member for which keep returns true. It implements a method of member.Pruner.
func (c *Lister) Copies(ctx context.Context, limit int, keep func(member.Copy) (bool, error)) (member.Copies, error) {
	l := &listing{ctx: ctx, limit: limit, keep: keep}
	kinds, err := c.kinds(l)
	if err != nil {
		return member.Copies{}, err
	}
	for _, kind := range kinds {
		if c.list(l, kind); l.failed != nil {
			return member.Copies{}, l.failed
		}
		if l.late() {
			l.note("the cluster took too long: the rest is not listed")
			break
		}
		if l.full() {
			l.note("there may be more than %d: the rest is not listed", limit)
			break
		}
	}
	return l.out, nil
}

// kinds returns the kinds that the hub may list and write on the member.
func (c *Lister) kinds(l *listing) ([]discovery.Kind, error) {
	// The hub writes nothing in its own namespace on a member, so that rights in only this namespace do not matter.
	rules, err := In(l.ctx, c.options.Client, hubv1.SystemNamespace)
	if err != nil {
		return nil, err
	}
	groups, all := rules.Groups("patch")
	if all {
		if groups, err = c.options.Groups(l.ctx); err != nil {
			return nil, err
		}
	}
	var out []discovery.Kind
	for _, group := range groups {
		kinds, err := c.options.Kinds(l.ctx, group)
		if err != nil {
			l.note("group %q: its kinds could not be read: %s", group, reason(err))
			continue
		}
		for _, kind := range kinds {
			if rules.Allow(schema.GroupResource{Group: group, Resource: kind.Resource}, "list", "patch") {
				out = append(out, kind)
			}
		}
	}
	if len(out) > maxListedKinds {
		l.note("there are more than %d kinds: the rest is not listed", maxListedKinds)
		out = out[:maxListedKinds]
	}
	return out, nil
}

// list adds the copies of a kind. If the list fails, it adds a note, and the other kinds are still listed.
func (c *Lister) list(l *listing, kind discovery.Kind) {
	options := metav1.ListOptions{Limit: copiesPage, LabelSelector: hubv1.HubLabel + "=" + string(c.options.HubUID)}
	resource := kind.GroupVersion().WithResource(kind.Resource)
	for range maxCopiesPages {
		next, err := c.page(l, kind, options)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			return // the kind is not served, so there are no copies
		case l.late():
			return
		case err != nil:
			l.note("%s: could not be listed: %s", resource.GroupResource(), reason(err))
			return
		case next == "" || l.full() || l.failed != nil:
			return
		}
		options.Continue = next
	}
	l.note("%s: there are more than %d, the rest is not listed", resource.GroupResource(), maxCopiesPages*copiesPage)
}

// page adds the copies of one page. It returns the token of the next page, which is empty at the end.
func (c *Lister) page(l *listing, kind discovery.Kind, options metav1.ListOptions) (next string, err error) {
	ctx, done := answer.Keep(l.ctx)
	defer done()
	page, err := c.options.Client.Resource(kind.GroupVersion().WithResource(kind.Resource)).List(ctx, options)
	if err != nil {
		return "", err
	}
	for i := range page.Items {
		copied, ok := c.copyOf(kind.GroupVersionKind, &page.Items[i])
		if !ok {
			continue
		}
		wanted, err := l.keep(copied)
		if err != nil {
			l.failed = err
			return "", nil
		}
		if wanted {
			l.out.Copies = append(l.out.Copies, copied)
		}
		if l.full() {
			break
		}
	}
	return page.GetContinue(), nil
}

// copyOf converts an object to a copy. It returns false for an object that is not a copy or is being deleted.
func (c *Lister) copyOf(gvk schema.GroupVersionKind, o *unstructured.Unstructured) (member.Copy, bool) {
	id := hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	owner, _, err := hubv1.ParseOwner(o.GetAnnotations()[hubv1.OwnerAnnotation])
	if err != nil || owner != id || informer.CheckObject(o) != nil || o.GetLabels()[hubv1.HubLabel] != string(c.options.HubUID) ||
		o.GetDeletionTimestamp() != nil || !content.Applied(o) {
		return member.Copy{}, false
	}
	for _, text := range []string{id.Namespace, id.Name, string(o.GetUID()), o.GetResourceVersion()} {
		if member.Line(text, hubv1.MaxNameLength) != text {
			return member.Copy{}, false
		}
	}
	return member.Copy{
		GVK: gvk, Object: id, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Created: o.GetCreationTimestamp().Time,
		Source:  epoch.ReadMark(o.GetAnnotations()[hubv1.SourceAnnotation], o.GetAnnotations()[hubv1.DecisionAnnotation]),
		Adopted: o.GetAnnotations()[hubv1.AdoptedAnnotation] == "true",
	}, true
}
