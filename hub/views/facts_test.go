package views_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/charts"
	"github.com/hanse-dev/hanse/view/wire"
)

// chartRole returns the rules of a ClusterRole in the chart.
func chartRole(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	values := map[string]any{"userRoles": map[string]any{"aggregate": true}}
	for _, o := range charts.Render(t, "hanse-hub/templates/user-roles.yaml", values) {
		if o.GetName() == name {
			var role rbacv1.ClusterRole
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
			return role.Rules
		}
	}
	t.Fatalf("the chart has no ClusterRole %s", name)
	return nil
}

// viewer creates a user who has the ClusterRole hanse-view and the further rules in the namespace, and returns the
// user's token.
func (w *world) viewer(name string, rules ...rbacv1.PolicyRule) string {
	w.Helper()
	return w.user(name, append(slices.Clone(rules), chartRole(w.T, "hanse-view")...), nil)
}

// getConfigMaps is the part of the ClusterRole view that these tests need.
var getConfigMaps = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}

// create creates cluster-scoped objects from YAML, and deletes them after the test. In a text, NS stands for the name
// of the world's namespace.
func (w *world) create(texts ...string) {
	w.Helper()
	for _, text := range texts {
		text = strings.ReplaceAll(text, "NS", w.ns)
		var kind metav1.TypeMeta
		must(w.T, yaml.Unmarshal([]byte(text), &kind))
		typed, err := hub.Scheme().New(kind.GroupVersionKind())
		must(w.T, err)
		o := typed.(client.Object)
		must(w.T, yaml.UnmarshalStrict([]byte(text), o))
		status := o.DeepCopyObject()
		must(w.T, hub.Create(w.Context(), o))
		w.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(w.Context()), o) })
		if c, ok := o.(*hubv1.MemberCluster); ok {
			c.Status = status.(*hubv1.MemberCluster).Status
			must(w.T, hub.Status().Update(w.Context(), c))
		}
	}
}

const (
	sharedCluster = `
apiVersion: hanse.dev/v1alpha1
kind: MemberCluster
metadata:
  name: NS-shared
  labels: {tier: gold, foreign-label: x, topology.kubernetes.io/region: eu-central-1}
  annotations: {foreign-annotation: x}
spec:
  connection: {type: Direct, direct: {kubeconfigSecretRef: {name: foreign-secret}}}
  taints: [{key: maintenance, value: foreign-value, effect: NoSchedule}]
  allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [NS, foreign-namespace]}]}}
status:
  clusterID: foreign-id
  version: {kubernetes: v1.36.3}
  capacity: {cpu: "4"}
  operators: [{name: foreign-operator, version: 1.1.0, installed: true}, {name: rotors, version: 1.0.0, installed: true}]
  apiResources: [{group: "", kind: ConfigMap, versions: [v1]}, {group: foreign.example.com, kind: Ledger, versions: [v1]}]
  conditions: [{type: Ready, status: "False", reason: ClusterUnreachable, message: "dial foreign:6443", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`
	foreignCluster = `
apiVersion: hanse.dev/v1alpha1
kind: MemberCluster
metadata: {name: NS-foreign}
spec:
  connection: {type: Direct, direct: {kubeconfigSecretRef: {name: x}}}
  allowedNamespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: foreign-namespace}}}
`
	ownPlacement = `
apiVersion: hanse.dev/v1alpha1
kind: ClusterPlacement
metadata: {name: NS-own, annotations: {foreign-annotation: x}}
spec:
  resourceSelectors: [{kind: ConfigMap}]
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [NS, foreign-namespace]}]}
  clusters: {labelSelector: {matchLabels: {tier: gold}}}
`
	foreignPlacement = `
apiVersion: hanse.dev/v1alpha1
kind: ClusterPlacement
metadata: {name: NS-foreign}
spec:
  resourceSelectors: [{kind: ConfigMap}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: foreign-namespace}}
  clusters: {expression: "labels['foreign-label'] == 'x'"}
`
	kindPlacement = `
apiVersion: hanse.dev/v1alpha1
kind: ClusterPlacement
metadata: {name: NS-foreign-kind}
spec:
  resourceSelectors: [{kind: Secret, name: foreign-secret}]
  namespaceSelector: {}
  clusters: {expression: "labels['foreign-label'] == 'x'"}
`
	ownOverride = `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: own}
spec:
  resourceSelectors: [{kind: ConfigMap}]
  rules: [{name: r, clusters: {expression: "version != '' && 'rotors' in operators"}, labels: {a: b}}]
`
	platformOverride = `
apiVersion: hanse.dev/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: NS-platform}
spec:
  resourceSelectors: [{kind: ConfigMap}]
  namespaceSelector: {}
  rules: [{name: r, labels: {a: b}}]
`
	secretOverride = `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: foreign-secrets}
spec:
  resourceSelectors: [{kind: Secret}]
  rules: [{name: r, patches: [{op: add, path: /data/foreign, value: Zm9yZWlnbg==}]}]
`
	mixedOverride = `
apiVersion: hanse.dev/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: NS-foreign-mixed}
spec:
  resourceSelectors: [{kind: ConfigMap}, {kind: Secret}]
  namespaceSelector: {}
  rules: [{name: r, patches: [{op: add, path: /data/foreign, value: Zm9yZWlnbg==}]}]
`
)

func TestTheFactsOfANamespaceSayNothingOfOthers(t *testing.T) {
	w := newWorld(t)
	w.create(sharedCluster, foreignCluster, ownPlacement, foreignPlacement, kindPlacement, ownOverride, platformOverride, secretOverride, mixedOverride)
	viewer := w.viewer("viewer", getConfigMaps)
	var got wire.FactsAnswer
	must(t, w.askIn(viewer, "", wire.Facts, w.ns, wire.FactsRequest{}, &got))
	text, err := json.Marshal(got)
	must(t, err)
	if strings.Contains(string(text), "foreign") || strings.Contains(string(text), "Zm9y") {
		t.Errorf("it tells of others:\n%s", text)
	}
	if len(got.MemberClusters) != 1 || len(got.ClusterPlacements) != 1 || len(got.ClusterOverridePolicies) != 1 || len(got.OverridePolicies) != 1 {
		t.Fatalf("got %s", text)
	}
	want := map[string]string{"tier": "gold", hubv1.RegionLabel: "eu-central-1"}
	c := got.MemberClusters[0]
	if diff := cmp.Diff(want, c.Labels); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if taints := []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}; !cmp.Equal(taints, c.Spec.Taints) {
		t.Errorf("taints: %v", c.Spec.Taints)
	}
	if c.Spec.AllowedNamespaces.From != hubv1.NamespacesFromAll || c.Status.Version.Kubernetes != "v1.36.3" || c.Status.Capacity != nil {
		t.Errorf("got %s", text)
	}
	if operators := []hubv1.OperatorFact{{Name: "rotors", Version: "1.0.0", Installed: true}}; !cmp.Equal(operators, c.Status.Operators) {
		t.Errorf("operators: %v", c.Status.Operators)
	}
	if kinds := []hubv1.ServedKind{{Kind: "ConfigMap", Versions: []string{"v1"}}}; !cmp.Equal(kinds, c.Status.APIResources) {
		t.Errorf("kinds: %v", c.Status.APIResources)
	}
	notes := []string{
		"override policies that are not considered, since they also select kinds that you may not get: 1",
		"clusters that do not accept objects of namespace " + w.ns + " are hidden: ",
	}
	for i, n := range notes {
		if len(got.Notes) != len(notes) || !strings.HasPrefix(got.Notes[i], n) {
			t.Errorf("notes: %q, want %q", got.Notes, notes)
			break
		}
	}
	t.Run("a user who may get Secrets sees the policies for them", func(t *testing.T) {
		getSecrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
		var got wire.FactsAnswer
		must(t, w.askIn(w.viewer("keeper", getConfigMaps, getSecrets), "", wire.Facts, w.ns, wire.FactsRequest{}, &got))
		if len(got.ClusterOverridePolicies) != 2 || len(got.OverridePolicies) != 2 || len(got.ClusterPlacements) != 2 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a user without the role is told which one to ask for", func(t *testing.T) {
		err := w.askIn(w.user("nobody", getAll, nil), "", wire.Facts, w.ns, wire.FactsRequest{}, nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ask for the ClusterRole hanse-view in namespace "+w.ns) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a viewer of one namespace is told nothing of another one", func(t *testing.T) {
		err := w.askIn(viewer, "", wire.Facts, w.inAnotherNamespace().ns, wire.FactsRequest{}, nil)
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a cluster that holds an object is shown although it takes no more of the namespace", func(t *testing.T) {
		w.place("ConfigMap", "left-behind", w.ns+"-foreign")
		var got wire.FactsAnswer
		must(t, w.askIn(viewer, "", wire.Facts, w.ns, wire.FactsRequest{}, &got))
		i := slices.IndexFunc(got.MemberClusters, func(c hubv1.MemberCluster) bool { return c.Name == w.ns+"-foreign" })
		if i < 0 || got.MemberClusters[i].Spec.AllowedNamespaces.From != hubv1.NamespacesFromNone {
			t.Errorf("got %+v", got.MemberClusters)
		}
	})
}

func TestAViewerOfANamespaceLooksAtItsObjectsAlone(t *testing.T) {
	w := newWorld(t)
	w.members[here].live, w.members[elsewhere].live = configMap("red"), configMap("blue")
	viewer, bank := w.viewer("viewer", getConfigMaps), w.inAnotherNamespace()
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	for _, cluster := range []string{here, elsewhere} { // the request about elsewhere is passed to another replica
		var answer wire.CopyAnswer
		must(t, w.askIn(viewer, cluster, wire.Copy, w.ns, request, &answer))
		if answer.Object == nil {
			t.Errorf("nothing is shown of %s", cluster)
		}
	}
	foreign := wire.CopyRequest{Object: bank.object("ConfigMap", "settings")}
	tests := map[string]struct {
		namespace, what string
		in              any
		says            string
	}{
		"an object that the user may not get":                          {w.ns, wire.Copy, wire.CopyRequest{Object: w.object("Secret", "password")}, "may not get"},
		"an object of another namespace":                               {w.ns, wire.Copy, foreign, "may not get"},
		"an object of another namespace that is named":                 {bank.ns, wire.Copy, foreign, "ask for the ClusterRole hanse-view in namespace " + bank.ns},
		"an object of no namespace that is named":                      {"", wire.Copy, request, "needs the verb view"},
		"a diff of an object of another namespace":                     {w.ns, wire.Diff, wire.DiffRequest{Object: foreign.Object}, "may not get"},
		"copies without a binding, of which there may be those of all": {w.ns, wire.Unclaimed, wire.UnclaimedRequest{}, "needs the verb view"},
		"the removal of copies": {
			w.ns, wire.Prune, wire.PruneRequest{Copies: []wire.ShownCopy{{Object: request.Object, UID: types.UID("u"), ResourceVersion: "1"}}}, "needs the verb view",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := w.askIn(viewer, here, tc.what, tc.namespace, tc.in, nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
