package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// asks returns the rules of a user who may ask what if, and may write placements.
func asks() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"placements"}, Verbs: []string{"create", "update"}},
	}
}

// placed creates a ConfigMap on one of two clusters. Its placement replaces a cluster that does not answer.
func placed(t *testing.T) *rolling {
	t.Helper()
	w := newWorld(t)
	r := &rolling{world: w, members: [2]string{w.ns + "-a", w.ns + "-b"}}
	ctx := t.Context()
	for _, name := range r.members {
		m := member(name)
		m.Labels = map[string]string{hubv1.RegionLabel: "region-" + name, "of": w.ns}
		must(t, w.hub.Create(ctx, m))
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, LastTransitionTime: metav1.Now()}}
		must(t, w.hub.Status().Update(ctx, m))
	}
	r.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "settings"}, Data: map[string]string{"mode": "dark"}}
	must(t, w.hub.Create(ctx, r.object))
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "settings"}}
	p.Spec.Clusters.Names = r.members[:1]
	must(t, w.hub.Create(ctx, p))
	r.placement = p
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: w.ns, Name: "settings"}
	b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
	b.Spec = hubv1.BindingSpec{
		ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: r.object.UID},
		PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: w.ns, Name: "web", UID: p.UID, Generation: p.Generation},
		Clusters:     []hubv1.BindingTarget{{Name: r.members[0], State: hubv1.TargetPresent}},
	}
	must(t, w.hub.Create(ctx, b))
	b.Status.Clusters = []hubv1.ClusterRow{{Name: r.members[0], Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}}
	must(t, w.hub.Status().Update(ctx, b))
	r.binding = b
	return r
}

func TestALostClusterIsSimulated(t *testing.T) {
	r := placed(t)
	b := r.signedIn(r.token(asks(), reads()))
	page := "/whatif?namespace=" + r.ns
	csrf := b.csrf(page)
	for name, tc := range map[string]struct {
		field, value string
		wants        []string
	}{
		"a cluster":                      {"cluster", r.members[0], []string{"1 copy stay on clusters that do not answer; 1 object on no cluster that answers", "cluster " + r.members[0] + " does not answer", "ConfigMap " + r.ns + "/settings", "clusters that hold the object and answer: 1"}},
		"a region":                       {"region", "region-" + r.members[0], []string{"1 object on no cluster that answers", "region region-" + r.members[0] + " does not answer"}},
		"a cluster that holds no object": {"cluster", r.members[1], []string{"Plan: no copy changes"}},
	} {
		answer := b.post("/whatif", url.Values{"csrf": {csrf}, "namespace": {r.ns}, tc.field: {tc.value}})
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, answer.Status)
		}
		for _, want := range tc.wants {
			if !strings.Contains(answer.text, want) {
				t.Errorf("%s: the page lacks %q:\n%s", name, want, answer.text)
			}
		}
	}
}

func TestAPastedPolicyIsPlannedAndNotStored(t *testing.T) {
	r := placed(t)
	b := r.signedIn(r.token(asks(), reads()))
	csrf := b.csrf("/whatif")
	policy := `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: web}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [` + r.members[0] + `, ` + r.members[1] + `]}}}`
	answer := b.post("/whatif", url.Values{"csrf": {csrf}, "namespace": {r.ns}, "policy": {policy}})
	for _, want := range []string{"Plan: 1 copy created", "Placement " + r.ns + "/web is applied", r.members[1]} {
		if !strings.Contains(answer.text, want) {
			t.Errorf("%s: the page lacks %q:\n%s", answer.Status, want, answer.text)
		}
	}
	var p hubv1.Placement
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.placement), &p))
	if p.Generation != 1 || len(p.Spec.Clusters.Names) != 1 {
		t.Errorf("the placement is %+v", p)
	}
	reader := r.signedIn(r.token(asks()[:1], reads()))
	answer = reader.post("/whatif", url.Values{"csrf": {reader.csrf("/whatif")}, "namespace": {r.ns}, "policy": {policy}})
	if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(answer.text, "the hub refuses it") {
		t.Errorf("of a user who may not write it: %s:\n%s", answer.Status, answer.text)
	}
}

func TestAMistakeInTheFormIsNamed(t *testing.T) {
	r := placed(t)
	b := r.signedIn(r.token(asks(), reads()))
	csrf := b.csrf("/whatif")
	const head = "apiVersion: hanse.dev/v1alpha1\nkind: Placement\n"
	for name, tc := range map[string]struct {
		form url.Values
		want string
	}{
		"nothing is asked":                {url.Values{}, "choose a region or a cluster"},
		"a cluster that is not there":     {url.Values{"cluster": {"mars"}}, "no MemberCluster has this name"},
		"a region that is not there":      {url.Values{"region": {hostile}}, "no cluster is in this region"},
		"text that is no YAML":            {url.Values{"policy": {"a: [\nb"}}, "document 1: error converting YAML to JSON: yaml: line"},
		"a second document that is wrong": {url.Values{"policy": {"# nothing\n---\na: b: c"}}, "document 2:"},
		"an unknown field":                {url.Values{"policy": {head + "metadata: {name: web}\nspec: {cluster: {}}"}}, "unknown field &#34;spec.cluster&#34;"},
		"a value that the hub refuses":    {url.Values{"policy": {head + "metadata: {name: web}\nspec: {resourceSelectors: [{kind: ConfigMap}], clusters: {}}"}}, "spec.clusters: Invalid value"},
		"an object of another kind":       {url.Values{"policy": {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}"}}, "want a Placement"},
		"markup":                          {url.Values{"policy": {hostile}}, "document 1:"},
	} {
		tc.form.Set("csrf", csrf)
		tc.form.Set("namespace", r.ns)
		answer := b.post("/whatif", tc.form)
		if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(answer.text, tc.want) || strings.Contains(answer.text, "<script>alert") {
			t.Errorf("%s: %s, want %q:\n%s", name, answer.Status, tc.want, answer.text)
		}
	}
	other := r.signedIn(r.token(asks(), reads()))
	for name, answer := range map[string]response{
		"without the form's token":       b.post("/whatif", url.Values{"cluster": {r.members[0]}}),
		"with a form of another session": other.post("/whatif", url.Values{"csrf": {csrf}, "cluster": {r.members[0]}}),
	} {
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	answer := b.post("/whatif", url.Values{"csrf": {csrf}, "policy": {strings.Repeat("#", maxFormBytes)}})
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(answer.text, "larger than 64 KiB") {
		t.Errorf("a large form: %s: %s", answer.Status, answer.text)
	}
	if answer := r.browser().post("/whatif", url.Values{}); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %s", answer.Status)
	}
}
