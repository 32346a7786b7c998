package apply_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
)

func TestWhatAServerRefuses(t *testing.T) {
	tests := map[string]struct {
		manifest func(ns string) *unstructured.Unstructured
		want     result
		says     string
		hides    string
	}{
		"a kind that the mapper does not know": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(schema.GroupVersionKind{Group: "x.example.com", Version: "v1", Kind: "Unknown"}, ns, "web", nil)
			},
			want: failed(hubv1.ReasonKindNotServed, member.RetrySlowly), says: "does not serve Unknown in x.example.com/v1",
		},
		"a kind that the server does not know": {
			manifest: func(ns string) *unstructured.Unstructured { return object(ghost, ns, "web", nil) },
			want:     failed(hubv1.ReasonKindNotServed, member.RetrySlowly), says: "does not serve Ghost in shop.example.com/v1",
		},
		"a version that the server does not serve": {
			manifest: func(ns string) *unstructured.Unstructured { return object(widgetV2, ns, "web", nil) },
			want:     failed(hubv1.ReasonKindNotServed, member.RetrySlowly), says: "shop.example.com/v2",
		},
		"a field that the member's schema does not have": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"shape": "round"}))
			},
			want: failed(hubv1.ReasonFieldsNotServed, member.RetrySlowly), says: "has no field .spec.shape", hides: "round",
		},
		"a value that the member's schema does not allow": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"size": int64(99), "color": "canary"}))
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: "spec.size", hides: "canary",
		},
		"a value of the wrong type": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"size": "canary"}))
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: ".spec.size", hides: "canary",
		},
		"a variable that is there twice": {
			manifest: func(ns string) *unstructured.Unstructured {
				variable := func(value string) any { return map[string]any{"name": "LEVEL", "value": value} }
				return object(pod, ns, "web", spec(map[string]any{"containers": []any{
					map[string]any{"name": "c", "image": "i", "env": []any{variable("one"), variable("canary")}},
				}}))
			},
			want:  failed(hubv1.ReasonManifestRefused, member.RetrySlowly),
			says:  `.spec.containers[name="c"].env has two entries with name="LEVEL": server-side apply accepts only one: remove the others on the hub`,
			hides: "canary",
		},
		"a port under two names": {
			manifest: func(ns string) *unstructured.Unstructured {
				port := func(name string) any {
					return map[string]any{"name": name, "containerPort": int64(80), "protocol": "TCP"}
				}
				return object(pod, ns, "web", spec(map[string]any{"containers": []any{
					map[string]any{"name": "c", "image": "i", "ports": []any{port("http"), port("web")}},
				}}))
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly),
			says: `.spec.containers[name="c"].ports has two entries with containerPort=80, protocol="TCP": server-side apply accepts only one`,
		},
		"a value of a set that is there twice": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"tags": []any{"canary", "canary"}}))
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: ".spec.tags has two entries that are equal", hides: "canary",
		},
		"a value of a Secret that is not base64": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(secret, ns, "web", map[string]any{"data": map[string]any{"password": "canary!"}})
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: "Secret", hides: "canary",
		},
		"a key of a Secret that is not allowed": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(secret, ns, "web", map[string]any{"type": "kubernetes.io/tls", "data": map[string]any{"canary": "Y2FuYXJ5"}})
			},
			want: failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: "data[tls.crt]", hides: "canary",
		},
		"a pod that the namespace's pod security forbids": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(pod, ns, "web", spec(map[string]any{
					"hostNetwork": true, "containers": []any{map[string]any{"name": "c", "image": "i"}},
				}))
			},
			want: failed(hubv1.ReasonAdmissionDenied, member.RetrySlowly), says: "PodSecurity",
		},
		"an object of 2 MB": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"note": strings.Repeat("x", 2<<20)}))
			},
			want: failed(hubv1.ReasonTooLarge, member.RetryNever), says: "as too large",
		},
		"an object of 4 MB": {
			manifest: func(ns string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"note": strings.Repeat("x", 4<<20)}))
			},
			want: failed(hubv1.ReasonTooLarge, member.RetryNever), says: "as too large",
		},
		"a namespaced object without a namespace": {
			manifest: func(string) *unstructured.Unstructured { return object(widget, "", "web", nil) },
			want:     failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: "namespaced",
		},
		"a cluster-scoped object with a namespace": {
			manifest: func(ns string) *unstructured.Unstructured { return object(namespace, ns, "web", nil) },
			want:     failed(hubv1.ReasonManifestRefused, member.RetrySlowly), says: "cluster-scoped",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			label := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
			if _, err := w.objects(namespace, "").Patch(t.Context(), w.ns, "application/merge-patch+json", []byte(label), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			out := w.apply(w.intentOf(tc.manifest(w.ns), "d1"), tc.want)
			t.Log(out.Message)
			if !strings.Contains(out.Message, tc.says) || tc.hides != "" && strings.Contains(out.Message, tc.hides) {
				t.Errorf("message %q", out.Message)
			}
		})
	}
}

func TestAQuotaAndAPolicyDeny(t *testing.T) {
	w := newWorld(t)
	quota := object(schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}, w.ns, "q",
		spec(map[string]any{"hard": map[string]any{"count/configmaps": "0"}}))
	quotas := w.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}).Namespace(w.ns)
	made, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The test writes the status of the ResourceQuota, because no controller-manager runs here.
	made.Object["status"] = map[string]any{"hard": map[string]any{"count/configmaps": "0"}, "used": map[string]any{"count/configmaps": "0"}}
	if _, err := quotas.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		out := w.applier.Apply(t.Context(), w.intentOf(object(configMap, w.ns, "web", nil), "d1"))
		return out.Reason == hubv1.ReasonAdmissionDenied && strings.Contains(out.Message, "exceeded quota: q")
	})

	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings := policies.GroupVersion().WithResource("validatingadmissionpolicybindings")
	policy := object(policies.GroupVersion().WithKind("ValidatingAdmissionPolicy"), "", w.ns, spec(map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{"shop.example.com"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"widgets"},
		}}},
		"validations": []any{map[string]any{"expression": "object.metadata.namespace != '" + w.ns + "'", "message": "not on a friday"}},
	}))
	binding := object(policies.GroupVersion().WithKind("ValidatingAdmissionPolicyBinding"), "", w.ns,
		spec(map[string]any{"policyName": w.ns, "validationActions": []any{"Deny"}}))
	if _, err := w.admin.Resource(policies).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.Resource(bindings).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	i := 0
	until(t, func() bool {
		i++
		in := w.intentOf(object(widget, w.ns, "w"+strings.Repeat("x", i), nil), "d1")
		out := w.applier.Apply(t.Context(), in)
		return out.Reason == hubv1.ReasonAdmissionDenied && strings.Contains(out.Message, "not on a friday")
	})
}

func until(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	w := newWorld(t)
	user, err := environment.AddUser(envtest.User{Name: "hub-" + w.ns}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := w.as(user.Config(), hubUID)
	out := w.check(a.Apply(t.Context(), w.intent(nil, "d1")), failed(hubv1.ReasonForbidden, member.RetrySlowly))
	if !strings.Contains(out.Message, "may not get widgets.shop.example.com") {
		t.Error(out.Message)
	}
	out = w.check(a.Withdraw(t.Context(), w.withdrawal()), failed(hubv1.ReasonForbidden, member.RetrySlowly))
	if !strings.Contains(out.Message, "may not get widgets") {
		t.Error(out.Message)
	}
}

// TestTheMissingRoleOfABindingIsNamed has a hub that may write bindings and not bind roles, as members grant it.
func TestTheMissingRoleOfABindingIsNamed(t *testing.T) {
	w := newWorld(t)
	user := "hub-" + w.ns
	hub, err := environment.AddUser(envtest.User{Name: user}, nil)
	w.must(err)
	bindings := func(name, role string) map[string]any {
		return map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": role},
			"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": name}},
		}
	}
	ofRBAC := func(kind string) schema.GroupVersionKind { return rbacv1.SchemeGroupVersion.WithKind(kind) }
	w.create(object(ofRBAC("Role"), w.ns, "writer", map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{rbacv1.GroupName}, "resources": []any{"rolebindings"}, "verbs": []any{"get", "create", "patch"},
	}}}))
	w.create(object(ofRBAC("RoleBinding"), w.ns, "writer", bindings(user, "writer")))
	a, intent := w.as(hub.Config(), hubUID), w.intentOf(object(ofRBAC("RoleBinding"), w.ns, "operator", bindings("operator", "absent")), "d1")
	out := w.check(a.Apply(t.Context(), intent), failed(hubv1.ReasonPending, member.RetrySoon))
	if want := "the cluster has no Role absent, which RoleBinding " + w.ns + "/operator names"; !strings.Contains(out.Message, want) {
		t.Errorf("got %q, want %q", out.Message, want)
	}
	w.create(object(ofRBAC("Role"), w.ns, "absent", map[string]any{"rules": []any{}}))
	w.check(a.Apply(t.Context(), intent), written)
}

func TestCredentialsThatAreNotTaken(t *testing.T) {
	w := newWorld(t)
	config := rest.AnonymousClientConfig(apiServer)
	config.BearerToken = "canary"
	a := w.as(config, hubUID)
	out := w.check(a.Apply(t.Context(), w.intent(nil, "d1")), failed(hubv1.ReasonUnauthorized, member.RetrySlowly))
	if strings.Contains(out.Message, "canary") {
		t.Error(out.Message)
	}
}

func TestAServerInTrouble(t *testing.T) {
	tests := map[string]struct {
		answer *answer
		want   result
		after  time.Duration
	}{
		"asks for fewer requests": {
			answer: status(429, metav1.Status{Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 5}}),
			want:   failed(hubv1.ReasonThrottled, member.RetryAfter), after: 5 * time.Second,
		},
		"fails": {
			answer: status(500, metav1.Status{Reason: metav1.StatusReasonInternalError, Message: "etcd is away"}),
			want:   failed(hubv1.ReasonServerError, member.RetrySoon),
		},
		"says when to come back": {
			answer: status(503, metav1.Status{Reason: metav1.StatusReasonServerTimeout, Details: &metav1.StatusDetails{RetryAfterSeconds: 100000}}),
			want:   failed(hubv1.ReasonServerError, member.RetryAfter), after: 5 * time.Minute,
		},
		"talks too much": {
			answer: status(500, metav1.Status{Message: strings.Repeat("<html>\x00é\n", 9999)}),
			want:   failed(hubv1.ReasonServerError, member.RetrySoon),
		},
		"makes no sense": {
			answer: &answer{http.StatusBadGateway, "<html>"},
			want:   failed(hubv1.ReasonServerError, member.RetrySoon),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.intercept = func(*http.Request) *answer { return tc.answer }
			if out := w.apply(w.intent(nil, "d1"), tc.want); out.After != tc.after {
				t.Errorf("after %s", out.After)
			}
			w.withdraw(w.withdrawal(), tc.want)
		})
	}
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	broken := transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	silent := transport(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
	want := result{metav1.ConditionUnknown, hubv1.ReasonUnreachable, false, member.RetrySoon}
	for name, way := range map[string]transport{"refused": broken, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			w := &world{T: t, ns: "n"}
			a := apply.New("m1", false, clientOf(t, way), resolve, hubUID, nil, ignored)
			w.check(a.Apply(ctx, w.intent(nil, "d1")), want)
			w.check(a.Withdraw(ctx, w.withdrawal()), want)
		})
	}
}
