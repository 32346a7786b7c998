package command

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
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

func TestPlanSimulateAndDiffNameTheSameChangedObjects(t *testing.T) {
	planHub(t)
	others(t)
	systemNamespace(t, onHub)
	h := newPlayedHub(t, func(cluster, _ string, body []byte) (any, error) { return dryRun(t, cluster, body) })
	edit, token := planFile(t, viewedPolicy), planFile(t, "token")
	shown := func(into any, args ...string) {
		t.Helper()
		out, err := h.hansectl(append(args, "-n", "shop", "-f", edit, "-o", "json")...)
		if ExitCode(err) > 1 {
			t.Fatal(err)
		}
		must(t, json.Unmarshal([]byte(jsonIn(out)), into))
	}
	// effect has an object that changes, the clusters on which its copy changes, and the clusters on which its copy is
	// removed.
	type effect struct {
		Object        string
		Changed, Lost []string
	}
	want := []effect{{"settings", []string{"ap-se-1"}, []string{"cn-sha-1"}}}

	var planned preview.Plan
	shown(&planned, "plan", "--live", "--token-file", token)
	var got []effect
	for _, o := range planned.Objects() {
		e := effect{Object: o.Name}
		for _, r := range planned.Removals {
			if r.Object == o {
				e.Lost = append(e.Lost, r.Clusters...)
			}
		}
		for _, c := range planned.Changes {
			if c.Object == o {
				e.Changed = append(e.Changed, c.Groups[0].Clusters...)
			}
		}
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(planned.Changes, planned.Live.Changes); diff != "" {
		t.Errorf("the members' answer (-computed +answered):\n%s", diff)
	}

	var simulation view.Simulation
	shown(&simulation, "simulate")
	got = nil
	for _, o := range simulation.Objects {
		got = append(got, effect{o.Object.Name, want[0].Changed, o.Lost}) // simulate does not compare contents
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("simulate (-want +got):\n%s", diff)
	}

	got = nil
	for _, name := range []string{"other", "settings"} {
		var compared view.Diff
		shown(&compared, "diff", "configmap", name, "--token-file", token)
		e := effect{name, nil, want[0].Lost} // diff does not decide where the object goes
		for _, c := range compared.Clusters {
			if c.Error != "" {
				t.Errorf("%s: %s", c.Cluster, c.Error)
			}
			if c.Differs {
				e.Changed = append(e.Changed, c.Cluster)
			}
		}
		if len(compared.Clusters) != 2 {
			t.Errorf("%s is compared on %+v, want two clusters", name, compared.Clusters)
		}
		if e.Changed != nil {
			got = append(got, e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
}

func TestDiffAndSimulateReadFilesAsPlanDoes(t *testing.T) {
	planHub(t)
	systemNamespace(t, onHub)
	h := newPlayedHub(t, func(cluster, _ string, body []byte) (any, error) { return dryRun(t, cluster, body) })
	unknownField := `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}], rule: []}}`
	elsewherePolicy := `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x, namespace: elsewhere}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: r, labels: {a: b}}]}}`
	elsewhere := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere}}`
	tests := map[string]struct {
		args []string
		file string
		want string
	}{
		"diff of a field that there is not":       {[]string{"diff", "configmap", "settings"}, unknownField, `OverridePolicy.hanse.dev x: strict decoding error: unknown field "spec.rule"`},
		"diff of another kind":                    {[]string{"diff", "configmap", "settings"}, planPlacement, "Placement.hanse.dev all is no override policy, and only these are compared"},
		"diff of a policy of another namespace":   {[]string{"diff", "configmap", "settings"}, elsewherePolicy, `OverridePolicy.hanse.dev elsewhere/x selects no object of another namespace, such as one of namespace "shop"`},
		"simulate an object of another namespace": {[]string{"simulate"}, elsewhere, "ConfigMap elsewhere/a is not in namespace shop: leave out -n, or name its namespace"},
		"simulate a kind that the hub has not":    {[]string{"simulate"}, `{apiVersion: example.com/v1, kind: Nothing, metadata: {name: a}}`, "the hub does not serve example.com/v1 Nothing, and no file has its CustomResourceDefinition"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := h.hansectl(append(tc.args, "-n", "shop", "-f", planFile(t, tc.file))...)
			refused(t, err, tc.want)
			exits(t, err, 2)
		})
	}
	if asked := h.took(); asked != "[]" {
		t.Errorf("members are asked: %s", asked)
	}
	t.Run("simulate notes a cluster that there is not, and none that joins", func(t *testing.T) {
		file := planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: all}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [ap-se-1, cn-sha-3, us-2]}}}`)
		out, err := h.hansectl("simulate", "-n", "shop", "-f", file, "--add-cluster", "us-2")
		exits(t, err, 1)
		wants(t, out, "Placement shop/all: no cluster is named cn-sha-3; did you mean cn-sha-")
	})
}
