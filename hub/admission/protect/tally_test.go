package protect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// placed returns the binding of an object with n copies, and one more copy that is being withdrawn.
func placed(namespace, apiVersion, kind, name string, n int) hubv1.BindingObject {
	b := hubv1.NewBinding(types.NamespacedName{Namespace: namespace, Name: name})
	b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	b.BindingSpec().Clusters = []hubv1.BindingTarget{{Name: "gone", State: hubv1.TargetAbsent}}
	for range n {
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, hubv1.BindingTarget{Name: "c", State: hubv1.TargetPresent})
	}
	return b
}

func TestWhatIsProtected(t *testing.T) {
	definition := func(kind schema.GroupKind) string {
		if kind.Group == "" {
			return ""
		}
		return strings.ToLower(kind.Kind) + "s." + kind.Group
	}
	widget := func(ns, name string, n int) hubv1.BindingObject {
		return placed(ns, "test.hanse.dev/v1", "Widget", name, n)
	}
	labelled := hubv1.ObjectIdentity{Group: "test.hanse.dev", Kind: "Widget", Namespace: "a", Name: "w"}
	tests := map[string]struct {
		events   [][2]hubv1.BindingObject
		labelled []hubv1.ObjectIdentity
		want     map[string]string
	}{
		"five copies are not": {events: [][2]hubv1.BindingObject{{nil, widget("a", "w", 5)}}, want: map[string]string{}},
		"six copies protect namespace and definition": {
			events: [][2]hubv1.BindingObject{{nil, widget("a", "w", 3)}, {nil, widget("a", "v", 3)}},
			want:   map[string]string{"a": "more than 5 placed copies", "widgets.test.hanse.dev": "more than 5 placed copies"},
		},
		"a definition whose copies are in many namespaces is": {
			events: [][2]hubv1.BindingObject{{nil, widget("a", "w", 3)}, {nil, widget("b", "w", 30)}, {nil, placed("", "test.hanse.dev/v1", "Widget", "x", 80)}},
			want:   map[string]string{"b": "more than 20 placed copies", "widgets.test.hanse.dev": "more than 100 placed copies"},
		},
		"a kind without a definition protects its namespace alone": {
			events: [][2]hubv1.BindingObject{{nil, placed("a", "v1", "ConfigMap", "c", 6)}}, want: map[string]string{"a": "more than 5 placed copies"},
		},
		"what has gone is forgotten": {
			events: [][2]hubv1.BindingObject{{nil, widget("a", "w", 6)}, {widget("a", "w", 6), widget("a", "w", 4)}, {widget("a", "w", 4), nil}}, want: map[string]string{},
		},
		"one object with the label": {
			events: [][2]hubv1.BindingObject{{nil, widget("a", "w", 1)}}, labelled: []hubv1.ObjectIdentity{labelled},
			want: map[string]string{
				"a":                      "Widget.test.hanse.dev a/w with the label hanse.dev/deletion-protection",
				"widgets.test.hanse.dev": "Widget.test.hanse.dev a/w with the label hanse.dev/deletion-protection",
			},
		},
		"an object with the label of a kind that has no copies is not": {labelled: []hubv1.ObjectIdentity{labelled}, want: map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally()
			for _, e := range tc.events {
				tally.count(e[0], e[1])
			}
			if diff := cmp.Diff(tc.want, tally.protected(5, tc.labelled, definition)); diff != "" {
				t.Errorf("protected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNumberOfCopiesIsRoundedDown(t *testing.T) {
	for n, want := range map[int]int{6: 5, 7: 5, 11: 10, 20: 10, 21: 20, 999: 500, 1000: 500, 1001: 1000} {
		if got := step(n, 5); got != want {
			t.Errorf("step(%d) is %d, want %d", n, got, want)
		}
	}
	if got := step(8, 7); got != 7 {
		t.Errorf("above a limit of 7, eight copies are told as more than %d", got)
	}
}

func TestNamesStayWhileLabelsAreNotKnown(t *testing.T) {
	is := map[string]string{"a": "x", "b": "more than 5"}
	wanted := map[string]string{"b": "more than 10", "c": "more than 5"}
	if diff := cmp.Diff(map[string]string{"a": "x", "b": "more than 5", "c": "more than 5"}, merged(is, wanted, false)); diff != "" {
		t.Errorf("not known (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wanted, merged(is, wanted, true)); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
}
