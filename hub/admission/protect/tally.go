package protect

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// tally has the numbers of placed copies, by namespace and by kind. A placed copy is one that a cluster has or shall
// have.
type tally struct {
	namespaces map[string]int
	kinds      map[schema.GroupKind]int
}

func newTally() *tally {
	return &tally{namespaces: map[string]int{}, kinds: map[schema.GroupKind]int{}}
}

// count updates the numbers of placed copies after a change of a binding. before is nil for a new binding, and after is
// nil for a deleted one. It reports whether a number has changed.
func (t *tally) count(before, after hubv1.BindingObject) bool {
	was, is := copies(before), copies(after)
	if was == is {
		return false // the object of a binding never changes
	}
	b := cmp.Or(after, before)
	if ref := b.BindingSpec().ObjectRef; ref.Bundle == nil { // objects of bundles do not need their CRD on the hub
		add(t.kinds, ref.GroupVersionKind().GroupKind(), is-was)
	}
	if ns := b.GetNamespace(); ns != "" {
		add(t.namespaces, ns, is-was)
	}
	return true
}

func add[K comparable](sums map[K]int, key K, n int) {
	if sums[key] += n; sums[key] <= 0 {
		delete(sums, key)
	}
}

// copies returns the number of clusters that have, or shall have, a copy of the binding's object.
func copies(b hubv1.BindingObject) int {
	if b == nil {
		return 0
	}
	n := 0
	for _, target := range b.BindingSpec().Clusters {
		if target.State != hubv1.TargetAbsent {
			n++
		}
	}
	return n
}

// protected returns the content of the ConfigMap: the protected names, each with the reason. definition returns the
// name of a kind's CustomResourceDefinition, or an empty name if there is none to protect.
func (t *tally) protected(limit int, labelled []hubv1.ObjectIdentity, definition func(schema.GroupKind) string) map[string]string {
	out := map[string]string{}
	note := func(name string, n int) {
		if name != "" && n > limit {
			out[name] = fmt.Sprintf("more than %d placed copies", step(n, limit))
		}
	}
	for name, n := range t.namespaces {
		note(name, n)
	}
	for kind, n := range t.kinds {
		note(definition(kind), n)
	}
	slices.SortFunc(labelled, func(a, b hubv1.ObjectIdentity) int { return cmp.Compare(text(a), text(b)) })
	for _, id := range labelled {
		if t.kinds[id.GroupKind()] == 0 {
			continue
		}
		for _, name := range []string{id.Namespace, definition(id.GroupKind())} {
			if _, noted := out[name]; name != "" && !noted {
				out[name] = fmt.Sprintf("%s with the label %s", text(id), hubv1.DeletionProtectionLabel)
			}
		}
	}
	return out
}

// text returns a text such as "Widget.test.hanse.dev a/b".
func text(id hubv1.ObjectIdentity) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return id.GroupKind().String() + " " + name
}

// step returns the largest number of the series 1, 2, 5, 10, 20, 50 and so on that is less than n, but at least limit.
// Because this number seldom changes, the text in the ConfigMap seldom changes.
func step(n, limit int) int {
	out := limit
	for scale := 1; scale < n; scale *= 10 {
		for _, digit := range []int{1, 2, 5} {
			if digit*scale < n {
				out = max(out, digit*scale)
			}
		}
	}
	return out
}
