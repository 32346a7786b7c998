package apply_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/member/content"
)

func TestFirstApplyMarksTheObject(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Manifest.SetLabels(map[string]string{"app": "web", "hanse.dev/hub": "forged"})
	in.Manifest.SetAnnotations(map[string]string{"team": "a", "hanse.dev/pause": "2999-01-01T00:00:00Z"})
	in.Manifest.SetFinalizers([]string{"hub.example.com/x"})
	in.Manifest.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}})

	out := w.apply(in, written)
	live := w.get()
	hash, _ := content.Hash(nil, live)
	want := member.Outcome{
		Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true,
		CopyState: member.CopyState{Digest: "d1", Hash: hash, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Generation: 1},
	}
	if diff := cmp.Diff(want, out, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", "hanse.dev/hub": "hub-1"}, live.GetLabels()); diff != "" {
		t.Error(diff)
	}
	annotations := map[string]string{"team": "a", "hanse.dev/digest": "d1", "hanse.dev/owner": "shop.example.com/Widget/" + w.ns + "/web/template-1"}
	if diff := cmp.Diff(annotations, live.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Widget web " + live.GetResourceVersion()}, w.wrote); diff != "" {
		t.Errorf("told of what was written (-want +got):\n%s", diff)
	}
	if live.GetFinalizers() != nil || live.GetOwnerReferences() != nil {
		t.Errorf("finalizers %v, owners %v", live.GetFinalizers(), live.GetOwnerReferences())
	}
}

func TestNothingIsWrittenIfNothingChanged(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	first := w.apply(in, written)

	in.Confirmed = first.Hash
	w.intercept = func(r *http.Request) *answer {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		return nil
	}
	if again := w.apply(in, unchanged); again.Hash != first.Hash || again.Digest != "d1" || again.UID != first.UID {
		t.Errorf("first %+v, then %+v", first, again)
	}

	w.intercept, in.Confirmed = nil, ""
	if again := w.apply(in, unchanged); again.ResourceVersion != first.ResourceVersion || again.Hash != first.Hash {
		t.Errorf("an idempotent apply changed %+v into %+v", first, again)
	}
}

func TestACopyThatIsAsObservedIsWrittenWithoutBeingRead(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	first := w.apply(in, written)

	next := w.intent(map[string]any{"size": int64(4)}, "d2")
	next.Confirmed, next.Observed = first.Hash, first.ResourceVersion
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		return nil
	}
	second := w.apply(next, written)
	w.intercept = nil
	if live := w.get(); second.ResourceVersion != live.GetResourceVersion() || second.Digest != "d2" {
		t.Errorf("%+v, but the member has %v", second, live)
	}
}

func TestACopyThatIsNotAsObservedIsReadFirst(t *testing.T) {
	w := newWorld(t)
	first := w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	w.edit(`{"metadata":{"annotations":{"hanse.dev/pause":"2999-01-01T00:00:00Z"}}}`)

	in := w.intent(map[string]any{"size": int64(4)}, "d2")
	in.Confirmed, in.Observed = first.Hash, first.ResourceVersion
	w.apply(in, result{metav1.ConditionFalse, hubv1.ReasonPaused, false, member.RetryAfter})

	w.delete()
	w.apply(in, written)
}

func TestDriftIsPutBack(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3), "color": "red"}, "d1")
	in.Confirmed = w.apply(in, written).Hash
	w.edit(`{"spec":{"size":9,"color":null,"note":"theirs"}}`)

	out := w.apply(in, written)
	want := []member.FieldDrift{{Path: ".spec.color", Manager: "unknown"}, {Path: ".spec.size", Manager: "kubectl-edit"}}
	if diff := cmp.Diff(want, out.Drifted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(3), "color": "red", "note": "theirs"}, w.get().Object["spec"]); diff != "" {
		t.Error(diff)
	}
	if out.Hash != in.Confirmed {
		t.Errorf("hash %s was %s", out.Hash, in.Confirmed)
	}
}

func TestAFieldThatLeavesTheTemplateLeavesTheMember(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3), "color": "red"}, "d1"), written)
	w.edit(`{"spec":{"note":"theirs"}}`)
	if out := w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), written); out.Drifted != nil || out.Generation != 3 {
		t.Errorf("%+v", out)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(4), "note": "theirs"}, w.get().Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestReportLeavesDriftAlone(t *testing.T) {
	tests := map[string]struct {
		edit, digest string
		fields       map[string]any
		want         []member.FieldDrift
	}{
		"a value that was changed": {
			`{"spec":{"size":9}}`, "d1", map[string]any{"size": int64(3)}, []member.FieldDrift{{Path: ".spec.size", Manager: "kubectl-edit"}},
		},
		"a field that was removed": {
			`{"spec":{"size":null}}`, "d1", map[string]any{"size": int64(3)}, []member.FieldDrift{{Path: ".spec.size", Manager: "unknown"}},
		},
		"a value that was changed before the template was": {
			`{"spec":{"size":9}}`, "d2", map[string]any{"size": int64(4), "color": "red"},
			[]member.FieldDrift{{Path: ".spec.size", Manager: "kubectl-edit"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.intent(map[string]any{"size": int64(3)}, "d1")
			in.FieldConflict = hubv1.FieldConflictReport
			hash := w.apply(in, written).Hash
			edited := w.edit(tc.edit)

			in = w.intent(tc.fields, tc.digest)
			in.FieldConflict, in.Confirmed = hubv1.FieldConflictReport, hash
			out := w.apply(in, failed(hubv1.ReasonFieldConflict, member.RetrySlowly))
			if diff := cmp.Diff(tc.want, out.Drifted); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(out.Message, ".spec.size was changed by "+tc.want[0].Manager) {
				t.Error(out.Message)
			}
			if diff := cmp.Diff(edited, w.get()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReportFollowsTheTemplateWhereNobodyElseDid(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.FieldConflict = hubv1.FieldConflictReport
	w.apply(in, written)
	in = w.intent(map[string]any{"size": int64(4), "color": "blue"}, "d2")
	in.FieldConflict = hubv1.FieldConflictReport
	w.apply(in, written)
}

// The server reports a conflict in a field that the manifest and another manager both set, although Drift finds no
// difference.
func TestReportFollowsTheServerForASharedField(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.FieldConflict = hubv1.FieldConflictReport
	w.apply(in, written)
	shared := object(widget, w.ns, "web", spec(map[string]any{"size": int64(3)}))
	if _, err := w.objects(widget, w.ns).Apply(t.Context(), "web", shared, metav1.ApplyOptions{FieldManager: "argo"}); err != nil {
		t.Fatal(err)
	}
	in = w.intent(map[string]any{"size": int64(4)}, "d2")
	in.FieldConflict = hubv1.FieldConflictReport
	out := w.apply(in, failed(hubv1.ReasonFieldConflict, member.RetrySlowly))
	if diff := cmp.Diff([]member.FieldDrift{{Path: ".spec.size", Manager: "argo"}}, out.Drifted); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectThatIsNotOursFollowsAdoption(t *testing.T) {
	owner := func(w *world) string { return w.intent(nil, "").Owner.Owner(ownerUID) }
	tests := map[string]struct {
		labels      map[string]string
		annotations func(*world) map[string]string
		never       string
		adoptable   bool
	}{
		"an object of nobody": {never: hubv1.ReasonAlreadyExists, adoptable: true},
		"a child that carries copies of our marks": {
			labels: map[string]string{"hanse.dev/hub": "hub-1"},
			annotations: func(w *world) map[string]string {
				return map[string]string{"hanse.dev/owner": owner(w), "hanse.dev/digest": "d1"}
			},
			never: hubv1.ReasonAlreadyExists, adoptable: true,
		},
		"an object of another hub": {
			labels: map[string]string{"hanse.dev/hub": "hub-2"},
			annotations: func(w *world) map[string]string {
				return map[string]string{"hanse.dev/owner": owner(w), "hanse.dev/digest": "d1"}
			},
			never: hubv1.ReasonOwnedByOther,
		},
	}
	for name, tc := range tests {
		for known, unknown := range map[string]bool{", read first": false, ", found by the write": true} {
			t.Run(name+known, func(t *testing.T) {
				w := newWorld(t)
				u := object(widget, w.ns, "web", spec(map[string]any{"size": int64(7), "note": "theirs"}))
				u.SetLabels(tc.labels)
				if tc.annotations != nil {
					u.SetAnnotations(tc.annotations(w))
				}
				before := w.create(u)
				in := w.intent(map[string]any{"size": int64(3)}, "d1")
				in.Unknown = unknown
				w.apply(in, failed(tc.never, member.RetrySlowly))
				if diff := cmp.Diff(before, w.get()); diff != "" {
					t.Errorf("it was touched: %s", diff)
				}
				in.Adoption = hubv1.AdoptionAlways
				if !tc.adoptable {
					w.apply(in, failed(tc.never, member.RetrySlowly))
					return
				}
				if out := w.apply(in, written); out.UID != before.GetUID() {
					t.Error("it was replaced")
				}
				if diff := cmp.Diff(map[string]any{"size": int64(3), "note": "theirs"}, w.get().Object["spec"]); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestAnObjectOfWhichNothingIsKnownIsMadeByOneRequest(t *testing.T) {
	tests := map[string]struct {
		manifest func(*world) *unstructured.Unstructured
		requests []string
	}{
		"a custom resource": {
			func(w *world) *unstructured.Unstructured { return object(widget, w.ns, "web", spec(nil)) },
			[]string{"PATCH"},
		},
		"a core kind": {
			func(w *world) *unstructured.Unstructured { return object(configMap, w.ns, "web", nil) },
			[]string{"PATCH"},
		},
		"a namespace": {
			func(w *world) *unstructured.Unstructured { return object(namespace, "", w.ns+"-own", nil) },
			[]string{"PATCH"},
		},
		"an object whose namespace is missing": {
			func(w *world) *unstructured.Unstructured { return object(configMap, w.ns+"-new", "web", nil) },
			[]string{"PATCH", "POST", "PATCH"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var requests []string
			w.intercept = func(r *http.Request) *answer {
				requests = append(requests, r.Method)
				return nil
			}
			in := w.intentOf(tc.manifest(w), "d1")
			in.Unknown, in.CreateNamespace = true, true
			out := w.apply(in, written)
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Error(diff)
			}
			in.Unknown, in.Confirmed = false, out.Hash
			w.apply(in, unchanged)
		})
	}
}

func TestTwoHubsDoNotFight(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	before := w.get()
	other := w.as(apiServer, "hub-2")
	in := w.intent(map[string]any{"size": int64(5)}, "d9")
	in.OwnerUID, in.Adoption = "template-of-hub-2", hubv1.AdoptionAlways
	out := w.check(other.Apply(t.Context(), in), failed(hubv1.ReasonOwnedByOther, member.RetrySlowly))
	if !strings.Contains(out.Message, "hub-1") {
		t.Error(out.Message)
	}
	gone := w.withdrawal()
	gone.OwnerUID = "template-of-hub-2"
	w.check(other.Withdraw(t.Context(), gone), result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, false, member.RetryNever})
	if diff := cmp.Diff(before, w.get()); diff != "" {
		t.Error(diff)
	}
}

func TestACopyOfAnotherObjectOfThisHubIsNotTaken(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Owner.Name = "other"
	w.apply(in, written)
	in = w.intent(map[string]any{"size": int64(5)}, "d2")
	in.Adoption = hubv1.AdoptionAlways
	w.apply(in, failed(hubv1.ReasonOwnedByOther, member.RetrySlowly))
}

func TestARecreatedHubObjectTakesItsCopyOver(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	first := w.apply(in, written)
	in.OwnerUID, in.Confirmed = "template-2", first.Hash
	out := w.apply(in, result{metav1.ConditionTrue, hubv1.ReasonMadeAnew, true, member.RetryNever})
	if out.UID != first.UID || !strings.HasSuffix(w.get().GetAnnotations()[hubv1.OwnerAnnotation], "/template-2") {
		t.Errorf("%+v %v", out, w.get().GetAnnotations())
	}
	// The copy now belongs to the new hub object. Therefore a withdrawal for the deleted hub object leaves the copy on
	// the member.
	w.withdraw(w.withdrawal(), result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, false, member.RetryNever})
	w.get()
}

func TestADeletingObjectIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	w.apply(in, written)
	w.edit(`{"metadata":{"finalizers":["example.com/slow"]}}`)
	w.delete()
	out := w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), failed(hubv1.ReasonFinalizersRemain, member.RetrySlowly))
	if !strings.Contains(out.Message, "example.com/slow") {
		t.Error(out.Message)
	}
	w.edit(`{"metadata":{"finalizers":null}}`)
	w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), written)
}

func TestPause(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Confirmed = w.apply(in, written).Hash
	until := time.Now().Add(20 * time.Minute).UTC().Format(time.RFC3339)
	w.edit(`{"metadata":{"annotations":{"hanse.dev/pause":"` + until + `"}}}`)
	out := w.apply(in, result{metav1.ConditionTrue, hubv1.ReasonPaused, false, member.RetryAfter})
	if out.Digest != "d1" || out.Hash != in.Confirmed || out.After < 15*time.Minute || out.After > 20*time.Minute {
		t.Errorf("%+v", out)
	}
	w.edit(`{"spec":{"size":9}}`)
	out = w.apply(in, result{metav1.ConditionFalse, hubv1.ReasonPaused, false, member.RetryAfter})
	if !strings.Contains(out.Message, until) || out.Digest != "" {
		t.Errorf("%+v", out)
	}
	w.edit(`{"metadata":{"annotations":{"hanse.dev/pause":"2020-01-01T00:00:00Z"}}}`)
	w.apply(in, written)
}

func TestAChangeBetweenReadAndWriteIsSeen(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	patches := 0
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodPatch {
			if patches++; patches == 1 {
				w.edit(`{"metadata":{"annotations":{"hanse.dev/pause":"2999-01-01T00:00:00Z"}}}`)
			}
		}
		return nil
	}
	w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), result{metav1.ConditionFalse, hubv1.ReasonPaused, false, member.RetryAfter})
	if patches != 1 {
		t.Errorf("%d writes", patches)
	}
}

func TestAnObjectThatKeepsChangingIsRetriedSoon(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodPatch {
			w.edit(`{"spec":{"note":"` + time.Now().String() + `"}}`)
		}
		return nil
	}
	w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), failed(hubv1.ReasonPending, member.RetrySoon))
}

func TestAnObjectThatVanishesBetweenReadAndWriteIsCreatedAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	once := false
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodPatch && !once {
			once = true
			w.delete()
		}
		return nil
	}
	w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), written)
}

func TestNothingIsWrittenToTheHub(t *testing.T) {
	a := apply.New("hub", true, nil, nil, hubUID, nil, ignored)
	in := member.ApplyIntent{Manifest: object(widget, "n", "web", nil), Digest: "d1"}
	if out := a.Apply(t.Context(), in); out.Reason != hubv1.ReasonIsTemplate || out.Applied != metav1.ConditionTrue || out.Digest != "d1" {
		t.Errorf("%+v", out)
	}
	if out := a.Withdraw(t.Context(), member.WithdrawIntent{GVK: widget}); out.Reason != hubv1.ReasonWithdrawn {
		t.Errorf("%+v", out)
	}
}

func TestNamespacesOnDemand(t *testing.T) {
	w := newWorld(t)
	missing := func(ns string) member.ApplyIntent {
		return w.intentOf(object(configMap, ns, "web", map[string]any{"data": map[string]any{"a": "b"}}), "d1")
	}
	in := missing(w.ns + "-x")
	w.apply(in, failed(hubv1.ReasonNamespaceMissing, member.RetrySlowly))

	in.CreateNamespace = true
	in.NamespaceLabels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	w.apply(in, written)
	made, err := w.objects(namespace, "").Get(t.Context(), w.ns+"-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "hanse.dev/on-demand": "true", "hanse.dev/hub": "hub-1",
		"kubernetes.io/metadata.name": w.ns + "-x",
	}
	if diff := cmp.Diff(want, made.GetLabels()); diff != "" {
		t.Error(diff)
	}

	// These namespaces are refused whether or not they exist.
	for _, system := range []string{"kube-extra", "kube-system", "hanse-system"} {
		in = missing(system)
		in.CreateNamespace = true
		w.apply(in, failed(hubv1.ReasonNamespaceRefused, member.RetryNever))
		in = w.intentOf(object(namespace, "", system, nil), "d1")
		in.Adoption = hubv1.AdoptionAlways
		w.apply(in, failed(hubv1.ReasonNamespaceRefused, member.RetryNever))
	}

	// The hub's own Namespace object adopts a namespace that was created on demand, and never deletes it.
	federated := w.intentOf(object(namespace, "", w.ns+"-x", nil), "d1")
	w.apply(federated, written)
	gone := member.WithdrawIntent{GVK: namespace, Owner: federated.Owner, OwnerUID: ownerUID, Policy: hubv1.RemovalDelete}
	w.withdraw(gone, result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever})
	left, err := w.objects(namespace, "").Get(t.Context(), w.ns+"-x", metav1.GetOptions{})
	if err != nil || left.GetDeletionTimestamp() != nil || left.GetLabels()["hanse.dev/on-demand"] == "" {
		t.Errorf("%v, %v", left, err)
	}
}

func TestATerminatingNamespaceIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	if err := w.objects(namespace, "").Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), failed(hubv1.ReasonNamespaceTerminate, member.RetrySlowly))
}
