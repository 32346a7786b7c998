package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/test/charts"
	"github.com/hanse-dev/hanse/view"
)

// settings returns a ConfigMap of the hub with a binding for two clusters.
func settings(t *testing.T) (*corev1.ConfigMap, *hubv1.ResourceBinding) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	apply(t, onHub, object)
	key := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}.BindingKey()
	binding := &hubv1.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{hubv1.WithdrawFinalizer}},
		Spec: hubv1.BindingSpec{
			ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: object.UID},
			PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "all", UID: "p", Generation: 1},
			Clusters:     []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}, {Name: "cn-sha-1", State: hubv1.TargetPresent}},
		},
	}
	return object, binding
}

// aHubRan makes the Lease of a hub that renewed it at a time.
func aHubRan(t *testing.T, at time.Time) {
	t.Helper()
	apply(t, onHub, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("hanse-hub-1_x"), LeaseDurationSeconds: ptr.To[int32](13), RenewTime: &metav1.MicroTime{Time: at}},
	})
}

func TestStatusFindsAnObjectAsKubectlDoes(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	object, binding := settings(t)

	t.Run("without a binding it says why", func(t *testing.T) {
		out, err := hansectl(t, "status", "configmap", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   not federated", "NotSelected: no placement selects it", "create a Placement in namespace shop")
	})

	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{
		Summary: hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1},
		Clusters: []hubv1.ClusterRow{
			{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
			{Name: "cn-sha-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden, Message: "grant it"},
		},
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	for _, args := range [][]string{{"configmap", "settings"}, {"configmaps", "settings"}, {"cm", "settings"}, {"ConfigMap", "settings"}, {"configmaps.v1.", "settings"}, {"cm/settings"}} {
		t.Run("as "+strings.Join(args, " "), func(t *testing.T) {
			out, err := hansectl(t, append(append([]string{"status"}, args...), "-n", "shop")...)
			must(t, err)
			wants(t, out, "ConfigMap shop/settings   Placement/all", "APPLIED 1/2   HEALTHY 1/2", "cn-sha-1   -        -     False     -       Unknown   live    Forbidden: grant it")
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "json")
		must(t, err)
		var s view.Status
		must(t, json.Unmarshal([]byte(out), &s))
		if s.Object.Name != "settings" || len(s.Clusters) != 2 || s.Clusters[1].Reason != hubv1.ReasonForbidden {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("as YAML", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "yaml")
		must(t, err)
		wants(t, out, "clusters:\n- applied: \"True\"\n  cluster: ap-se-1\n")
	})
	t.Run("a deleted object is still shown", func(t *testing.T) {
		must(t, onHub.Delete(t.Context(), object))
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   deleted")
	})
	t.Run("what is not there is an error", func(t *testing.T) {
		_, err := hansectl(t, "status", "cm", "other", "-n", "shop")
		refused(t, err, "the hub has no ConfigMap shop/other")
		if strings.Contains(err.Error(), "another namespace") {
			t.Errorf("the namespace was named: %v", err)
		}
		for _, args := range [][]string{{"status", "cm/settings"}, {"explain", "cm/settings"}, {"suspend", "placement/all"}, {"confirm", "placement/all"}} {
			_, err = hansectl(t, args...)
			refused(t, err, "the hub has no ", "(look in another namespace with -n)")
			exits(t, err, 1)
		}
		_, err = hansectl(t, "status", "prometheus", "web")
		refused(t, err, `the hub does not serve a kind "prometheus"`)
	})
}

func TestStatusShowsTheBindingOfAnObjectThatCannotBeRead(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	definition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: brokens.dead.example.com}
spec:
  group: dead.example.com
  scope: Namespaced
  names: {kind: Broken, plural: brokens}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/none"}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), &definition.Object))
	apply(t, onHub, definition)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "dead.example.com/v1", "kind": "Broken", "metadata": map[string]any{"namespace": "shop", "name": "web"},
	}}
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return client.IgnoreAlreadyExists(onHub.Create(ctx, object.DeepCopy())) == nil, nil
	}))
	t.Cleanup(func() { remove(t, onHub, object) }) // before its definition
	key := hubv1.ObjectIdentity{Group: "dead.example.com", Kind: "Broken", Namespace: "shop", Name: "web"}.BindingKey()
	binding := &hubv1.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: hubv1.BindingSpec{
			ObjectRef: hubv1.ObjectReference{APIVersion: "dead.example.com/v2", Kind: "Broken", Name: "web", UID: "u"},
			Clusters:  []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}},
		},
	}
	apply(t, onHub, binding)
	binding.Status.Clusters = []hubv1.ClusterRow{{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}}
	must(t, onHub.Status().Update(t.Context(), binding))
	out, err := hansectl(t, "status", "brokens.v2.dead.example.com", "web", "-n", "shop")
	must(t, err)
	wants(t, out, "warning: reading Broken.dead.example.com shop/web: ", "conversion webhook", "ap-se-1")
}

// A ConfigMap has no generation. Only the digest in its row shows whether the copy has the present content of the hub
// object.
func TestWithoutAHubAppliedIsWhatTheDigestShows(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now().Add(-time.Hour))
	object, binding := settings(t)
	for _, name := range []string{"ap-se-1", "cn-sha-1"} {
		apply(t, onHub, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		}})
	}
	apply(t, onHub, binding)
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(object), template))
	prepared, err := overrides.Prepare(template, nil)
	must(t, err)
	result, err := prepared.Render(overrides.Cluster{Name: "ap-se-1"}, nil, nil)
	must(t, err)
	digest := overrides.Digest(canonical.Key{}, result.Manifest, string(object.UID))
	binding.Status = hubv1.BindingStatus{Summary: hubv1.BindingSummary{Desired: 2, Applied: 2, Healthy: 2}}
	for _, name := range []string{"ap-se-1", "cn-sha-1"} {
		binding.Status.Clusters = append(binding.Status.Clusters, hubv1.ClusterRow{Name: name, UID: "u", Digest: digest, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy})
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	says := func(t *testing.T, words ...string) {
		t.Helper()
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, words...)
	}

	t.Run("an object that is as it was is applied", func(t *testing.T) { says(t, "APPLIED 2/2") })
	t.Run("a label that does not travel changes nothing", func(t *testing.T) {
		must(t, onHub.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`))))
		says(t, "APPLIED 2/2")
	})
	t.Run("an object that has changed is not", func(t *testing.T) {
		must(t, onHub.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"red"}}`))))
		says(t, "APPLIED 0/2", "Pending: the desired content has changed, but no hub runs to write it")
	})
	t.Run("one that is deleted is not", func(t *testing.T) {
		must(t, onHub.Delete(t.Context(), object))
		says(t, "APPLIED 0/2")
	})
}

func TestAHubIsSilentIfALeaseThatLooksOldStaysAsItIs(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	held := func(renewed int) holder { return holder{name: "a", renewed: second(renewed), lasts: 13 * time.Second} }
	type sight struct {
		at            int
		now           holder
		silent, known bool
	}
	for name, sights := range map[string][]sight{
		"one that is renewed":                      {{100, held(99), false, true}},
		"one that was renewed 15 s ago":            {{115, held(100), false, true}},
		"one that is older is looked at again":     {{116, held(100), false, false}, {117, held(100), false, false}, {118, held(100), true, true}},
		"and told at once while it stays so":       {{116, held(100), false, false}, {118, held(100), true, true}, {119, held(100), true, true}},
		"one that is renewed by a clock behind":    {{200, held(100), false, false}, {201, held(101), false, true}},
		"one that another replica takes":           {{116, held(100), false, false}, {117, held(117), false, true}},
		"one that was renewed and then is no more": {{200, held(100), false, false}, {201, held(101), false, true}, {203, held(101), true, true}},
		"none at all": {{100, holder{}, true, true}},
		"one that is renewed by a clock that is ahead":  {{100, held(160), false, true}},
		"one that looked old, was fresh and is old now": {{116, held(100), false, false}, {117, held(117), false, true}, {140, held(117), false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var w silenceWatch
			for i, s := range sights {
				if silent, known := w.see(s.now, second(s.at)); silent != s.silent || known != s.known {
					t.Errorf("look %d: silent %t, known %t", i, silent, known)
				}
			}
		})
	}
}

func TestStatusSaysWhetherAHubRuns(t *testing.T) {
	fresh(t)
	_, binding := settings(t)
	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{Clusters: []hubv1.ClusterRow{{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}}}
	must(t, onHub.Status().Update(t.Context(), binding))
	const (
		row  = "ap-se-1    -        -     True      -       Healthy   %s"
		last = "ap-se-1    -        -     Unknown   -       Healthy?   %s"
	)
	status := []string{"status", "cm", "settings", "-n", "shop"}

	t.Run("none ever did", func(t *testing.T) {
		out, err := hansectl(t, status...)
		must(t, err)
		wants(t, out, "Hub:       no hub has run yet, or its Lease is gone", fmt.Sprintf(last, "- "))
	})
	t.Run("one does whose clock is a minute behind", func(t *testing.T) {
		aHubRan(t, time.Now().Add(-time.Minute))
		ctx, stop := context.WithCancel(t.Context())
		renewing := make(chan error, 1)
		go func() {
			renewing <- wait.PollUntilContextCancel(ctx, 300*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				renewed := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().Add(-time.Minute).UTC().Format(metav1.RFC3339Micro))
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName}}
				return false, client.IgnoreNotFound(onHub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, renewed)))
			})
		}()
		out, err := hansectl(t, status...)
		stop()
		<-renewing
		must(t, err)
		wants(t, out, fmt.Sprintf(row, "live"))
		if strings.Contains(out, "Hub:") {
			t.Errorf("a hub runs, and it says\n%s", out)
		}
	})
	t.Run("none has for less than 20 s", func(t *testing.T) {
		aHubRan(t, time.Now().Add(-16*time.Second))
		out, err := hansectl(t, status...)
		must(t, err)
		wants(t, out, "Hub:       no hub has run for ", "APPLIED 0/2   HEALTHY 0/2", "no hub runs, so it is unknown whether the cluster holds the desired content")
		if strings.Contains(out, "live ") {
			t.Errorf("no hub runs, and it says\n%s", out)
		}
	})
	t.Run("none does any more", func(t *testing.T) {
		aHubRan(t, time.Now().Add(-150*time.Minute))
		out, err := hansectl(t, status...)
		must(t, err)
		wants(t, out, "Hub:       no hub has run for 150m: the state is not newer", fmt.Sprintf(last, "150m"))
		for _, args := range [][]string{{"clusters"}, {"problems"}, {"explain", "cm", "settings", "-n", "shop"}} {
			out, err := hansectl(t, args...)
			must(t, err)
			wants(t, out, "warning: no hub has run for 150m: the state is not newer")
		}
		out, err = hansectl(t, append(status, "-o", "json")...)
		must(t, err)
		var s view.Status
		must(t, json.Unmarshal([]byte(out), &s))
		if s.Silence == nil || s.Silence.Since == nil || s.Clusters[0].LastObservedTime == nil || s.Clusters[0].Away {
			t.Errorf("got silence %v, row %+v", s.Silence, s.Clusters[0])
		}
	})
	t.Run("who may not see the Lease is warned, and the chart has a role that lets him see it", func(t *testing.T) {
		const warning = "warning: hansectl cannot check whether a hub runs: "
		aHubRan(t, time.Now().Add(-150*time.Minute))
		user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tenant"}}
		asTenant := func(asWanted func(out string) bool) {
			t.Helper()
			var out string
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
				var err error
				out, err = hansectl(t, append(status, "--as", "tenant", "--as-group", "system:authenticated")...)
				return err == nil && asWanted(out), nil // the API server learns of new roles by a watch
			})
			if err != nil {
				t.Errorf("%v: it says last\n%s", err, out)
			}
		}
		apply(t, onHub, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tenant"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
			{APIGroups: []string{"hanse.dev"}, Resources: []string{"resourcebindings"}, Verbs: []string{"get"}},
		}})
		apply(t, onHub, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tenant"},
			Subjects:   user,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		})
		asTenant(func(out string) bool {
			return strings.Contains(out, warning) && strings.Contains(out, fmt.Sprintf(row, "- "))
		})
		for _, o := range charts.Render(t, "hanse-hub/templates/view.yaml", map[string]any{"view": map[string]any{"enabled": true}}) {
			if o.GetKind() == "Role" {
				apply(t, onHub, o)
			}
		}
		apply(t, onHub, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "tenant"},
			Subjects:   user,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "hanse-view"},
		})
		asTenant(func(out string) bool {
			return !strings.Contains(out, warning) && strings.Contains(out, fmt.Sprintf(last, "150m"))
		})
	})
}
