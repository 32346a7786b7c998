package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

func TestATileShowsAllClustersThatAreNotWell(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var clusters []hubv1.MemberCluster
	for i := range 60 {
		m := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge-%02d", i), Labels: map[string]string{hubv1.RegionLabel: "edge"}}}
		at, ready := metav1.NewTime(now), metav1.ConditionTrue
		if i == 50 {
			ready = metav1.ConditionFalse
		}
		m.Status.LastObservedTime = &at
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready, Reason: "TestSays"}}
		clusters = append(clusters, m)
	}
	copies := view.NewFleetGatherer(clusters, now)
	degraded := &hubv1.ResourceBinding{}
	degraded.Spec.Clusters = []hubv1.BindingTarget{{Name: "edge-07", State: hubv1.TargetPresent}}
	degraded.Status.Clusters = []hubv1.ClusterRow{{Name: "edge-07", UID: "1", Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded}}
	copies.Add(degraded)
	var b fleetBody
	b.tile(view.Clusters(clusters, nil, nil, now).Clusters, copies)
	r := b.Regions[0]
	var got []string
	for _, c := range r.Cells {
		got = append(got, c.Class+" "+c.Label)
	}
	if diff := cmp.Diff([]string{"down edge-50: not ready", "bad edge-07: 1 object degraded"}, got); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if r.Rest != 58 || r.Ready != 59 || r.Total != 60 || r.Worst.Word != "not ready" || r.WorstCount != 1 {
		t.Errorf("the tile is %+v", r)
	}
}

func TestABarShowsEachPart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parts []countPart
		want  bar
	}{
		"nothing":         {nil, bar{}},
		"all in one part": {[]countPart{{Class: "ok", N: 3}, {Class: "bad"}}, bar{1000, []barPart{{"ok", 0, 1000}}}},
		"a part of many":  {[]countPart{{Class: "ok", N: 99999}, {Class: "bad", N: 1}}, bar{1009, []barPart{{"ok", 0, 999}, {"bad", 999, 10}}}},
		"a third":         {[]countPart{{Class: "ok", N: 2}, {Class: "bad", N: 1}}, bar{999, []barPart{{"ok", 0, 666}, {"bad", 666, 333}}}},
	} {
		if diff := cmp.Diff(tc.want, barOf(tc.parts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheFleetNamesOneActionForEachProblem(t *testing.T) {
	r := newRolling(t)
	page := r.signedIn(r.token(steers(), reads())).get("/?namespace=" + r.ns)
	page.shows(t, "waits for you", "Wave rest of Placement "+r.ns+"/web", `href="`+strings.ReplaceAll(r.page(), "&", "&amp;")+`"`, ">Review</a>", "Rollouts not complete")
	reader := r.signedIn(r.token(nil, reads())).get("/?namespace=" + r.ns)
	reader.shows(t, "Wave rest of Placement")
	reader.hides(t, "waits for you", "alert(1)</script>")
}

func TestAnEmptyFleetSaysHowToBegin(t *testing.T) {
	w := newWorld(t)
	page := w.signedIn(w.token(nil, reads())).get("/?namespace=" + w.ns)
	page.shows(t, "Nothing needs you.")
	page.hides(t, "0 of 0", "of 0")
}

func TestAUserChoosesANamespaceThatTheUserMayList(t *testing.T) {
	w := newWorld(t)
	all := append(reads(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}})
	admin := w.signedIn(w.token(nil, all)).get("/?namespace=" + w.ns)
	admin.shows(t, `<select id="namespace"`, `<option selected>`+w.ns+`</option>`, "<option>default</option>", "<code>system:serviceaccount:"+w.ns+":", "You: "+w.ns+"/user-")
	tenant := w.signedIn(w.token(tenantRules(), nil))
	page := tenant.get("/")
	page.shows(t, "Choose a namespace", `name="namespace" value="`+w.ns+`"`, "<option>"+w.ns+"</option>")
	page.hides(t, "<option>default</option>")
	if r := tenant.get("/?namespace=" + w.ns); r.StatusCode != http.StatusOK {
		t.Errorf("the page of the own namespace: %s", r.Status)
	}
}

func TestTheFleetIsAlsoATable(t *testing.T) {
	w := newWorld(t)
	one, two := w.cluster("one", w.ns, metav1.ConditionTrue), w.cluster("two", "elsewhere", metav1.ConditionFalse)
	b := w.admin()
	row := `<th scope="row"><a href="/clusters/%s?namespace=` + w.ns + `">`
	table := b.get("/?view=table&namespace=" + w.ns)
	table.shows(t, fmt.Sprintf(row, one), fmt.Sprintf(row, two), "2 of 3", "TestSays")
	table.hides(t, "<script>alert", `class="tile"`)
	region := b.get("/?view=table&region=" + w.ns + "&namespace=" + w.ns)
	region.shows(t, fmt.Sprintf(row, one))
	region.hides(t, fmt.Sprintf(row, two))
	b.get("/?namespace="+w.ns).shows(t, `class="tile"`, `title="`+one+`: ready"`, `title="`+two+`: not ready"`)
}
