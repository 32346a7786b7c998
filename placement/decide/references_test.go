package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const podTemplate = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  template:
    spec:
      serviceAccountName: web
      imagePullSecrets: [{name: registry}]
      initContainers:
      - {name: init, image: a, envFrom: [{configMapRef: {name: of-init}}]}
      containers:
      - name: app
        image: a
        env:
        - {name: A, value: plain}
        - {name: B, valueFrom: {secretKeyRef: {name: password, key: p}}}
        - {name: C, valueFrom: {configMapKeyRef: {name: settings, key: p}}}
        - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        envFrom: [{secretRef: {name: password}}]
      volumes:
      - {name: a, configMap: {name: settings}}
      - {name: b, secret: {secretName: tls}}
      - name: c
        projected:
          sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {configMap: {name: kube-root-ca.crt}}, {serviceAccountToken: {path: t}}]
      - {name: d, csi: {driver: d, nodePublishSecretRef: {name: csi}}}
      - {name: e, rbd: {monitors: [m], image: i, secretRef: {name: rbd}}}
      - {name: f, emptyDir: {}}
`

const gateway = `
apiVersion: example.com/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec:
  issuer: ca
  weird/field: slash
  listeners:
  - {secret: b}
  - {secret: a}
  - {port: 1}
  - {secret: b}
  self: web
  number: 7
`

func yamlObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// manyNames returns a list of n different names.
func manyNames(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("name-%d", i))
	}
	return "[" + strings.Join(names, ", ") + "]\n"
}

func TestReferences(t *testing.T) {
	t.Parallel()
	secrets := func(path string) hubv1.ReferenceRule { return hubv1.ReferenceRule{Kind: "Secret", Path: path} }
	for name, tc := range map[string]struct {
		object string
		rules  []hubv1.ReferenceRule
		want   string // kind/name of each needed object
		err    string
	}{
		"everything that a pod template names": {podTemplate, []hubv1.ReferenceRule{{Path: "/spec/template"}},
			"ConfigMap/of-init ConfigMap/projected ConfigMap/settings Secret/csi Secret/password Secret/projected Secret/rbd Secret/registry Secret/tls ServiceAccount/web", ""},
		"a name at a path": {gateway, []hubv1.ReferenceRule{{APIGroup: "example.com", Kind: "Issuer", Path: "/spec/issuer"}}, "Issuer/ca", ""},
		"the names of all items of a list, each once":   {gateway, []hubv1.ReferenceRule{secrets("/spec/listeners/*/secret")}, "Secret/a Secret/b", ""},
		"a key with an escaped slash":                   {gateway, []hubv1.ReferenceRule{secrets("/spec/weird~1field")}, "Secret/slash", ""},
		"an object without the field needs nothing":     {gateway, []hubv1.ReferenceRule{secrets("/spec/tls/secretName"), {Path: "/spec/template"}}, "", ""},
		"an object does not need itself":                {gateway, []hubv1.ReferenceRule{{APIGroup: "example.com", Kind: "Gateway", Path: "/spec/self"}}, "", ""},
		"a number is no name":                           {gateway, []hubv1.ReferenceRule{secrets("/spec/number")}, "", "references: path /spec/number: the value must be a name"},
		"a path through a string is an error":           {gateway, []hubv1.ReferenceRule{secrets("/spec/issuer/name")}, "", "leads through a field that is not an object"},
		"an asterisk for an object is an error":         {gateway, []hubv1.ReferenceRule{secrets("/spec/*/name")}, "", "has * for a field that is not a list"},
		"a field that is no pod template is an error":   {gateway, []hubv1.ReferenceRule{{Path: "/spec/issuer"}}, "", "the value must be a pod template"},
		"a cluster-scoped object needs nothing":         {strings.Replace(gateway, "namespace: shop, ", "", 1), []hubv1.ReferenceRule{secrets("/spec/number")}, "", ""},
		"an object that each namespace has is not sent": {strings.Replace(podTemplate, "serviceAccountName: web", "serviceAccountName: default", 1), []hubv1.ReferenceRule{{Path: "/spec/template"}}, "ConfigMap/of-init ConfigMap/projected ConfigMap/settings Secret/csi Secret/password Secret/projected Secret/rbd Secret/registry Secret/tls", ""},
		"more than 64 names are an error":               {gateway + "  many: " + manyNames(65), []hubv1.ReferenceRule{secrets("/spec/many/*")}, "", "the object refers to 65 objects, and at most 64 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := References(yamlObject(t, tc.object), tc.rules)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			var names []string
			for _, r := range got {
				names = append(names, r.Kind+"/"+r.Name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// referring adds to a placement a reference rule: the field /spec/secret names a Secret.
func referring(p *hubv1.Placement) {
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secret"}}
}

func TestReferencesOfABinding(t *testing.T) {
	t.Parallel()
	ref := func(name string, former bool) hubv1.BindingReference {
		return hubv1.BindingReference{Kind: "Secret", Name: name, Path: "/spec/secret", Former: former}
	}
	setSecret := func(in *Input, secret any) { in.Object.Template.Object["spec"] = map[string]any{"secret": secret} }
	row := func(b *hubv1.ResourceBinding, generation int64) *hubv1.ResourceBinding {
		b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionTrue, Generation: generation}}
		return b
	}
	had := func(b *hubv1.ResourceBinding, refs ...hubv1.BindingReference) *hubv1.ResourceBinding {
		b.Spec.References = refs
		return b
	}
	for name, tc := range map[string]struct {
		binding *hubv1.ResourceBinding
		secret  any
		rules   bool
		want    []hubv1.BindingReference
		reason  string
	}{
		"a new object gets its references": {nil, "a", true, []hubv1.BindingReference{ref("a", false)}, hubv1.ReasonScheduled},
		"without a rule there are none":    {nil, "a", false, nil, hubv1.ReasonScheduled},
		"the earlier one stays until the copy has the new state": {had(row(bound(present("eu")), 1), ref("a", false)), "b", true,
			[]hubv1.BindingReference{ref("a", true), ref("b", false)}, hubv1.ReasonScheduled},
		"it goes when the copy has the new state": {had(row(bound(present("eu")), 2), ref("a", true)), "b", true,
			[]hubv1.BindingReference{ref("b", false)}, hubv1.ReasonScheduled},
		"it stays while a cluster has not reported": {had(bound(present("eu")), ref("a", true)), "b", true,
			[]hubv1.BindingReference{ref("a", true), ref("b", false)}, hubv1.ReasonScheduled},
		"a reference outlives its rule while the object names it": {had(row(bound(present("eu")), 2), ref("a", false)), "a", false,
			[]hubv1.BindingReference{ref("a", false)}, hubv1.ReasonScheduled},
		"a name that cannot be read keeps the decision": {had(row(bound(present("eu")), 2), ref("a", false)), int64(7), true,
			[]hubv1.BindingReference{ref("a", false)}, hubv1.ReasonReferenceInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy("web", named("eu"))
			if tc.rules {
				referring(p)
			}
			g := given{binding: tc.binding, uid: "a", placements: only(p), clusters: three()}
			in := g.input()
			in.Object.Template.SetGeneration(2)
			setSecret(&in, tc.secret)
			plan := Decide(in)
			if plan.Status.Scheduled.Reason != tc.reason {
				t.Errorf("%s: %s, want %s", plan.Status.Scheduled.Reason, plan.Status.Scheduled.Message, tc.reason)
			}
			if diff := cmp.Diff(tc.want, plan.Spec.References); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A placement may be older than the rule of its definition against such references.
func TestAnObjectThatGivesRightsIsNeverSentByReference(t *testing.T) {
	t.Parallel()
	p := policy("web", named("eu", "us"))
	p.Spec.References = []hubv1.ReferenceRule{{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Path: "/spec/role"}}
	in := given{binding: bound(present("eu")), uid: "a", placements: only(p), clusters: three()}.input()
	in.Object.Template.Object["spec"] = map[string]any{"role": "admin"}
	plan := Decide(in)
	if plan.Status.Scheduled.Reason != hubv1.ReasonReferenceInvalid || !strings.Contains(plan.Status.Scheduled.Message, "only if resourceSelectors select it") {
		t.Errorf("%s: %s", plan.Status.Scheduled.Reason, plan.Status.Scheduled.Message)
	}
	if len(plan.Spec.References) > 0 || len(plan.Spec.Clusters) != 1 {
		t.Errorf("the decision changes to %+v", plan.Spec)
	}
}

// While a cluster is unreachable, the binding keeps all former references, for example to ConfigMaps with a hash in
// their names. If there are too many references, former references must be cut off, and not the others.
func TestFormerReferencesDisplaceNoPresentOne(t *testing.T) {
	t.Parallel()
	b := bound(present("eu"))
	for i := range 128 {
		b.Spec.References = append(b.Spec.References, hubv1.BindingReference{Kind: "Secret", Name: fmt.Sprintf("a-%03d", i), Path: "/spec/secret", Former: true})
	}
	p := policy("web", named("eu"))
	referring(p)
	g := given{binding: b, uid: "a", placements: only(p), clusters: three()}
	in := g.input()
	in.Object.Template.SetGeneration(2)
	in.Object.Template.Object["spec"] = map[string]any{"secret": "z"}
	plan := Decide(in)
	if n := len(plan.Spec.References); n > 128 {
		t.Errorf("there are %d references, and the API takes at most 128", n)
	}
	if last := plan.Spec.References[len(plan.Spec.References)-1]; last.Name != "z" || last.Former {
		t.Errorf("the last reference is %+v, want the Secret z that the object needs now", last)
	}
}

func TestAnObjectFollowsTheObjectsThatNeedIt(t *testing.T) {
	t.Parallel()
	del, orphan := hubv1.RemovalDelete, hubv1.RemovalOrphan
	other := policy("web", labelled("other"), named("us"))
	needing := func(clusters ...hubv1.BindingTarget) Referrer {
		return Referrer{ID: hubv1.ObjectIdentity{Group: "example.com", Kind: "Gateway", Namespace: "shop", Name: "g"}, Spec: &hubv1.BindingSpec{
			PlacementRef: ReferenceTo(other), Clusters: clusters,
		}}
	}
	referenced := func(b *hubv1.ResourceBinding) *hubv1.ResourceBinding {
		b.Spec.Referenced = true
		return b
	}
	evicting := func(cluster string) hubv1.BindingTarget {
		return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{}}
	}
	keeping := func(p *hubv1.Placement) { p.Spec.Deletion.WhenDeleted = orphan }
	none := []Referrer{}
	for name, tc := range map[string]struct {
		binding    *hubv1.ResourceBinding
		placements []hubv1.PlacementObject
		overrides  []hubv1.OverridePolicyObject
		referrers  []Referrer
		unread     bool
		withdraw   string
		want       []hubv1.BindingTarget
		reason     string
		takes      bool
		remove     bool
	}{
		"it goes where they are": {placements: only(other), referrers: []Referrer{needing(present("eu"), present("sg"))},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonReferenced},
		"two that need it share it": {placements: only(other), referrers: []Referrer{needing(present("eu")), needing(present("sg"))},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonReferenced},
		"it goes where one of them is about to be replaced": {placements: only(other), referrers: []Referrer{needing(evicting("eu"), present("sg"))},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonReferenced},
		"it stays while one of them leaves a cluster": {binding: referenced(bound(present("eu"))), placements: only(other),
			referrers: []Referrer{needing(absent("eu", hubv1.ReasonNotSelected, del))},
			want:      []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonReferenced},
		"it leaves a cluster that they have left": {binding: referenced(bound(present("eu"), present("sg"))), placements: only(other),
			referrers: []Referrer{needing(present("sg"))}, takes: true,
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotReferenced, del), present("sg")}, reason: hubv1.ReasonReferenced},
		"it leaves all clusters when nothing needs it": {binding: referenced(bound(present("eu"))), placements: only(other), referrers: none, takes: true,
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotReferenced, del)}, reason: hubv1.ReasonNotReferenced},
		"it is orphaned if the copies of the placement are": {binding: referenced(bound(present("eu"))), placements: only(policy("web", labelled("other"), keeping)), referrers: none, takes: true,
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotReferenced, orphan)}, reason: hubv1.ReasonNotReferenced},
		"nothing leaves while reads do not confirm it": {binding: referenced(bound(present("eu"))), placements: only(other), referrers: none, unread: true,
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonNotReferenced},
		"nothing changes while it is not known what needs it": {binding: referenced(bound(present("eu"))), placements: only(other),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonReferenced},
		"its binding goes with its last copy": {binding: referenced(withdrawnRow(bound(absent("eu", hubv1.ReasonNotReferenced, del)), "eu")), placements: only(other),
			referrers: none, reason: hubv1.ReasonNotReferenced, remove: true},
		"a placement that selects it decides alone": {placements: only(policy("web", named("us"))), referrers: []Referrer{needing(present("eu"))},
			want: []hubv1.BindingTarget{present("us")}, reason: hubv1.ReasonScheduled},
		"an object that lost its placement keeps its copies, and goes where it is needed": {binding: bound(present("us")), placements: only(other),
			referrers: []Referrer{needing(present("eu"))},
			want:      []hubv1.BindingTarget{present("eu"), present("us")}, reason: hubv1.ReasonPlacementGone},
		"a user can withdraw it from the clusters where nothing needs it": {binding: known(bound(present("eu"), present("us"))), placements: only(other), withdraw: "binding-1", takes: true,
			referrers: []Referrer{needing(present("eu"))},
			want:      []hubv1.BindingTarget{present("eu"), absent("us", hubv1.ReasonNotReferenced, del)}, reason: hubv1.ReasonReferenced},
		"an object that lost its placement follows them if they are on all its clusters": {binding: bound(present("eu")), placements: only(other),
			referrers: []Referrer{needing(present("eu"), present("sg"))},
			want:      []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonReferenced},
		"an override policy keeps it from a cluster": {placements: only(other), referrers: []Referrer{needing(present("eu"), present("sg"))},
			overrides: these(excluding(naming("sg"))),
			want:      []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonReferenced},
		"a suspended placement changes nothing": {binding: referenced(bound(present("eu"))), referrers: []Referrer{needing(present("sg"))},
			placements: only(policy("web", labelled("other"), func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true })),
			want:       []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := given{binding: tc.binding, uid: "a", placements: tc.placements, clusters: three(), holdBack: tc.unread, withdraw: tc.withdraw}
			in := g.input()
			in.Referrers, in.Facts.Overrides = tc.referrers, tc.overrides
			p := Decide(in)
			var got []hubv1.BindingTarget
			if p.Spec != nil {
				got = p.Spec.Clusters
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p.Status.Scheduled.Reason != tc.reason || p.Withdraws != tc.takes || p.Remove != tc.remove {
				t.Errorf("reason %s, withdraws %t, remove %t: %s", p.Status.Scheduled.Reason, p.Withdraws, p.Remove, p.Status.Scheduled.Message)
			}
		})
	}
}
