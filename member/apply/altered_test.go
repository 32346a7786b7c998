package apply_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
)

// documents returns the objects of a file in testdata. Names and namespaces in them become those of the world.
func (w *world) documents(file string) []*unstructured.Unstructured {
	w.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	w.must(err)
	text := strings.NewReplacer("name: cap", "name: cap-"+w.ns, "policyName: cap", "policyName: cap-"+w.ns, "c05", w.ns).Replace(string(data))
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(doc))
		w.must(err)
		w.must(u.UnmarshalJSON(data))
		out = append(out, u)
	}
	return out
}

var mutatingPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}

// policyOf creates the policy and its binding, and waits until the server changes the object by it. The returned
// function deletes both, and waits until the server changes the object no more.
func (w *world) policyOf(policy, binding, probe *unstructured.Unstructured, changes func(*unstructured.Unstructured) bool) (end func()) {
	w.Helper()
	await := func(want bool) {
		w.Helper()
		probe := probe.DeepCopy()
		probe.SetName("probe")
		probe.SetNamespace(w.ns)
		err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			after, err := w.objects(probe.GroupVersionKind(), w.ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && changes(after) == want, nil
		})
		if err != nil {
			w.Fatalf("the policy changes objects, want %t: %v", want, err)
		}
	}
	bindings := mutatingPolicies
	bindings.Resource = "mutatingadmissionpolicybindings"
	_, err := w.admin.Resource(mutatingPolicies).Create(w.Context(), policy, metav1.CreateOptions{})
	w.must(err)
	_, err = w.admin.Resource(bindings).Create(w.Context(), binding, metav1.CreateOptions{})
	w.must(err)
	await(true)
	return func() {
		w.Helper()
		w.must(w.admin.Resource(bindings).Delete(w.Context(), binding.GetName(), metav1.DeleteOptions{}))
		w.must(w.admin.Resource(mutatingPolicies).Delete(w.Context(), policy.GetName(), metav1.DeleteOptions{}))
		await(false)
	}
}

// changedBy is the result of a write whose values the cluster has changed.
func changedBy(wrote bool) result {
	return result{metav1.ConditionTrue, hubv1.ReasonChangedByCluster, wrote, member.RetryNever}
}

func TestAClusterThatCapsADeploymentIsSaidToChangeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documents := w.documents("capped-by-the-member.yaml")
	capped := documents[0]
	capped.SetNamespace(w.ns)
	replicas := func(u *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		return n
	}
	read := func() *unstructured.Unstructured {
		t.Helper()
		live, err := w.objects(deployment, w.ns).Get(t.Context(), "api", metav1.GetOptions{})
		w.must(err)
		return live
	}
	end := w.policyOf(documents[1], documents[2], capped, func(u *unstructured.Unstructured) bool { return replicas(u) == 2 })

	in := w.intentOf(capped, "d1")
	in.Unknown = true
	out := w.apply(in, changedBy(true))
	want := `.spec.replicas 2 instead of 4, …ec.containers[name="api"].resources.limits.memory "5Gi" instead of "8Gi", ….containers[name="api"].resources.requests.memory "5Gi" instead of "8Gi"`
	if diff := cmp.Diff(want, out.Changed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(out.Message, "memberOwnedFields") || !strings.Contains(out.Message, ".spec.replicas 2 instead") {
		t.Errorf("it says %q", out.Message)
	}

	in.Unknown, in.Confirmed, in.ConfirmedUID = false, out.Hash, out.UID
	w.apply(in, changedBy(false)) // in sync, read and not written
	before := read().GetResourceVersion()
	again := in
	again.Again = true
	w.apply(again, changedBy(false))
	again.Observed = before
	if out := w.apply(again, changedBy(false)); out.Hash != in.Confirmed || read().GetResourceVersion() != before {
		t.Errorf("a further write changes the copy while the policy is there: %+v", out)
	}

	t.Run("ReportOnly says what the cluster would store", func(t *testing.T) {
		report := in
		report.Mode = hubv1.ApplyReportOnly
		out := w.applier.Apply(t.Context(), report)
		if out.Reason != hubv1.ReasonDiffers || !strings.Contains(out.Message, "the cluster would store .spec.replicas 2 instead of 4") {
			t.Errorf("got %+v", out)
		}
	})
	t.Run("a preview says what the cluster would store", func(t *testing.T) {
		if p := w.applier.Preview(t.Context(), in); p.Refused != nil || !p.InSync || p.Changed != want {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("a field that is left to the member is not counted", func(t *testing.T) {
		left := w.intentOf(capped.DeepCopy(), "d2")
		left.MemberOwned = []string{"/spec/replicas", "/spec/template"}
		w.apply(left, written)
		left.Manifest.SetName("new")
		left.Owner.Name, left.Unknown = "new", true
		w.apply(left, written)
	})

	w.apply(again, changedBy(true)) // the digest d1 is written again
	end()
	again.Observed = ""
	w.apply(again, written)
	if n := replicas(read()); n != 4 {
		t.Errorf("%d replicas after the policy is gone", n)
	}
}

func TestAnAdditionOfTheClusterIsNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documents := w.documents("capped-by-the-member.yaml")
	policy := documents[1]
	w.must(unstructured.SetNestedSlice(policy.Object, []any{map[string]any{
		"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": `[JSONPatch{op: "add", path: "/spec/note", value: "added"}]`},
	}}, "spec", "mutations"))
	w.must(unstructured.SetNestedSlice(policy.Object, []any{map[string]any{
		"apiGroups": []any{widget.Group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"widgets"},
	}}, "spec", "matchConstraints", "resourceRules"))
	noted := func(u *unstructured.Unstructured) bool {
		note, _, _ := unstructured.NestedString(u.Object, "spec", "note")
		return note == "added"
	}
	w.policyOf(policy, documents[2], object(widget, w.ns, "web", spec(size1)), noted)
	w.apply(w.intent(size1, "d1"), written)
	if !noted(w.get()) {
		t.Fatal("the policy added nothing")
	}
}

func TestAChangedSecretIsNamedWithoutItsValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documents := w.documents("capped-by-the-member.yaml")
	policy := documents[1]
	w.must(unstructured.SetNestedSlice(policy.Object, []any{map[string]any{
		"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": `[JSONPatch{op: "replace", path: "/data/password", value: "dGhlaXJz"}]`},
	}}, "spec", "mutations"))
	w.must(unstructured.SetNestedSlice(policy.Object, []any{map[string]any{
		"apiGroups": []any{""}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"secrets"},
	}}, "spec", "matchConstraints", "resourceRules"))
	w.policyOf(policy, documents[2], w.secret("ours"), func(u *unstructured.Unstructured) bool {
		value, _, _ := unstructured.NestedString(u.Object, "data", "password")
		return value == "dGhlaXJz"
	})
	out := w.apply(w.intentOf(w.secret("ours"), "d1"), changedBy(true))
	if out.Changed != "another .data.password" {
		t.Errorf("it names %q", out.Changed)
	}
}

// The copies of a Secret with stringData in an override are as an API server would store them. Ownership, drift and
// removal then need no rule of their own.
func TestTextsOfASecretAreFieldsOfTheHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documents := w.documents("string-data.yaml")
	hub := w.create(inNamespace(documents[0], w.ns)) // the hub's API server folds stringData, too
	policy := &hubv1.OverridePolicy{}
	data, err := inNamespace(documents[1], w.ns).MarshalJSON()
	w.must(err)
	w.must(yaml.Unmarshal(data, policy))
	w.must(w.objects(secret, w.ns).Delete(t.Context(), "mail", metav1.DeleteOptions{}))

	prepared, err := overrides.Prepare(hub, nil)
	w.must(err)
	rendered := func(policies ...hubv1.OverridePolicyObject) *unstructured.Unstructured {
		t.Helper()
		europe := overrides.Cluster{Name: "eu-fra-1", Labels: map[string]string{"topology.kubernetes.io/region": "eu-central-1"}}
		result, err := prepared.Render(europe, policies, nil)
		w.must(err)
		return result.Manifest
	}
	keys := func() map[string]string {
		t.Helper()
		live, err := w.objects(secret, w.ns).Get(t.Context(), "mail", metav1.GetOptions{})
		w.must(err)
		out := map[string]string{}
		values, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for key, v := range values {
			text, err := base64.StdEncoding.DecodeString(v)
			w.must(err)
			out[key] = string(text)
		}
		return out
	}
	holds := func(when string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, keys()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	european := map[string]string{"host": "smtp.example.com", "user": "eu-user", "password": "not-real-1", "relay": "eu-relay.example.com"}

	in := w.intentOf(rendered(policy), "d1")
	out := w.apply(in, written)
	holds("by the policy", european)

	_, err = w.objects(secret, w.ns).Patch(t.Context(), "mail", types.MergePatchType, []byte(`{"stringData":{"relay":"theirs"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	w.must(err)
	in.Confirmed, in.ConfirmedUID = out.Hash, out.UID
	if out := w.apply(in, written); len(out.Drifted) == 0 {
		t.Error("the edit is no drift")
	}
	holds("after an edit on the member", european)

	policy = policy.DeepCopy() // the rules of a rendered policy must not be changed
	policy.Spec.Rules[0].MergePatch = &apiextensionsv1.JSON{Raw: []byte(`{"stringData":{"user":"eu-user"}}`)}
	w.apply(w.intentOf(rendered(policy), "d2"), written)
	holds("without relay", map[string]string{"host": "smtp.example.com", "user": "eu-user", "password": "not-real-1"})
	w.apply(w.intentOf(rendered(), "d3"), written)
	holds("without the policy", map[string]string{"host": "smtp.example.com", "user": "default-user", "password": "not-real-1"})
}

func inNamespace(u *unstructured.Unstructured, ns string) *unstructured.Unstructured {
	u.SetNamespace(ns)
	return u
}
