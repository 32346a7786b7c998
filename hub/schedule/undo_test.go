package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
)

// earlier returns the same template, or the same error, for each revision.
type earlier struct {
	Revisions
	template *unstructured.Unstructured
	err      error
}

func (e earlier) Template(context.Context, string) (*unstructured.Unstructured, error) {
	return e.template, e.err
}

func TestAnUndoOfADefinitionIsBlockedByAVersionThatClustersStore(t *testing.T) {
	t.Parallel()
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gears.example.com"}
	versions := func(names ...string) *unstructured.Unstructured {
		var list []any
		for _, name := range names {
			list = append(list, map[string]any{"name": name})
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": definition.Name}, "spec": map[string]any{"versions": list}}}
	}
	tests := map[string]struct {
		of        hubv1.ObjectIdentity
		undo      string
		undone    string
		revisions earlier
		stored    map[string]string // status.storedVersions of the definition, by cluster
		want      string
	}{
		"an earlier definition with all stored versions is no obstacle": {
			undo: "1", revisions: earlier{template: versions("v1", "v2")}, stored: map[string]string{"eu": `["v1","v2"]`},
		},
		"an earlier definition without a stored version is refused": {
			undo: "1@2026-03-01T12:00:00Z", revisions: earlier{template: versions("v1")},
			stored: map[string]string{"eu": `["v1","v2"]`, "us": `["v2"]`, "ap": `["v1"]`},
			want: "UndoBlocked: revision 1: 1 change breaks what is in use: crd gears.example.com, version v2, rule storedVersionRemoval, path /spec/versions/v2: " +
				"on clusters eu, us: the version is removed, but clusters store objects at it. Clusters are unchanged. " +
				"Keep the newer definition, or migrate the objects and status.storedVersions of these clusters first",
		},
		"only the first clusters are named": {
			undo: "1", revisions: earlier{template: versions("v1")},
			stored: map[string]string{"a": `["v2"]`, "b": `["v2"]`, "c": `["v2"]`, "d": `["v2"]`}, want: "on clusters a, b, c and 1 more: ",
		},
		"a text of many versions with long names keeps its remedy": {
			undo: "1", revisions: earlier{template: versions("v1")},
			stored: map[string]string{strings.Repeat("a", 59): `["v2","v3","v4"]`, strings.Repeat("b", 59): `["v2"]`, strings.Repeat("c", 59): `["v2"]`},
			want:   "; and 2 more. Clusters are unchanged. Keep the newer definition, or migrate",
		},
		"a revision that is no definition is refused": {
			undo: "1", revisions: earlier{template: &unstructured.Unstructured{Object: map[string]any{"spec": "none"}}},
			want: "cannot compare revision 1 with the versions that clusters store: reading CustomResourceDefinition",
		},
		"a revision that cannot be read is refused": {
			undo: "1", revisions: earlier{err: errors.New("no answer")}, want: "cannot compare revision 1 with the versions that clusters store: no answer",
		},
		"an undo that the rollout follows already is not compared again": {
			undo: "1", undone: "1", revisions: earlier{template: versions("v1")}, stored: map[string]string{"eu": `["v2"]`},
		},
		"a revision that is gone is for the rollout to refuse": {
			undo: "9", revisions: earlier{template: versions("v1")}, stored: map[string]string{"eu": `["v2"]`},
		},
		"an object of another kind has no versions": {
			of:   hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
			undo: "1", revisions: earlier{template: versions("v1")}, stored: map[string]string{"eu": `["v2"]`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := tt.of
			if id.Name == "" {
				id = definition
			}
			binding := hubv1.NewBinding(id.BindingKey())
			binding.BindingSpec().Rollout = &hubv1.BindingRollout{Revision: 2, Newest: 2, Undone: tt.undone}
			binding.BindingSpec().Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "one"}, {Number: 2, Template: "two"}}
			for cluster, stored := range tt.stored {
				binding.BindingStatus().Clusters = append(binding.BindingStatus().Clusters, hubv1.ClusterRow{
					Name: cluster, Observed: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"/storedVersions":%s}`, stored)},
				})
			}
			template := versions("v1", "v2")
			template.SetAnnotations(map[string]string{hubv1.RolloutUndoAnnotation: tt.undo})
			s := New(Options{Revisions: tt.revisions})
			got := s.undoBlocked(t.Context(), decide.Input{Object: decide.Object{ID: id, Template: template}, Binding: binding})
			if got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
			if n := len(got); n > 512 {
				t.Errorf("it has %d characters, and BindingRollout.Message takes 512", n)
			}
		})
	}
}
