package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	members "github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// shows fails the test unless the page contains all these texts.
func (r response) shows(t *testing.T, parts ...string) {
	t.Helper()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("the page answers %s: %s", r.Status, r.text)
	}
	for _, part := range parts {
		if !strings.Contains(r.text, part) {
			t.Errorf("want %q in:\n%s", part, r.text)
		}
	}
}

// hides fails the test if the page contains one of these texts.
func (r response) hides(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(r.text, part) {
			t.Errorf("want no %q in:\n%s", part, r.text)
		}
	}
}

// cluster creates a MemberCluster whose name begins with the world's namespace, and returns the name.
func (w *world) cluster(suffix, region string, ready metav1.ConditionStatus) string {
	w.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-" + suffix, Labels: map[string]string{hubv1.RegionLabel: region}}}
	m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "none"}}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	must(w.T, w.hub.Create(w.Context(), m))
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		m.Finalizers = nil
		_ = w.hub.Update(ctx, m)
		_ = w.hub.Delete(ctx, m)
	})
	at := metav1.Now()
	if ready != metav1.ConditionTrue {
		at = metav1.NewTime(at.Add(-2 * time.Hour))
	}
	m.Status.LastObservedTime = &at
	m.Status.Version.Kubernetes = "v1.36.3"
	m.Status.Nodes = hubv1.NodeSummary{Total: 3, Ready: 2}
	m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready, Reason: "TestSays", Message: "<script>alert(1)</script>", LastTransitionTime: at}}
	must(w.T, w.hub.Status().Update(w.Context(), m))
	return m.Name
}

// place creates a ConfigMap and a binding that has these rows in its status.
func (w *world) place(name string, rows ...hubv1.ClusterRow) *hubv1.ResourceBinding {
	w.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Data: map[string]string{"colour": "red"}}
	must(w.T, w.hub.Create(w.Context(), o))
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: w.ns, Name: name}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: id.BindingName()}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: o.UID}
	for _, r := range rows {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent})
	}
	must(w.T, w.hub.Create(w.Context(), b))
	b.Status.Clusters = rows
	must(w.T, w.hub.Status().Update(w.Context(), b))
	return b
}

func healthyOn(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, UID: types.UID("copy-on-" + cluster), Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
}

func refusedOn(cluster, message string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, UID: "1", Applied: metav1.ConditionFalse, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonFieldConflict, Message: message}
}

// tenantRules returns the rules of the ClusterRoles hanse-view and view.
func tenantRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"placements", "bundles", "resourcebindings"}, Verbs: read},
		{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"resourcebindings"}, Verbs: []string{"view"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "events"}, Verbs: read},
	}
}

// user returns the browser of a new user with these rights in the world's namespace and on the whole hub. It waits
// until the API server grants the rights.
func (w *world) user(inNamespace, onHub []rbacv1.PolicyRule) *browser {
	w.Helper()
	token := w.token(inNamespace, onHub)
	s, err := w.console.sessionOf(w.Context(), token)
	must(w.T, err)
	apiserver.AwaitRights(w.T, hubConfig, s.User, w.ns, inNamespace...)
	apiserver.AwaitRights(w.T, hubConfig, s.User, "", onHub...)
	return w.signedIn(token)
}

// admin returns the browser of a user who may read everything and view every member.
func (w *world) admin() *browser {
	w.Helper()
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	return w.user(nil, all)
}

// stubMember is a member whose answers a test sets. It implements only the methods that the pages use.
type stubMember struct {
	views.Member
	live     *unstructured.Unstructured
	preview  members.Preview
	children []members.Child
	events   []members.Event
	logs     map[string]string // by pod
	hangs    bool
}

// wait blocks until the request is cancelled, if the test has set hangs.
func (m *stubMember) wait(ctx context.Context) {
	if m.hangs {
		<-ctx.Done()
	}
}

// View implements member.Viewer.
func (m *stubMember) View(ctx context.Context, _ members.ViewIntent) (*unstructured.Unstructured, *members.Outcome) {
	m.wait(ctx)
	return m.live, nil
}

// Preview implements member.Viewer.
func (m *stubMember) Preview(ctx context.Context, _ members.ApplyIntent) members.Preview {
	m.wait(ctx)
	return m.preview
}

// Children implements member.Viewer.
func (m *stubMember) Children(ctx context.Context, owners []members.Owner) members.Children {
	m.wait(ctx)
	out := members.Children{Of: map[types.UID][]members.Child{}}
	for _, o := range owners {
		out.Of[o.UID] = m.children
	}
	return out
}

// Events implements member.Reader.
func (m *stubMember) Events(ctx context.Context, _ string, _ []members.Involved) (members.Events, error) {
	m.wait(ctx)
	return members.Events{Items: m.events}, nil
}

// Log implements member.Reader.
func (m *stubMember) Log(ctx context.Context, in members.LogIntent) (members.Log, error) {
	m.wait(ctx)
	return members.Log{Text: m.logs[in.Pod]}, nil
}

// serveViews serves package views with the given stub members, so that the console's requests about members reach
// these stubs.
func (w *world) serveViews(stubs map[string]*stubMember) {
	w.console.opts.Views = views.New(views.Options{
		Client: w.hub, APIReader: w.hub, Mapper: w.hub.RESTMapper(), Logger: logr.Discard(),
		HubObject: func(_ context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured) (hubv1.HubObject, error) {
			return hubv1.HubObjectOf(ref, template), nil
		},
		Members: func(name string) (views.Member, error) {
			if m := stubs[name]; m != nil {
				return m, nil
			}
			return nil, members.ErrNotConnected
		},
		Intent: func(context.Context, string, hubv1.ObjectIdentity, []hubv1.OverridePolicyObject) (members.ApplyIntent, *members.Outcome, error) {
			return members.ApplyIntent{Manifest: &unstructured.Unstructured{}}, nil, nil
		},
		NextIntent: func(context.Context, string, hubv1.ObjectIdentity) (members.ApplyIntent, *members.Outcome, error) {
			return members.ApplyIntent{Manifest: &unstructured.Unstructured{}}, nil, nil
		},
		Holder: func(string) views.Holder { return views.Holder{Here: true} },
		Rank:   func(schema.GroupKind) int { return 0 },
	})
}

func objectQuery(w *world, name string, pairs ...string) string {
	return pathOf("/object", append([]string{"kind", "ConfigMap", "namespace", w.ns, "name", name}, pairs...)...)
}

func TestTheMatrixShowsWhichCopiesAreNotWellAndWhereTheyAre(t *testing.T) {
	w := newWorld(t)
	good, bad, away := w.cluster("good", "eu", metav1.ConditionTrue), w.cluster("bad", "cn", metav1.ConditionTrue), w.cluster("away", "eu", metav1.ConditionFalse)
	w.place("settings", healthyOn(good), refusedOn(bad, "x"), healthyOn(away))
	w.place("colours", healthyOn(good))
	b := w.admin()
	page := b.get("/objects?namespace=" + w.ns)
	page.shows(t, "1 of 2 objects is not applied.", "2 objects, 4 copies on 3 clusters", `</span>1 not applied</a>`, `</span>1 healthy</a>`,
		`<span class="sr">`+bad+`: not applied, FieldConflict</span>`, `<a class="sign cell unknown quiet"`, away+": unknown", "as of ", "/clusters/"+bad, ">colours</a>", "1 of 3")
	if strings.Index(page.text, ">colours</a>") < strings.Index(page.text, ">settings</a>") {
		t.Error("the worst object is not the first")
	}
	byName := b.get("/objects?sort=name&namespace=" + w.ns)
	if strings.Index(byName.text, ">colours</a>") > strings.Index(byName.text, ">settings</a>") {
		t.Error("the objects are not sorted by name")
	}
	for query, wanted := range map[string]bool{
		"state=NotApplied": false, "region=cn": false, "cluster=" + good: true, "text=COL": true, "kind=ConfigMap": true, "kind=Secret": false,
		"placement=Placement+x%2Fy": false, "state=Healthy": true,
	} {
		if got := strings.Contains(b.get("/objects?namespace="+w.ns+"&"+query).text, ">colours</a>"); got != wanted {
			t.Errorf("with %s the object colours is shown: %t", query, got)
		}
	}
}

func TestTheMatrixOfManyObjectsOnAHundredClustersHasABoundedPage(t *testing.T) {
	w := newWorld(t)
	var rows []hubv1.ClusterRow
	var targets []hubv1.BindingTarget
	for i := range 100 {
		row := refusedOn(fmt.Sprintf("cluster-%03d", i), strings.Repeat("long ", 20))
		rows, targets = append(rows, row), append(targets, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	fast := rest.CopyConfig(hubConfig)
	fast.QPS = -1
	hub, err := client.New(fast, client.Options{Scheme: w.hub.Scheme(), Mapper: w.hub.RESTMapper()})
	must(t, err)
	t.Cleanup(func() { // remove it, because pages of other tests would show this object
		must(t, hub.DeleteAllOf(context.WithoutCancel(t.Context()), &hubv1.ResourceBinding{}, client.InNamespace(w.ns)))
	})
	var writes errgroup.Group
	writes.SetLimit(8)
	for i := range 150 {
		writes.Go(func() error {
			name := fmt.Sprintf("settings-%04d", i)
			b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
			b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "1"}
			b.Spec.Clusters = targets
			if err := hub.Create(t.Context(), b); err != nil {
				return err
			}
			b.Status.Clusters = rows
			return hub.Status().Update(t.Context(), b)
		})
	}
	must(t, writes.Wait())
	b := w.user(nil, reads())
	page := b.get("/objects?sort=worst&page=3&namespace=" + w.ns)
	page.shows(t, "150 objects, 15000 copies on 100 clusters", "page 3 of 3", "settings-0149", "</span>150 not applied</a>", "clusters 1 to 12 of 100")
	page.hides(t, "settings-0001")
	const most = 3 << 17 // bytes of a page with links to 600 copies
	if len(page.text) > most {
		t.Errorf("the page has %d bytes, more than %d", len(page.text), most)
	}
	t.Logf("the page has %d bytes", len(page.text))
}

func TestAnObjectPageShowsTheReasonsOfFailures(t *testing.T) {
	w := newWorld(t)
	good, bad, other := w.cluster("good", "eu", metav1.ConditionTrue), w.cluster("bad", "cn", metav1.ConditionTrue), w.cluster("other", "us", metav1.ConditionTrue)
	away := w.cluster("away", "us", metav1.ConditionFalse)
	hostile := `"><img src=x onerror=alert(1)>`
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "europe"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.Names = []string{good, bad}
	must(t, w.hub.Create(t.Context(), p))
	binding := w.place("settings", healthyOn(good), refusedOn(bad, hostile), healthyOn(away))
	since := metav1.NewTime(time.Now().Add(-3 * time.Hour))
	binding.Spec.Rollout = &hubv1.BindingRollout{Revision: 1, Newest: 1, Phase: hubv1.RolloutFailed, Began: since, Since: since}
	must(t, w.hub.Update(t.Context(), binding))
	must(t, w.hub.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "one"}, Type: "Warning", Reason: "NotGood", Message: hostile, LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "ResourceBinding", Namespace: w.ns, Name: binding.Name, UID: binding.UID},
	}))
	b := w.admin()
	page := b.get(objectQuery(w, "settings"))
	page.shows(t, "<dt>Applied</dt>", "FieldConflict", "not applied", "on 1 of 3 clusters", "NotGood", "Why not elsewhere", other, "Placement "+w.ns+"/europe", "NotSelected",
		`data-label="As of">live</td>`, `>120m</time></td>`, `failed</span> for <time class="age"`, `>3h</time></dd>`, "Where it runs")
	page.hides(t, "<img", "<script>alert", " style=")
	if strings.Index(page.text, `>`+bad+`</a>`) > strings.Index(page.text, `>`+good+`</a>`) {
		t.Error("the worst cluster is not the first")
	}
	one := b.get(objectQuery(w, "settings", "cluster", bad))
	one.shows(t, "Only on", "show all clusters", "Who set each line on "+bad, "the hub serves no views of members")
	one.hides(t, `>`+other+`</a>`)
	b.get(objectQuery(w, "settings", "cluster", other)).shows(t, "<li>", "NotSelected")
	if r := b.get(objectQuery(w, "missing")); r.StatusCode != http.StatusNotFound {
		t.Errorf("an object that the hub does not have: %s", r.Status)
	}
	if r := b.get("/object?kind=&name=x"); r.StatusCode != http.StatusNotFound {
		t.Errorf("an object without a kind: %s", r.Status)
	}
	must(t, w.hub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "unplaced"}, StringData: map[string]string{"a": "hidden-value"}}))
	unplaced := b.get(pathOf("/object", "kind", "Secret", "namespace", w.ns, "name", "unplaced"))
	unplaced.shows(t, "not federated", "no placement selects it")
	unplaced.hides(t, "hidden-value")
}

// bundled creates the binding of a Widget that a bundle contains. The binding places the Widget on a cluster. The hub
// does not serve Widgets.
func (w *world) bundled(name string, of hubv1.BundleReference, cluster string) (page string) {
	w.Helper()
	id := hubv1.ObjectIdentity{Group: "other.dev", Kind: "Widget", Namespace: w.ns, Name: name}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: id.BindingName()}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "other.dev/v1", Kind: id.Kind, Name: id.Name, UID: "1", Bundle: &of}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: cluster, State: hubv1.TargetPresent}}
	must(w.T, w.hub.Create(w.Context(), b))
	b.Status.Clusters = []hubv1.ClusterRow{refusedOn(cluster, "a reason")}
	must(w.T, w.hub.Status().Update(w.Context(), b))
	return objectPath(id, "")
}

// widget returns the manifest of an object of a bundle.
func (w *world) widget(name string) string {
	return `{"apiVersion": "other.dev/v1", "kind": "Widget", "metadata": {"namespace": "` + w.ns + `", "name": "` + name + `"}}`
}

func TestTheObjectOfABundleHasAPage(t *testing.T) {
	w := newWorld(t)
	here, other := w.cluster("one", "eu", metav1.ConditionTrue), w.cluster("two", "cn", metav1.ConditionTrue)
	create := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			must(t, w.hub.Create(t.Context(), o))
			t.Cleanup(func() { _ = w.hub.Delete(context.WithoutCancel(t.Context()), o) })
		}
	}
	name, spec := metav1.ObjectMeta{Namespace: w.ns, Name: "web"}, hubv1.BundleSpec{ConfigMaps: []hubv1.ConfigMapSource{{Name: "manifests"}}}
	everywhere := metav1.ObjectMeta{Name: w.ns}
	manifests := hubv1.BundleSpec{Manifests: []runtime.RawExtension{{Raw: []byte(w.widget("everywhere"))}}}
	chart := &hubv1.OperatorChart{Namespace: w.ns, Archive: &hubv1.ArchiveSource{ConfigMap: "chart"}}
	p := &hubv1.Placement{ObjectMeta: name}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}}
	p.Spec.Clusters.Names = []string{here}
	all := &hubv1.ClusterPlacement{ObjectMeta: everywhere}
	all.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.ClusterBundleKind, Name: w.ns}}
	all.Spec.Clusters.Names = []string{here}
	create(p, all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "manifests"}, Data: map[string]string{"a.json": w.widget("bundled")}},
		&hubv1.Bundle{ObjectMeta: name, Spec: spec}, &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "broken"}, Spec: hubv1.BundleSpec{ConfigMaps: []hubv1.ConfigMapSource{{Name: "none"}}}},
		&hubv1.ClusterBundle{ObjectMeta: everywhere, Spec: manifests}, &hubv1.FederatedOperator{ObjectMeta: everywhere, Spec: hubv1.FederatedOperatorSpec{Chart: chart}})
	bundled := w.bundled("bundled", hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: w.ns, Name: "web"}, here)
	why := []string{"FieldConflict: a reason", "Why not elsewhere", ">" + other + "</a>", "NotSelected"}
	admin, unseen := w.admin(), []string{"Why not elsewhere", ">" + other + "</a>"}
	for name, tc := range map[string]struct {
		page         string
		shows, hides []string
	}{
		"of a Bundle with a ConfigMap": {page: bundled, shows: append(why, "<dd>Bundle "+w.ns+"/web</dd>", "Generation 1 of Bundle "+w.ns+"/web is not stored yet")},
		"of a ClusterBundle": {
			page: w.bundled("everywhere", hubv1.BundleReference{Kind: hubv1.ClusterBundleKind, Name: w.ns}, here), shows: append(why, "<dd>ClusterBundle "+w.ns+"</dd>"),
		},
		"of an operator with a chart": {
			page:  w.bundled("charted", hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: w.ns}, here),
			shows: []string{"FieldConflict: a reason", "the console renders no charts: use hansectl explain for objects of FederatedOperator " + w.ns}, hides: unseen,
		},
		"of a Bundle without its ConfigMap": {
			page:  w.bundled("broken", hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: w.ns, Name: "broken"}, here),
			shows: []string{"FieldConflict: a reason", "You do not see why the object is on these clusters: reading ConfigMap " + w.ns + "/none"}, hides: unseen,
		},
		"of a Bundle that is gone": {
			page:  w.bundled("gone", hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: w.ns, Name: "gone"}, here),
			shows: []string{"FieldConflict: a reason", "deleted"}, hides: unseen,
		},
	} {
		t.Run(name, func(t *testing.T) {
			page := admin.get(tc.page)
			page.shows(t, tc.shows...)
			page.hides(t, tc.hides...)
		})
	}
	t.Run("of a Bundle that the user may not read", func(t *testing.T) {
		rules := tenantRules()
		rules[0].Resources = []string{"placements", "resourcebindings"}
		page := w.user(rules, nil).get(bundled)
		page.shows(t, "FieldConflict: a reason", "You do not see why the object is on these clusters: reading Bundle "+w.ns+"/web")
		page.hides(t, unseen...)
	})
}

func TestAnObjectPageShowsWhatMembersAnswer(t *testing.T) {
	w := newWorld(t)
	here, hangs := w.cluster("here", "eu", metav1.ConditionTrue), w.cluster("hangs", "cn", metav1.ConditionTrue)
	w.place("settings", healthyOn(here), healthyOn(hangs))
	copied := func(colour string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": w.ns}, "data": map[string]any{"colour": colour},
		}}
	}
	log := strings.Repeat("2026-11-27T12:00:06.5Z line 1 of many\n", 300)
	log += strings.Repeat("2026-11-27T12:00:07.5Z \u001b[31m<b>failed\n", maxLogLines)
	w.serveViews(map[string]*stubMember{
		here: {
			logs: map[string]string{"web-1-a<i>": log},
			live: copied("red"), preview: members.Preview{Before: copied("blue<b>"), After: copied("red")},
			children: []members.Child{{Kind: "ReplicaSet", Name: "web-1", Children: []members.Child{{Kind: "Pod", Name: "web-1-a<i>", State: "CrashLoopBackOff 0/1", Containers: []string{"web"}}}}},
			events:   []members.Event{{Kind: "Pod", Name: "web-1-a", Type: "Warning", Reason: "BackOff", Message: "restarting <u>", Last: metav1.Now()}},
		},
		hangs: {hangs: true},
	})
	w.console.membersWithin = 8 * time.Second
	b := w.admin()
	all := b.get(objectQuery(w, "settings", "diff", here, "tree", "*", "events", "*"))
	all.shows(t, "-  colour: blue&lt;b&gt;", "&#43;  colour: red", "ReplicaSet web-1", "CrashLoopBackOff 0/1", "BackOff", "restarting &lt;u&gt;",
		"Not shown: the member did not answer in time", hangs+": the member did not answer in time", `data-scope=""`)
	all.hides(t, "blue<b>", "<u>", "web-1-a<i>")
	quiet := b.get(objectQuery(w, "settings"))
	quiet.shows(t, `data-scope="`+w.ns+`"`)
	quiet.hides(t, "did not answer", "BackOff")
	quiet.shows(t, "Who set each line on "+hangs)
	b.get(objectQuery(w, "settings", "cluster", here)).shows(t, "Who set each line on "+here)
	logs := b.get(objectQuery(w, "settings", "logs", here))
	logs.shows(t, "Logs on "+here, "web-1-a&lt;i&gt;", "<td>12:00:07</td>", "&lt;b&gt;failed", `data-scope=""`)
	logs.hides(t, "<b>failed", "line 1 ", "\u001b")
	b.get(objectQuery(w, "settings", "logs", hangs)).shows(t, "Logs on "+hangs, "the member did not answer in time")
	b.get(objectQuery(w, "settings", "logs", "*")).hides(t, "Logs on")
	b.get(objectQuery(w, "settings", "diff", hangs)).shows(t, "Difference on "+hangs, "the member did not answer in time")
	b.get(objectQuery(w, "settings", "diff", "*", "cluster", "*")).hides(t, "Difference on")
}

func TestThePictureAsksTheClustersThatAreNotWell(t *testing.T) {
	w := newWorld(t)
	here, hangs, good := w.cluster("here", "eu", metav1.ConditionTrue), w.cluster("hangs", "cn", metav1.ConditionTrue), w.cluster("good", "us", metav1.ConditionTrue)
	w.place("settings", refusedOn(here, "x"), refusedOn(hangs, "y"), healthyOn(good))
	owned := []members.Child{{Kind: "ReplicaSet", Name: "web-1", Health: hubv1.HealthDegraded}}
	w.serveViews(map[string]*stubMember{here: {children: owned}, hangs: {hangs: true}, good: {children: []members.Child{{Kind: "Job", Name: "never-asked", Health: hubv1.HealthDegraded}}}})
	w.console.membersWithin = time.Minute // the picture has its own limit
	b := w.admin()
	begin := time.Now()
	page := b.get(objectQuery(w, "settings"))
	page.shows(t, "ReplicaSet web-1", "not shown", `data-scope="`+w.ns+`"`)
	page.hides(t, "never-asked")
	if took := time.Since(begin); took > readWithin {
		t.Errorf("the page takes %s, although the picture waits for at most %s", took, drawnWithin)
	}
}

func TestATenantSeesItsNamespaceWithTheFactsFromTheViews(t *testing.T) {
	w := newWorld(t)
	mine := w.cluster("mine", "eu", metav1.ConditionTrue)
	w.serveViews(nil)
	w.place("settings", healthyOn(mine), refusedOn(mine+"-2", "x"))
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.ns}}
	must(t, w.hub.Create(t.Context(), p))
	t.Cleanup(func() { _ = w.hub.Delete(context.WithoutCancel(t.Context()), p) })
	b := w.user(tenantRules(), nil)

	for _, path := range []string{"/", "/objects", "/objects?text=set", "/clusters/" + mine} {
		page := b.get(path)
		page.shows(t, "Choose a namespace", "hanse-view")
		page.hides(t, "settings", ">"+mine, "copies", "of 0", "eu")
	}
	b.get("/objects?text=set").shows(t, `<input type="hidden" name="text" value="set">`)
	fleet := b.get("/?namespace=" + w.ns)
	fleet.shows(t, mine)
	fleet.hides(t, "all bundles", "not all are visible")
	b.get("/objects?namespace="+w.ns).shows(t, ">settings</a>", mine, `<option value="eu">`)
	b.get(objectQuery(w, "settings")).shows(t, "ClusterPlacement "+w.ns, "Why not elsewhere", "FieldConflict")
	cluster := b.get("/clusters/" + mine + "?namespace=" + w.ns)
	cluster.shows(t, "You see the part of the cluster that concerns namespace "+w.ns, "eu")
	cluster.hides(t, "alert(1)", "v1.36.3")
	if r := b.get("/objects?namespace=default"); r.StatusCode != http.StatusForbidden || !strings.Contains(r.text, "hanse-view in namespace default") {
		t.Errorf("the objects of another namespace: %s: %s", r.Status, r.text)
	}
}

func TestAUserWithoutAnyRightSeesNoCountsAndIsToldTheRole(t *testing.T) {
	w := newWorld(t)
	mine := w.cluster("mine", "eu", metav1.ConditionTrue)
	w.serveViews(nil)
	w.place("settings", healthyOn(mine))
	b := w.user(nil, nil)
	for _, path := range []string{"/", "/objects"} {
		page := b.get(path)
		page.shows(t, "ask for the ClusterRole hanse-view")
		page.hides(t, mine, "settings", "ready", "copies")
	}
	for _, path := range []string{"/?namespace=" + w.ns, "/objects?namespace=" + w.ns, objectQuery(w, "settings"), "/clusters/" + mine + "?namespace=" + w.ns} {
		page := b.get(path)
		if page.StatusCode != http.StatusForbidden || !strings.Contains(page.text, "Ask for the ClusterRole hanse-view in namespace "+w.ns) {
			t.Errorf("%s: %s: %s", path, page.Status, page.text)
		}
		page.hides(t, "copies", "1 of 1")
	}
}

func TestAClusterPageShowsItsFactsAndItsCopies(t *testing.T) {
	w := newWorld(t)
	name := w.cluster("one", "eu", metav1.ConditionFalse)
	m := &hubv1.MemberCluster{}
	must(t, w.hub.Get(t.Context(), types.NamespacedName{Name: name}, m))
	m.Spec.Unschedulable = true
	must(t, w.hub.Update(t.Context(), m))
	m.Status.Operators = []hubv1.OperatorFact{{Name: "cert-manager", Version: "v1.18.2", Installed: true}}
	expires := metav1.NewTime(time.Now().Add(30*24*time.Hour + time.Hour))
	m.Status.Credentials = &hubv1.CredentialsStatus{ExpireTime: &expires}
	m.Status.APIResources = []hubv1.ServedKind{{Kind: "ConfigMap", Versions: []string{"v1"}}, {Group: "x.dev", Kind: "Y"}}
	must(t, w.hub.Status().Update(t.Context(), m))
	w.place("settings", healthyOn(name))
	b := w.admin()
	page := b.get("/clusters/" + name)
	page.shows(t, "not ready", `">120m</time> ago`, "v1.36.3", "2 ready of 3", "eu", "cert-manager", "v1.18.2", "valid for 30 days, until "+expires.UTC().Format("2006-01-02 15:04 UTC"), `<dt>Joined</dt><dd><time class="age"`, "1 served of 2",
		"TestSays", "cordoned", `href="/objects?cluster=`+url.QueryEscape(name)+`"><span>All <strong>1</strong></span></a>`, "</span>1 unknown</a>")
	page.hides(t, "<script>alert", " style=")
	if r := b.get("/clusters/missing-" + w.ns); r.StatusCode != http.StatusNotFound {
		t.Errorf("a cluster that the hub does not have: %s", r.Status)
	}
}

func TestAClusterPageShowsTheProgressOfADrain(t *testing.T) {
	w := newWorld(t)
	name := w.cluster("one", "eu", metav1.ConditionTrue)
	m := &hubv1.MemberCluster{}
	must(t, w.hub.Get(t.Context(), types.NamespacedName{Name: name}, m))
	m.Spec.Drain = &hubv1.DrainPolicy{}
	must(t, w.hub.Update(t.Context(), m))
	w.serveViews(nil)
	w.place("settings", healthyOn(name))
	admin, tenant := w.admin(), w.user(tenantRules(), nil)
	admin.get("/clusters/"+name).hides(t, "Progress")
	m.Status.Drain = &hubv1.DrainStatus{Total: 5, Remaining: 2, Moving: 1, Staying: 1, Evicted: 1, Message: "1 object stays: <i>"}
	must(t, w.hub.Status().Update(t.Context(), m))
	page := admin.get("/clusters/" + name)
	page.shows(t, "draining", "The hub drains the cluster", "Progress: 2 of 5 objects moved, 1 evicted until the drain ends; 1 object stays: &lt;i&gt;.")
	page.hides(t, "<i>")
	page = tenant.get("/clusters/" + name + "?namespace=" + w.ns)
	page.shows(t, "draining", "The hub drains the cluster")
	page.hides(t, "Progress", "object stays")
}

func TestTheFleetLinksProblemsToTheirPages(t *testing.T) {
	w := newWorld(t)
	name := w.cluster("one", "eu", metav1.ConditionFalse)
	b := w.place("settings", refusedOn(name, "x"))
	b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "FailedOnSome", LastTransitionTime: metav1.Now()}}
	must(t, w.hub.Status().Update(t.Context(), b))
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "wrong"}}
	p.Spec.ResourceSelectors, p.Spec.Clusters.Names = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}, []string{name}
	must(t, w.hub.Create(t.Context(), p))
	p.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", LastTransitionTime: metav1.Now()}}
	must(t, w.hub.Status().Update(t.Context(), p))
	page := w.admin().get("/?namespace=" + w.ns)
	page.shows(t, `<a href="/objects?namespace=`+w.ns+`&amp;placement=Placement&#43;`+w.ns+`%2Fwrong">`, `<a href="/clusters/`+name+`?namespace=`+w.ns+`"><span class="sr">not ready: </span>Cluster `+name,
		"1 copy", "hansectl problems --checks")
	page.hides(t, "name=settings") // the cluster is the cause, and has an entry
}
