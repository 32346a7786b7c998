package apply_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
)

const theAccount = "system:serviceaccount:hanse-system:hanse"

// policed returns a world whose Applier has all rights on the member, so that only the admission policy of the member
// chart restricts it. hub is a client with the same rights. It stands for an attacker who controls the hub.
func policed(t *testing.T, values map[string]any) (w *world, hub dynamic.Interface) {
	t.Helper()
	w = newWorld(t)
	return w, w.police(values, "cluster-admin")
}

// police is policed for a user with the rights of this ClusterRole.
func (w *world) police(values map[string]any, clusterRole string) (hub dynamic.Interface) {
	t := w.T
	t.Helper()
	// Each test has its own policy and its own user, so that no policy of another test applies.
	user := theAccount + "-" + w.ns
	all := map[string]any{"enabled": true, "podSecurityLevels": []string{"restricted"}}
	for k, v := range values {
		all[k] = v
	}
	for _, o := range charts.Render(t, "hanse-member/templates/admission-policy.yaml", map[string]any{"admissionPolicy": all}) {
		raw, err := json.Marshal(o.Object)
		w.must(err)
		text := strings.ReplaceAll(strings.ReplaceAll(string(raw), theAccount, user), "hanse-member-hub", "policy-"+w.ns)
		w.must(json.Unmarshal([]byte(text), &o.Object))
		plural := "validatingadmissionpolicies"
		if strings.HasSuffix(o.GetKind(), "Binding") {
			plural = "validatingadmissionpolicybindings"
		}
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}
		_, err = w.admin.Resource(resource).Create(t.Context(), o, metav1.CreateOptions{})
		w.must(err)
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "policy-" + w.ns},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": clusterRole},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": user}},
	}}
	_, err := w.admin.Resource(schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterrolebindings"}).
		Create(t.Context(), binding, metav1.CreateOptions{})
	w.must(err)
	apiserver.AwaitRights(t, apiServer, user, "", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	config := rest.CopyConfig(apiServer)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	hub, err = dynamic.NewForConfig(config)
	w.must(err)
	w.applier = w.as(config, hubUID)
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		// The API server learns of a new policy through a watch, so the test waits until a request is refused.
		_, err := hub.Resource(configMaps).Namespace(w.ns).Create(ctx, object(configMap, w.ns, "probe", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
	return hub
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	size1      = map[string]any{"size": int64(1)}
	refusedBy  = failed(hubv1.ReasonAdmissionDenied, member.RetrySlowly)
)

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// denied fails the test unless the policy refused the request with this text.
func (w *world) denied(what string, err error, says string) {
	w.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		w.Errorf("%s: got %v, want a refusal that says %q", what, err, says)
	}
}

// createHome creates the namespace hanse-system, unless another test has done so.
func (w *world) createHome() {
	w.Helper()
	if _, err := w.objects(namespace, "").Create(w.Context(), object(namespace, "", hubv1.SystemNamespace, nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		w.must(err)
	}
}

// labelled returns an object with labels, as the hub creates it.
func labelled(gvk schema.GroupVersionKind, ns, name string, labels map[string]string) *unstructured.Unstructured {
	o := object(gvk, ns, name, nil)
	all := map[string]string{hubv1.HubLabel: string(hubUID)}
	for k, v := range labels {
		all[k] = v
	}
	o.SetLabels(all)
	return o
}

func TestUnderTheAdmissionPolicyTheHubDoesItsWork(t *testing.T) {
	t.Parallel()
	w, _ := policed(t, map[string]any{"hubUID": string(hubUID)})
	w.apply(w.intent(size1, "d1"), written)
	w.apply(w.intent(size1, "d1"), unchanged)
	w.apply(w.intent(map[string]any{"size": int64(2)}, "d2"), written)
	w.edit(`{"spec":{"size":5}}`)
	w.apply(w.intent(map[string]any{"size": int64(2)}, "d2"), written)
	w.withdraw(w.withdrawal(), result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever})
	if !w.gone() {
		t.Error("it is still there")
	}
	w.apply(w.intent(size1, "d1"), written)
	orphan := w.withdrawal()
	orphan.Policy = hubv1.RemovalOrphan
	w.withdraw(orphan, result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever})
	if l := w.get().GetLabels(); l[hubv1.HubLabel] != "" {
		t.Errorf("labels %v", l)
	}
	t.Run("a namespace on demand, as strict as can be", func(t *testing.T) {
		in := w.intentOf(object(widget, w.ns+"-new", "web", spec(size1)), "d1")
		in.CreateNamespace, in.NamespaceLabels = true, map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}
		w.apply(in, written)
	})
	t.Run("none of a level that its admin did not allow", func(t *testing.T) {
		in := w.intentOf(object(widget, w.ns+"-loose", "web", spec(size1)), "d1")
		in.CreateNamespace, in.NamespaceLabels = true, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
		if out := w.apply(in, refusedBy); !strings.Contains(out.Message, "pod-security.kubernetes.io") {
			t.Errorf("it says %q", out.Message)
		}
	})
	// A chart may have the Namespace object of its release, with a level.
	level := func(name, level string) member.ApplyIntent {
		o := object(namespace, "", name, nil)
		o.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": level})
		return w.intentOf(o, "d1")
	}
	t.Run("a Namespace object with a level that its admin allowed, and with the level of a namespace on demand", func(t *testing.T) {
		for _, name := range []string{w.ns + "-chart", w.ns + "-new"} {
			w.apply(level(name, "restricted"), written)
			made, err := w.objects(namespace, "").Get(t.Context(), name, metav1.GetOptions{})
			w.must(err)
			if got := made.GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
				t.Errorf("namespace %s has the level %q", name, got)
			}
		}
	})
	t.Run("no Namespace object with a level that its admin did not allow", func(t *testing.T) {
		if out := w.apply(level(w.ns+"-loose", "privileged"), refusedBy); !strings.Contains(out.Message, "pod-security.kubernetes.io") {
			t.Errorf("it says %q", out.Message)
		}
	})
}

func TestUnderTheAdmissionPolicyTheHubTakesNothingOver(t *testing.T) {
	t.Parallel()
	for name, adoption := range map[string]bool{"unless that is allowed": true, "by default": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, hub := policed(t, map[string]any{"adoption": adoption})
			w.create(object(widget, w.ns, "web", spec(size1)))
			in := w.intent(map[string]any{"size": int64(2)}, "d1")
			in.Adoption = hubv1.AdoptionAlways
			if adoption {
				w.apply(in, written)
				return
			}
			if out := w.apply(in, refusedBy); !strings.Contains(out.Message, "only objects with its label hanse.dev/hub") {
				t.Errorf("it says %q", out.Message)
			}
			w.denied("a delete", hub.Resource(widget.GroupVersion().WithResource("widgets")).Namespace(w.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}), "only objects with its label")
		})
	}
}

func TestUnderTheAdmissionPolicyAStolenAccountIsBounded(t *testing.T) {
	t.Parallel()
	w, hub := policed(t, map[string]any{"hubUID": string(hubUID), "namespaces": []string{"t-none", "kube-system", "hanse-system"}})
	ctx := t.Context()
	attempt := func(o *unstructured.Unstructured) error {
		r, namespaced, err := resolve(o.GroupVersionKind())
		w.must(err)
		if !namespaced {
			_, err = hub.Resource(r).Create(ctx, o, metav1.CreateOptions{})
			return err
		}
		_, err = hub.Resource(r).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		return err
	}
	const noLabel, system, elsewhere, podSecurity = "only objects with its label", "nothing in the namespaces kube-* and hanse-system", "is not among admissionPolicy.namespaces", "pod-security"
	w.denied("an object without the label", attempt(object(configMap, "kube-public", "a", nil)), noLabel)
	w.denied("an object with the label of another hub", attempt(labelled(configMap, "kube-public", "a", map[string]string{hubv1.HubLabel: "other"})), noLabel)
	w.denied("an object in a system namespace", attempt(labelled(configMap, "kube-system", "a", nil)), system)
	w.denied("a namespace of the system", attempt(labelled(namespace, "", "kube-more", nil)), system)
	w.denied("an object in another namespace", attempt(labelled(configMap, w.ns, "a", nil)), elsewhere)
	w.denied("another namespace", attempt(labelled(namespace, "", w.ns+"-more", nil)), elsewhere)
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	role := labelled(schema.GroupVersionKind{Group: roles.Group, Version: "v1", Kind: "ClusterRole"}, "", "policy-"+w.ns, nil)
	_, err := hub.Resource(roles).Create(ctx, role, metav1.CreateOptions{})
	w.must(err) // the hub may create an object of a cluster-scoped kind
	_, err = hub.Resource(roles).Patch(ctx, "edit", types.MergePatchType, []byte(`{"metadata":{"labels":{"hanse.dev/hub":"hub-1"}}}`), metav1.PatchOptions{})
	w.denied("a label on the object of another", err, noLabel)
	_, err = hub.Resource(roles).Patch(ctx, role.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"hanse.dev/hub":"other"}}}`), metav1.PatchOptions{})
	w.denied("an object handed to another hub", err, noLabel)

	w.create(labelled(namespace, "", "t-none", map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}))
	spaces := hub.Resource(namespace.GroupVersion().WithResource("namespaces"))
	_, err = spaces.Patch(ctx, "t-none", types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`), metav1.PatchOptions{})
	w.denied("another level of a namespace", err, podSecurity)
	_, err = spaces.Patch(ctx, "t-none", types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`), metav1.PatchOptions{})
	w.denied("a namespace without its level", err, podSecurity)
	_, err = spaces.Patch(ctx, "t-none", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), metav1.PatchOptions{})
	w.must(err)

	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret := func(name, of string) (*unstructured.Unstructured, error) {
		return hub.Resource(secrets).Namespace("hanse-system").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": of, "metadata": map[string]any{
				"name": name, "annotations": map[string]any{"kubernetes.io/service-account.name": "hanse"},
			},
		}}, metav1.CreateOptions{})
	}
	token := func(ns, name string, bound map[string]any) error {
		spec := map[string]any{"audiences": []any{}}
		if bound != nil {
			spec["boundObjectRef"] = bound
		}
		request := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": name}, "spec": spec}}
		_, err := hub.Resource(accounts).Namespace(ns).Create(ctx, request, metav1.CreateOptions{}, "token")
		return err
	}
	w.createHome()
	for _, name := range []string{"hanse", "other"} {
		account := object(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "hanse-system", name, nil)
		_, err := w.admin.Resource(accounts).Namespace("hanse-system").Create(ctx, account, metav1.CreateOptions{})
		w.must(err)
	}
	_, err = secret("hanse-token-b", "kubernetes.io/service-account-token")
	w.denied("a Secret that is filled with a token", err, noLabel)
	_, err = secret("another", "hanse.dev/token")
	w.denied("a Secret of another name", err, noLabel)
	made, err := secret("hanse-token-a", "hanse.dev/token")
	w.must(err)
	bound := map[string]any{"apiVersion": "v1", "kind": "Secret", "name": made.GetName(), "uid": string(made.GetUID())}
	w.must(token("hanse-system", "hanse", bound))
	w.denied("a token that does not end with a Secret", token("hanse-system", "hanse", nil), noLabel)
	w.denied("a token of another account", token("hanse-system", "other", bound), noLabel)
	w.must(hub.Resource(secrets).Namespace("hanse-system").Delete(ctx, made.GetName(), metav1.DeleteOptions{}))

	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{"resourceAttributes": map[string]any{"verb": "list", "resource": "pods"}},
	}}
	_, err = hub.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}).Create(ctx, review, metav1.CreateOptions{})
	w.must(err)
	w.create(object(configMap, "t-none", "a", nil))
	w.denied("a collection", hub.Resource(configMaps).Namespace("t-none").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), noLabel)
}

func TestAGrantForOneNamespaceWritesThereAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.ns + "-other"
	w.create(object(namespace, "", other, nil))
	user := theAccount + "-" + w.ns
	grant := func(plural, ns string, o map[string]any) {
		t.Helper()
		o["apiVersion"], o["metadata"] = "rbac.authorization.k8s.io/v1", map[string]any{"name": "grant-" + w.ns}
		r := schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: plural}
		_, err := w.admin.Resource(r).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
		w.must(err)
	}
	role := func(kind string, verbs ...any) map[string]any {
		return map[string]any{"kind": kind, "rules": []any{map[string]any{"apiGroups": []any{widget.Group}, "resources": []any{"widgets"}, "verbs": verbs}}}
	}
	bind := func(kind, to string) map[string]any {
		return map[string]any{
			"kind": kind, "roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": to, "name": "grant-" + w.ns},
			"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": user}},
		}
	}
	grant("clusterroles", "", role("ClusterRole", "get", "list", "watch"))
	grant("clusterrolebindings", "", bind("ClusterRoleBinding", "ClusterRole"))
	grant("roles", w.ns, role("Role", "create", "patch", "delete"))
	grant("rolebindings", w.ns, bind("RoleBinding", "Role"))
	rule := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{widget.Group}, Resources: []string{"widgets"}}
	}
	apiserver.AwaitRights(t, apiServer, user, "", rule("get"))
	apiserver.AwaitRights(t, apiServer, user, w.ns, rule("patch"))
	config := rest.CopyConfig(apiServer)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	w.applier = w.as(config, hubUID)

	w.apply(w.intent(size1, "d1"), written)
	w.withdraw(w.withdrawal(), result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever})
	out := w.apply(w.intentOf(object(widget, other, "web", spec(size1)), "d1"), failed(hubv1.ReasonForbidden, member.RetrySlowly))
	want := "in namespace " + other + " of this cluster: run hansectl join with --grant widgets." + widget.Group + ", or add the kind, for this namespace or for all, to grantedKinds"
	if !strings.Contains(out.Message, want) {
		t.Errorf("it says %q, not %q", out.Message, want)
	}
}

var (
	rbacRole    = rbacv1.SchemeGroupVersion.WithKind("Role")
	rbacBinding = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
)

// The user has more rights than an operator needs: it may write roles, Secrets and Leases in all namespaces. Only the
// admission policy keeps it from giving such rights to others in kube-system.
func TestUnderTheAdmissionPolicyTheHubWritesNamedRolesOfKubeSystem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, itself, free := t.Context(), w.ns+":leader", w.ns+":other"
	wide := object(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "", "wide-"+w.ns, map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{rbacv1.GroupName}, "resources": []any{"roles", "rolebindings"}, "verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete"}},
		map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets", "configmaps", "events"}, "verbs": []any{"*"}},
		map[string]any{"apiGroups": []any{"events.k8s.io"}, "resources": []any{"events"}, "verbs": []any{"*"}},
		map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"create", "get", "update"}},
	}})
	_, err := w.admin.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).Create(ctx, wide, metav1.CreateOptions{})
	w.must(err)
	hub := w.police(map[string]any{"hubUID": string(hubUID), "namespaces": []string{w.ns}}, wide.GetName())

	rule := func(group, resource string, verbs []any, names ...any) map[string]any {
		out := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
		if len(names) > 0 {
			out["resourceNames"] = names
		}
		return out
	}
	const leases, reader = "coordination.k8s.io", "extension-apiserver-authentication-reader"
	election := []any{rule(leases, "leases", []any{"create"}), rule(leases, "leases", []any{"get", "update"}, "issuer"), rule("", "events", []any{"create", "patch"})}
	granted := append([]any{
		rule("", "configmaps", []any{"get", "list", "watch"}, "extension-apiserver-authentication"), rule(rbacv1.GroupName, "roles", []any{"use"}, itself, reader),
	}, election...)
	var grants []*unstructured.Unstructured
	for _, o := range charts.Install(t, "hanse-member", map[string]any{"operators": []any{map[string]any{
		"name": strings.ToLower(w.ns), "namespacedRules": map[string]any{"kube-system": granted},
	}}}) {
		if o.GetNamespace() != "kube-system" {
			continue
		}
		if o.GetKind() == "RoleBinding" {
			o.Object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": theAccount + "-" + w.ns}}
		}
		grants = append(grants, o)
		w.create(o)
	}
	if len(grants) != 2 {
		t.Fatalf("the chart grants %d objects in kube-system", len(grants))
	}
	apiserver.AwaitRights(t, apiServer, theAccount+"-"+w.ns, "kube-system", rbacv1.PolicyRule{Verbs: []string{"use"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{itself}})

	role := func(name string, rules ...any) *unstructured.Unstructured {
		o := labelled(rbacRole, "kube-system", name, nil)
		o.Object["rules"] = rules
		return o
	}
	binding := func(name, kind, to string, subject map[string]any) *unstructured.Unstructured {
		o := labelled(rbacBinding, "kube-system", name, nil)
		o.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": to}
		o.Object["subjects"] = []any{subject}
		return o
	}
	issuer := map[string]any{"kind": "ServiceAccount", "name": "issuer", "namespace": w.ns}
	intent := func(o *unstructured.Unstructured, digest string) member.ApplyIntent {
		o.SetLabels(nil)
		in := w.intentOf(o, digest)
		in.OfOperator = true
		return in
	}
	w.apply(intent(role(itself, election[0]), "d1"), written)
	w.apply(intent(role(itself, election...), "d2"), written)
	w.apply(intent(binding(itself, "Role", itself, issuer), "d1"), written)
	w.apply(intent(binding(w.ns+":auth-reader", "Role", reader, issuer), "d1"), written)

	attempt := func(o *unstructured.Unstructured) error {
		r, _, err := resolve(o.GroupVersionKind())
		w.must(err)
		_, err = hub.Resource(r).Namespace("kube-system").Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const system = "nothing in the namespaces kube-* and hanse-system, except Roles for leader election"
	secrets := rule("", "secrets", []any{"get", "create"})
	w.create(func() *unstructured.Unstructured { // a Role of another component, with rights that the hub has, too
		o := role(free, secrets)
		o.SetLabels(nil)
		return o
	}())
	for what, o := range map[string]*unstructured.Unstructured{
		"a ConfigMap":                           labelled(configMap, "kube-system", "a", nil),
		"a Role that the chart does not name":   role(w.ns+":more", election[0]),
		"a binding to a Role of another":        binding(w.ns+":more", "Role", free, issuer),
		"a binding to a Role of Kubernetes":     binding(w.ns+":more", "Role", "system:controller:token-cleaner", issuer),
		"a binding to a ClusterRole":            binding(w.ns+":more", "ClusterRole", wide.GetName(), issuer),
		"a binding of a group":                  binding(w.ns+":more", "Role", itself, map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Group", "name": "system:authenticated"}),
		"a binding of an account of the hub":    binding(w.ns+":more", "Role", itself, map[string]any{"kind": "ServiceAccount", "name": "hanse", "namespace": "hanse-system"}),
		"a binding of an account of Kubernetes": binding(w.ns+":more", "Role", itself, map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": "kube-system"}),
		"a binding with a name of Kubernetes":   binding("system:more", "Role", itself, issuer),
	} {
		w.denied(what, attempt(o), system)
	}
	widen := func(rules ...any) error {
		patch, err := json.Marshal(map[string]any{"rules": rules})
		w.must(err)
		_, err = hub.Resource(rbacv1.SchemeGroupVersion.WithResource("roles")).Namespace("kube-system").Patch(ctx, itself, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	w.denied("a named Role that reads Secrets", widen(secrets), system)
	w.denied("a named Role with all Leases", widen(rule(leases, "leases", []any{"update"})), system)
	w.denied("a named Role with a Lease of Kubernetes", widen(rule(leases, "leases", []any{"update"}, "kube-scheduler")), system)
	w.denied("a named Role with rights that the hub does not have", widen(rule(leases, "leases", []any{"delete"}, "issuer")), "attempting to grant RBAC permissions not currently held")
	w.denied("a Role of another in kube-public", func() error {
		o := role(itself, election[0])
		o.SetNamespace("kube-public")
		_, err := hub.Resource(rbacv1.SchemeGroupVersion.WithResource("roles")).Namespace("kube-public").Create(ctx, o, metav1.CreateOptions{})
		return err
	}(), system)
	w.denied("a deletion of a Role of another", hub.Resource(rbacv1.SchemeGroupVersion.WithResource("roles")).Namespace("kube-system").Delete(ctx, free, metav1.DeleteOptions{}), "only objects with its label")

	// The chart takes the rules away. The hub can still remove its own objects, but write none.
	for _, o := range grants {
		w.must(w.objects(o.GroupVersionKind(), "kube-system").Delete(ctx, o.GetName(), metav1.DeleteOptions{}))
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return apierrors.IsForbidden(attempt(binding(w.ns+":more", "Role", itself, issuer))), nil
	})
	w.must(err)
	for _, o := range []*unstructured.Unstructured{binding(w.ns+":auth-reader", "Role", reader, issuer), binding(itself, "Role", itself, issuer), role(itself)} {
		orphan := member.WithdrawIntent{GVK: o.GroupVersionKind(), Owner: identity(o), OwnerUID: ownerUID, Policy: hubv1.RemovalOrphan}
		w.withdraw(orphan, failed(hubv1.ReasonAdmissionDenied, member.RetrySlowly))
		in := member.WithdrawIntent{GVK: o.GroupVersionKind(), Owner: identity(o), OwnerUID: ownerUID, Policy: hubv1.RemovalDelete}
		w.withdraw(in, result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever})
	}
	w.must(w.objects(rbacRole, "kube-system").Delete(ctx, free, metav1.DeleteOptions{}))
}

func TestInKubeSystemOnlyAnOperatorHasRolesOfLeaderElection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role := func(resource string) *unstructured.Unstructured {
		return object(rbacRole, "kube-system", w.ns+":leader", map[string]any{"rules": []any{
			map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{resource}, "verbs": []any{"create"}},
		}})
	}
	for _, in := range []member.ApplyIntent{w.intentOf(role("leases"), "d1"), w.intentOf(role("secrets"), "d1")} {
		w.apply(in, failed(hubv1.ReasonNamespaceRefused, member.RetryNever))
	}
	widened := w.intentOf(role("secrets"), "d1")
	widened.OfOperator = true
	if out := w.apply(widened, failed(hubv1.ReasonNamespaceRefused, member.RetryNever)); !strings.Contains(out.Message, "rules[0] is about secrets.coordination.k8s.io") {
		t.Errorf("it says %q", out.Message)
	}
}
