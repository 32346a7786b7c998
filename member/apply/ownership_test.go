package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// noWrites fails the test if the Applier sends a write that is not a dry run.
func (w *world) noWrites() {
	w.intercept = func(r *http.Request) *answer {
		if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != metav1.DryRunAll {
			w.Errorf("%s %s", r.Method, r.URL)
		}
		return nil
	}
}

func TestAdoptionIfNoDiffTakesOverEqualObjects(t *testing.T) {
	const size3, red = `{"spec":{"size":3}}`, `{"spec":{"size":3,"color":"red"}}`
	const web = `{"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`
	differs := failed(hubv1.ReasonAlreadyExists, member.RetrySlowly)
	tests := map[string]struct {
		gvk          schema.GroupVersionKind
		theirs, ours string
		left         []string // paths in memberOwnedFields
		want         result
		says         string
	}{
		"equal values":               {gvk: widget, theirs: size3, ours: size3, want: written},
		"a template without a field": {gvk: widget, theirs: size3, ours: `{}`, want: differs, says: "differs from the rendered object in .spec:"},
		"a template with a part":     {gvk: widget, theirs: red, ours: size3, want: differs, says: "in .spec.color:"},
		"a template with more":       {gvk: widget, theirs: size3, ours: red, want: differs, says: "in .spec.color:"},
		"other values":               {gvk: widget, theirs: red, ours: `{"spec":{"size":4,"color":"blue"}}`, want: differs, says: "in .spec.color, .spec.size:"},
		"labels and annotations of others, and a status": {
			gvk: widget, theirs: `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"size":3},"status":{"ready":1}}`, ours: size3, want: written,
		},
		"a label with another value": {
			gvk: widget, theirs: `{"metadata":{"labels":{"a":"b"}},"spec":{"size":3}}`, ours: `{"metadata":{"labels":{"a":"c"}},"spec":{"size":3}}`,
			want: differs, says: "in .metadata.labels.a:",
		},
		"a field that is left to the member": {gvk: widget, theirs: red, ours: size3, left: []string{"/spec/color"}, want: written},
		"a map without a schema":             {gvk: configMap, theirs: `{"data":{"a":"1","b":"2"}}`, ours: `{"data":{"a":"1"}}`, want: differs, says: "in .data.b:"},
		"a map of which nothing is ours":     {gvk: configMap, theirs: `{"data":{"a":"1"}}`, ours: `{}`, want: differs, says: "in .data:"},
		"defaults of the server":             {gvk: deployment, theirs: web, ours: web, want: written},
		"a number that an admin chose, and a template that leaves it to the default": {
			gvk: deployment, theirs: strings.Replace(web, `"selector"`, `"replicas":3,"selector"`, 1), ours: web, want: differs, says: "in .spec.replicas:",
		},
		"a template that could not take its place": {
			gvk: deployment, theirs: web, ours: `{"spec":{"replicas":1}}`, want: differs, says: "cannot be replaced by the rendered object: the cluster refuse",
		},
		"a Secret": {
			gvk: secret, theirs: `{"stringData":{"password":"swordfish"}}`, ours: `{"stringData":{"password":"swordfish"}}`,
			want: differs, says: "the values of a Secret are not compared",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			manifest := w.parsed(tc.gvk, tc.ours)
			before := w.create(w.parsed(tc.gvk, tc.theirs))
			if status := w.parsed(tc.gvk, tc.theirs).Object["status"]; status != nil {
				before.Object["status"] = status
				before = w.updateStatus(before)
			}
			in := w.intentOf(manifest, "d1")
			in.Adoption, in.MemberOwned = hubv1.AdoptionIfNoDiff, tc.left
			if tc.want != written {
				w.noWrites()
			}
			out := w.apply(in, tc.want)
			after, err := w.objects(tc.gvk, w.ns).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.Message, tc.says) || strings.Contains(out.Message, "swordfish") || after.GetUID() != before.GetUID() {
				t.Errorf("%+v", out)
			}
			if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
				t.Error(diff)
			}
			if adopted := after.GetLabels()[hubv1.HubLabel] != ""; adopted != (tc.want == written) {
				t.Errorf("labels %v", after.GetLabels())
			}
			in.Mode = hubv1.ApplyReportOnly
			if out := w.applier.Apply(t.Context(), in); tc.want != written && strings.Contains(out.Message, "is not Hanse's yet") {
				t.Errorf("ReportOnly promises to adopt it: %s", out.Message)
			}
		})
	}
}

// updateStatus writes the status of an object, as an operator on the member does.
func (w *world) updateStatus(u *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	out, err := w.objects(u.GroupVersionKind(), u.GetNamespace()).UpdateStatus(w.Context(), u, metav1.UpdateOptions{FieldManager: "operator"})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// parsed returns an object in the namespace of the test, with further fields from the JSON text.
func (w *world) parsed(gvk schema.GroupVersionKind, text string) *unstructured.Unstructured {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		w.Fatal(err)
	}
	return object(gvk, w.ns, "web", u.Object)
}

// TestAnObjectIsTakenOverAsItWasShown adopts an object by the UID and version that the user saw.
func TestAnObjectIsTakenOverAsItWasShown(t *testing.T) {
	w := newWorld(t)
	shown := w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(3)})))
	adopting := func(size int64, adoption hubv1.Adoption, uid types.UID) member.ApplyIntent {
		in := w.intent(map[string]any{"size": size}, "d1")
		in.Adoption, in.Adopting = adoption, uid
		return in
	}
	w.noWrites()
	w.apply(adopting(3, hubv1.AdoptionAlways, "another"), failed(hubv1.ReasonAlreadyExists, member.RetryNever))
	w.apply(adopting(4, hubv1.AdoptionIfNoDiff, shown.GetUID()), failed(hubv1.ReasonAlreadyExists, member.RetrySlowly))
	w.intercept = nil
	out := w.apply(adopting(3, hubv1.AdoptionIfNoDiff, shown.GetUID()), written)
	if !out.Adopted || out.UID != shown.GetUID() || w.get().GetAnnotations()[hubv1.AdoptedAnnotation] != "true" {
		t.Errorf("it is not remembered as adopted: %+v %v", out, w.get().GetAnnotations())
	}
	w.noWrites()
	// An object that is already a copy needs no adoption.
	w.apply(adopting(4, hubv1.AdoptionAlways, shown.GetUID()), unchanged)
	w.intercept = nil
	out = w.apply(w.intent(map[string]any{"size": int64(4)}, "d2"), written) // the intent does not allow adoption
	if !out.Adopted || out.UID != shown.GetUID() {
		t.Errorf("the copy is not kept as adopted: %+v", out)
	}
	w.delete()
	w.noWrites()
	w.apply(adopting(3, hubv1.AdoptionAlways, shown.GetUID()), failed(hubv1.ReasonMissing, member.RetryNever))
}

func TestAdoptionIfNoDiffLeavesAnotherHubsObjectAlone(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Adoption = hubv1.AdoptionIfNoDiff
	w.check(w.as(apiServer, "hub-2").Apply(t.Context(), in), failed(hubv1.ReasonOwnedByOther, member.RetrySlowly))
}

func TestReportOnlyWritesNothing(t *testing.T) {
	inSync := result{metav1.ConditionTrue, hubv1.ReasonInSync, false, member.RetrySlowly}
	differs := failed(hubv1.ReasonDiffers, member.RetrySlowly)
	tests := map[string]struct {
		before   func(*world)
		adoption hubv1.Adoption
		want     result
		says     string
	}{
		"an object that is not there": {func(*world) {}, hubv1.AdoptionAlways, failed(hubv1.ReasonMissing, member.RetrySlowly), "creates no copy"},
		"a copy that is as it should be": {
			func(w *world) { w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written) }, hubv1.AdoptionNever, inSync, "apply.mode Enforce would change no value",
		},
		"a copy of an older template": {
			func(w *world) { w.apply(w.intent(map[string]any{"size": int64(4), "note": "x"}, "d0"), written) }, hubv1.AdoptionNever,
			differs, "would change .spec.note, .spec.size",
		},
		"a copy that somebody changed": {
			func(w *world) {
				w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
				w.edit(`{"spec":{"size":9,"note":"theirs"}}`)
			}, hubv1.AdoptionNever, differs, "would change .spec.size",
		},
		"an object of nobody that is the same": {
			func(w *world) { w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(3)}))) }, hubv1.AdoptionIfNoDiff,
			inSync, "apply.mode Enforce would change no value; the object is not Hanse's yet",
		},
		"an object of nobody that would not be taken over": {
			func(w *world) { w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(4)}))) }, hubv1.AdoptionNever,
			differs, "would change .spec.size; the object is not Hanse's, and apply.adoption does not take it over",
		},
		"an object of another hub": {
			func(w *world) {
				u := object(widget, w.ns, "web", nil)
				u.SetLabels(map[string]string{hubv1.HubLabel: "hub-2"})
				w.create(u)
			}, hubv1.AdoptionAlways, failed(hubv1.ReasonOwnedByOther, member.RetrySlowly), "hub-2",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			w.noWrites()
			in := w.intent(map[string]any{"size": int64(3)}, "d1")
			in.Mode, in.Adoption, in.Observed = hubv1.ApplyReportOnly, tc.adoption, "1"
			out := w.apply(in, tc.want)
			if !strings.Contains(out.Message, tc.says) {
				t.Error(out.Message)
			}
			if out.Digest != "" || out.Hash != "" {
				t.Errorf("it claims to have confirmed something: %+v", out)
			}
		})
	}
}

func TestReportOnlyMakesNoNamespace(t *testing.T) {
	w := newWorld(t)
	w.noWrites()
	in := w.intentOf(object(widget, w.ns+"-missing", "web", nil), "d1")
	in.Mode, in.CreateNamespace = hubv1.ApplyReportOnly, true
	w.apply(in, failed(hubv1.ReasonMissing, member.RetrySlowly))
}

func TestAMemberOwnedFieldIsSetAtCreationAndLeftToTheMember(t *testing.T) {
	w := newWorld(t)
	intent := func(size int64, digest, confirmed string) member.ApplyIntent {
		in := w.intent(map[string]any{"size": size, "color": "red"}, digest)
		in.MemberOwned, in.Confirmed = []string{"/spec/size"}, confirmed
		return in
	}
	has := func(size int64, color string) {
		t.Helper()
		want := map[string]any{"size": size, "color": color}
		if diff := cmp.Diff(want, w.get().Object["spec"]); diff != "" {
			t.Error(diff)
		}
	}
	first := w.apply(intent(3, "d1", ""), written)
	has(3, "red")

	// While the hub is the only owner of the field, the hub sends the live value, because the server removes a field
	// that its only owner leaves out.
	next := intent(5, "d2", first.Hash)
	next.Observed = first.ResourceVersion
	second := w.apply(next, written)
	has(3, "red")

	// Another client takes the field: the hub reports no drift, and does not write its own value.
	w.edit(`{"spec":{"size":8}}`)
	third := w.apply(intent(5, "d2", second.Hash), unchanged)
	has(8, "red")
	if third.Hash == second.Hash || third.Drifted != nil {
		t.Errorf("%+v after %+v", third, second)
	}
	w.edit(`{"spec":{"color":"blue"}}`)
	out := w.apply(intent(6, "d3", third.Hash), written)
	has(8, "red")
	if diff := cmp.Diff([]member.FieldDrift{{Path: ".spec.color", Manager: "kubectl-edit"}}, out.Drifted); diff != "" {
		t.Error(diff)
	}
	w.edit(`{"spec":{"size":null}}`)
	w.apply(intent(6, "d4", out.Hash), written)
	if diff := cmp.Diff(map[string]any{"color": "red"}, w.get().Object["spec"]); diff != "" {
		t.Errorf("the member removed it: %s", diff)
	}
}

func TestAMemberOwnedFieldIsNoFieldConflict(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.MemberOwned, in.FieldConflict = []string{"/spec/size"}, hubv1.FieldConflictReport
	in.Confirmed = w.apply(in, written).Hash
	w.edit(`{"spec":{"size":8}}`)
	w.apply(in, unchanged)
}

func TestAMapThatIsMemberOwnedKeepsWhatTheMemberMadeOfIt(t *testing.T) {
	w := newWorld(t)
	free := func(v map[string]any) map[string]any { return map[string]any{"size": int64(3), "free": v} }
	in := w.intent(free(map[string]any{"a": "1", "b": "2", "list": []any{"x"}}), "d1")
	in.MemberOwned = []string{"/spec/free"}
	in.Confirmed = w.apply(in, written).Hash
	w.edit(`{"spec":{"free":{"b":"theirs","c":"theirs"}}}`)
	next := w.intent(free(map[string]any{"z": "9"}), "d2")
	next.MemberOwned, next.Confirmed = in.MemberOwned, in.Confirmed
	w.apply(next, written)
	want := free(map[string]any{"a": "1", "b": "theirs", "c": "theirs", "list": []any{"x"}})
	if diff := cmp.Diff(want, w.get().Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

// scaled sets the replicas as the HorizontalPodAutoscaler controller does.
func (w *world) scaled(deployment *unstructured.Unstructured, manager string, to string) {
	w.Helper()
	_, err := w.objects(deployment.GroupVersionKind(), w.ns).Patch(w.Context(), deployment.GetName(), types.MergePatchType,
		[]byte(`{"spec":{"replicas":`+to+`}}`), metav1.PatchOptions{FieldManager: manager}, "scale")
	if err != nil {
		w.Fatal(err)
	}
}

func TestReplicasThatAnAutoscalerSetAreLeftToIt(t *testing.T) {
	w := newWorld(t)
	labels := map[string]any{"app": "web"}
	deploy := func(replicas int64, image, digest string) member.ApplyIntent {
		return w.intentOf(object(deployment, w.ns, "web", spec(map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}},
			},
		})), digest)
	}
	replicas := func() int64 {
		t.Helper()
		u, err := w.objects(deployment, w.ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		return n
	}
	autoscaled := result{metav1.ConditionTrue, hubv1.ReasonAutoscaled, false, member.RetryNever}
	in := deploy(3, "i:1", "d1")
	in.Confirmed = w.apply(in, written).Hash

	w.scaled(in.Manifest, "kube-controller-manager", "6")
	out := w.apply(in, autoscaled)
	if replicas() != 6 || !strings.Contains(out.Message, "/spec/replicas is left to the autoscaler") {
		t.Errorf("%d replicas, %q", replicas(), out.Message)
	}
	// A write at the observed version does not change the autoscaled replicas either.
	next := deploy(4, "i:2", "d2")
	next.Confirmed, next.Observed = out.Hash, out.ResourceVersion
	autoscaled.wrote = true
	w.apply(next, autoscaled)
	if replicas() != 6 {
		t.Errorf("%d replicas", replicas())
	}
	// A user who scales by hand is not treated as an autoscaler, so that the hub restores its replicas.
	w.scaled(in.Manifest, "kubectl", "9")
	out = w.apply(next, written)
	if diff := cmp.Diff([]member.FieldDrift{{Path: ".spec.replicas", Manager: "kubectl"}}, out.Drifted); diff != "" || replicas() != 4 {
		t.Errorf("%d replicas; %s", replicas(), diff)
	}
}

func TestReplicasThatAnAutoscalerSetToZeroAreLeftToIt(t *testing.T) {
	w := newWorld(t)
	labels := map[string]any{"app": "consumer"}
	in := w.intentOf(object(deployment, w.ns, "consumer", spec(map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "consumer", "image": "consumer:2.0.1"}}},
		},
	})), "d1")
	first := w.apply(in, written)
	in.Confirmed, in.ConfirmedUID = first.Hash, first.UID
	has := func(want int64) {
		t.Helper()
		u, err := w.objects(deployment, w.ns).Get(t.Context(), "consumer", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); n != want {
			t.Errorf("%d replicas, want %d", n, want)
		}
	}
	for _, to := range []int64{0, 3, 0} {
		w.scaled(in.Manifest, "keda-operator", fmt.Sprint(to))
		out := w.applier.Apply(t.Context(), in)
		if out.Applied != metav1.ConditionTrue || out.Reason != hubv1.ReasonAutoscaled || len(out.Drifted) > 0 {
			t.Errorf("scaled to %d: %+v", to, out)
		}
		has(to)
		in.Confirmed = out.Hash
	}
}

func TestACopyWithoutItsMarksIsStillOurs(t *testing.T) {
	tests := map[string]struct {
		patch string
		ours  bool
	}{
		"without annotations":                     {`{"metadata":{"annotations":null}}`, true},
		"without our label":                       {`{"metadata":{"labels":null}}`, true},
		"without label and annotations":           {`{"metadata":{"labels":null,"annotations":null}}`, true},
		"without managed fields":                  {`{"metadata":{"managedFields":[{}]}}`, true},
		"without managed fields and annotations":  {`{"metadata":{"managedFields":[{}],"annotations":null}}`, true},
		"without any mark, as after an orphaning": {`{"metadata":{"managedFields":[{}],"annotations":null,"labels":null}}`, false},
		"with the annotation of another object":   {`{"metadata":{"annotations":{"hanse.dev/owner":"v1/ConfigMap/x/y/z"}}}`, false},
		"with the label of another hub":           {`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.intent(map[string]any{"size": int64(3)}, "d1")
			first := w.apply(in, written)
			w.edit(tc.patch)
			in.Confirmed, in.ConfirmedUID = first.Hash, first.UID
			if !tc.ours {
				if out := w.applier.Apply(t.Context(), in); out.Applied != metav1.ConditionFalse || out.Wrote {
					t.Errorf("%+v", out)
				}
				return
			}
			w.apply(in, written)
			live := w.get()
			if live.GetLabels()[hubv1.HubLabel] == "" || live.GetAnnotations()[hubv1.OwnerAnnotation] == "" || live.GetUID() != first.UID {
				t.Errorf("labels %v, annotations %v", live.GetLabels(), live.GetAnnotations())
			}
		})
	}
}

func TestAnotherObjectOfTheNameIsNotTheConfirmedCopy(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	first := w.apply(in, written)
	w.delete()
	theirs := object(widget, w.ns, "web", spec(map[string]any{"size": int64(7)}))
	theirs.SetLabels(map[string]string{hubv1.HubLabel: string(hubUID)})
	w.create(theirs)
	in.Confirmed, in.ConfirmedUID = first.Hash, first.UID
	w.apply(in, failed(hubv1.ReasonAlreadyExists, member.RetrySlowly))
}

func TestTheCopyOfAnEarlierHubObjectIsWithdrawnIfItIsAsConfirmed(t *testing.T) {
	tests := map[string]struct {
		confirmed func(first member.Outcome) (types.UID, string)
		want      result
	}{
		"as the row says":               {func(o member.Outcome) (types.UID, string) { return o.UID, "d1" }, withdrawn},
		"without a row":                 {func(member.Outcome) (types.UID, string) { return "", "" }, wasGone},
		"written since the row":         {func(o member.Outcome) (types.UID, string) { return o.UID, "d0" }, wasGone},
		"another object than the row's": {func(member.Outcome) (types.UID, string) { return "other", "d1" }, wasGone},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
			in := w.withdrawal()
			in.OwnerUID = "template-2" // the hub object was deleted and created again
			in.ConfirmedUID, in.ConfirmedDigest = tc.confirmed(first)
			w.withdraw(in, tc.want)
			if w.gone() != (tc.want == withdrawn) {
				t.Errorf("gone: %v", w.gone())
			}
		})
	}
}

func TestOrphanTakesEveryEntryOfOursOff(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	status := object(widget, w.ns, "web", map[string]any{"status": map[string]any{"x": "y"}})
	if _, err := w.objects(widget, w.ns).Apply(t.Context(), "web", status, metav1.ApplyOptions{FieldManager: hubv1.FieldManager}, "status"); err != nil {
		t.Fatal(err)
	}
	in := w.withdrawal()
	in.Policy = hubv1.RemovalOrphan
	w.withdraw(in, withdrawn)
	for _, m := range w.get().GetManagedFields() {
		if m.Manager == hubv1.FieldManager {
			t.Errorf("manager %+v", m)
		}
	}
}

func TestOrphanOfANamespaceMadeOnDemand(t *testing.T) {
	for policy, marked := range map[hubv1.RemovalPolicy]bool{hubv1.RemovalOrphan: false, hubv1.RemovalDelete: true} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			name := w.ns + "-made"
			in := w.intentOf(object(widget, name, "web", nil), "d1")
			in.CreateNamespace = true
			w.apply(in, written)
			ns := w.intentOf(object(namespace, "", name, nil), "d1")
			w.apply(ns, written)
			w.withdraw(member.WithdrawIntent{GVK: namespace, Owner: ns.Owner, OwnerUID: ownerUID, Policy: policy}, withdrawn)
			live, err := w.objects(namespace, "").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := live.GetLabels()[hubv1.OnDemandLabel]; ok != marked || live.GetLabels()[hubv1.HubLabel] != "" || live.GetAnnotations()[hubv1.OwnerAnnotation] != "" {
				t.Errorf("labels %v, annotations %v", live.GetLabels(), live.GetAnnotations())
			}
			for _, m := range live.GetManagedFields() {
				if m.Manager == hubv1.FieldManager {
					t.Errorf("manager %+v", m)
				}
			}
		})
	}
}

func TestAdoptionIfNoDiffLeavesWhatTheHubFilledIn(t *testing.T) {
	w := newWorld(t)
	w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(3), "color": "red"})))
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Whole = object(widget, w.ns, "web", spec(map[string]any{"size": int64(3), "color": "blue"}))
	in.Adoption = hubv1.AdoptionIfNoDiff
	w.apply(in, written)
	if got := w.get().Object["spec"].(map[string]any)["color"]; got != "red" {
		t.Errorf("the color is %v, want the one of the cluster", got)
	}
}

func TestTheHubGivesUpAFieldThatItNoLongerSends(t *testing.T) {
	w := newWorld(t)
	sent := w.intent(map[string]any{"size": int64(3), "color": "red", "note": "first"}, "d1")
	first := w.apply(sent, written)

	in := w.intent(map[string]any{"size": int64(4)}, "d2")
	in.Whole = object(widget, w.ns, "web", spec(map[string]any{"size": int64(4), "color": "red", "note": "second"}))
	in.Confirmed, in.ConfirmedUID, in.Observed = first.Hash, first.UID, first.ResourceVersion
	w.apply(in, written)
	want := map[string]any{"size": int64(4), "color": "red"} // the note has another value than the hub's, and goes
	if diff := cmp.Diff(want, w.get().Object["spec"]); diff != "" {
		t.Errorf("the spec (-want +got):\n%s", diff)
	}

	w.edit(`{"spec":{"color":"blue"}}`)
	in.Digest, in.Whole, in.Observed = "d3", nil, ""
	w.apply(in, written)
	want["color"] = "blue"
	if diff := cmp.Diff(want, w.get().Object["spec"]); diff != "" {
		t.Errorf("the spec after an edit on the cluster (-want +got):\n%s", diff)
	}
}
