package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAnOperatorElectsItsLeaderInKubeSystem places a Role and two RoleBindings, as the charts of cert-manager and Kueue
// have them. The member grants what hansectl operators rbac prints for them.
func TestAnOperatorElectsItsLeaderInKubeSystem(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	read := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), &o.Object))
		return o
	}
	const of = "apiVersion: rbac.authorization.k8s.io/v1\nmetadata: {namespace: kube-system, name: '%s:leader'}\n"
	start := fmt.Sprintf(of, ns)
	role := read(start + "kind: Role\nrules:\n- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}\n" +
		"- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [" + ns + "], verbs: [get, update]}")
	subject := "\nsubjects: [{kind: ServiceAccount, name: issuer, namespace: " + ns + "}]"
	itself := read(start + "kind: RoleBinding\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: '" + ns + ":leader'}" + subject)
	reader := read(fmt.Sprintf(of, ns+":reader") + "kind: RoleBinding\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}" + subject)
	all := []*unstructured.Unstructured{role, itself, reader}

	file := filepath.Join(t.TempDir(), "grant.yaml")
	must(t, os.WriteFile(file, []byte(`
grantedKinds: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings]}]
operators:
- name: `+ns+`
  namespacedRules:
    kube-system:
    - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
    - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [`+ns+`], verbs: [get, update]}
    - {apiGroups: [""], resources: [configmaps], resourceNames: [extension-apiserver-authentication], verbs: [get, list, watch]}
    - {apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: ["`+ns+`:leader", extension-apiserver-authentication-reader], verbs: [use]}
`), 0o600))
	join := func(args ...string) {
		_, err := suite.Hansectl(context.WithoutCancel(ctx), append([]string{"join", singapore, "--member-kubeconfig", suite.Members[singapore].ProxyKubeconfig}, args...)...)
		must(t, err)
	}
	serviceAccount(t, hubv1.SystemNamespace, "operators", "")
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.FederatedOperatorSpec{
		BundleSpec: hubv1.BundleSpec{ServiceAccountName: "operators", Manifests: manifests(t, all...)},
	}}
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind, Name: ns}},
		Clusters:          hubv1.ClusterSelection{Names: []string{singapore}}, AllowEmpty: true, RemovalLimit: manyRemovals,
		Deletion: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalDelete},
	}}}
	widening := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	widening.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "kube-system"}}
	widening.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: role.GroupVersionKind().Group, Kind: "Role", Name: role.GetName()}}
	widening.Spec.Rules = []hubv1.OverrideRule{{Name: "wider", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`)}}}
	for _, o := range []client.Object{widening, p, o} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), o) })
	}
	t.Run("a member that does not name the Role keeps the hub out of kube-system", func(t *testing.T) {
		join("--grant", "rbac.authorization.k8s.io/roles", "--grant", "rbac.authorization.k8s.io/rolebindings")
		eventually(t, joined, func() error { return rowIs(ctx, role, singapore, metav1.ConditionFalse, "") })
		must(t, goneFrom(ctx, singapore, role))
	})
	join("--grant-operator", file)
	for _, o := range all {
		eventually(t, joined, func() error { return rowIs(ctx, o, singapore, metav1.ConditionTrue, "") })
	}
	asOnHub := func() error {
		copied, err := on(ctx, singapore, role)
		return errors.Join(err, different(role.Object["rules"], copied.Object["rules"]))
	}
	must(t, asOnHub())

	t.Run("an edit on the member is corrected", func(t *testing.T) {
		copied, err := on(ctx, singapore, role)
		must(t, err)
		copied.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}}}
		must(t, suite.Members[singapore].Update(ctx, copied))
		eventually(t, normal, asOnHub)
	})
	t.Run("the copies leave with the operator, although the member has taken its rules away", func(t *testing.T) {
		join("--ungrant-operator", ns)
		must(t, suite.Hub.Delete(ctx, o.DeepCopy()))
		for _, o := range all {
			eventually(t, joined, func() error { return goneFrom(ctx, singapore, o) })
		}
	})
	join("--ungrant", "rbac.authorization.k8s.io/roles", "--ungrant", "rbac.authorization.k8s.io/rolebindings")
}

func different(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}
