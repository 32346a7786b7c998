package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/browser"
	"github.com/hanse-dev/hanse/test/fleet"
)

// consolePages are all pages of the console, for the tests that check every page. In path, {group}, {namespace} and
// {object} stand for the Widget of hostileObjects, and {cluster} for its cluster.
var consolePages = []struct {
	name, path string
	// anonymous is true for a page that users see without a sign-in.
	anonymous bool
	// hostile is true for a page that must show one of hostileTexts, from an object or from its own URL.
	hostile bool
}{
	{name: "the sign-in", path: "/signin?ended&next=/%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E", anonymous: true},
	{name: "the fleet", path: "/", hostile: true},
	{name: "the fleet of a namespace", path: "/?namespace={namespace}", hostile: true},
	{name: "the objects", path: "/objects?namespace={namespace}"},
	{name: "the objects of the hub", path: "/objects"},
	{name: "an object", path: "/object?group={group}&kind=Widget&namespace={namespace}&name={object}", hostile: true},
	{name: "the fields of an object", path: "/object?group={group}&kind=Widget&namespace={namespace}&name={object}&cluster={cluster}", hostile: true},
	{name: "the difference of a copy", path: "/object?group={group}&kind=Widget&namespace={namespace}&name={object}&diff={cluster}", hostile: true},
	{name: "a cluster", path: "/clusters/{cluster}"},
	{name: "a cluster with a hostile region", path: "/clusters/hostile-{namespace}", hostile: true},
	{name: "the rollouts", path: "/rollouts"},
	{name: "the operators", path: "/operators"},
	{name: "what if", path: "/whatif"},
	{name: "an error", path: "/no-such-page/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E", hostile: true},
}

// runningBrowser is the browser process that all tests share.
var runningBrowser struct {
	once sync.Once
	*browser.Browser
	err error
}

// openTab opens a tab with a separate browser profile. It skips the test if the machine has no browser.
func openTab(t *testing.T) *browser.Tab {
	t.Helper()
	browser.Needed(t)
	b := &runningBrowser
	b.once.Do(func() { b.Browser, b.err = browser.Start(context.WithoutCancel(t.Context())) })
	must(t, b.err)
	return b.Open(t)
}

// consoleAdmin creates a user with all rights on the hub, and returns the user's token.
func consoleAdmin(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, GenerateName: "console-"}}
	must(t, suite.Hub.Create(ctx, account))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}
	must(t, suite.Hub.Create(ctx, binding))
	t.Cleanup(func() {
		for _, o := range []client.Object{account, binding} {
			_ = suite.Hub.Delete(context.WithoutCancel(ctx), o)
		}
	})
	token, err := suite.Hub.Token(ctx, account.Name)
	must(t, err)
	return token
}

// mayListMembers grants a ServiceAccount the right to list MemberClusters. A console page needs it to count its objects
// per cluster.
func mayListMembers(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	key := metav1.ObjectMeta{Name: name + "-clusters"}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: key, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"list"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: key, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: key.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: name}},
		},
	} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), o) })
	}
	user := "system:serviceaccount:" + hubv1.SystemNamespace + ":" + name
	eventually(t, normal, func() error {
		return mayDo(ctx, user, &authorizationv1.ResourceAttributes{Group: "hanse.dev", Resource: "memberclusters", Verb: "list"})
	})
}

// signedIn signs an administrator in, and returns a tab with the fleet page of all namespaces.
func signedIn(t *testing.T, origin string) *browser.Tab {
	t.Helper()
	tab := openTab(t)
	tab.SignIn(origin, consoleAdmin(t))
	return tab
}

// rowOf returns a JavaScript expression for the text of a cluster's table row, of its cell in a tile, or of the entry
// of an object. The name is that of the cluster, or that of the object without its namespace.
func rowOf(name string) string {
	return fmt.Sprintf(`([...document.querySelectorAll("tbody tr, .tile .cell, .inbox > li")].find((r) => {
  const title = r.matches(".cell") ? r.title.split(":")[0] : (r.cells?.[0] ?? r.querySelector(".what > :first-child")).innerText.trim();
  return ("/" + title).endsWith(%q);
})?.textContent.trim() ?? "")`, "/"+name)
}

// TestAUserOfOneNamespaceSeesThePagesOfItAlone signs in as a user of one namespace. Another tenant has an unhealthy
// object on the same clusters, which the pages must not show.
func TestAUserOfOneNamespaceSeesThePagesOfItAlone(t *testing.T) {
	tab := openTab(t)
	ctx, ns, bank := t.Context(), namespace(t), namespace(t)
	for _, in := range []string{ns, bank} {
		placeWidgets(t, in, shanghai)
		w := widget(in, "widget-of-"+in)
		must(t, suite.Hub.Create(ctx, w))
		eventually(t, normal, func() error { return reports(ctx, shanghai, w, notReady("PumpFailed")) })
		eventually(t, normal, func() error {
			return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionFalse, "")
		})
	}
	newTenant(t, ns)
	token, err := suite.Hub.Token(ctx, "tenant-"+ns)
	must(t, err)
	mayListMembers(t, "tenant-"+ns)

	origin := suite.hub.Console
	tab.SignIn(origin, token)
	tab.Visit(origin + "/?view=table&namespace=" + ns)
	tab.Wait("the page shows the user's object and its cluster", rowOf("widget-of-"+ns)+`.includes("PumpFailed") && `+rowOf(shanghai)+`.includes("ready")`)
	objects := browser.Eval[string](tab, `[...document.querySelectorAll("tbody tr")].find((r) => r.cells[0].innerText.trim() === "`+shanghai+`")
  ?.querySelector('[data-label="Objects"]').innerText ?? ""`)
	if objects != "1" {
		t.Errorf("the page counts %q objects on %s, want the user's one", objects, shanghai)
	}
	everything := browser.Eval[string](tab, `document.documentElement.outerHTML`)
	tab.Visit(origin + "/")
	everything += browser.Eval[string](tab, `document.documentElement.outerHTML`)
	if strings.Contains(everything, bank) {
		t.Errorf("the pages tell of another tenant:\n%s", everything)
	}

	tab.Visit(origin + "/?namespace=" + bank)
	if text := tab.Text(); !strings.Contains(text, "Forbidden") || strings.Contains(text, "widget-of-") || strings.Contains(text, "PumpFailed") {
		t.Errorf("the page of another tenant shows\n%s", text)
	}
	if status := browser.Eval[int](tab, `fetch("/live?scope=`+bank+`").then((r) => r.status)`); status != 403 {
		t.Errorf("the changes of another tenant are answered with %d, want 403", status)
	}
	if elsewhere := tab.Elsewhere(origin); len(elsewhere) > 0 {
		t.Errorf("the pages ask other origins: %v", elsewhere)
	}
}

// notReady returns a status with the condition Ready=False. The fleet page must show its reason.
func notReady(reason string) string {
	return fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"False","reason":%q,"message":"see the log","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, reason)
}

// TestAnOpenPageChangesByItself keeps one page open while an object changes, a member becomes unreachable, and the
// replica that serves the page is killed. The test puts a mark into the page that a reload would remove.
func TestAnOpenPageChangesByItself(t *testing.T) {
	browser.Needed(t)
	ctx, ns := t.Context(), namespace(t)
	placeWidgets(t, ns, shanghai)
	w := widget(ns, "watched")
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return reports(ctx, shanghai, w, notReady("PumpFailed")) })

	var serving atomic.Pointer[fleet.HubProcess]
	serving.Store(suite.hub)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // this listener replaces the Service of the console
	must(t, err)
	forward(t, listener, func() string { return strings.TrimPrefix(serving.Load().Console, "http://") })
	origin := "http://" + listener.Addr().String()
	tab := signedIn(t, origin)
	const mark = `window.notReloaded`
	browser.Eval[bool](tab, mark+` = true`)
	tab.Wait("the page shows the problem", rowOf("watched")+`.includes("PumpFailed")`)

	t.Run("an object that changes", func(t *testing.T) {
		tab := tab.In(t)
		browser.Eval[bool](tab, `document.querySelector('.tile a[href="/clusters/`+shanghai+`"]').focus() || true`)
		must(t, reports(ctx, shanghai, w, notReady("ValveFailed")))
		begin := time.Now()
		tab.Wait("the page shows the change", rowOf("watched")+`.includes("ValveFailed")`)
		t.Logf("the page shows a change on a member after %s", time.Since(begin).Round(100*time.Millisecond))
		if at := browser.Eval[string](tab, `document.activeElement.getAttribute("href") ?? document.activeElement.tagName`); at != "/clusters/"+shanghai {
			t.Errorf("the change moved the focus to %s", at)
		}
	})
	t.Run("a member that is lost, and comes back", func(t *testing.T) {
		tab := tab.In(t)
		t.Cleanup(func() {
			lab(t, "start", frankfurt)
			mendMember(t, frankfurt)
		})
		lab(t, "kill", frankfurt)
		tab.Wait("the page shows the member as unknown", rowOf(frankfurt)+`.includes("unknown")`)
		lab(t, "start", frankfurt)
		tab.Wait("the page shows the member as ready", rowOf(frankfurt)+` !== "" && !/unknown|not ready/.test(`+rowOf(frankfurt)+`)`)
	})
	t.Run("a replica that is killed", func(t *testing.T) {
		tab := tab.In(t)
		t.Cleanup(func() {
			if suite.hub.Ended() {
				startHub(t)
			}
		})
		old, next := suite.hub, replica(t, "hub-console")
		suite.hub = next
		must(t, old.Kill())
		tab.Wait("the page says that it has no connection", `document.body.innerText.includes("No connection")`)
		serving.Store(next)
		tab.Wait("the page goes on", `!document.body.innerText.includes("No connection")`)
		eventually(t, normal, func() error { return isLeading(ctx, next) })
		for _, m := range members {
			eventually(t, normal, func() error { return memberReady(ctx, m) })
		}
		must(t, reports(ctx, shanghai, w, notReady("GasketFailed")))
		tab.Wait("the page shows a change", rowOf("watched")+`.includes("GasketFailed")`)
	})
	if !browser.Eval[bool](tab, mark+` === true`) {
		t.Error("the page was reloaded")
	}
}

// TestAWaveIsApprovedOnItsPage approves a wave with the keyboard alone. It follows links from the list of rollouts to
// the button.
func TestAWaveIsApprovedOnItsPage(t *testing.T) {
	tab := openTab(t)
	ctx, ns := t.Context(), namespace(t)
	web := deployment(ns, "approved-web")
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(europeFirst), &spec))
	place(t, ns, "approved", deployments, spec)
	must(t, suite.Hub.Create(ctx, web))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	setImage(t, web, "example.org/web:2")

	origin := suite.hub.Console
	tab.SignIn(origin, consoleAdmin(t))
	tab.Visit(origin + "/rollouts?namespace=" + ns)
	tab.Press(kb.Enter, `main a[href*="name=approved"]`)
	const button = `form[action="/rollouts/approve"] button`
	tab.Wait("the page asks for the approval", `!!document.querySelector('`+button+`')`)
	must(t, rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore"))
	// The live page may replace the button while the key is pressed, or may be older than the placement, which the console
	// refuses on a page of its own. A user then returns to the page and presses again.
	page := browser.Eval[string](tab, "location.href")
	const focus = `(b => { b?.focus(); return !!b })(document.querySelector('` + button + `'))`
	var pressed time.Time
	eventually(t, 2*time.Minute, func() error {
		if time.Since(pressed) > 10*time.Second {
			if !browser.Eval[bool](tab, focus) {
				tab.Visit(page)
			} else {
				tab.Press(kb.Enter, "")
				pressed = time.Now()
			}
		}
		return rolloutIs(ctx, web, hubv1.RolloutComplete, "")
	})
	tab.Wait("the page shows that the rollout is complete", `document.querySelector("main").innerText.includes("complete")`)
	for _, name := range members {
		must(t, imageOn(ctx, name, web, "example.org/web:2"))
	}
}

// hostileTexts are texts from a member that would run a script in a page without escaping, or would mislead the reader.
var hostileTexts = []string{
	`<script>window.pwned=1</script>`, `"><img src=x onerror=window.pwned=1>`, `</title></script><svg onload=window.pwned=1>`,
	`javascript:window.pwned=1`, `{{.}} ${window.pwned=1}`, "\u0007\u001b[31m\u202egnorw\u2066\u200f",
}

// hostileObjects creates a Widget whose annotations, status and message contain the hostile texts, and a cluster with a
// hostile text as region. It returns a replacer for the placeholders in the paths of consolePages.
func hostileObjects(t *testing.T) *strings.Replacer {
	t.Helper()
	ctx, ns := t.Context(), namespace(t)
	placeWidgets(t, ns, shanghai)
	text := strings.Join(hostileTexts, " ")
	w := widget(ns, "hostile")
	w.SetAnnotations(map[string]string{"example.com/note": text})
	must(t, unstructured.SetNestedField(w.Object, text, "spec", "note"))
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return reports(ctx, shanghai, w, fmt.Sprintf(`{"version":%[1]s,"conditions":[{"type":"Ready","status":"False","reason":%[1]s,"message":%[1]s,`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, toJSON(t, text)))
	})
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionFalse, "")
	})

	member := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "hostile-" + ns, Annotations: map[string]string{"example.com/note": text}},
		Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "hostile-" + ns}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromNone},
		},
	}
	must(t, suite.Hub.Create(ctx, member))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_ = suite.Hub.Delete(ctx, member)
		must(t, poll(ctx, normal, func() error {
			if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(member), &hubv1.MemberCluster{}); err == nil {
				return fmt.Errorf("MemberCluster %s hangs", member.Name)
			}
			return nil
		}))
	})
	eventually(t, normal, func() error {
		return memberCondition(ctx, member.Name, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing)
	})
	region := fmt.Sprintf(`{"status":{"topology":{"region":%s}}}`, toJSON(t, hostileTexts[1]))
	must(t, asHub(t).Status().Patch(ctx, member.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(region))))
	return strings.NewReplacer("{namespace}", ns, "{object}", "hostile", "{group}", widgetKind.Group, "{cluster}", shanghai)
}

// asHub returns a client with the right to write the status of Hanse's kinds.
func asHub(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(suite.Hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters", "hanse:break-glass"}}
	c, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	must(t, err)
	return c
}

// TestNoPageRunsAScriptOfAnObject opens each page while objects and a cluster contain hostile texts.
func TestNoPageRunsAScriptOfAnObject(t *testing.T) {
	tab := openTab(t)
	path := hostileObjects(t)
	origin := suite.hub.Console
	tab.SignIn(origin, consoleAdmin(t))
	for _, p := range consolePages {
		t.Run(p.name, func(t *testing.T) {
			tab := tab.In(t)
			tab.Visit(origin + path.Replace(p.path))
			text := browser.Eval[string](tab, `document.body.textContent`)
			if p.hostile && !slices.ContainsFunc(hostileTexts, func(h string) bool { return strings.Contains(text, h) }) {
				t.Errorf("the page does not show the text that is to be harmless:\n%s", text)
			}
			if strings.ContainsAny(text, "\u0007\u001b\u202e\u2066\u200f") {
				t.Errorf("the page has characters that mislead its reader: %q", text)
			}
			if browser.Eval[bool](tab, `"pwned" in window`) {
				t.Error("a script of an object ran")
			}
			if refused := tab.Refused(); len(refused) > 0 {
				t.Errorf("the page tried what its policy forbids: %v", refused)
			}
		})
	}
	if elsewhere := tab.Elsewhere(origin); len(elsewhere) > 0 {
		t.Errorf("the pages ask other origins: %v", elsewhere)
	}
}

// headerWraps is a script that returns true if the header takes two lines. The user's name is the last part of the
// header.
const headerWraps = `(() => {
  const [first, last] = [".brand", ".menu"].map((part) => document.querySelector("header " + part).getBoundingClientRect());
  return last.top >= first.bottom;
})()`

// TestEveryPageIsAccessible checks each page with axe-core on screens of three widths, in both colour schemes. It also
// checks that the keyboard reaches every control.
func TestEveryPageIsAccessible(t *testing.T) {
	admin := openTab(t)
	path := hostileObjects(t)
	origin := suite.hub.Console
	admin.SignIn(origin, consoleAdmin(t))
	anonymous := openTab(t)
	for _, p := range consolePages {
		t.Run(p.name, func(t *testing.T) {
			tab := admin.In(t)
			if p.anonymous {
				tab = anonymous.In(t)
			}
			tab.Visit(origin + path.Replace(p.path))
			for _, width := range []int64{360, 1280, 3840} {
				tab.Resize(width, 800)
				for _, scheme := range []string{"light", "dark"} {
					tab.Prefer(scheme)
					for _, b := range tab.Barriers() {
						t.Errorf("%d pixels wide, %s: %s", width, scheme, b)
					}
				}
				if tab.ScrollsSideways() {
					t.Errorf("%d pixels wide, the page scrolls sideways", width)
				}
				if !p.anonymous && width >= 1280 && browser.Eval[bool](tab, headerWraps) {
					t.Errorf("%d pixels wide, the header has more than one line", width)
				}
				for _, fault := range tab.Unreached() {
					t.Errorf("%d pixels wide, by keyboard: %s", width, fault)
				}
			}
		})
	}
}
