package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/charts"
)

// TestAnOperatorElectsItsLeaderInKubeSystem places a Role and two RoleBindings, as the charts of cert-manager and Kueue
// have them. The member grants the rules that hansectl operators rbac prints for them.
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
	reader := read(fmt.Sprintf(of, ns+"-reader") + "kind: RoleBinding\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}" + subject)
	unnamed := read(fmt.Sprintf(of, ns+"-unnamed") + "kind: Role\nrules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]")
	all := []*unstructured.Unstructured{role, itself, reader}

	member := suite.Members[singapore]
	grants := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: "hanse"}},
		},
	}
	var ofOperator []client.Object
	rule := func(group, resource string, names []any, verbs ...any) map[string]any {
		out := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
		if len(names) > 0 {
			out["resourceNames"] = names
		}
		return out
	}
	const readerRole = "extension-apiserver-authentication-reader"
	for _, o := range charts.Install(t, "hanse-member", map[string]any{"operators": []any{map[string]any{"name": ns, "namespacedRules": map[string]any{"kube-system": []any{
		rule("coordination.k8s.io", "leases", nil, "create"), rule("coordination.k8s.io", "leases", []any{ns}, "get", "update"),
		rule("", "configmaps", []any{"extension-apiserver-authentication"}, "get", "list", "watch"),
		rule(rbacv1.GroupName, "roles", []any{role.GetName(), readerRole}, "use"),
	}}}}}) {
		if o.GetNamespace() == "kube-system" {
			ofOperator = append(ofOperator, o)
		}
	}
	for _, o := range append(grants, ofOperator...) {
		must(t, member.Create(ctx, o))
		t.Cleanup(func() { _ = member.Delete(context.WithoutCancel(ctx), o) })
	}
	serviceAccount(t, hubv1.SystemNamespace, "operators", "")
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: hubv1.FederatedOperatorSpec{
		BundleSpec: hubv1.BundleSpec{ServiceAccountName: "operators", Manifests: manifests(t, append(all, unnamed)...)},
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
	for _, o := range all {
		eventually(t, joined, func() error { return rowIs(ctx, o, singapore, metav1.ConditionTrue, "") })
	}
	asOnHub := func() error {
		copied, err := on(ctx, singapore, role)
		return errors.Join(err, different(role.Object["rules"], copied.Object["rules"]))
	}
	must(t, asOnHub())

	t.Run("a Role that the member does not name stays away", func(t *testing.T) {
		eventually(t, joined, func() error {
			return rowIs(ctx, unnamed, singapore, metav1.ConditionFalse, hubv1.ReasonAdmissionDenied)
		})
		must(t, goneFrom(ctx, singapore, unnamed))
	})
	t.Run("an edit on the member is corrected", func(t *testing.T) {
		copied, err := on(ctx, singapore, role)
		must(t, err)
		copied.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}}}
		must(t, member.Update(ctx, copied))
		eventually(t, normal, asOnHub)
	})
	t.Run("the copies leave with the operator, although the member has taken its rules away", func(t *testing.T) {
		for _, o := range ofOperator {
			must(t, member.Delete(ctx, o))
		}
		must(t, suite.Hub.Delete(ctx, o.DeepCopy()))
		for _, o := range all {
			eventually(t, joined, func() error { return goneFrom(ctx, singapore, o) })
		}
	})
}

func different(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}
