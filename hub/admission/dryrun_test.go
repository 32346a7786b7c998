package admission_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatTheHubsAPIServerDoesNotAdmitIsRefused(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	image := func(o *unstructured.Unstructured) string {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)["image"].(string)
	}
	terminating := apierrors.NewForbidden(deployments, "web", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	answers := func(err error) func(*unstructured.Unstructured) error {
		return func(*unstructured.Unstructured) error { return err }
	}
	registry := func(o *unstructured.Unstructured) error {
		if strings.HasPrefix(image(o), "registry.good/") {
			return apierrors.NewAlreadyExists(deployments, "web")
		}
		return apierrors.NewForbidden(deployments, "web", errors.New("images come from registry.good"))
	}
	evil := overDeployments(`[{name: a, patches: [{op: replace, path: /spec/template/spec/containers/0/image, value: evil/miner}]}]`)
	tests := map[string]struct {
		given  func(*hub)
		admits func(*unstructured.Unstructured) error
		policy string
		code   int32 // 0: the policy is accepted
		says   string
		not    string
		sent   int // 0: any number
	}{
		"an image that a policy of the hub forbids": {
			admits: registry, policy: evil, code: http.StatusUnprocessableEntity,
			says: "Deployment.apps shop/web in cluster eu-1: the hub's API server refuses the rendered object: ", sent: 2,
		},
		"an image that it admits, of an object that exists on the hub": {
			admits: registry, policy: overDeployments(`[{name: a, patches: [{op: replace, path: /spec/template/spec/containers/0/image, value: registry.good/b}]}]`), sent: 1,
		},
		"what it forbids without the policy as well": {
			admits: answers(apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota"))), policy: evil,
			says: "in cluster eu-1: the hub's API server refuses the object with and without the policy, so the dry run does not check the policy: ",
		},
		"another refusal than without the policy": {
			admits: func(o *unstructured.Unstructured) error {
				if err := registry(o); !apierrors.IsAlreadyExists(err) {
					return err
				}
				return apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota"))
			},
			policy: evil, code: http.StatusUnprocessableEntity, says: "images come from registry.good", not: "quota",
		},
		"a namespace that is missing on the hub":       {admits: answers(apierrors.NewNotFound(corev1.Resource("namespaces"), "shop")), policy: evil},
		"a namespace that is being deleted":            {admits: answers(terminating), policy: evil},
		"a kind that the hub does not serve":           {admits: answers(&meta.NoKindMatchError{GroupKind: deployment.GroupKind()}), policy: evil},
		"an API server that does not answer":           {admits: answers(errors.New("connection refused")), policy: evil, code: http.StatusInternalServerError, says: "connection refused"},
		"a webhook of the hub that does not answer":    {admits: answers(apierrors.NewInternalError(errors.New("failed calling webhook"))), policy: evil, code: http.StatusInternalServerError, says: "failed calling webhook"},
		"an API server with too many requests":         {admits: answers(apierrors.NewTooManyRequests("slow down", 1)), policy: evil, code: http.StatusInternalServerError, says: "slow down"},
		"an object that does not match its schema":     {admits: answers(errors.New("not sent")), policy: policy(`[{name: a, mergePatch: {spec: {size: huge}}}]`), code: http.StatusUnprocessableEntity, says: "/spec/size must be one of", not: "not sent"},
		"equal objects for two clusters are sent once": {given: func(h *hub) { h.placeKind(deployment, "api", good, "eu-1", "cn-1") }, admits: answers(nil), policy: strings.Replace(evil, "kind: Deployment", "kind: Deployment, name: api", 1), sent: 1},
		"an object that the policy does not select":    {admits: answers(errors.New("not sent")), policy: strings.Replace(evil, "kind: Deployment", "kind: Deployment, name: other", 1)},
		"a role, because the hub may not give its rights": {
			given: func(h *hub) {
				h.placeKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, "admin", `{rules: []}`, "eu-1")
			},
			admits: answers(errors.New("not sent")), policy: strings.Replace(policy(`[{name: a, labels: {a: b}}]`), "apiGroup: test.hanse.dev, kind: Widget", "apiGroup: rbac.authorization.k8s.io, kind: Role", 1),
		},
		"of a Secret the message is not shown": {
			given: func(h *hub) {
				h.placeKind(corev1.SchemeGroupVersion.WithKind("Secret"), "keys", `{data: {a: czNjcjN0}}`, "eu-1")
			},
			admits: func(o *unstructured.Unstructured) error {
				if o.GetLabels()["a"] == "" {
					return nil
				}
				return apierrors.NewForbidden(corev1.Resource("secrets"), "keys", errors.New("s3cr3t"))
			},
			policy: strings.Replace(policy(`[{name: a, labels: {a: b}}]`), "apiGroup: test.hanse.dev, kind: Widget", "apiGroup: '', kind: Secret", 1),
			code:   http.StatusUnprocessableEntity, says: "Secret shop/keys in cluster eu-1: the hub's API server refuses the rendered object: the text is withheld because it may quote the Secret", not: "s3cr3t",
		},
		"the ports of nodes belong to the Service of the hub": {
			given: func(h *hub) {
				h.placeKind(corev1.SchemeGroupVersion.WithKind("Service"), "web", `{spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}}`, "eu-1")
			},
			admits: func(o *unstructured.Unstructured) error {
				if ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports"); ports[0].(map[string]any)["nodePort"] != nil {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)
				}
				return apierrors.NewAlreadyExists(corev1.Resource("services"), "web")
			},
			policy: strings.Replace(policy(`[{name: a, labels: {a: b}}]`), "apiGroup: test.hanse.dev, kind: Widget", "apiGroup: '', kind: Service", 1), sent: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.place("web", `{replicas: 3, size: small}`, "eu-1")
			h.placeKind(deployment, "web", good, "eu-1")
			if tt.given != nil {
				tt.given(h)
			}
			sent := 0
			h.admits = func(o *unstructured.Unstructured) error { sent++; return tt.admits(o) }
			answer := h.review(tt.policy, "")
			reported := strings.Join(answer.Warnings, "\n")
			code := int32(0)
			if !answer.Allowed {
				reported, code = answer.Result.Message, answer.Result.Code
			}
			if code != tt.code || !strings.Contains(reported, tt.says) || tt.says == "" && reported != "" || tt.not != "" && strings.Contains(reported, tt.not) {
				t.Errorf("%d %q, want %d and %q without %q", code, reported, tt.code, tt.says, tt.not)
			}
			if tt.sent != 0 && sent != tt.sent {
				t.Errorf("sent %d objects, want %d", sent, tt.sent)
			}
		})
	}
}

const good = `{spec: {template: {spec: {containers: [{name: c, image: registry.good/a}]}}}}`
