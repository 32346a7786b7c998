package read

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"

	"github.com/hanse-dev/hanse/member/health"
)

const (
	childrenPage = 100
	// maxChildrenPages is the maximum number of pages that are read of one kind and namespace.
	maxChildrenPages = 20
	// maxListedChildren is the maximum number of objects that are kept of one kind and namespace, whatever page size the
	// server uses.
	maxListedChildren = childrenPage * maxChildrenPages
)

// place is the kind and the namespace of one list request.
type place struct {
	schema.GroupVersionResource
	namespace string
}

// listed has the fields of an object that the search needs. All other data of a page are dropped before the next page
// is read.
type listed struct {
	child member.Child // its children are added later
}

func listedOf(o *unstructured.Unstructured) listed {
	gvk := o.GroupVersionKind()
	l := listed{child: member.Child{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}}
	if gvk.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		l.child.State, l.child.Containers = podState(o), containers(o)
		return l
	}
	verdict := health.Assess(o, health.Conventions{})
	l.child.Health, l.child.State = verdict.Health, verdict.Message
	return l
}

// list returns the objects of one kind and namespace, grouped by the UIDs of their owners.
func (s *search) list(p place) map[types.UID][]listed {
	if found, asked := s.lists[p]; asked {
		return found
	}
	found := map[types.UID][]listed{}
	s.lists[p] = found
	if !s.mayList(p) {
		s.note("%s: not granted to the hub on this cluster", p.GroupResource())
		return found
	}
	options, kept := metav1.ListOptions{Limit: childrenPage}, 0
	for pages := 0; pages < maxChildrenPages && kept < maxListedChildren; pages++ {
		next, err := s.page(p, options, func(owner types.UID, child listed) {
			if kept++; kept <= maxListedChildren {
				found[owner] = append(found[owner], child)
			}
		})
		switch {
		case apierrors.IsNotFound(err):
			return found // the cluster does not serve the kind
		case apierrors.IsForbidden(err):
			s.note("%s: not granted to the hub on this cluster", p.GroupResource())
			return found
		case err != nil:
			s.note("%s: could not be listed: %s", p.GroupResource(), reason(err))
			return found
		}
		if options.Continue = next; next == "" && kept <= maxListedChildren {
			return found
		}
	}
	s.note("%s: namespace %s has more than %d: the rest is not read", p.GroupResource(), p.namespace, maxListedChildren)
	return found
}

// page requests one page, and calls add for each listed object once for each of its owners. It returns the token of
// the next page, which is empty at the end.
func (s *search) page(p place, options metav1.ListOptions, add func(owner types.UID, child listed)) (next string, err error) {
	ctx, done := answer.Keep(s.ctx)
	defer done()
	page, err := s.client.Resource(p.GroupVersionResource).Namespace(p.namespace).List(ctx, options)
	if err != nil {
		return "", err
	}
	for i := range page.Items {
		o := &page.Items[i]
		owners := o.GetOwnerReferences()
		if len(owners) == 0 || len(o.GetName()) > hubv1.MaxNameLength || len(o.GetUID()) > hubv1.MaxUIDLength {
			continue
		}
		child := listedOf(o)
		for _, owner := range owners {
			add(owner.UID, child)
		}
	}
	return page.GetContinue(), nil
}

// reason returns why a request failed, without the address of the server.
func reason(err error) string {
	if answer.IsTooLarge(err) {
		return err.Error()
	}
	if r := apierrors.ReasonForError(err); r != metav1.StatusReasonUnknown {
		return string(r)
	}
	return "the cluster did not answer"
}

// mayList reports whether the hub may list the kind on the member. If the member has not reported all rights of the
// hub, it returns true.
func (s *search) mayList(p place) bool {
	rules, asked := s.granted[p.namespace]
	if !asked {
		rules, _ = In(s.ctx, s.client, p.namespace) // if the review fails, mayList allows every list
		s.granted[p.namespace] = rules
	}
	return rules.Allow(p.GroupResource(), "list")
}
