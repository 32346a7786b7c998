package apply_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// almighty returns a client of a hub that has every right except the verb use, and the rules use. The admission policy
// alone limits this hub.
func (w *world) almighty(use ...any) dynamic.Interface {
	w.Helper()
	all := map[string]any{
		"apiGroups": []any{"*"}, "resources": []any{"*"},
		"verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate"},
	}
	role := object(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "", "almighty-"+w.ns, map[string]any{"rules": append([]any{all}, use...)})
	_, err := w.admin.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).Create(w.Context(), role, metav1.CreateOptions{})
	w.must(err)
	return w.police(map[string]any{"hubUID": string(hubUID)}, role.GetName())
}

func mayUse(names ...any) map[string]any {
	rule := map[string]any{"apiGroups": []any{rbacv1.GroupName}, "resources": []any{"roles"}, "verbs": []any{"use"}}
	if len(names) > 0 {
		rule["resourceNames"] = names
	}
	return rule
}

func systemRole(name string, rules ...any) *unstructured.Unstructured {
	o := labelled(rbacRole, "kube-system", name, nil)
	o.Object["rules"] = rules
	return o
}

func systemBinding(name, kind, to string, subjects ...any) *unstructured.Unstructured {
	o := labelled(rbacBinding, "kube-system", name, nil)
	o.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": to}
	o.Object["subjects"] = subjects
	return o
}

func rule(groups, resources, verbs string, names ...any) map[string]any {
	list := func(s string) (out []any) {
		for part := range strings.SplitSeq(s, ",") {
			out = append(out, part)
		}
		return out
	}
	out := map[string]any{"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
	if len(names) > 0 {
		out["resourceNames"] = names
	}
	return out
}

// A rule without names, such as of cluster-admin, contains the verb use by accident. It must not open every Role of
// kube-system.
func TestAnUnnamedRightToUseRolesOpensNothingInKubeSystem(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]map[string]any{
		"use of all Roles":      mayUse(),
		"all verbs on Roles":    rule(rbacv1.GroupName, "roles", "*"),
		"all verbs on anything": rule("*", "*", "*"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hub := w.almighty(use)
			foreign := object(rbacRole, "kube-system", w.ns+":foreign", map[string]any{"rules": []any{rule("", "secrets", "get")}})
			w.create(foreign)
			issuer := map[string]any{"kind": "ServiceAccount", "name": "issuer", "namespace": w.ns}
			for what, o := range map[string]*unstructured.Unstructured{
				"a binding to a Role of others": systemBinding(w.ns, "Role", foreign.GetName(), issuer),
				"a Role":                        systemRole(w.ns, rule("coordination.k8s.io", "leases", "create")),
			} {
				resource, _, err := resolve(o.GroupVersionKind())
				w.must(err)
				_, err = hub.Resource(resource).Namespace("kube-system").Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				w.denied(what, err, "nothing in the namespaces kube-* and hanse-system")
			}
		})
	}
}

// The hub has every right here, and may use one Role. All attempts are of a user who controls the hub.
func TestInSystemNamespacesAnAlmightyHubWritesItsNamedRolesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	itself, foreign := w.ns+":leader", w.ns+":foreign"
	const reader = "extension-apiserver-authentication-reader"
	hub := w.almighty(mayUse(itself, foreign, reader, "system:controller:token-cleaner", "kube-proxy", "kubeadm:nodes-kubeadm-config"))
	apiserver.AwaitRights(t, apiServer, theAccount+"-"+w.ns, "kube-system", rbacv1.PolicyRule{
		Verbs: []string{"use"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{itself},
	})
	ctx := t.Context()
	dry := []string{metav1.DryRunAll}
	in := func(o *unstructured.Unstructured) dynamic.ResourceInterface {
		r, namespaced, err := resolve(o.GroupVersionKind())
		w.must(err)
		if !namespaced {
			return hub.Resource(r)
		}
		return hub.Resource(r).Namespace(o.GetNamespace())
	}
	create := func(o *unstructured.Unstructured) func() error {
		return func() error {
			_, err := in(o).Create(ctx, o, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	apply := func(o *unstructured.Unstructured) func() error {
		return func() error {
			_, err := in(o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "hanse", Force: true, DryRun: dry})
			return err
		}
	}
	patch := func(o *unstructured.Unstructured, kind types.PatchType, text any) func() error {
		return func() error {
			raw, err := json.Marshal(text)
			w.must(err)
			_, err = in(o).Patch(ctx, o.GetName(), kind, raw, metav1.PatchOptions{DryRun: dry})
			return err
		}
	}
	issuer := map[string]any{"kind": "ServiceAccount", "name": "issuer", "namespace": w.ns}
	group := map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Group", "name": "system:authenticated"}
	leases := func(verbs string, names ...any) map[string]any {
		return rule("coordination.k8s.io", "leases", verbs, names...)
	}
	secrets := rule("", "secrets", "get")
	role, binding := systemRole(itself, leases("create")), systemBinding(itself, "Role", itself, issuer)
	foreignRole := object(rbacRole, "kube-system", foreign, map[string]any{"rules": []any{secrets}})
	foreignBinding := systemBinding(foreign, "Role", itself, issuer)
	foreignBinding.SetLabels(nil)
	settings := object(configMap, "kube-system", w.ns+"-settings", map[string]any{"data": map[string]any{"a": "b"}})
	account := object(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "kube-system", w.ns, nil)
	mine := map[string]any{"metadata": map[string]any{"labels": map[string]any{hubv1.HubLabel: string(hubUID)}}}
	w.createHome()
	for _, o := range []*unstructured.Unstructured{foreignRole, foreignBinding, settings, account} {
		w.create(o)
		t.Cleanup(func() {
			_ = w.objects(o.GroupVersionKind(), "kube-system").Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{})
		})
	}
	for _, o := range []*unstructured.Unstructured{role, binding} {
		_, err := in(o).Create(ctx, o, metav1.CreateOptions{})
		w.must(err)
		t.Cleanup(func() {
			_ = w.objects(o.GroupVersionKind(), "kube-system").Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{})
		})
	}
	generated := systemRole("", leases("create"))
	generated.SetGenerateName(itself)
	moved := func(o *unstructured.Unstructured, ns string) *unstructured.Unstructured {
		o = o.DeepCopy()
		o.SetNamespace(ns)
		return o
	}
	other := func(version, kind, ns string, fields map[string]any) *unstructured.Unstructured {
		gv, err := schema.ParseGroupVersion(version)
		w.must(err)
		o := labelled(gv.WithKind(kind), ns, w.ns+"-other", nil)
		maps.Copy(o.Object, fields)
		return o
	}
	const system, noLabel = "nothing in the namespaces kube-* and hanse-system", "only objects with its label"
	more := w.ns + "-more"
	refused := map[string]struct {
		attempt func() error
		says    string // part of the refusal
	}{
		"a ConfigMap":                           {create(other("v1", "ConfigMap", "kube-system", nil)), system},
		"a Secret":                              {create(other("v1", "Secret", "kube-system", nil)), system},
		"a ServiceAccount":                      {create(other("v1", "ServiceAccount", "kube-system", nil)), system},
		"a Lease":                               {create(other("coordination.k8s.io/v1", "Lease", "kube-system", nil)), system},
		"a Lease of a node":                     {create(other("coordination.k8s.io/v1", "Lease", "kube-node-lease", nil)), system},
		"an event":                              {create(other("v1", "Event", "kube-system", map[string]any{"involvedObject": map[string]any{"namespace": "kube-system"}})), system},
		"a namespace of the system":             {create(labelled(namespace, "", "kube-more", nil)), system},
		"a label of kube-system":                {patch(object(namespace, "", "kube-system", nil), types.MergePatchType, mine), noLabel},
		"a Role in kube-public":                 {create(moved(role, "kube-public")), system},
		"a Role in hanse-system":                {create(moved(role, "hanse-system")), system},
		"a binding in kube-public":              {create(moved(binding, "kube-public")), system},
		"a Role that no rule names":             {create(systemRole(more, leases("create"))), system},
		"a Role with a generated name":          {create(generated), system},
		"a Role without the hub's label":        {create(object(rbacRole, "kube-system", reader, nil)), noLabel},
		"the Role of all API servers":           {apply(systemRole(reader, leases("create"))), noLabel},
		"a Role of Kubernetes":                  {apply(systemRole("system:controller:token-cleaner", leases("create"))), noLabel},
		"a Role of others, by apply":            {apply(systemRole(foreign, leases("create"))), noLabel},
		"a label on the Role of others":         {patch(foreignRole, types.MergePatchType, mine), noLabel},
		"a label on the Role of others, by ssa": {apply(systemRole(foreign)), noLabel},
		"a label on the binding of others":      {patch(foreignBinding, types.MergePatchType, mine), noLabel},
		"a ConfigMap of others":                 {patch(settings, types.MergePatchType, mine), noLabel},
		"a missing Role of kube-proxy":          {create(systemRole("kube-proxy", leases("create"))), system},

		"its Role with Secrets":                 {patch(role, types.MergePatchType, map[string]any{"rules": []any{secrets}}), system},
		"its Role with Secrets, as second rule": {patch(role, types.JSONPatchType, []any{map[string]any{"op": "add", "path": "/rules/-", "value": secrets}}), system},
		"its Role with Secrets, by apply":       {apply(systemRole(itself, secrets)), system},
		"its Role with leases of no group":      {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("", "leases", "get")}}), system},
		"its Role with a second group":          {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("coordination.k8s.io,", "leases", "get")}}), system},
		"its Role with a second resource":       {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("coordination.k8s.io", "leases,*", "get")}}), system},
		"its Role with a subresource":           {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("coordination.k8s.io", "leases/*", "get")}}), system},
		"its Role with LEASES":                  {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("coordination.k8s.io", "LEASES", "get")}}), system},
		"its Role with the verb * on Leases":    {patch(role, types.MergePatchType, map[string]any{"rules": []any{leases("*")}}), system},
		"its Role with the Lease of no name":    {patch(role, types.MergePatchType, map[string]any{"rules": []any{leases("deletecollection", "")}}), system},
		"its Role with a Lease of Kubernetes":   {patch(role, types.MergePatchType, map[string]any{"rules": []any{leases("update", "issuer", "kube-scheduler")}}), system},
		"a missing Role of kubeadm":             {create(systemRole("kubeadm:nodes-kubeadm-config", leases("create"))), system},
		"its Role with the Lease of migrations": {patch(role, types.MergePatchType, map[string]any{"rules": []any{leases("update", "cloud-provider-extraction-migration")}}), system},
		"a binding to a Role of kubeadm":        {create(systemBinding(more, "Role", "kubeadm:nodes-kubeadm-config", issuer)), system},
		"its Role with deletes of events":       {patch(role, types.MergePatchType, map[string]any{"rules": []any{rule("", "events", "delete", "a")}}), system},
		"its Role with the verb use":            {patch(role, types.MergePatchType, map[string]any{"rules": []any{mayUse(itself)}}), system},

		"its binding for a group": {patch(binding, types.MergePatchType, map[string]any{"subjects": []any{issuer, group}}), system},
		"its binding for an account of Kubernetes": {patch(binding, types.MergePatchType, map[string]any{"subjects": []any{map[string]any{
			"kind": "ServiceAccount", "name": "default", "namespace": "kube-public"}}}), system},
		"its binding for an account without a namespace": {patch(binding, types.MergePatchType, map[string]any{"subjects": []any{map[string]any{
			"kind": "ServiceAccount", "name": "default"}}}), system},
		"its binding for an account of the empty namespace": {patch(binding, types.MergePatchType, map[string]any{"subjects": []any{map[string]any{
			"kind": "ServiceAccount", "name": "default", "namespace": ""}}}), system},
		"its binding for a user that is an account": {patch(binding, types.MergePatchType, map[string]any{"subjects": []any{map[string]any{
			"apiGroup": rbacv1.GroupName, "kind": "User", "name": "system:serviceaccount:kube-system:default"}}}), system},
		"a binding to a ClusterRole":             {create(systemBinding(more, "ClusterRole", "cluster-admin", issuer)), system},
		"a binding to a ClusterRole of its name": {create(systemBinding(more, "ClusterRole", itself, issuer)), system},
		"a binding to a Role of Kubernetes":      {create(systemBinding(more, "Role", "system:controller:token-cleaner", issuer)), system},
		"a binding of a name of Kubernetes":      {create(systemBinding("system:more", "Role", itself, issuer)), system},

		"a deletion of the Role of others":    {func() error { return in(foreignRole).Delete(ctx, foreign, metav1.DeleteOptions{DryRun: dry}) }, noLabel},
		"a deletion of the binding of others": {func() error { return in(foreignBinding).Delete(ctx, foreign, metav1.DeleteOptions{DryRun: dry}) }, noLabel},
		"a deletion of a ConfigMap of others": {func() error { return in(settings).Delete(ctx, settings.GetName(), metav1.DeleteOptions{DryRun: dry}) }, noLabel},
		"a deletion of all Roles": {func() error {
			return in(role).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
		}, noLabel},
		"a token of an account of Kubernetes": {func() error {
			request := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": w.ns}, "spec": map[string]any{}}}
			_, err := in(account).Create(ctx, request, metav1.CreateOptions{}, "token")
			return err
		}, noLabel},
	}
	for _, what := range slices.Sorted(maps.Keys(refused)) {
		w.denied(what, refused[what].attempt(), refused[what].says)
	}
	// The test can fail: these writes differ from refused ones in one point.
	for what, attempt := range map[string]func() error{
		"its Role, another rule":        apply(systemRole(itself, leases("*", "issuer"), rule(",events.k8s.io", "events", "create,patch"))),
		"its Role without rules":        apply(systemRole(itself)),
		"its binding, another account":  patch(binding, types.MergePatchType, map[string]any{"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "other", "namespace": w.ns}}}),
		"a binding to the reader":       create(systemBinding(more, "Role", reader, issuer)),
		"a deletion of its own Role":    func() error { return in(role).Delete(ctx, itself, metav1.DeleteOptions{DryRun: dry}) },
		"a deletion of its own binding": func() error { return in(binding).Delete(ctx, itself, metav1.DeleteOptions{DryRun: dry}) },
		"a collection of its own": func() error {
			return in(role).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{LabelSelector: hubv1.HubLabel + "=" + string(hubUID), FieldSelector: "metadata.name=" + itself})
		},
	} {
		if err := attempt(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
