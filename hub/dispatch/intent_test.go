package dispatch

import (
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestIntentIsWhatWouldBeWrittenWithOtherPolicies(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	w := newWorld(t, takes("m1"), takes("m2"))
	b := w.add(gvk, "settings")
	there, left := b.Spec.Clusters[0].Name, b.Spec.Clusters[1].Name
	b.Spec.Clusters = b.Spec.Clusters[:1]
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "ns", Name: "settings"}
	policy := func(patch string) []hubv1.OverridePolicyObject {
		p := &hubv1.OverridePolicy{}
		p.Namespace, p.Name = "ns", "p"
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
		p.Spec.Rules = []hubv1.OverrideRule{{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(patch)}}}
		return []hubv1.OverridePolicyObject{p}
	}
	ask := func(cluster string, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
		return w.dispatcher.Intent(t.Context(), cluster, id, policies)
	}
	if _, _, err := ask(there, nil); !errors.Is(err, member.ErrNotConnected) {
		t.Errorf("a member without a queue: got %v", err)
	}
	w.engage()
	in, stop, err := ask(there, policy(`{"data": {"colour": "blue"}}`))
	if err != nil || stop != nil {
		t.Fatalf("got %+v, %v", stop, err)
	}
	if colour, _, _ := unstructured.NestedString(in.Manifest.Object, "data", "colour"); colour != "blue" || in.Owner != id || in.OwnerUID != "settings" {
		t.Errorf("got %+v", in)
	}
	plain, _, err := ask(there, nil)
	if _, found := plain.Manifest.Object["data"]; err != nil || found || plain.Digest == in.Digest {
		t.Errorf("without the policy: got %+v, %v", plain, err)
	}
	in, stop, err = ask(there, policy(`{"metadata": {"name": "other"}}`))
	if err != nil || stop == nil || stop.Reason != hubv1.ReasonOverrideInvalid || in.Manifest != nil {
		t.Errorf("a policy that is not possible: got %+v %+v, %v", in, stop, err)
	}
	if in, stop, err = ask(left, nil); err != nil || stop == nil || stop.Reason != hubv1.ReasonWithdrawn || in.Manifest != nil {
		t.Errorf("where it does not go: got %+v %+v, %v", in, stop, err)
	}
}

func TestTheNextIntentIsThatOfTheRollout(t *testing.T) {
	w := newWorld(t, takes("eu"))
	b := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "second"})
	earlier := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "first"}}}
	earlier.SetNamespace("ns")
	earlier.SetName("settings")
	template, _ := templatesOf{w}.Get(hubv1.ObjectOf(b))
	w.dispatcher.opts.Revisions = oneRevision{earlier}
	w.engage()
	second := decide.TemplateDigest(w.dispatcher.opts.Key, w.dispatcher.queue("eu").renderings.get(template, "v1").prepared.Manifest(), nil)
	w.edit(func() {
		b.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "first", Policies: "rules"}, {Number: 2, Template: second, Policies: "rules"}}
		b.Spec.Target("eu").Revision = 1
		b.Spec.Rollout = &hubv1.BindingRollout{Revision: 2, Newest: 2, Phase: hubv1.RolloutWaitingForApproval}
	})
	says := func(in member.ApplyIntent, stop *member.Outcome, err error) string {
		if err != nil || stop != nil {
			t.Fatalf("got %+v, %v", stop, err)
		}
		a, _, _ := unstructured.NestedString(in.Manifest.Object, "data", "a")
		return a
	}
	id := hubv1.ObjectOf(b)
	if a := says(w.dispatcher.Intent(t.Context(), "eu", id, nil)); a != "first" {
		t.Errorf("the copy gets %q now", a)
	}
	if a := says(w.dispatcher.NextIntent(t.Context(), "eu", id)); a != "second" {
		t.Errorf("the copy gets %q next", a)
	}
	if b.Spec.Target("eu").Revision != 1 {
		t.Error("the question has changed the binding")
	}
}

// adopting is a member that records the requests to adopt an object.
type adopting struct {
	*fakeMember
	reported []member.ApplyIntent
}

// Apply implements member.Cluster.
func (a *adopting) Apply(_ context.Context, in member.ApplyIntent) member.Outcome {
	if in.Adopting != "" {
		a.reported = append(a.reported, in)
	}
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, CopyState: member.CopyState{Adopted: true}}
}

// Get implements member.Fleet.
func (a *adopting) Get(string) (member.Cluster, error) { return a, nil }

func TestAUserTakesAnObjectOverWhateverThePlacementSays(t *testing.T) {
	w := newWorld(t, takes("m1"))
	m := &adopting{fakeMember: takes("m1")}
	w.dispatcher.opts.Fleet = m
	w.add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "settings")
	w.add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "leaving").Spec.Clusters[0].State = hubv1.TargetAbsent
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "ns", Name: "settings"}
	adopt := func() (member.Outcome, error) {
		return w.dispatcher.Adopt(t.Context(), "m1", id, hubv1.AdoptionIfNoDiff, "theirs")
	}
	if _, err := adopt(); !errors.Is(err, member.ErrNotConnected) {
		t.Errorf("a member without a queue: got %v", err)
	}
	w.engage()
	o, err := adopt()
	if err != nil || !o.Adopted || len(m.reported) != 1 {
		t.Fatalf("got %+v, %v, told %+v", o, err, m.reported)
	}
	if in := m.reported[0]; in.Adoption != hubv1.AdoptionIfNoDiff || in.Adopting != "theirs" || in.Source.Mark.Generation == 0 || in.Owner != id {
		t.Errorf("got %+v", in)
	}
	id.Name = "leaving"
	if o, err := adopt(); err != nil || o.Reason != hubv1.ReasonWithdrawn || len(m.reported) != 1 {
		t.Errorf("an object that is withdrawn: got %+v, %v, told %+v", o, err, m.reported)
	}
}
