package command

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
	"github.com/hanse-dev/hanse/view/wire"
)

// viewedPolicy is an override policy that selects one of two objects. It changes the copy on one cluster, and removes
// the copy from another cluster.
const viewedPolicy = `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}],
	rules: [{name: change, clusters: {names: [ap-se-1]}, mergePatch: {data: {mode: dark}}}, {name: remove, exclude: true, clusters: {names: [cn-sha-1]}}]}}`

// dryRun is the answer of a member that returns the hub's object without additional defaults.
func dryRun(t *testing.T, cluster string, body []byte) (any, error) {
	t.Helper()
	var q wire.DiffRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := onHub.Get(t.Context(), client.ObjectKey{Namespace: q.Object.Namespace, Name: q.Object.Name}, object); err != nil {
		return nil, err
	}
	in := preview.RenderInput{Object: object, Clusters: []*hubv1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: cluster}}}}
	before := preview.Render(in)[0].Manifest
	for _, text := range q.Policies {
		p := &hubv1.OverridePolicy{}
		if err := json.Unmarshal(text, p); err != nil || p.Namespace != q.Object.Namespace {
			return nil, errors.Join(err, errors.New("a policy of namespace "+p.Namespace))
		}
		in.Policies = append(in.Policies, p)
	}
	after := preview.Render(in)[0]
	if after.Excluded != "" { // a copy is not rendered before the exclusion is decided
		after.Manifest = before
	}
	return wire.DiffAnswer{Before: before, After: after.Manifest}, nil
}

// others adds an object on both clusters of planHub. No edit selects this object.
func others(t *testing.T) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}
	apply(t, onHub, object)
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "others"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "other"}},
		Clusters:          hubv1.ClusterSelection{Names: []string{"ap-se-1", "cn-sha-1"}},
	}}
	apply(t, onHub, placement)
	key := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "other"}.BindingKey()
	apply(t, onHub, &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: hubv1.BindingSpec{
		ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: object.UID},
		PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "others", UID: placement.UID, Generation: 1},
		Clusters:     []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}, {Name: "cn-sha-1", State: hubv1.TargetPresent}},
	}})
}

func TestPlanAndTheDryRunsOfMembersNameTheSameChanges(t *testing.T) {
	planHub(t)
	others(t)
	systemNamespace(t, onHub)
	h := newPlayedHub(t, func(cluster, _ string, body []byte) (any, error) { return dryRun(t, cluster, body) })
	out, err := h.hansectl("plan", "-n", "shop", "-f", planFile(t, viewedPolicy), "--live", "--diff", "-o", "json", "--token-file", planFile(t, "token"))
	must(t, err)
	plan := planOf(t, out)
	settings := preview.Object{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	group := preview.Group{Clusters: []string{"ap-se-1"}, Fields: []preview.Field{{Path: "/data", After: map[string]any{"mode": "dark"}}}}
	group.Diff = "--- ap-se-1/ConfigMap/shop/settings\tnow\n+++ ap-se-1/ConfigMap/shop/settings\twith the change\n" + viewedDiff
	if diff := cmp.Diff([]preview.Change{{Object: settings, Groups: []preview.Group{group}}}, plan.Changes); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if len(plan.Removals) != 1 || plan.Removals[0].Object != settings || !slices.Equal(plan.Removals[0].Clusters, []string{"cn-sha-1"}) {
		t.Errorf("removals %+v", plan.Removals)
	}
	group.Diff = "--- ap-se-1/ConfigMap/shop/settings\ton the cluster\n+++ ap-se-1/ConfigMap/shop/settings\tas the hub would write it\n" + viewedDiff
	if diff := cmp.Diff([]preview.Change{{Object: settings, Groups: []preview.Group{group}}}, plan.Live.Changes); diff != "" || plan.Live.Asked != 1 {
		t.Errorf("%d members were asked, and answer (-want +got):\n%s", plan.Live.Asked, diff)
	}
}

const viewedDiff = `@@ -1,4 +1,6 @@
 apiVersion: v1
+data:
+  mode: dark
 kind: ConfigMap
 metadata:
   name: settings
`

func TestPlanReadsTheFilesBeforeItAsksMembers(t *testing.T) {
	planHub(t)
	systemNamespace(t, onHub)
	h := newPlayedHub(t, func(cluster, _ string, body []byte) (any, error) { return dryRun(t, cluster, body) })
	for name, tc := range map[string]struct{ file, want string }{
		"a field that the kind does not have": {
			`{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}], rule: []}}`,
			`OverridePolicy.hanse.dev x: strict decoding error: unknown field "spec.rule"`,
		},
		"a policy of another namespace": {
			`{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x, namespace: elsewhere}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: r, labels: {a: b}}]}}`,
			"OverridePolicy.hanse.dev elsewhere/x is not in namespace shop: leave out -n, or name its namespace",
		},
		"a kind that the hub does not serve": {
			`{apiVersion: example.com/v1, kind: Nothing, metadata: {name: a}}`, "the hub does not serve example.com/v1 Nothing, and no file has its CustomResourceDefinition",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.hansectl("plan", "--live", "-n", "shop", "-f", planFile(t, tc.file))
			refused(t, err, tc.want)
			exits(t, err, 1)
		})
	}
	if asked := h.took(); asked != "[]" {
		t.Errorf("members are asked: %s", asked)
	}
	t.Run("a note names a cluster that does not exist, but none that joins", func(t *testing.T) {
		file := planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: all}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [ap-se-1, cn-sha-3, us-2]}}}`)
		out, err := h.hansectl("plan", "-n", "shop", "-f", file, "--add-cluster", "us-2")
		must(t, err)
		wants(t, out, "Placement shop/all: no cluster is named cn-sha-3: there are ap-se-1, cn-sha-")
	})
}
