package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hostile is a text of a member or a user that would be a script if it were not escaped.
const hostile = `<script>alert(1)</script>"'>`

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rolling is a ConfigMap at its third revision. The second wave of its placement waits for an approval.
type rolling struct {
	*world
	placement *hubv1.Placement
	object    *corev1.ConfigMap
	binding   *hubv1.ResourceBinding
	members   [2]string // the clusters of the first and of the second wave
}

func newRolling(t *testing.T) *rolling {
	t.Helper()
	w := newWorld(t)
	r := &rolling{world: w, members: [2]string{w.ns + "-a", w.ns + "-b"}}
	ctx := t.Context()
	for _, name := range r.members {
		m := member(name)
		must(t, w.hub.Create(ctx, m))
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, LastTransitionTime: metav1.NewTime(began)}}
		must(t, w.hub.Status().Update(ctx, m))
	}
	r.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "settings"}}
	must(t, w.hub.Create(ctx, r.object))
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{
		{Name: "asia", Clusters: &hubv1.RuleClusters{Names: r.members[:1]}}, {Name: "rest", Approval: hubv1.ApprovalManual},
	}}
	must(t, w.hub.Create(ctx, p))
	p.Status.Rollout = &hubv1.PlacementRollout{Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Objects: hubv1.RolloutObjects{Moving: 1}}
	must(t, w.hub.Status().Update(ctx, p))
	r.placement = p
	at := metav1.NewTime(began)
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: w.ns, Name: "settings"}
	b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
	b.Spec = hubv1.BindingSpec{
		ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: r.object.UID},
		PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: w.ns, Name: "web", UID: p.UID, Generation: 1},
		Clusters:     []hubv1.BindingTarget{{Name: r.members[0], State: hubv1.TargetPresent, Revision: 7}, {Name: r.members[1], State: hubv1.TargetPresent, Revision: 6}},
		Revisions: []hubv1.ObjectRevision{
			{Number: 4, Template: "t4", Policies: "p", Time: at, Passed: true}, {Number: 6, Template: "t6", Policies: "p", Time: at, Passed: true}, {Number: 7, Template: "t7", Policies: "p", Time: at},
		},
		Rollout: &hubv1.BindingRollout{Revision: 7, Newest: 7, Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Since: at, Began: at, Passed: 6, Message: hostile},
	}
	must(t, w.hub.Create(ctx, b))
	b.Status.Clusters = []hubv1.ClusterRow{
		{Name: r.members[0], Revision: 7, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &at},
		{Name: r.members[1], Revision: 6, Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded, Reason: "Crash", Message: hostile},
	}
	must(t, w.hub.Status().Update(ctx, b))
	r.binding = b
	return r
}

func member(name string) *hubv1.MemberCluster {
	return &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
		Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
	}}
}

func (r *rolling) page() string { return rolloutPath(r.ns, "web") }

// history returns the path of the rollout page of the ConfigMap.
func (r *rolling) history() string { return rolloutObjectPath(r.ns, r.binding.Name) }

// annotation returns an annotation of an object, read from the hub's API server.
func (r *rolling) annotation(o client.Object, name string) string {
	r.Helper()
	must(r.T, r.hub.Get(r.Context(), client.ObjectKeyFromObject(o), o))
	return o.GetAnnotations()[name]
}

// steers returns the rules of a user who may steer rollouts and confirm removals.
func steers() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"placements"}, Verbs: []string{"patch", "rollout-approve", "rollout-pause", "rollout-skip", "rollout-promote", "rollout-undo"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}},
	}
}

// form returns the hidden fields of the first form on a page with this action.
func (b *browser) form(page, action string) url.Values {
	b.Helper()
	text := b.get(page).text
	found := regexp.MustCompile(`(?s)<form[^>]* action="` + regexp.QuoteMeta(action) + `">(.*?)</form>`).FindStringSubmatch(text)
	if found == nil {
		b.Fatalf("%s has no form of %s:\n%s", page, action, text)
	}
	out := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(found[1], -1) {
		out.Set(field[1], field[2])
	}
	return out
}

// steering is a test case: an action on a rollout, the rights that the action needs, and the change that it makes.
type steering struct {
	path, annotation string
	more             url.Values
	// page returns the path of the page with the form. The function on returns the object that the action changes. want is
	// the beginning of the annotation's value after the action.
	page func(*rolling) string
	on   func(*rolling) client.Object
	want func(*rolling) string
	// stale is true if the action accepts also the form of an outdated page.
	stale bool
}

func ofPlacement(r *rolling) client.Object { return r.placement }

func always(text string) func(*rolling) string { return func(*rolling) string { return text } }

var steerings = map[string]steering{
	"a wave is approved":   {path: "/rollouts/approve", annotation: hubv1.RolloutApproveAnnotation, page: (*rolling).page, on: ofPlacement, want: always("rest@2026-03-01T12:00:00Z")},
	"a rollout is paused":  {path: "/rollouts/pause", annotation: hubv1.RolloutPauseAnnotation, page: (*rolling).page, on: ofPlacement, want: always("true"), stale: true},
	"a cluster is skipped": {path: "/rollouts/skip", annotation: hubv1.RolloutSkipAnnotation, page: (*rolling).page, on: ofPlacement, want: func(r *rolling) string { return r.members[1] + "@2026-03-01T12:00:00Z" }},
	"a change is promoted": {path: "/rollouts/promote", annotation: hubv1.RolloutPromoteAnnotation, more: url.Values{"reason": {"CVE-1"}, "sure": {"yes"}}, page: (*rolling).page, on: ofPlacement, want: always("2026-03-01T12:00:00Z CVE-1")},
	"an object returns": {path: "/rollouts/undo", annotation: hubv1.RolloutUndoAnnotation, page: (*rolling).history,
		on: func(r *rolling) client.Object { return r.object }, want: always("4@20")},
}

func TestRolloutsAreSteered(t *testing.T) {
	for name, tc := range steerings {
		t.Run(name, func(t *testing.T) {
			r := newRolling(t)
			b := r.signedIn(r.token(steers(), reads()))
			other := r.signedIn(r.token(steers(), reads()))
			form := b.form(tc.page(r), tc.path)
			for key, values := range tc.more {
				form[key] = values
			}
			refused := func(what string, status int, answer response) {
				t.Helper()
				if answer.StatusCode != status {
					t.Errorf("%s: %s: %s", what, answer.Status, answer.text)
				}
				if got := r.annotation(tc.on(r), tc.annotation); got != "" {
					t.Fatalf("%s: the annotation is %q", what, got)
				}
			}
			with := func(field, value string) url.Values {
				out := url.Values{}
				for key, values := range form {
					out[key] = values
				}
				out.Set(field, value)
				return out
			}
			refused("without the form's token", http.StatusForbidden, b.post(tc.path, with("csrf", "")))
			refused("with a form of another session", http.StatusForbidden, other.post(tc.path, form))
			if !tc.stale {
				refused("with a form of an older state", http.StatusConflict, b.post(tc.path, with("state", "old")))
			}
			reader := r.signedIn(r.token(nil, reads()))
			if text := reader.get(tc.page(r)).text; strings.Contains(text, `action="`+tc.path+`"`) {
				t.Error("a user without the right sees the form")
			}
			refused("of a user without the right", http.StatusForbidden, reader.post(tc.path, withToken(form, reader)))

			answer := b.post(tc.path, form)
			if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != tc.page(r) {
				t.Fatalf("%s to %q: %s", answer.Status, to, answer.text)
			}
			if got := r.annotation(tc.on(r), tc.annotation); !strings.HasPrefix(got, tc.want(r)) {
				t.Errorf("the annotation is %q, want %q", got, tc.want(r))
			}
		})
	}
}

// withToken returns the form with the CSRF token of the session of browser b, which is another browser.
func withToken(form url.Values, b *browser) url.Values {
	out := url.Values{}
	for key, values := range form {
		out[key] = values
	}
	out.Set(csrfField, b.csrf("/"))
	return out
}

func TestAnApprovalIsForTheRevisionThatThePageShowed(t *testing.T) {
	r := newRolling(t)
	b := r.signedIn(r.token(steers(), reads()))
	form := b.form(r.page(), "/rollouts/approve")
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.binding), r.binding))
	r.binding.Spec.Revisions = append(r.binding.Spec.Revisions, hubv1.ObjectRevision{Number: 8, Template: "t8", Policies: "p", Time: metav1.NewTime(began)})
	r.binding.Spec.Rollout.Revision, r.binding.Spec.Rollout.Newest = 8, 8
	must(t, r.hub.Update(t.Context(), r.binding))
	answer := b.post("/rollouts/approve", form)
	if answer.StatusCode != http.StatusConflict || !strings.Contains(answer.text, "nothing was changed: the page showed an older state") {
		t.Errorf("%s: %s", answer.Status, answer.text)
	}
	if got := r.annotation(r.placement, hubv1.RolloutApproveAnnotation); got != "" {
		t.Errorf("the annotation is %q", got)
	}
}

func TestAPausedRolloutIsResumed(t *testing.T) {
	r := newRolling(t)
	b := r.signedIn(r.token(steers(), reads()))
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.placement), r.placement))
	r.placement.Annotations = map[string]string{hubv1.RolloutPauseAnnotation: "true"}
	must(t, r.hub.Update(t.Context(), r.placement))
	form := b.form(r.page(), "/rollouts/resume")
	if answer := b.post("/rollouts/resume", form); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, answer.text)
	}
	if got := r.annotation(r.placement, hubv1.RolloutPauseAnnotation); got != "" {
		t.Errorf("the annotation is %q", got)
	}
	if answer := b.post("/rollouts/resume", form); answer.StatusCode != http.StatusConflict {
		t.Errorf("a form of the ended pause: %s", answer.Status)
	}
}

func TestARequestThatMakesNoSenseIsRefused(t *testing.T) {
	r := newRolling(t)
	b := r.signedIn(r.token(steers(), reads()))
	form := b.form(r.page(), "/rollouts/approve")
	undo := b.form(r.history(), "/rollouts/undo")
	for name, tc := range map[string]struct {
		path, field, value string
		form               url.Values
		want               string
	}{
		"a wave that waits for no approval":      {"/rollouts/approve", "wave", "asia", form, "waits for no approval"},
		"a wave that the placement has not":      {"/rollouts/approve", "wave", hostile, form, "has no wave"},
		"a cluster that the objects do not have": {"/rollouts/skip", "cluster", "mars", form, "goes to cluster"},
		"a promotion without a confirmation":     {"/rollouts/promote", "reason", "CVE-1", form, "is not checked"},
		"a revision that is gone":                {"/rollouts/undo", "revision", "5", undo, "revision 5 is gone"},
		"a revision that clusters get already":   {"/rollouts/undo", "revision", "7", undo, "get revision 7 already"},
		"a revision that is no number":           {"/rollouts/undo", "revision", "x", undo, "is not a revision number"},
	} {
		sent := url.Values{}
		for key, values := range tc.form {
			sent[key] = values
		}
		sent.Set(tc.field, tc.value)
		answer := b.post(tc.path, sent)
		if answer.StatusCode != http.StatusConflict || !strings.Contains(answer.text, "nothing was changed") || !strings.Contains(answer.text, tc.want) || strings.Contains(answer.text, "<script>alert") {
			t.Errorf("%s: %s: %s", name, answer.Status, answer.text)
		}
	}
	if must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.placement), r.placement)); len(r.placement.Annotations) > 0 {
		t.Errorf("the annotations are %v", r.placement.Annotations)
	}
}

func TestTheRolloutPagesShowWavesObjectsAndHistory(t *testing.T) {
	r := newRolling(t)
	b := r.signedIn(r.token(steers(), reads()))
	for path, wants := range map[string][]string{
		"/rollouts?namespace=" + r.ns:             {`href="/rollouts/placement?name=web&amp;namespace=` + r.ns, "waiting for approval", "Waiting for wave rest"},
		"/rollouts?result=Done&namespace=" + r.ns: {"No placement that you may see has a rollout with the result Done"},
		r.page():    {"<ol class=\"waves\">", `id="wave-asia"`, "passed", "Approve wave rest", "1 of 1 cluster updated and healthy", "waits for you", "hansectl rollout approve web rest -n " + r.ns, "1 of 1 changing object</a> waits for the approval, the first one for", "degraded", "ConfigMap " + r.ns + "/settings"},
		r.history(): {"Return to revision 6", "Return to revision 4", "revision 7", "Crash"},
	} {
		answer := b.get(path)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", path, answer.Status, answer.text)
		}
		for _, want := range wants {
			if !strings.Contains(answer.text, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, answer.text)
			}
		}
		if strings.Contains(answer.text, "<script>alert") || strings.Contains(answer.text, " style=") {
			t.Errorf("%s has markup of others, or inline style", path)
		}
	}
	if text := b.get("/rollouts/placement?namespace=" + r.ns).text; !strings.Contains(text, "<h1>Rollouts</h1>") {
		t.Errorf("the page of a placement for another namespace:\n%s", text)
	}
	if answer := b.get(rolloutPath(r.ns, "other")); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a placement that the hub does not have: %s", answer.Status)
	}
}

func TestACopyOfAClusterThatDoesNotAnswerIsUnknown(t *testing.T) {
	r := newRolling(t)
	b := r.signedIn(r.token(nil, reads()))
	var m hubv1.MemberCluster
	must(t, r.hub.Get(t.Context(), client.ObjectKey{Name: r.members[0]}, &m))
	seen := metav1.NewTime(began)
	m.Status.Conditions[0].Status, m.Status.Conditions[0].Reason, m.Status.LastObservedTime = metav1.ConditionFalse, hubv1.ReasonUnreachable, &seen
	must(t, r.hub.Status().Update(t.Context(), &m))
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.binding), r.binding))
	r.binding.Status.Clusters[0].LastObservedTime = &seen
	must(t, r.hub.Status().Update(t.Context(), r.binding))
	for _, path := range []string{r.page(), r.history()} {
		if text := b.get(path).text; !strings.Contains(text, `<span class="state unknown">`) || strings.Contains(text, "</span>healthy") || strings.Contains(text, "</span>passing") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
}

func TestAHeldRemovalIsConfirmedOnce(t *testing.T) {
	r := newRolling(t)
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.placement), r.placement))
	r.placement.Status.RemovalHeld = &hubv1.RemovalHeld{ID: "7f3a9c11", Since: metav1.NewTime(began), Causes: []string{hostile}, Clusters: r.members[:], Copies: 120}
	must(t, r.hub.Status().Update(t.Context(), r.placement))
	path := "/rollouts?namespace=" + r.ns
	b, reader, other := r.signedIn(r.token(steers(), reads())), r.signedIn(r.token(nil, reads())), r.signedIn(r.token(steers(), reads()))
	form := b.form(path, "/removals/confirm")
	form.Set("sure", "yes")
	if text := reader.get(path).text; !strings.Contains(text, r.members[0]) || strings.Contains(text, `action="/removals/confirm"`) || strings.Contains(text, "<script>alert") {
		t.Errorf("the page of a reader is\n%s", text)
	}
	refused := func(what string, status int, answer response) {
		t.Helper()
		if got := r.annotation(r.placement, hubv1.ConfirmRemovalAnnotation); answer.StatusCode != status || got != "" {
			t.Errorf("%s: %s, the annotation is %q", what, answer.Status, got)
		}
	}
	with := func(field, value string) url.Values {
		out := url.Values{}
		for key, values := range form {
			out[key] = values
		}
		out.Set(field, value)
		return out
	}
	refused("without the form's token", http.StatusForbidden, b.post("/removals/confirm", with("csrf", "")))
	refused("with a form of another session", http.StatusForbidden, other.post("/removals/confirm", form))
	refused("of a removal that is not held any more", http.StatusConflict, b.post("/removals/confirm", with("id", "old")))
	refused("without the confirmation", http.StatusConflict, b.post("/removals/confirm", with("sure", "")))
	refused("of a user without the right", http.StatusForbidden, reader.post("/removals/confirm", withToken(form, reader)))
	for range 2 {
		if answer := b.post("/removals/confirm", form); answer.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %s", answer.Status, answer.text)
		}
		if got := r.annotation(r.placement, hubv1.ConfirmRemovalAnnotation); got != "7f3a9c11" {
			t.Errorf("the annotation is %q", got)
		}
	}
	if text := b.get(path).text; !strings.Contains(text, "Confirmed: the copies are deleted") {
		t.Errorf("the page after the confirmation is\n%s", text)
	}
}

func TestAHeldRemovalOfABundleIsConfirmed(t *testing.T) {
	w := newWorld(t)
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}, Spec: hubv1.BundleSpec{ConfigMaps: []hubv1.ConfigMapSource{{Name: "manifests"}}}}
	must(t, w.hub.Create(t.Context(), b))
	b.Status.RemovalHeld = &hubv1.RemovalHeld{ID: "7f3a9c11", Since: metav1.NewTime(began), Causes: []string{"ObjectDeleted: " + hostile}, Clusters: []string{"eu"}, Copies: 114}
	must(t, w.hub.Status().Update(t.Context(), b))
	bundles := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"bundles", "placements"}, Verbs: verbs}}
	}
	path := "/rollouts?namespace=" + w.ns
	tenant, reader := w.signedIn(w.token(bundles("get", "list", "patch"), nil)), w.signedIn(w.token(bundles("get", "list"), nil))
	if text := reader.get(path).text; !strings.Contains(text, ">Bundle "+w.ns+"/web</h3>") || strings.Contains(text, `action="/removals/confirm"`) {
		t.Errorf("the page of a reader is\n%s", text)
	}
	form := tenant.form(path, "/removals/confirm")
	form.Set("sure", "yes")
	form.Set(csrfField, reader.csrf(path))
	if answer := reader.post("/removals/confirm", form); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a reader gets %s", answer.Status)
	}
	form.Set(csrfField, tenant.csrf(path))
	if answer := tenant.post("/removals/confirm", form); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, answer.text)
	}
	must(t, w.hub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	if got := b.Annotations[hubv1.ConfirmRemovalAnnotation]; got != "7f3a9c11" {
		t.Errorf("the annotation is %q", got)
	}
}

func TestTheRolloutOfAClusterPlacementIsSteered(t *testing.T) {
	w := newWorld(t)
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: w.ns}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "all"}}}
	must(t, w.hub.Create(t.Context(), p))
	may := append(reads(), rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"clusterplacements"}, Verbs: []string{"patch", "rollout-pause"}})
	b := w.signedIn(w.token(nil, may))
	path := rolloutPath("", w.ns)
	if answer := b.post("/rollouts/pause", b.form(path, "/rollouts/pause")); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != path {
		t.Fatalf("%s to %q: %s", answer.Status, answer.Header.Get("Location"), answer.text)
	}
	must(t, w.hub.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Annotations[hubv1.RolloutPauseAnnotation]; got != "true" {
		t.Errorf("the annotation is %q", got)
	}
	if text := b.get(path).text; !strings.Contains(text, `action="/rollouts/resume"`) || strings.Contains(text, `action="/rollouts/pause"`) {
		t.Errorf("the page of a paused rollout:\n%s", text)
	}
}

func TestALongTableHasPages(t *testing.T) {
	for query, want := range map[string]part{
		"":                               {From: 0, To: 100, Of: 250, Next: "/rollouts?page=2"},
		"?page=2&sort=name":              {From: 100, To: 200, Of: 250, Previous: "/rollouts?page=1&sort=name", Next: "/rollouts?page=3&sort=name"},
		"?page=3":                        {From: 200, To: 250, Of: 250, Previous: "/rollouts?page=2"},
		"?page=99":                       {From: 200, To: 250, Of: 250, Previous: "/rollouts?page=2"},
		"?page=-1":                       {From: 0, To: 100, Of: 250, Next: "/rollouts?page=2"},
		"?page=" + "9999999999999999999": {From: 0, To: 100, Of: 250, Next: "/rollouts?page=2"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/rollouts"+query, nil)
		must(t, err)
		if got := partOf(&visit{Request: r}, 250); got != want {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
}
