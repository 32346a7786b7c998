package console

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheMatrixOfOperatorsShowsWhatEachWaitsFor(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	ready, slow, away := w.ns+"-a", w.ns+"-b", w.ns+"-c"
	for _, name := range []string{ready, slow, away} {
		m := member(name)
		must(t, w.hub.Create(ctx, m))
		status := metav1.ConditionTrue
		if name == away {
			status = metav1.ConditionFalse
		}
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: hubv1.ReasonUnreachable, LastTransitionTime: metav1.Now()}}
		must(t, w.hub.Status().Update(ctx, m))
	}
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	o.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "chart"}, Namespace: w.ns}
	must(t, w.hub.Create(ctx, o))
	o.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: hostile, LastTransitionTime: metav1.Now()}}
	o.Status.Total, o.Status.Ready = 3, 1
	o.Status.Chart = &hubv1.RenderedChart{Name: "rotors", Version: "1.0.0", Digest: "sha256:0"}
	o.Status.Newest = &hubv1.NewestChart{Repository: "oci://registry.example.com/rotors", Version: "1.2.0", Error: hostile, Since: metav1.Now()}
	must(t, w.hub.Status().Update(ctx, o))
	bind := func(id hubv1.ObjectIdentity, of *hubv1.BundleReference, rows ...hubv1.ClusterRow) {
		t.Helper()
		b := hubv1.NewBinding(id.BindingKey())
		spec := b.BindingSpec()
		spec.ObjectRef = hubv1.ObjectReference{APIVersion: strings.TrimPrefix(id.Group+"/v1", "/"), Kind: id.Kind, Name: id.Name, UID: "u", Bundle: of}
		for _, row := range rows {
			spec.Clusters = append(spec.Clusters, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
		}
		must(t, w.hub.Create(ctx, b))
		b.BindingStatus().Clusters = rows
		must(t, w.hub.Status().Update(ctx, b))
	}
	healthy := func(name string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Version: "v1.2.3"}
	}
	of := hubv1.ReferenceTo(o)
	bind(hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: w.ns, Name: "rotor-operator"}, &of, healthy(ready),
		hubv1.ClusterRow{Name: slow, Generation: 2, Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing, Reason: "Progressing"}, healthy(away))
	bind(hubv1.ObjectIdentity{Group: "example.com", Kind: "Gear", Namespace: w.ns, Name: "gear"}, nil, healthy(ready))

	b := w.signedIn(w.token(nil, reads()))
	page := b.get("/operators")
	if page.StatusCode != http.StatusOK || strings.Contains(page.text, "<script>alert") {
		t.Fatalf("%s: %s", page.Status, page.text)
	}
	row := func(cluster string) string {
		_, rest, found := strings.Cut(page.text, `href="/clusters/`+cluster+`"`)
		if !found {
			t.Fatalf("no row of %s:\n%s", cluster, page.text)
		}
		rest, _, _ = strings.Cut(rest, "</tr>")
		return rest
	}
	for cluster, wants := range map[string][]string{
		ready: {"</span>ready", "v1.2.3 (behind)"},
		slow:  {"</span>not ready", "1 of 1 object; waits for Deployment.apps " + w.ns + "/rotor-operator"},
		away:  {"</span>unknown", "as of never"},
	} {
		for _, want := range wants {
			if text := row(cluster); !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", cluster, want, text)
			}
		}
	}
	if text := row(slow); strings.Contains(text, "(behind)") {
		t.Errorf("the cluster with the newest copy is behind: %s", text)
	}
	for _, want := range []string{"rotors 1.0.0 (1.2.0 is available)", "checks for newer versions fail since "} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page lacks %q:\n%s", want, page.text)
		}
	}
	if !strings.Contains(page.text, "Gear.example.com: 1 object, and no FederatedOperator defines the kind") {
		t.Errorf("the page lacks the kind without an operator:\n%s", page.text)
	}
	if text := b.get("/operators?only=notready").text; strings.Contains(text, `href="/clusters/`+ready+`"`) || !strings.Contains(text, slow) || !strings.Contains(text, away) {
		t.Errorf("clusters that are not ready:\n%s", text)
	}
}
