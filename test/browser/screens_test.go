package browser

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	markup  = `<script>window.pwned=1</script>"'>`
	longest = "a-name-of-two-hundred-and-fifty-three-characters."
)

// long returns a name with n characters.
func long(n int) string { return strings.Repeat(longest, n/len(longest)+1)[:n-1] + "z" }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

// anyCluster returns a MemberCluster. away is how long it has not answered.
func anyCluster(name, region string, ready metav1.ConditionStatus, reason, message string, away time.Duration) *hubv1.MemberCluster {
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(40 * 24 * time.Hour), Labels: map[string]string{hubv1.RegionLabel: region}}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	at := ago(away)
	if away == 0 {
		at = ago(-time.Hour) // so that the cluster stays observed while the test runs
	}
	m.Status.LastObservedTime, m.Status.Version.Kubernetes, m.Status.Nodes = &at, "v1.36.3", hubv1.NodeSummary{Total: 12, Ready: 12}
	m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready, Reason: reason, Message: message, LastTransitionTime: at}}
	return m
}

// anyObject returns the binding of a ConfigMap with these rows, and the ConfigMap.
func (f *fakeHub) anyObject(name string, bundle *hubv1.BundleReference, rows ...hubv1.ClusterRow) *hubv1.ResourceBinding {
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: name}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id.BindingName(), UID: types.UID("b-" + name)}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID("o-" + name), Bundle: bundle}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "web", UID: "p", Generation: 1}
	for _, r := range rows {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent, Revision: r.Revision})
	}
	b.Status.Clusters = rows
	b.Status.Summary = hubv1.BindingSummary{Desired: int32(len(rows)), Applied: int32(len(rows))}
	for _, r := range rows {
		if r.Health == hubv1.HealthDegraded {
			b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: hubv1.ReasonDegradedOnSome, Message: "on some", LastTransitionTime: ago(14 * time.Minute)}}
		}
	}
	f.add(b, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("o-" + name)}, Data: map[string]string{"colour": "red"}})
	return b
}

func healthyRow(cluster string) hubv1.ClusterRow {
	at := ago(14 * time.Minute)
	return hubv1.ClusterRow{
		Name: cluster, UID: types.UID("c-" + cluster), Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Reason: "Reason", Revision: 7, LastTransitionTime: &at,
	}
}

// extremeFleet returns a hub with everything that pages must bear: a region with many clusters, long names, a long
// sentence of a member, markup in texts, a rollout that waits, and a held removal.
func extremeFleet() *fakeHub {
	f := &fakeHub{}
	for _, name := range []string{"shop", "data", "monitoring"} {
		f.add(namespaceNamed(name))
	}
	sentence := strings.Repeat("the operator says something that has no end; ", 700) + markup
	var all []hubv1.ClusterRow
	for i := range 200 {
		name := fmt.Sprintf("edge-%03d", i)
		f.add(anyCluster(name, "edge-stores", metav1.ConditionTrue, "Connected", "", 0))
		all = append(all, healthyRow(name))
	}
	all[17].Health, all[17].Message = hubv1.HealthDegraded, sentence
	all[90].Health, all[90].Message = hubv1.HealthProgressing, "not yet"
	for i, region := range []string{"eu-central-1", "us-east-1", strings.Repeat("region", 10) + "-63", ""} {
		for j := range 1 + i {
			name := fmt.Sprintf("c%d-%d", i, j)
			f.add(anyCluster(name, region, metav1.ConditionTrue, "Connected", "", 0))
			all = append(all, healthyRow(name))
		}
	}
	f.add(anyCluster("cn-sha-3", "cn-shanghai", metav1.ConditionFalse, hubv1.ReasonUnauthorized, "the member refuses the credential "+markup, 47*time.Minute),
		anyCluster("ap-tyo-3", "ap-northeast-1", metav1.ConditionFalse, hubv1.ReasonUnreachable, sentence, 12*time.Minute),
		anyCluster(long(63), "eu-central-1", metav1.ConditionTrue, "Connected", "", 0))
	all = append(all, healthyRow("ap-tyo-3"), healthyRow(long(63)))
	passing := ago(2 * time.Hour)
	for i := range all {
		if all[i].Name != "c0-0" {
			all[i].Revision = 6
			continue
		}
		all[i].PassingSince = &passing
	}
	f.rollout(f.anyObject("orders", nil, all...))
	f.anyObject(long(253), nil, all[17], all[200], all[201])
	for i := range 60 {
		f.anyObject(fmt.Sprintf("settings-%02d", i), nil, all[200:206]...)
	}
	bundle := &hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "stack"}
	for i := range 12 {
		f.anyObject(fmt.Sprintf("part-%02d", i), bundle, all[200:204]...)
	}
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	o.Status.Total, o.Status.Ready = 3, 2
	o.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: sentence, LastTransitionTime: ago(time.Hour)}}
	f.add(o)
	f.anyObject("rotor", &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}, all[17], all[200], all[201])
	return f
}

// rollout adds a placement whose second wave waits for an approval, and which holds a removal.
func (f *fakeHub) rollout(b *hubv1.ResourceBinding) {
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p", Generation: 1}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{
		{Name: "canary", Clusters: &hubv1.RuleClusters{Names: []string{"c0-0"}}}, {Name: "edge", Approval: hubv1.ApprovalManual}, {Name: "rest", Clusters: &hubv1.RuleClusters{Names: []string{"c1-0", "c1-1"}}},
	}}
	p.Status.Rollout = &hubv1.PlacementRollout{Wave: "edge", Phase: hubv1.RolloutWaitingForApproval, Objects: hubv1.RolloutObjects{Moving: 1}}
	p.Status.RemovalHeld = &hubv1.RemovalHeld{ID: "7f", Since: ago(3 * time.Hour), Causes: []string{"NotSelected: " + markup, strings.Repeat("long ", 100)}, Clusters: []string{"c0-0", "c1-0"}, Copies: 24}
	p.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: "TooManyRemovals", Message: "24 copies would be deleted", LastTransitionTime: ago(3 * time.Hour)}}
	f.add(p)
	at := ago(2 * time.Hour)
	b.Spec.Revisions = []hubv1.ObjectRevision{{Number: 6, Template: "t6", Policies: "p", Time: at, Passed: true}, {Number: 7, Template: "t7", Policies: "p", Time: at}}
	b.Spec.Rollout = &hubv1.BindingRollout{Revision: 7, Newest: 7, Wave: "edge", Phase: hubv1.RolloutWaitingForApproval, Since: at, Began: at, Passed: 6, Message: "wave edge waits for approval: hansectl rollout approve web edge -n shop"}
}

const (
	settings = "/object?kind=ConfigMap&namespace=shop&name=settings"
	waves    = "/rollouts/placement?namespace=shop&name=web"
)

// screens are the pages of the extreme fleet, each with a text that it shows.
func screens() map[string]string {
	object := "/object?kind=ConfigMap&namespace=shop&name="
	orders := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "orders"}
	says := "the operator says something that has no end"
	return map[string]string{
		"/": says, "/?view=table": "edge-017", "/objects": says, "/objects?open=" + url.QueryEscape("Bundle shop/stack"): "Fold Bundle shop/stack",
		object + "orders": says, object + "orders&cluster=edge-017": says, object + long(253): long(253), "/clusters/ap-tyo-3": says,
		"/rollouts": "Delete 24 copies on 2 clusters", waves: "Approve wave edge", "/rollouts/object?namespace=shop&binding=" + orders.BindingName(): "Return to revision 6",
		"/operators": says, "/whatif": "edge-017", "/none": "no page", "/signin?ended": "Sign in",
		object + long(253) + "&diff=c0-0&tree=*&events=*": "the hub serves no views of members",
	}
}

// squeezed is a script that returns what is too tall or too narrow: rows of more than 200 pixels, and cells of less
// than 4 em whose text takes several lines.
const squeezed = `(() => {
  const out = [];
  for (const row of document.querySelectorAll("tr")) {
    const height = row.getBoundingClientRect().height;
    if (height > 200) out.push("a row is " + Math.round(height) + " pixels high: " + row.innerText.slice(0, 60));
  }
  for (const cell of document.querySelectorAll("td, th")) {
    const width = cell.getBoundingClientRect().width;
    if (!cell.checkVisibility() || width === 0 || !cell.innerText.trim() || cell.closest(".sr") || width >= 4 * parseFloat(getComputedStyle(cell).fontSize)) continue;
    const range = document.createRange();
    range.selectNodeContents(cell);
    const tops = new Set([...range.getClientRects()].map((r) => Math.round(r.bottom / 8)));
    if (tops.size > 2) out.push("a cell is " + Math.round(width) + " pixels wide: " + cell.innerText.slice(0, 60));
  }
  return out.slice(0, 5);
})()`

// schemes has, for the width of each screen in CSS pixels, the colour scheme in which axe-core checks a page: both
// schemes for phones, tables and wide screens. Colours do not depend on the width.
var schemes = map[int64]string{360: "light", 390: "dark", 768: "light", 1440: "dark", 2560: "light", 3840: "dark"}

// maxElements is the maximum number of HTML elements of a page, whatever the hub has.
const maxElements = 15000

// screensOf is a hub with pages that are looked at: the path of each page, and a text that it must show.
type screensOf struct {
	hub   *fakeHub
	pages map[string]string
}

// fleetsOfScreens returns hubs with the extremes that pages must bear.
func fleetsOfScreens() map[string]screensOf {
	const hung, noRight = "the member did not answer in time", "You have no right to see all namespaces"
	return map[string]screensOf{
		"extreme": {extremeFleet(), screens()},
		"hung": {hungFleet(), map[string]string{
			settings: hung, settings + "&diff=c1-0&logs=c1-0": hung, waves: hung, "/clusters/c0-0": "eu-central-1",
		}},
		"many": {manyObjects(), map[string]string{
			"/": "8999 of 10000", "/objects": "1001 of 10000 objects are degraded", waves: "4001 of 4001 objects updated", "/clusters/c0-0": "1001 degraded",
		}},
		"empty": {&fakeHub{}, map[string]string{
			"/": "No cluster that you may see. Join the first one", "/?view=table": "hansectl join NAME", "/objects": "No object that you may see", "/rollouts": "No placement that you may see has a rollout",
			"/operators": "No FederatedOperator that you may see", "/whatif": "Show the effect",
		}},
		"forbidden": {&fakeHub{rightless: true}, map[string]string{
			"/": noRight, "/objects": noRight, "/rollouts": "You do not see", "/operators": "You may not see them", settings: "Forbidden", "/clusters/c0-0": noRight,
		}},
		"tenant": {tenantFleet(), map[string]string{
			"/": noRight, "/?namespace=shop": "of the whole hub: see all namespaces", "/objects?namespace=shop": "1 of 1 object is degraded", settings: "the volume is attached", "/rollouts?namespace=shop": "Placement shop/web",
			"/operators?namespace=shop": "You may not see them",
		}},
	}
}

// TestEveryPageFitsEveryScreen opens the pages of an extreme fleet and of an empty one on narrow and wide screens.
func TestEveryPageFitsEveryScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it needs a browser")
	}
	Needed(t)
	b, err := Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	for fleet, of := range fleetsOfScreens() {
		tab := b.Open(t)
		origin := of.hub.console(t)
		tab.SignIn(origin, "a-token")
		for path, shows := range of.pages {
			t.Run(fleet+" "+path[:min(len(path), 60)], func(t *testing.T) {
				tab := tab.In(t)
				tab.Visit(origin + path)
				if text := Eval[string](tab, `document.body.textContent`); !strings.Contains(text, shows) {
					t.Errorf("the page does not say %q:\n%s", shows, text[:min(len(text), 2000)])
				}
				if n := Eval[int](tab, `document.querySelectorAll("*").length`); n > maxElements {
					t.Errorf("the page has %d elements", n)
				}
				fits(t, tab)
				if fleet != "many" { // its pages have the controls of the extreme fleet
					for _, fault := range tab.Unreached() {
						t.Errorf("by keyboard: %s", fault)
					}
				}
				if Eval[bool](tab, `"pwned" in window`) {
					t.Error("a script of an object ran")
				}
				if refused := tab.Refused(); len(refused) > 0 {
					t.Errorf("refused by the policy: %v", refused)
				}
			})
		}
	}
}

// fits fails the test if the open page does not fit one of the screens, or has a barrier in a colour scheme.
func fits(t *testing.T, tab *Tab) {
	t.Helper()
	for _, width := range slices.Sorted(maps.Keys(schemes)) {
		tab.Resize(width, 900)
		if tab.ScrollsSideways() {
			t.Errorf("%d pixels wide, the page scrolls sideways: %v", width, Eval[[]string](tab, widest))
		}
		for _, fault := range Eval[[]string](tab, squeezed) {
			t.Errorf("%d pixels wide, %s", width, fault)
		}
		tab.Prefer(schemes[width])
		for _, barrier := range tab.Barriers() {
			t.Errorf("%d pixels wide, %s: %s", width, schemes[width], barrier)
		}
	}
}

// widest is a script that returns the elements that are wider than the page.
const widest = `[...document.querySelectorAll("body *")].filter((e) => !e.closest(".wide, .sr, .nav") && e.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 4).map((e) => e.tagName + "." + (e.className.baseVal ?? e.className) + " " + Math.round(e.getBoundingClientRect().right) + " " + (e.textContent ?? "").slice(0, 30))`
