package dispatch

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

// revised has the lists of a bundle by digest. A template has the size in its digest, such as rotor-role-2.
type revised map[string]decide.SetList

// SetList implements Sets.
func (r revised) SetList(_ context.Context, digest string) (decide.SetList, error) {
	if list, ok := r[digest]; ok {
		return list, nil
	}
	return nil, decide.ErrRevisionMissing
}

// SetPart implements Sets.
func (r revised) SetPart(context.Context, string) (*unstructured.Unstructured, error) {
	return nil, decide.ErrRevisionMissing
}

// Template implements Revisions.
func (r revised) Template(_ context.Context, digest string) (*unstructured.Unstructured, error) {
	name, size := digest[:len(digest)-2], int64(digest[len(digest)-1]-'0')
	gvk := map[string]schema.GroupVersionKind{"rotor-role": clusterRole, "rotor-operator": deployment, "later": deployment}[name]
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("ns")
	u.SetName(name)
	return u, nil
}

// Rules implements Revisions.
func (r revised) Rules(context.Context, string) (*decide.HeldRules, error) {
	return &decide.HeldRules{}, nil
}

func inNs(gvk schema.GroupVersionKind, name string) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: "ns", Name: name}
}

// setOf makes the hub decide on the operator as a whole. lists are the objects of its revisions 1, 2 and so on. All
// clusters hold revision 1.
func setOf(w *world, clusters []string, lists ...decide.SetList) {
	all := revised{"rules": {}}
	of := hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
	record := &hubv1.SetRollout{Spec: hubv1.SetRolloutSpec{Bundle: of, Rollout: &hubv1.BindingRollout{Revision: 1, Newest: int64(len(lists))}}}
	for i, list := range lists {
		digest := string(rune('a' + i))
		all[digest] = list
		for id := range list {
			all["rules"][id] = "p"
		}
		record.Spec.Revisions = append(record.Spec.Revisions, hubv1.SetRevision{Number: int64(i + 1), List: digest, Policies: "rules"})
	}
	for _, name := range clusters {
		record.Spec.Clusters = append(record.Spec.Clusters, hubv1.SetCluster{Name: name, Revision: 1})
	}
	w.sets = map[types.NamespacedName]*hubv1.SetRollout{of.SetRolloutKey(""): record}
	w.dispatcher.opts.Sets, w.dispatcher.opts.Revisions = all, all
}

// holds makes a cluster hold a revision of the operator, and tells the dispatcher.
func holds(w *world, cluster string, revision int64) {
	w.mu.Lock()
	key := hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}.SetRolloutKey("")
	before, after := w.sets[key], w.sets[key].DeepCopy()
	after.Spec.Cluster(cluster).Revision = revision
	w.sets[key] = after
	w.mu.Unlock()
	w.dispatcher.SetRolloutChanged(w.Context(), changes.SetRollout{Before: before, After: after})
}

// gets makes the binding of an object give a revision to clusters, which are eu if none is named.
func gets(w *world, id hubv1.ObjectIdentity, revision int64, clusters ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.bindings[id.BindingKey()]
	b.Spec.Revisions = []hubv1.ObjectRevision{
		{Number: 1, Template: id.Name + "-1", Policies: "p", Time: metav1.Now()}, {Number: 2, Template: id.Name + "-2", Policies: "p", Time: metav1.Now()},
	}
	b.Spec.Clusters = nil
	for _, cluster := range append(clusters, "eu")[:max(1, len(clusters))] {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent, Revision: revision})
	}
}

func TestAWorkloadThatALaterRevisionAddsStopsNoNewCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	operated(w, "eu", "us")
	bundled(w, deployment, "later")
	gets(w, inNs(deployment, "later"), 2, "us")
	gets(w, inNs(deployment, "rotor-operator"), 1, "eu", "us")
	first := decide.SetList{inNs(deployment, "rotor-operator"): "one"}
	second := decide.SetList{inNs(deployment, "rotor-operator"): "one", inNs(deployment, "later"): "two"}
	setOf(w, []string{"eu", "us"}, first, second)
	w.engage()
	holds(w, "us", 2)
	for _, cluster := range []string{"eu", "us"} {
		w.eventually(5*time.Second, func() string {
			if w.holds(cluster) == 0 {
				return cluster + " has no operator"
			}
			return ""
		})
		becomes(w, cluster, hubv1.HealthHealthy, "")
	}
	w.create(rotor, "main")
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	w.reads("us", "main", hubv1.ReasonOperatorNotReady, "Deployment.apps ns/later is ")
	turns(w, "us", "later", hubv1.HealthHealthy, "")
	w.reads("us", "main", hubv1.ReasonApplied, "")
}

func TestAWorkloadWaitsForBindingsThatDoNotFollowItsBundleYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	bundled(w, clusterRole, "rotor-role")
	role, workload := inNs(clusterRole, "rotor-role"), inNs(deployment, "rotor-operator")
	setOf(w, []string{"eu"}, decide.SetList{role: "r1", workload: "d1"}, decide.SetList{role: "r2", workload: "d2"})
	gets(w, role, 1)
	gets(w, workload, 1)
	w.engage()
	w.reads("eu", "rotor-role", hubv1.ReasonApplied, "")
	turns(w, "eu", "rotor-role", hubv1.HealthHealthy, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
	becomes(w, "eu", hubv1.HealthHealthy, "")

	gets(w, workload, 2) // before the cache has the SetRollout
	w.dispatcher.WakeCluster(t.Context(), "eu")
	holds(w, "eu", 2)
	w.reads("eu", "rotor-operator", hubv1.ReasonBundleNotReady, "ClusterRole.rbac.authorization.k8s.io ns/rotor-role does not have its new content on the cluster")
	gets(w, role, 2)
	w.dispatcher.WakeObject(t.Context(), role)
	w.eventually(5*time.Second, func() string { return grown(w, "rotor-role") })
	turns(w, "eu", "rotor-role", hubv1.HealthHealthy, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
	w.eventually(5*time.Second, func() string { return grown(w, "rotor-operator") })

	t.Run("also when it returns", func(t *testing.T) {
		holds(w, "eu", 1)
		gets(w, workload, 1)
		w.dispatcher.WakeObject(t.Context(), workload)
		w.reads("eu", "rotor-operator", hubv1.ReasonBundleNotReady, "ns/rotor-role does not have its new content on the cluster")
		if err := grown(w, "rotor-operator"); err != "" {
			t.Error(err)
		}
	})
}

func TestAWorkloadWaitsForTheSetRolloutThatItsBindingFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	workload := inNs(deployment, "rotor-operator")
	setOf(w, []string{"eu"}, decide.SetList{workload: "d1"}, decide.SetList{workload: "d2"})
	gets(w, workload, 1)
	w.engage()
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
	becomes(w, "eu", hubv1.HealthHealthy, "")
	gets(w, workload, 2)
	served := w.members["eu"].written()
	w.dispatcher.WakeObject(t.Context(), workload)
	w.create(rotor, "main") // written after the workload was looked at
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	if now := w.members["eu"].written(); len(now) != len(served)+1 {
		t.Errorf("written are %v", now)
	}
	holds(w, "eu", 2)
	w.eventually(5*time.Second, func() string { return grown(w, "rotor-operator") })
}

// removing is a member that removes copies at once.
type removing struct{ *fakeMember }

// Withdraw implements member.Cluster.
func (m removing) Withdraw(_ context.Context, in member.WithdrawIntent) member.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.copies, in.Owner.Name)
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Wrote: true}
}

func TestObjectsThatARevisionDropsLeaveInTurn(t *testing.T) {
	t.Parallel()
	m := removing{takes("eu")}
	w := newWorld(t, m.fakeMember)
	operated(w, "eu")
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	bundled(w, service, "answers")
	bundled(w, webhooks, "rules")
	workload := inNs(deployment, "rotor-operator")
	setOf(w, []string{"eu"}, decide.SetList{workload: "d1", inNs(service, "answers"): "s", inNs(webhooks, "rules"): "w"}, decide.SetList{workload: "d2"})
	q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
	if err != nil {
		t.Fatal(err)
	}
	act := func(id hubv1.ObjectIdentity) member.Outcome {
		t.Helper()
		b := w.bindings[id.BindingKey()]
		r := &run{queue: q, key: id.BindingKey(), binding: b, target: &b.Spec.Clusters[0], cluster: m}
		if err := r.gather(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.target.State == hubv1.TargetAbsent {
			o, _ := r.withdraw(t.Context())
			return o
		}
		o, _ := r.apply(t.Context())
		return o
	}
	says := func(id hubv1.ObjectIdentity, reason, message string) {
		t.Helper()
		if o := act(id); o.Reason != reason || !strings.Contains(o.Message, message) {
			t.Errorf("%s has %s: %s", id, o.Reason, o.Message)
		}
	}
	drop := func(gvk schema.GroupVersionKind, name string) hubv1.ObjectIdentity {
		id := inNs(gvk, name)
		w.bindings[id.BindingKey()].Spec.Clusters = []hubv1.BindingTarget{
			{Name: "eu", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: hubv1.ReasonNotInRevision, UID: "u", Policy: hubv1.RemovalDelete}},
		}
		return id
	}
	answers := drop(service, "answers")
	says(answers, hubv1.ReasonDeleting, "waits for the decision on FederatedOperator rotors") // the SetRollout says that eu has it
	holds(w, "eu", 2)
	gets(w, workload, 2)
	says(answers, hubv1.ReasonDeleting, "leaves after the other objects of FederatedOperator rotors have their new content on the cluster: Deployment.apps ns/rotor-operator is not on the cluster")
	says(workload, hubv1.ReasonBundleNotReady, "ValidatingWebhookConfiguration.admissionregistration.k8s.io ns/rules, which FederatedOperator rotors no longer has, has left the cluster")
	rules := drop(webhooks, "rules")
	says(workload, hubv1.ReasonBundleNotReady, "ns/rules, which FederatedOperator rotors no longer has")
	says(rules, hubv1.ReasonWithdrawn, "")
	says(workload, hubv1.ReasonApplied, "")
	m.mu.Lock()
	seen := m.copies["rotor-operator"]
	seen.Health = hubv1.HealthHealthy
	m.copies["rotor-operator"] = seen
	m.mu.Unlock()
	says(answers, hubv1.ReasonWithdrawn, "")
}
