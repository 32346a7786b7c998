package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const europeFirst = `
clusters: {labelSelector: {}}
rollout:
  settleSeconds: 0
  onFailure: Rollback
  healthGate: {timeoutSeconds: 120, minObservedSeconds: 0}
  waves:
  - {name: europe, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu-central-1}}}, soakSeconds: 2}
  - {name: singapore, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: ap-southeast-1}}}, maxConcurrent: 1, approval: Manual}
  - {name: rest}
`

// TestAChangeGoesInWaves first makes a change whose pods never become ready: its rollout stops in the first wave and is
// rolled back. Then it makes a good change, which passes all waves after an approval. Edits of an override policy and
// of the placement pass through the same waves.
func TestAChangeGoesInWaves(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	behindEurope := []string{singapore, shanghai}
	web := deployment(ns, "staged-web")
	must(t, unstructured.SetNestedField(web.Object, int64(10), "spec", "progressDeadlineSeconds"))
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(europeFirst), &spec))
	p := place(t, ns, "staged", deployments, spec)
	must(t, suite.Hub.Create(ctx, web))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	for _, name := range members { // an object without clusters is Complete, too
		eventually(t, time.Minute, func() error { return imageOn(ctx, name, web, "example.org/web:1") })
	}
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	before := writesBehind(t, web, behindEurope)

	setImage(t, web, "hanse.dev/broken")
	eventually(t, time.Minute, func() error { return imageOn(ctx, frankfurt, web, "hanse.dev/broken") })
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutRolledBack, "") })
	eventually(t, time.Minute, func() error { return imageOn(ctx, frankfurt, web, "example.org/web:1") })
	if diff := cmp.Diff(before, writesBehind(t, web, behindEurope)); diff != "" {
		t.Errorf("the bad change reached clusters behind the first wave (-before +after):\n%s", diff)
	}

	setImage(t, web, "example.org/web:2")
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore") })
	must(t, imageOn(ctx, frankfurt, web, "example.org/web:2"))
	if diff := cmp.Diff(before, writesBehind(t, web, behindEurope)); diff != "" {
		t.Errorf("a change that waits for approval reached clusters of the next wave (-before +after):\n%s", diff)
	}
	approve(t, p)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	for _, name := range members {
		must(t, imageOn(ctx, name, web, "example.org/web:2"))
	}

	passed := writesBehind(t, web, behindEurope)
	must(t, suite.Hub.Create(ctx, &hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "marked"}, Spec: hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{deployments},
			Rules:             []hubv1.OverrideRule{{Name: "marked", Annotations: map[string]string{"example.org/marked": "yes"}}},
		},
	}))
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore") })
	if diff := cmp.Diff(passed, writesBehind(t, web, behindEurope)); diff != "" {
		t.Errorf("an override policy that waits for approval reached clusters of the next wave (-before +after):\n%s", diff)
	}
	approve(t, p)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })

	passed = writesBehind(t, web, behindEurope)
	patchPlacement(t, p, `{"apply":{"memberOwnedFields":["/spec/replicas"]}}`)
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore") })
	if diff := cmp.Diff(passed, writesBehind(t, web, behindEurope)); diff != "" {
		t.Errorf("a placement whose change waits for approval reached clusters of the next wave (-before +after):\n%s", diff)
	}

	must(t, suite.Hub.Delete(ctx, web.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(ctx, web) })
	eventually(t, 3*time.Minute, func() error {
		var contents corev1.SecretList
		err := suite.Hub.List(ctx, &contents, client.InNamespace(hubv1.SystemNamespace), client.HasLabels{hubv1.RevisionLabel})
		if n := len(contents.Items); n > 0 {
			return fmt.Errorf("%d contents of revisions are stored, and no object has a revision", n)
		}
		return err
	})
}

// rolloutIs returns an error unless the rollout of an object is in this phase and wave.
func rolloutIs(ctx context.Context, obj *unstructured.Unstructured, phase hubv1.RolloutPhase, wave string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	r := b.BindingSpec().Rollout
	if r == nil || r.Phase != phase || r.Wave != wave {
		return fmt.Errorf("the rollout is %+v, want phase %s and wave %q; the targets are %+v", r, phase, wave, b.BindingSpec().Clusters)
	}
	return nil
}

// writesBehind returns the number of the hub's patches of an object on each member, from the audit logs of the members.
func writesBehind(t *testing.T, obj *unstructured.Unstructured, names []string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, name := range names {
		out[name] = len(writesOf(t, suite.Members[name].AuditLog, obj.GetName()))
	}
	return out
}

func setImage(t *testing.T, d *unstructured.Unstructured, image string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	must(t, suite.Hub.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)))
}

// imageOn returns nil if the Deployment's copy on the member has this image.
func imageOn(ctx context.Context, member string, d *unstructured.Unstructured, image string) error {
	copied := d.DeepCopy()
	if err := suite.Members[member].Get(ctx, client.ObjectKeyFromObject(d), copied); err != nil {
		return err
	}
	containers, _, err := unstructured.NestedSlice(copied.Object, "spec", "template", "spec", "containers")
	if err == nil && (len(containers) == 0 || containers[0].(map[string]any)["image"] != image) {
		return fmt.Errorf("the containers on %s are %v, want image %s", member, containers, image)
	}
	return err
}

// approve approves the wave singapore of a placement, for changes that began before now.
func approve(t *testing.T, p *hubv1.Placement) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.RolloutApproveAnnotation, "singapore@"+time.Now().UTC().Format(time.RFC3339))
	must(t, suite.Hub.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}
