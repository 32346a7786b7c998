package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// earlier returns its template, or its error, for the first revision. The second revision is not stored any more.
type earlier struct {
	Revisions
	template *unstructured.Unstructured
	err      error
	lost     string
}

func (e earlier) Lost(digest string) bool { return digest == e.lost }

func (e earlier) Template(_ context.Context, digest string) (*unstructured.Unstructured, error) {
	if digest != "one" {
		return nil, decide.ErrRevisionMissing
	}
	return e.template, e.err
}

func TestAnUndoOfADefinitionIsBlockedByAVersionThatClustersStore(t *testing.T) {
	t.Parallel()
	invented := "v" + strings.ToLower(rand.Text())
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gears.example.com"}
	versions := func(names ...string) *unstructured.Unstructured {
		var list []any
		for _, name := range names {
			list = append(list, map[string]any{"name": name})
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": definition.Name}, "spec": map[string]any{"versions": list}}}
	}
	tests := map[string]struct {
		of           hubv1.ObjectIdentity
		undo         string
		undone       string
		acknowledged string
		revisions    earlier
		stored       map[string]string // status.storedVersions of the definition, by cluster
		want         string
	}{
		"an earlier definition with all stored versions is no obstacle": {
			undo: "1", revisions: earlier{template: versions("v1", "v2")}, stored: map[string]string{"eu": `["v1","v2"]`},
		},
		"an earlier definition without a stored version is refused": {
			undo: "1@2026-03-01T12:00:00Z", revisions: earlier{template: versions("v1")},
			stored: map[string]string{"eu": `["v1","v2"]`, "us": `["v2"]`, "ap": `["v1"]`},
			want: "UndoBlocked: revision 1: 1 change breaks objects in use: crd gears.example.com, version v2, rule storedVersionRemoval, path /spec/versions/v2: " +
				"on clusters eu, us: the version is removed, but clusters store objects at this version. Clusters are unchanged. " +
				"Migrate the objects and update status.storedVersions on these clusters first, or run hansectl rollout undo with --acknowledge VERSION",
		},
		"an acknowledged version is no obstacle": {
			undo: "1", acknowledged: "v3, v2", revisions: earlier{template: versions("v1")}, stored: map[string]string{"eu": `["v2","v3"]`},
		},
		"an acknowledgement of another version is not enough": {
			undo: "1", acknowledged: "v3,", revisions: earlier{template: versions("v1")}, stored: map[string]string{"eu": `["v2","v3"]`}, want: "version v2",
		},
		"a version that no revision had is no obstacle": {
			undo: "1", revisions: earlier{template: versions("v1")}, stored: map[string]string{"evil": `["v1","` + invented + `"]`},
		},
		"only the first clusters are named": {
			undo: "1", revisions: earlier{template: versions("v1")},
			stored: map[string]string{"a": `["v2"]`, "b": `["v2"]`, "c": `["v2"]`, "d": `["v2"]`}, want: "on clusters a, b, c and 1 more: ",
		},
		"a text of many versions with long names keeps its remedy": {
			undo: "1", revisions: earlier{template: versions("v1")},
			stored: map[string]string{strings.Repeat("a", 59): `["v2","v3","v4"]`, strings.Repeat("b", 59): `["v2"]`, strings.Repeat("c", 59): `["v2"]`},
			want:   "; and 2 more. Clusters are unchanged. Migrate the objects",
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
		"a revision whose template is lost is refused": {
			undo: "1", revisions: earlier{template: versions("v1", "v2"), lost: "one"}, want: "cannot return to revision 1, whose Secret is gone",
		},
		"a revision whose rules are lost is refused for each kind": {
			of:   hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
			undo: "1", revisions: earlier{lost: "rules"}, want: "cannot return to revision 1, whose Secret is gone",
		},
		"another revision may be lost": {undo: "1", revisions: earlier{template: versions("v1", "v2"), lost: "two"}},
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
			binding.BindingSpec().Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "one", Policies: "rules"}, {Number: 2, Template: "two", Policies: "other"}}
			for cluster, stored := range tt.stored {
				binding.BindingStatus().Clusters = append(binding.BindingStatus().Clusters, hubv1.ClusterRow{
					Name: cluster, Observed: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"/storedVersions":%s}`, stored)},
				})
			}
			template := versions("v1", "v2", "v3", "v4")
			template.SetAnnotations(map[string]string{hubv1.RolloutUndoAnnotation: tt.undo, hubv1.RolloutUndoAcknowledgeAnnotation: tt.acknowledged})
			s := New(Options{Rollouts: Rollouts{Revisions: tt.revisions}})
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
