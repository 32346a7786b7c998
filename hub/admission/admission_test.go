package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/admission"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/placement/guard"
)

var widget = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Widget"}

const widgetSchema = `{"components":{"schemas":{"w":{"type":"object","properties":{"spec":{"type":"object","properties":{
	"replicas":{"type":"integer","minimum":0,"maximum":100},"size":{"type":"string","enum":["small","large"]},"note":{"type":"string"},"secret":{"type":"string"},
	"limits":{"type":"object","additionalProperties":{"type":"integer"}},"ports":{"type":"array","maxItems":2,"items":{"type":"integer"}},
	"env":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}},
		"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}},
	"x-kubernetes-group-version-kind":[{"group":"test.hanse.dev","kind":"Widget","version":"v1"}]}}}}`

const secretSchema = `{"components":{"schemas":{"s":{"type":"object","properties":{"data":{"type":"object","additionalProperties":{"type":"string"}},
	"stringData":{"type":"object","additionalProperties":{"type":"string"}}},"x-kubernetes-group-version-kind":[{"group":"","kind":"Secret","version":"v1"}]}}}}`

// hub has the objects and rights that a review reads.
type hub struct {
	*testing.T
	objects   []client.Object
	templates map[hubv1.ObjectIdentity]*unstructured.Unstructured
	// asking is called before the review asks for a right of a user. It may be nil.
	asking func(user string)
	// reading is called before the review reads the labels of an object. It may be nil.
	reading func()
	// unmapped is the error that the RESTMapper returns for every kind. If it is nil, the RESTMapper maps all kinds of the
	// test.
	unmapped error
	// admits is the answer of the API server to a dry run. If it is nil, rendered objects are not sent.
	admits func(*unstructured.Unstructured) error
	// lookup is the Lookup of the review. If it is nil, there are no warnings about kinds and objects.
	lookup admission.Lookup
	// may reports whether the author has a right, given as "verb resource.group namespace name". If may is nil, the author
	// has all rights.
	may func(string) bool

	mu    sync.Mutex
	asked []string
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{T: t, templates: map[hubv1.ObjectIdentity]*unstructured.Unstructured{}}
	h.objects = append(h.objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}})
	for name, region := range map[string]string{"eu-1": "eu", "cn-1": "cn"} {
		h.objects = append(h.objects, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hubv1.RegionLabel: region}}})
	}
	return h
}

// place adds an object to the hub, with a binding that sends the object to clusters.
func (h *hub) place(name, spec string, clusters ...string) {
	h.Helper()
	h.placeKind(widget, name, `{"spec":`+spec+`}`, clusters...)
}

func (h *hub) placeKind(gvk schema.GroupVersionKind, name, content string, clusters ...string) {
	h.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(content))
	h.must(err)
	h.must(utiljson.Unmarshal(raw, &o.Object))
	o.SetGroupVersionKind(gvk)
	o.SetNamespace("shop")
	o.SetName(name)
	id := hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: "shop", Name: name}
	h.templates[id] = o
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id.BindingKey().Name}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: "u"}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: c, State: hubv1.TargetPresent})
	}
	h.objects = append(h.objects, b)
}

func (h *hub) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// Get implements admission.Templates.
func (h *hub) Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	o, ok := h.templates[id]
	return o, ok
}

// Head implements admission.Templates.
func (h *hub) Head(id hubv1.ObjectIdentity) (metav1.Object, bool) {
	if h.reading != nil {
		h.reading()
	}
	o, ok := h.templates[id]
	return o, ok
}

// State implements admission.Templates. The hub watches Secrets alone.
func (h *hub) State(gk schema.GroupKind) (informer.State, bool) {
	return informer.State{Synced: true}, gk.Kind == "Secret"
}

// StoredKinds implements admission.Templates.
func (h *hub) StoredKinds() sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for id, o := range h.templates {
		if hubv1.BundleOf(o) != nil {
			kinds.Insert(id.GroupKind())
		}
	}
	return kinds
}

// StoredOf implements admission.Templates.
func (h *hub) StoredOf(of hubv1.BundleReference) (ids []hubv1.ObjectIdentity) {
	for id, o := range h.templates {
		if b := hubv1.BundleOf(o); b != nil && b.BundleReference == of {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *hub) reviewer() *admission.Reviewer {
	h.Helper()
	scheme := runtime.NewScheme()
	h.must(errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{widget.GroupVersion(), corev1.SchemeGroupVersion, {Group: "rbac.authorization.k8s.io", Version: "v1"}, deployment.GroupVersion()})
	mapper.Add(deployment, meta.RESTScopeNamespace)
	mapper.Add(widget, meta.RESTScopeNamespace)
	for _, kind := range []string{"Secret", "Service"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
		mapper.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}, meta.RESTScopeRoot)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(h.objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review := o.(*authorizationv1.SubjectAccessReview)
			if h.asking != nil {
				h.asking(review.Spec.User)
			}
			a := review.Spec.ResourceAttributes
			right := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", a.Verb, schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Namespace, a.Name)), " ")
			h.mu.Lock()
			h.asked = append(h.asked, right)
			h.mu.Unlock()
			review.Status.Allowed = h.may == nil || h.may(right)
			return nil
		},
	}).Build()
	secret := corev1.SchemeGroupVersion.WithKind("Secret")
	schemas := map[schema.GroupVersionKind]*openapi.Schema{}
	for gvk, raw := range map[schema.GroupVersionKind]string{widget: widgetSchema, secret: secretSchema} {
		var err error
		schemas[gvk], err = openapi.Parse([]byte(raw), gvk)
		h.must(err)
	}
	var dryRun func(context.Context, *unstructured.Unstructured) error
	if h.admits != nil {
		dryRun = func(_ context.Context, o *unstructured.Unstructured) error { return h.admits(o) }
	}
	return admission.New(admission.Options{
		DryRun: dryRun, Lookup: h.lookup, Client: c, Mapper: &failing{RESTMapper: mapper, err: h.unmapped}, Templates: h,
		Schema: func(_ context.Context, gvk schema.GroupVersionKind) *openapi.Schema { return schemas[gvk] },
		Readable: func(p hubv1.PlacementObject) error {
			if p.PlacementSpec().Clusters.Expression == "(" {
				return errors.New("spec.clusters.expression: it cannot be read")
			}
			return nil
		},
		RemovalLimit: guard.DefaultLimit,
	})
}

// failing is a RESTMapper that returns err for every kind, unless err is nil.
type failing struct {
	meta.RESTMapper
	err error
}

func (f *failing) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.RESTMapper.RESTMapping(gk, versions...)
}

func TestAFailedLookupIsNoReasonToRefuseAPolicy(t *testing.T) {
	for name, policy := range map[string]string{
		"a placement": `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {names: [eu-1]}}}`,
		"an override": policy(`[{name: a, mergePatch: {spec: {size: large}}}]`),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.unmapped = errors.New("the server is starting")
			answer := h.review(policy, "")
			if answer.Allowed || answer.Result.Code != http.StatusInternalServerError || !strings.Contains(answer.Result.Message, "the server is starting") {
				t.Errorf("got %+v, want 500 with the cause", answer.Result)
			}
			if len(h.asked) > 0 {
				t.Errorf("it asked for %q", h.asked)
			}
		})
	}
}

// review requests the review of a policy in YAML. A non-empty before makes the request an update of that policy.
func (h *hub) review(policy, before string) ctrladmission.Response {
	h.Helper()
	return h.reviewer().Handle(h.Context(), h.request("alice", policy, before))
}

func (h *hub) request(user, policy, before string) ctrladmission.Request {
	h.Helper()
	raw, err := yaml.YAMLToJSON([]byte(policy))
	h.must(err)
	var kind metav1.PartialObjectMetadata
	h.must(json.Unmarshal(raw, &kind))
	req := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: "hanse.dev", Version: "v1alpha1", Kind: kind.Kind}, Namespace: kind.Namespace, Name: kind.Name,
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}, UserInfo: authenticationv1.UserInfo{Username: user},
	}}
	if before != "" {
		req.Operation = admissionv1.Update
		req.OldObject.Raw, err = yaml.YAMLToJSON([]byte(before))
		h.must(err)
	}
	return req
}

func number(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }

func policy(rules string) string {
	return `{kind: OverridePolicy, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], rules: ` + rules + `}}`
}

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

const valid = `{spec: {template: {spec: {containers: [{name: c, image: i}]}}}}`

func overDeployments(rules string) string {
	return strings.ReplaceAll(policy(rules), "apiGroup: test.hanse.dev, kind: Widget", "apiGroup: apps, kind: Deployment")
}

// enforces sets the label of the namespace shop by which Pod Security enforces this level.
func (h *hub) enforces(level string) {
	h.objects[0].GetLabels()["pod-security.kubernetes.io/enforce"] = level
}

// enforced adds a ClusterPlacement with enforced: true, which selects the widgets in the namespaces of a team.
func (h *hub) enforced(name, team string) {
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Enforced = true
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: widget.Group, Kind: widget.Kind}}
	h.objects = append(h.objects, p)
}

func TestAPolicyThatWouldBreakObjectsIsRefused(t *testing.T) {
	tests := map[string]struct {
		given  func(*hub)
		policy string
		want   []string // words of the refusal; none: the policy is accepted
		not    []string
		warned string
	}{
		"a policy that fits": {policy: policy(`[{name: a, patches: [{op: replace, path: /spec/replicas, value: 5}]}]`)},
		"a value of another type, with object, cluster, path and value": {
			policy: policy(`[{name: a, clusters: {names: [cn-1]}, patches: [{op: replace, path: /spec/replicas, value: five}]}]`),
			want:   []string{"Widget.test.hanse.dev shop/web in cluster cn-1: /spec/replicas must be an integer, not \"five\""}, not: []string{"eu-1"},
		},
		"a word that is not of the enum, by a merge patch": {
			policy: policy(`[{name: a, mergePatch: {spec: {size: huge}}}]`),
			want:   []string{"cluster cn-1: /spec/size must be one of \"small\", \"large\", not \"huge\"", "cluster eu-1"},
		},
		"a number out of bounds":       {policy: policy(`[{name: a, mergePatch: {spec: {replicas: 101}}}]`), want: []string{"/spec/replicas must be at most 100, not 101"}},
		"a field that is not declared": {policy: policy(`[{name: a, mergePatch: {spec: {sice: small}}}]`), want: []string{"/spec/sice is not a field of the schema"}},
		"a variable that is there already, which server-side apply would refuse": {
			given:  func(h *hub) { h.place("api", `{env: [{name: MODE, value: s3cr3t}]}`, "eu-1") },
			policy: policy(`[{name: a, clusters: {names: [eu-1]}, patches: [{op: add, path: /spec/env/-, value: {name: MODE, value: fast}}]}]`),
			want:   []string{`shop/api in cluster eu-1: /spec/env/* must have another name than the entries before it, not "MODE"`}, not: []string{"s3cr3t"},
		},
		"a variable that was there twice before is not its fault": {
			given:  func(h *hub) { h.place("api", `{replicas: 1, env: [{name: MODE}, {name: MODE}]}`, "eu-1") },
			policy: policy(`[{name: a, patches: [{op: replace, path: /spec/replicas, value: 5}]}]`),
		},
		"a path that is not there": {
			policy: policy(`[{name: a, patches: [{op: replace, path: /spec/note, value: x}]}]`), want: []string{"web in cluster cn-1", "rule \"a\"", "/spec/note"},
		},
		"a value that comes from the object is not shown": {
			policy: policy(`[{name: a, patches: [{op: copy, from: /spec/secret, path: /spec/replicas}]}]`),
			want:   []string{"/spec/replicas must be an integer"}, not: []string{"s3cr3t"},
		},
		"a key that an expression makes of a value is not shown": {
			policy: policy(`[{name: a, patches: [{op: add, path: /spec/limits, expression: "{string(object.spec.secret): 'x', 'other': 'y'}"}]}]`),
			want:   []string{"/spec/limits/* must be an integer"}, not: []string{"s3cr3t", "other"},
		},
		"a key that the policy holds is": {
			policy: policy(`[{name: a, mergePatch: {spec: {limits: {"a/b": x}}}}]`), want: []string{`/spec/limits/a~1b must be an integer, not "x"`},
		},
		"an index and a number that an expression makes of a value are not": {
			policy: policy(`[{name: a, clusters: {names: [eu-1]}, patches: [{op: add, path: /spec/ports, expression: "[1, 2, 3, object.spec.secret, object.spec.secret]"}]}]`),
			want:   []string{"eu-1: /spec/ports must have at most 2 items; ", "/spec/ports/* must be an integer"}, not: []string{"s3cr3t", "/3", "has 5", "more", "*; "},
		},
		"of a Secret nothing is shown below its data": {
			given: func(h *hub) {
				h.placeKind(corev1.SchemeGroupVersion.WithKind("Secret"), "keys", `{data: {password: czNjcjN0}}`, "eu-1")
			},
			policy: strings.ReplaceAll(policy(`[{name: a, patches: [{op: add, path: /data/known, value: 5}]}]`),
				"apiGroup: test.hanse.dev, kind: Widget", "apiGroup: '', kind: Secret"),
			want: []string{"/data/* must be a string"}, not: []string{"czNjcjN0", "s3cr3t", "known"},
		},
		"an expression does not see the values of a Secret": {
			given: func(h *hub) {
				h.placeKind(corev1.SchemeGroupVersion.WithKind("Secret"), "keys", `{data: {password: czNjcjN0}}`, "eu-1")
			},
			policy: strings.ReplaceAll(policy(`[{name: a, patches: [{op: add, path: /metadata/labels/a, expression: "object.data.password"}]}]`),
				"apiGroup: test.hanse.dev, kind: Widget", "apiGroup: '', kind: Secret"),
			want: []string{"no such key"}, not: []string{"czNjcjN0", "s3cr3t"},
		},
		"a Secret that would become a token of the member": {
			given: func(h *hub) {
				h.placeKind(corev1.SchemeGroupVersion.WithKind("Secret"), "keys", `{type: Opaque}`, "eu-1")
			},
			policy: strings.ReplaceAll(policy(`[{name: a, patches: [{op: replace, path: /type, value: kubernetes.io/service-account-token}]}]`),
				"apiGroup: test.hanse.dev, kind: Widget", "apiGroup: '', kind: Secret"),
			want: []string{"Secret shop/keys in cluster eu-1: a Secret of type kubernetes.io/service-account-token is a credential"},
		},
		"a pod template that the namespace forbids": {
			given: func(h *hub) { h.enforces("baseline"); h.placeKind(deployment, "web", valid, "eu-1") },
			policy: overDeployments(`[{name: a, patches: [{op: add, path: /spec/template/spec/hostNetwork, value: true},
				{op: add, path: /spec/template/spec/containers/0/securityContext, value: {privileged: true}}]}]`),
			want: []string{"Deployment.apps shop/web in cluster eu-1: the namespace enforces Pod Security baseline:latest, which forbids host namespaces, privileged"},
		},
		"a pod template that the namespace allows": {
			given:  func(h *hub) { h.enforces("baseline"); h.placeKind(deployment, "web", valid, "eu-1") },
			policy: overDeployments(`[{name: a, patches: [{op: add, path: /spec/template/spec/hostAliases, value: []}]}]`),
		},
		"a namespace that enforces no level": {
			given:  func(h *hub) { h.placeKind(deployment, "web", valid, "eu-1") },
			policy: overDeployments(`[{name: a, patches: [{op: add, path: /spec/template/spec/hostNetwork, value: true}]}]`),
		},
		"what the namespace forbade before is not its fault": {
			given:  func(h *hub) { h.enforces("restricted"); h.placeKind(deployment, "web", valid, "eu-1") },
			policy: overDeployments(`[{name: a, patches: [{op: add, path: /spec/template/spec/hostAliases, value: []}]}]`),
		},
		"but what it adds is": {
			given:  func(h *hub) { h.enforces("restricted"); h.placeKind(deployment, "web", valid, "eu-1") },
			policy: overDeployments(`[{name: a, patches: [{op: add, path: /spec/template/spec/hostPID, value: true}]}]`),
			want:   []string{"restricted:latest, which forbids host namespaces"}, not: []string{"seccomp"},
		},
		"an override in a system namespace": {
			policy: `{kind: OverridePolicy, metadata: {namespace: kube-system, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], rules: [{name: a, mergePatch: {spec: {size: small}}}]}}`,
			want:   []string{"a policy in kube-system has no effect"},
		},
		"a placement in Hanse's namespace": {
			policy: `{kind: Placement, metadata: {namespace: hanse-system, name: new}, spec: {resourceSelectors: [{kind: Secret}], clusters: {names: [eu-1]}}}`,
			want:   []string{"a policy in hanse-system has no effect"},
		},
		"what was wrong before is not its fault": {
			given:  func(h *hub) { h.place("old", `{replicas: 500, size: small}`, "eu-1") },
			policy: policy(`[{name: a, patches: [{op: replace, path: /spec/size, value: large}]}]`),
		},
		"of an object without clusters all are tried": {
			given:  func(h *hub) { h.place("fresh", `{replicas: 1}`) },
			policy: policy(`[{name: a, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu}}}, patches: [{op: test, path: /spec/replicas, value: 1}, {op: replace, path: /spec/replicas, value: -1}]}]`),
			want:   []string{"shop/fresh in cluster eu-1: /spec/replicas must be at least 0, not -1"},
		},
		"a disagreement with another policy is a warning": {
			given: func(h *hub) {
				h.objects = append(h.objects, &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}, Spec: hubv1.OverridePolicySpec{
					ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widget.Group, Kind: widget.Kind}},
					Rules:             []hubv1.OverrideRule{{Name: "t", Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/replicas", Value: number("7")}}}},
				}})
			},
			policy: policy(`[{name: a, patches: [{op: replace, path: /spec/replicas, value: 5}]}]`), warned: "disagree about path /spec/replicas",
		},
		"a disagreement does not hide what does not fit": {
			given: func(h *hub) {
				h.objects = append(h.objects, &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}, Spec: hubv1.OverridePolicySpec{
					ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widget.Group, Kind: widget.Kind}},
					Rules:             []hubv1.OverrideRule{{Name: "t", Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/replicas", Value: number("7")}}}},
				}})
			},
			policy: policy(`[{name: a, patches: [{op: replace, path: /spec/replicas, value: five}]}]`), want: []string{"/spec/replicas must be an integer"},
		},
		"many are counted": {
			given: func(h *hub) {
				for i := range 20 {
					h.place(fmt.Sprintf("w%02d", i), `{replicas: 1, size: small}`, "eu-1", "cn-1")
				}
			},
			policy: policy(`[{name: a, mergePatch: {spec: {size: huge}}}]`), want: []string{"and 37 more"},
		},
		"what can never be read is found without an object": {
			policy: policy(`[{name: a, patches: [{op: replace, path: /metadata/name, value: x}]}]`), want: []string{"spec.rules[0].patches[0]"},
		},
		"nothing is there yet, and the values fit": {
			given:  func(h *hub) { h.objects, h.templates = h.objects[:3], nil },
			policy: policy(`[{name: a, mergePatch: {metadata: {labels: {x: z}}, spec: {size: small}}, patches: [{op: add, path: /spec/replicas, value: 5}]}]`),
		},
		"nothing is there yet, and a value does not fit": {
			given:  func(h *hub) { h.objects, h.templates = h.objects[:3], nil },
			policy: policy(`[{name: a, mergePatch: {spec: {size: 3}}}, {name: b, patches: [{op: add, path: /spec/replica, value: 5}]}]`),
			want:   []string{`every Widget.test.hanse.dev, by rule "a": /spec/size must be a string, not 3`, `rule "b": /spec/replica is not a field of the schema`},
		},
		"a policy of the cluster for namespaces that it selects": {
			policy: `{kind: ClusterOverridePolicy, metadata: {name: new}, spec: {namespaceSelector: {matchLabels: {team: a}}, resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}],
				rules: [{name: a, mergePatch: {spec: {size: huge}}}]}}`,
			want: []string{"shop/web in cluster eu-1: /spec/size"},
		},
		"a namespace selector that cannot be read": {
			policy: `{kind: ClusterOverridePolicy, metadata: {name: new}, spec: {namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}, resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}],
				rules: [{name: a, mergePatch: {spec: {size: huge}}}]}}`,
			want: []string{"spec.namespaceSelector"},
		},
		"a placement that cannot be read": {
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {expression: "("}}}`,
			want:   []string{"spec.clusters.expression"},
		},
		"a placement that an enforced one outranks is warned of it": {
			given: func(h *hub) { h.enforced("fixed", "a"); h.enforced("elsewhere", "b") },
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {priority: 1000, resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}],
				clusters: {names: [eu-1]}}}`,
			warned: "have precedence over this placement at any priority: fixed",
		},
		"a placement of another kind is not": {
			given:  func(h *hub) { h.enforced("fixed", "a") },
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{kind: Secret}], clusters: {names: [eu-1]}}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.place("web", `{replicas: 3, size: small, secret: s3cr3t}`, "eu-1", "cn-1")
			if tt.given != nil {
				tt.given(h)
			}
			answer := h.review(tt.policy, "")
			if answer.Allowed != (len(tt.want) == 0) {
				t.Fatalf("allowed is %t: %+v", answer.Allowed, answer.Result)
			}
			if !answer.Allowed && answer.Result.Code != http.StatusUnprocessableEntity {
				t.Errorf("code %d", answer.Result.Code)
			}
			reported := ""
			if answer.Result != nil {
				reported = answer.Result.Message
			}
			for _, words := range tt.want {
				if !strings.Contains(reported, words) {
					t.Errorf("%q does not say %q", reported, words)
				}
			}
			for _, words := range tt.not {
				if strings.Contains(reported, words) {
					t.Errorf("%q says %q", reported, words)
				}
			}
			if warned := strings.Join(answer.Warnings, "\n"); !strings.Contains(warned, tt.warned) || tt.warned == "" && warned != "" {
				t.Errorf("warned of %q, want %q", warned, tt.warned)
			}
		})
	}
}

func TestRightsAreAskedForFirst(t *testing.T) {
	tests := map[string]struct {
		policy string
		code   int32 // code of the answer to an author without rights
		asked  bool
	}{
		"an override that cannot be read":        {policy: policy(`[{name: a, patches: [{op: add, path: /spec/replicas, expression: "("}]}]`), code: http.StatusForbidden, asked: true},
		"a placement that cannot be read":        {policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {expression: "("}}}`, code: http.StatusForbidden, asked: true},
		"more selectors than a policy can have":  {policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [` + strings.Repeat(`{apiGroup: test.hanse.dev, kind: Widget},`, 65) + `]}}`, code: http.StatusUnprocessableEntity},
		"more names than a placement can select": {policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {clusters: {names: [` + strings.Repeat(`a,`, 1001) + `]}, apply: {adoption: Always}}}`, code: http.StatusUnprocessableEntity},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.may = func(string) bool { return false }
			if answer := h.review(tt.policy, ""); answer.Allowed || answer.Result.Code != tt.code {
				t.Errorf("got %+v, want %d", answer.Result, tt.code)
			}
			if asked := len(h.asked) > 0; asked != tt.asked {
				t.Errorf("asked for rights is %t", asked)
			}
		})
	}
}

func TestOneAuthorLeavesTurnsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		release, waiting := make(chan struct{}), sync.WaitGroup{}
		h.asking = func(user string) {
			if user == "alice" {
				<-release
			}
		}
		reviewer := h.reviewer()
		fits := policy(`[{name: a, mergePatch: {spec: {size: large}}}]`)
		for range 10 {
			waiting.Go(func() {
				if answer := reviewer.Handle(t.Context(), h.request("alice", fits, "")); !answer.Allowed {
					t.Errorf("alice, in the end: %+v", answer.Result)
				}
			})
		}
		synctest.Wait()
		for range 3 {
			if answer := reviewer.Handle(t.Context(), h.request("bob", fits, "")); !answer.Allowed {
				t.Errorf("bob, meanwhile: %+v", answer.Result)
			}
		}
		close(release)
		waiting.Wait()
	})
}

func TestOneNamespaceLeavesTurnsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		release, waiting := make(chan struct{}), sync.WaitGroup{}
		h.asking = func(user string) {
			if strings.HasPrefix(user, "shopper-") {
				<-release
			}
		}
		reviewer := h.reviewer()
		fits := policy(`[{name: a, mergePatch: {spec: {size: large}}}]`)
		for i := range 10 {
			waiting.Go(func() {
				if answer := reviewer.Handle(t.Context(), h.request(fmt.Sprintf("shopper-%d", i), fits, "")); !answer.Allowed {
					t.Errorf("shopper %d, in the end: %+v", i, answer.Result)
				}
			})
		}
		synctest.Wait()
		elsewhere := strings.ReplaceAll(fits, "namespace: shop", "namespace: bank")
		for _, other := range []string{elsewhere, strings.ReplaceAll(strings.ReplaceAll(fits, "kind: OverridePolicy", "kind: ClusterOverridePolicy"), "namespace: shop, ", "")} {
			if answer := reviewer.Handle(t.Context(), h.request("bob", other, "")); !answer.Allowed {
				t.Errorf("bob, meanwhile: %+v", answer.Result)
			}
		}
		close(release)
		waiting.Wait()
	})
}

func TestWhatTheAuthorMustBeAllowedToDo(t *testing.T) {
	const select4 = "create widgets.test.hanse.dev shop|delete widgets.test.hanse.dev shop|get widgets.test.hanse.dev shop|update widgets.test.hanse.dev shop"
	placement := func(spec string) string {
		return `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], ` + spec + `}}`
	}
	rbac := func(kind string) string {
		return `{kind: OverridePolicy, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: rbac.authorization.k8s.io, kind: ` + kind + `, name: x}], rules: [{name: a, labels: {x: z}}]}}`
	}
	tests := map[string]struct {
		policy, before string
		want           string // rights that are checked, sorted
		lacks, says    string
	}{
		"a placement: what it selects": {policy: placement(`clusters: {names: [eu-1]}`), want: select4, lacks: "delete", says: `alice needs the right to delete widgets.test.hanse.dev in namespace shop`},
		"a placement of the cluster: everywhere": {
			policy: `{kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], namespaceSelector: {}, clusters: {names: [eu-1]}}}`,
			want:   strings.ReplaceAll(select4, " shop", ""), lacks: "get", says: "get widgets.test.hanse.dev in the whole cluster",
		},
		"an object by name": {
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: web}], clusters: {names: [eu-1]}}}`,
			want:   "create widgets.test.hanse.dev shop|delete widgets.test.hanse.dev shop web|get widgets.test.hanse.dev shop web|update widgets.test.hanse.dev shop web",
			lacks:  "update", says: "update widgets.test.hanse.dev web in namespace shop",
		},
		"a kind that the hub does not serve: all of its group": {
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: later.example.com, kind: Thing}, {apiGroup: later.example.com, kind: "*"}], clusters: {names: [eu-1]}}}`,
			want:   strings.ReplaceAll(select4, "widgets.test.hanse.dev", "*.later.example.com"), lacks: "get", says: "get *.later.example.com",
		},
		"adoption on the named clusters": {
			policy: placement(`clusters: {names: [eu-1, cn-1]}, apply: {adoption: Always}`),
			want:   "adopt memberclusters.hanse.dev cn-1|adopt memberclusters.hanse.dev eu-1|" + select4, lacks: "adopt", says: "adopt memberclusters.hanse.dev eu-1",
		},
		"adoption of equal objects, which is adoption": {
			policy: placement(`clusters: {names: [eu-1]}, apply: {adoption: IfNoDiff}`),
			want:   "adopt memberclusters.hanse.dev eu-1|" + select4, lacks: "adopt", says: "spec.apply.adoption takes over objects",
		},
		"references by kind: to write what they name": {
			policy: placement(`clusters: {names: [eu-1]}, references: [{apiGroup: test.hanse.dev, kind: Gear, path: /spec/gear}, {kind: Secret, path: /spec/a}]`),
			want: "create *.test.hanse.dev shop|create secrets shop|create widgets.test.hanse.dev shop|delete *.test.hanse.dev shop|delete secrets shop|delete widgets.test.hanse.dev shop|" +
				"get *.test.hanse.dev shop|get secrets shop|get widgets.test.hanse.dev shop|update *.test.hanse.dev shop|update secrets shop|update widgets.test.hanse.dev shop",
			lacks: "update", says: "update secrets in namespace shop: spec.references also sends the objects to which selected objects refer",
		},
		"references of a pod template: to read what it names": {
			policy: placement(`clusters: {names: [eu-1]}, references: [{path: /spec/template}]`),
			want:   strings.Replace(select4, "get widgets", "get * shop|get secrets shop|get widgets", 1), lacks: "get secrets",
			says: "get secrets in namespace shop: spec.references also sends the objects to which selected objects refer",
		},
		"a role: the right to give its rights": {
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: rbac.authorization.k8s.io, kind: Role}], clusters: {names: [eu-1]}}}`,
			want:   "create roles.rbac.authorization.k8s.io shop|delete roles.rbac.authorization.k8s.io shop|escalate roles.rbac.authorization.k8s.io shop|get roles.rbac.authorization.k8s.io shop|update roles.rbac.authorization.k8s.io shop",
			lacks:  "escalate", says: "escalate roles.rbac.authorization.k8s.io in namespace shop: the policy changes the rights of others on members",
		},
		"every kind of RBAC": {
			policy: `{kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{apiGroup: rbac.authorization.k8s.io, kind: "*"}], clusters: {names: [eu-1]}}}`,
			lacks:  "bind", says: "bind roles.rbac.authorization.k8s.io in the whole cluster",
		},
		"a bundle: the right to use its account": {
			policy: `{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: hanse.dev, kind: Bundle, labelSelector: {matchLabels: {team: a}}}], clusters: {names: [eu-1]}}}`,
			want:   "create *.hanse.dev shop|delete *.hanse.dev shop|get *.hanse.dev shop|impersonate serviceaccounts shop deployer|update *.hanse.dev shop",
			lacks:  "impersonate", says: "impersonate serviceaccounts deployer in namespace shop: the hub writes the objects of the selected bundle with the rights of this ServiceAccount",
		},
		"bundles of all kinds": {
			policy: `{kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{apiGroup: hanse.dev, kind: "*"}], namespaceSelector: {}, clusters: {names: [eu-1]}}}`,
			want: "create *.hanse.dev|delete *.hanse.dev|get *.hanse.dev|impersonate serviceaccounts hanse-system operator|impersonate serviceaccounts hanse-system platform|" +
				"impersonate serviceaccounts shop admin|impersonate serviceaccounts shop deployer|update *.hanse.dev",
			lacks: "impersonate", says: "impersonate serviceaccounts operator in namespace hanse-system",
		},
		"no adoption": {policy: placement(`clusters: {names: [eu-1]}, apply: {adoption: Never}`), want: select4, lacks: "adopt"},
		"adoption on clusters by label: on all": {
			policy: placement(`clusters: {labelSelector: {}, excludedNames: [us-1]}, apply: {adoption: Always}`),
			want:   "adopt memberclusters.hanse.dev|" + select4, lacks: "adopt", says: "adopt memberclusters.hanse.dev in the whole cluster",
		},
		"a cluster that asks for it, by name": {
			policy: placement(`clusters: {names: [eu-1, us-1]}`), want: strings.Replace(select4, "|update", "|place memberclusters.hanse.dev us-1|update", 1),
			lacks: "place", says: "place memberclusters.hanse.dev us-1 in the whole cluster: spec.requirePlaceVerb of the MemberCluster requires it",
		},
		"a cluster that asks for it, by label": {
			policy: placement(`clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: us}}, expression: "false"}`),
			want:   strings.Replace(select4, "|update", "|place memberclusters.hanse.dev us-1|update", 1), lacks: "place", says: "place memberclusters.hanse.dev us-1",
		},
		"a cluster that asks for it and is excluded": {policy: placement(`clusters: {labelSelector: {}, excludedNames: [us-1]}`), want: select4, lacks: "place"},
		"an override policy": {
			policy: policy(`[{name: a, mergePatch: {spec: {size: large}}}]`),
			want:   strings.Replace(select4, "|update", "|override placements.hanse.dev shop|update", 1), lacks: "override", says: "override placements.hanse.dev in namespace shop: the policy changes objects that others placed",
		},
		"overrides of roles": {
			policy: rbac("ClusterRole"), lacks: "escalate", says: "escalate clusterroles.rbac.authorization.k8s.io in the whole cluster: the policy changes the rights of others on members",
		},
		"overrides of bindings": {
			policy: rbac("RoleBinding"), lacks: "bind", says: "bind roles.rbac.authorization.k8s.io in namespace shop",
		},
		"overrides of admission": {
			policy: strings.ReplaceAll(rbac("ValidatingWebhookConfiguration"), "rbac.authorization.k8s.io", "admissionregistration.k8s.io"),
			lacks:  "escalate", says: "escalate clusterroles.rbac.authorization.k8s.io",
		},
		"a change of labels alone is not reviewed": {
			policy: placement(`clusters: {names: [eu-1]}`), before: strings.Replace(placement(`clusters: {names: [eu-1]}`), "name: new", "name: new, labels: {a: b}", 1), lacks: "get",
		},
		"a change of the spec is": {
			policy: placement(`clusters: {names: [eu-1]}`), before: placement(`clusters: {names: [cn-1]}`), want: select4, lacks: "get", says: "get widgets",
		},
	}
	guarded := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "us-1", Labels: map[string]string{hubv1.RegionLabel: "us"}}}
	guarded.Spec.RequirePlaceVerb = true
	given := []client.Object{
		guarded,
		&hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{"team": "a"}}, Spec: hubv1.BundleSpec{ServiceAccountName: "deployer"}},
		&hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, Spec: hubv1.BundleSpec{ServiceAccountName: "admin"}},
		&hubv1.ClusterBundle{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: hubv1.BundleSpec{ServiceAccountName: "platform"}},
		&hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Spec: hubv1.FederatedOperatorSpec{BundleSpec: hubv1.BundleSpec{ServiceAccountName: "operator"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.objects = append(h.objects, given...)
			if answer := h.review(tt.policy, tt.before); !answer.Allowed {
				t.Fatalf("refused although everything is allowed: %+v", answer.Result)
			}
			if tt.want != "" {
				if diff := cmp.Diff(strings.Split(tt.want, "|"), slices.Sorted(slices.Values(h.asked))); diff != "" {
					t.Errorf("rights asked for (-want +got):\n%s", diff)
				}
			}
			h = newHub(t)
			h.objects = append(h.objects, given...)
			h.may = func(right string) bool { return !strings.HasPrefix(right, tt.lacks+" ") }
			answer := h.review(tt.policy, tt.before)
			if answer.Allowed != (tt.says == "") {
				t.Fatalf("allowed is %t", answer.Allowed)
			}
			if tt.says != "" && (answer.Result.Code != http.StatusForbidden || !strings.Contains(answer.Result.Message, tt.says)) {
				t.Errorf("%d %q, want 403 and %q", answer.Result.Code, answer.Result.Message, tt.says)
			}
		})
	}
}
