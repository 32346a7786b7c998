package dispatch

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

// storedRevisions has the contents of revisions, and records the reads.
type storedRevisions struct {
	template *unstructured.Unstructured
	rules    *decide.HeldRules
	err      error // of the template, and of the rules unless noRules is set
	noRules  error
	read     []string
}

func (s *storedRevisions) Template(_ context.Context, digest string) (*unstructured.Unstructured, error) {
	s.read = append(s.read, digest)
	return s.template, s.err
}

func (s *storedRevisions) Rules(context.Context, string) (*decide.HeldRules, error) {
	if s.noRules != nil {
		return nil, s.noRules
	}
	return s.rules, s.err
}

// sending is a member that records the manifests that it gets.
type sending struct {
	*fakeMember
	sent []*unstructured.Unstructured
}

func (k *sending) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	k.sent = append(k.sent, in.Manifest)
	return k.fakeMember.Apply(ctx, in)
}

// revisionRun returns a run. By the binding, the cluster must get revision 2. The hub object has the content of
// revision 3.
func revisionRun(t *testing.T, stored *storedRevisions) (*sending, *run) {
	t.Helper()
	_, r := versionRun(t, nil, []string{"v2"}, hubv1.TargetPresent)
	k := &sending{fakeMember: takes("eu")}
	r.cluster = k
	spec := r.binding.BindingSpec()
	template, _ := r.queue.opts.Templates.Get(r.in.object.ObjectIdentity)
	newest := r.queue.renderings.get(template, "v2")
	spec.Revisions = []hubv1.ObjectRevision{
		{Number: 2, Generation: 7, Template: "second", Policies: "rules"},
		{Number: 3, Generation: 8, Template: decide.TemplateDigest(r.queue.opts.Key, newest.prepared.Manifest(), nil), Policies: "rules"},
	}
	spec.Rollout = &hubv1.BindingRollout{Revision: 3, Newest: 3}
	r.target.Revision = 2
	r.queue.opts.Revisions = stored
	return k, r
}

func heldTemplate() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"held": "yes"}}}
	o.SetGroupVersionKind(widgetV1)
	o.SetNamespace("ns")
	o.SetName("web")
	return o
}

func TestAClusterHoldsTheRevisionThatItsTargetNames(t *testing.T) {
	marks := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "marks"}}
	marks.Spec.Rules = []hubv1.OverrideRule{{Name: "mark", Labels: map[string]string{"mark": "held"}}}
	stored := &storedRevisions{template: heldTemplate(), rules: &decide.HeldRules{Objects: []hubv1.OverridePolicyObject{marks}}}
	k, r := revisionRun(t, stored)
	o, known := r.apply(t.Context())
	if !known || o.Applied != metav1.ConditionTrue || o.HubRevision != 2 || o.HubGeneration != 7 {
		t.Errorf("outcome %+v, known %t", o, known)
	}
	if len(k.sent) != 1 {
		t.Fatalf("%d manifests were sent", len(k.sent))
	}
	if v, _, _ := unstructured.NestedString(k.sent[0].Object, "spec", "held"); v != "yes" || k.sent[0].GetLabels()["mark"] != "held" {
		t.Errorf("sent %v", k.sent[0].Object)
	}
	if got := k.sent[0].GroupVersionKind(); got != widgetV2 {
		t.Errorf("sent at %s", got)
	}
}

func TestTheNewestRevisionIsMadeFromTheHubObject(t *testing.T) {
	stored := &storedRevisions{rules: &decide.HeldRules{}}
	k, r := revisionRun(t, stored)
	r.target.Revision = 3
	if o, known := r.apply(t.Context()); !known || o.Applied != metav1.ConditionTrue || o.HubRevision != 3 {
		t.Errorf("outcome %+v, known %t", o, known)
	}
	if len(k.sent) != 1 || len(stored.read) != 0 {
		t.Errorf("%d manifests were sent, and the stored templates %v were read", len(k.sent), stored.read)
	}
}

// TestLostRulesAreThoseOfTheHubIfTheyAreUnchanged covers rules of which the Secret was deleted, while the hub still has
// override policies with the same content, or none.
func TestLostRulesAreThoseOfTheHubIfTheyAreUnchanged(t *testing.T) {
	for name, tc := range map[string]struct {
		revision int64
		template bool // whether the template of the revision is stored
		edited   bool // whether a user has changed the settings of the placement since the revision
		want     string
	}{
		"the newest revision":                               {revision: 3},
		"an earlier template with the newest rules":         {revision: 2, template: true},
		"an earlier template that is lost, too":             {revision: 2, want: hubv1.ReasonRevisionMissing},
		"rules that a user has changed since, of an object": {revision: 3, edited: true, want: hubv1.ReasonRevisionMissing},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &storedRevisions{template: heldTemplate(), noRules: decide.ErrRevisionMissing}
			if !tc.template {
				stored.err = decide.ErrRevisionMissing
			}
			k, r := revisionRun(t, stored)
			r.target.Revision = tc.revision
			settings := r.policy()
			inputs, err := decide.InputsOf(heldTemplate(), r.in.object, nil, &settings, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.edited {
				inputs.Rules.MemberOwnedFields = []string{"/spec/replicas"}
			}
			revisions := r.binding.BindingSpec().Revisions
			for i := range revisions {
				_, revisions[i].Policies = inputs.Digests(r.queue.opts.Key, nil)
			}
			o, known := r.apply(t.Context())
			if !known || o.Reason != tc.want && (tc.want != "" || o.Applied != metav1.ConditionTrue) || len(k.sent) != 0 != (tc.want == "") {
				t.Errorf("outcome %+v, known %t, %d manifests were sent", o, known, len(k.sent))
			}
			if tc.want != "" && o.Retry != member.RetrySlowly {
				t.Errorf("the retry is %v", o.Retry)
			}
		})
	}
}

func TestARevisionThatCannotBeReadIsNeverTheNewest(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*run, *storedRevisions)
		applied metav1.ConditionStatus
		reason  string
	}{
		"its content is gone": {
			func(_ *run, s *storedRevisions) { s.err = decide.ErrRevisionMissing }, metav1.ConditionFalse, hubv1.ReasonRevisionMissing,
		},
		"the binding does not list it": {
			func(r *run, _ *storedRevisions) { r.binding.BindingSpec().Revisions = nil }, metav1.ConditionFalse, hubv1.ReasonRevisionMissing,
		},
		"the API server does not answer": {
			func(_ *run, s *storedRevisions) { s.err = errors.New("no answer") }, metav1.ConditionUnknown, hubv1.ReasonServerError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &storedRevisions{template: heldTemplate(), rules: &decide.HeldRules{}}
			k, r := revisionRun(t, stored)
			tc.change(r, stored)
			o, known := r.apply(t.Context())
			if !known || o.Applied != tc.applied || o.Reason != tc.reason || len(k.sent) != 0 {
				t.Errorf("outcome %+v, known %t, %d manifests were sent", o, known, len(k.sent))
			}
		})
	}
}

func TestAStepWakesTheClustersThatItConcerns(t *testing.T) {
	before := &hubv1.BindingSpec{
		Revisions: []hubv1.ObjectRevision{{Number: 1, Generation: 1}, {Number: 2, Generation: 2}}, Rollout: &hubv1.BindingRollout{Revision: 2},
		Clusters: []hubv1.BindingTarget{{Name: "ap", State: hubv1.TargetPresent, Revision: 1}, {Name: "eu", State: hubv1.TargetPresent, Revision: 1}},
	}
	for name, tc := range map[string]struct {
		change func(*hubv1.BindingSpec)
		want   bool
	}{
		"a cluster gets another revision":     {func(s *hubv1.BindingSpec) { s.Clusters[0].Revision = 2 }, true},
		"the phase changes":                   {func(s *hubv1.BindingSpec) { s.Rollout.Phase = hubv1.RolloutSoaking }, true},
		"the hub object has a new generation": {func(s *hubv1.BindingSpec) { s.Revisions[1].Generation = 3 }, false},
		"a cluster joins": {func(s *hubv1.BindingSpec) {
			s.Clusters = append(s.Clusters, hubv1.BindingTarget{Name: "us", State: hubv1.TargetPresent})
		}, false},
		"the rollout ends":                   {func(s *hubv1.BindingSpec) { s.Rollout = nil }, false},
		"the object was created again":       {func(s *hubv1.BindingSpec) { s.ObjectRef.UID = "b" }, false},
		"the replicas are divided otherwise": {func(s *hubv1.BindingSpec) { s.Division = &hubv1.Division{Path: "/spec/replicas"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			if got := staged(before, after); got != tc.want {
				t.Errorf("only some clusters have work: %t, want %t", got, tc.want)
			}
		})
	}
}
