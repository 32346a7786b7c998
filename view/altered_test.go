package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestAChangedCopyDiffersThoughTheHubWouldChangeNothing(t *testing.T) {
	copied := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}}
	answer := wire.DiffAnswer{Before: copied, After: copied, Changed: ".spec.replicas 2 instead of 4"}
	diff := DiffOf("cn-sha-1", hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "ns", Name: "web"}, answer, nil)
	if !diff.Differs || diff.Diff != "" {
		t.Errorf("%+v", diff)
	}
	lines := diff.Lines()
	if len(lines) != 1 || lines[0].Text != "# cn-sha-1 changes what the hub sends: it stores .spec.replicas 2 instead of 4" {
		t.Errorf("%+v", lines)
	}
}

func TestARowSaysThatTheClusterChangedValuesBesideAnotherReason(t *testing.T) {
	changed := Report{Reason: "Failed", Message: "no disk", ChangedByCluster: ".spec.replicas 2 instead of 4"}
	if got := changed.why(); got != "Failed: no disk; ChangedByCluster: .spec.replicas 2 instead of 4" {
		t.Errorf("got %q", got)
	}
	changed.Reason, changed.Message = hubv1.ReasonChangedByCluster, "stores .spec.replicas 2 instead of 4"
	if got := changed.why(); strings.Count(got, ".spec.replicas") != 1 {
		t.Errorf("got %q", got)
	}
}

func TestExplainNamesEachFieldThatTheClusterChanged(t *testing.T) {
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": "web"}, "data": fields,
		}}
	}
	explained := func(kind, row string, onMember *unstructured.Unstructured) []string {
		b := &hubv1.ResourceBinding{}
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: kind, Name: "web", UID: "u1"}
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "cn-sha-1", State: hubv1.TargetPresent}}
		b.Status.Clusters = []hubv1.ClusterRow{{Name: "cn-sha-1", ChangedByCluster: row}}
		cluster := &hubv1.MemberCluster{}
		cluster.Name = "cn-sha-1"
		in := decide.Input{
			Object: decide.Object{Template: object(kind, map[string]any{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"})}, Binding: b,
			Facts: decide.Facts{Clusters: []*hubv1.MemberCluster{cluster}},
		}
		return FieldsOf(in, nil, cluster, onMember).Changed
	}
	capped := map[string]any{"a": "2", "b": "2", "c": "2", "d": "2", "e": "1", "added": "x"}
	all := []string{`.data.a "2" instead of "1"`, `.data.b "2" instead of "1"`, `.data.c "2" instead of "1"`, `.data.d "2" instead of "1"`}
	for name, tc := range map[string]struct {
		kind, row string
		onMember  *unstructured.Unstructured
		want      []string
	}{
		"all of them, if the copy was read":        {"ConfigMap", "three and 1 more", object("ConfigMap", capped), all},
		"those of the row, if it was not":          {"ConfigMap", "three and 1 more", nil, []string{"three and 1 more"}},
		"those of the row for a Secret":            {"Secret", ".data.a", object("Secret", capped), []string{".data.a"}},
		"none of a copy that differs for a moment": {"ConfigMap", "", object("ConfigMap", capped), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, explained(tc.kind, tc.row, tc.onMember)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
