package decide

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/rollout"
)

// definition is the kind CustomResourceDefinition. When the rollout of a CRD fails, the hub never rolls it back,
// because an API version cannot be removed from a CRD while objects are stored in it.
var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Staging has the inputs that a rollout needs in addition to Facts.
type Staging struct {
	// Key is the secret key for the digests of revisions.
	Key canonical.Key
	// Denied are prefixes of labels and annotations that are never copied to members.
	Denied []string
	// Peers returns the progress of the rollouts of all objects of a placement.
	Peers func(Owner) rollout.Peers
	// UndoBlocked says why the object must not go back to the revision that the annotation RolloutUndoAnnotation names. It
	// is empty if the object may go back, or if there is no such request.
	UndoBlocked string
}

// NeverBack reports whether the object with this identity never goes back to an earlier revision when its rollout
// fails.
func NeverBack(id hubv1.ObjectIdentity) bool { return id.GroupKind() == definition }

// stage writes into each entry of spec.clusters the revision that the rollout gives to the cluster. If the placement
// has no rollout, all clusters get the newest state.
func (in input) stage(p *Plan, winner hubv1.PlacementObject) error {
	policy := winner.PlacementSpec().Rollout
	switch {
	case policy == nil, in.Staging == nil && in.Spec().Rollout == nil:
		unstage(p.Spec)
		return nil
	case in.Staging == nil: // this is a simulation
		in.hold(p.Spec, rollout.Result{Revisions: in.Spec().Revisions, Rollout: *in.Spec().Rollout}, metav1.Time{})
		return nil
	}
	inputs, err := InputsOf(in.Object.Template, in.selectable(), in.Facts.Overrides, winner.PlacementSpec(), in.Staging.Denied)
	if err != nil {
		return err
	}
	live := hubv1.ObjectRevision{Generation: in.Object.Template.GetGeneration()}
	live.Template, live.Policies = inputs.Digests(in.Staging.Key, p.Spec.Division)
	if p.Payloads, err = in.payloads(inputs, live); err != nil {
		return err
	}
	now := metav1.NewTime(in.Now).Rfc3339Copy()
	verbs, _ := rollout.ParseVerbs(winner.GetAnnotations()) // errors are ignored here: the placement's status shows them
	self := in.Object.ID.String()
	step := rollout.Step(rollout.Input{
		Policy: policy, Before: in.Spec().Rollout, Revisions: in.Spec().Revisions, Live: live, Targets: in.staged(p, policy),
		Undo:      in.Object.Template.GetAnnotations()[hubv1.RolloutUndoAnnotation],
		NeverBack: NeverBack(in.Object.ID), UndoBlocked: in.Staging.UndoBlocked,
		Verbs: verbs, Peers: in.Staging.Peers(OwnerOf(ReferenceTo(winner))).Without(self), Now: now.Time,
	})
	in.hold(p.Spec, step, now)
	step.Progress.Object = self
	p.Claims.Rollout = &step.Progress
	p.Again = earlier(p.Again, step.Again)
	return nil
}

// unstage removes the revisions from the binding's spec, so that all clusters get the newest state of the hub object.
func unstage(spec *hubv1.BindingSpec) {
	spec.Revisions, spec.Rollout = nil, nil
	for i := range spec.Clusters {
		spec.Clusters[i].Revision, spec.Clusters[i].RevisionTime = 0, nil
	}
}

// payloads returns the template (the hub object) and the override rules of the current revision, each only if it is not
// stored yet. Each one is already stored if a revision in the binding has the same digest.
func (in input) payloads(inputs Inputs, live hubv1.ObjectRevision) (out []Payload, err error) {
	template, rules := false, false
	for _, r := range in.Spec().Revisions {
		template, rules = template || r.Template == live.Template, rules || r.Policies == live.Policies
	}
	add := func(known bool, digest string, content any) {
		if known || err != nil {
			return
		}
		var p Payload
		p, err = Pack(digest, content)
		out = append(out, p)
	}
	add(template, live.Template, inputs.Template.Object)
	add(rules, live.Policies, inputs.Rules)
	return out, err
}

// staged returns the clusters that take part in the rollout, as targets. These are the Present entries, and the
// Evicting entries that already have a revision. The hub's own cluster takes no part.
func (in input) staged(p *Plan, policy *hubv1.RolloutPolicy) []rollout.Target {
	least := int64(0) // a replacement gets at least the revision of the clusters that it replaces
	for _, e := range in.Spec().Clusters {
		now := p.Spec.Target(e.Name)
		if e.State == hubv1.TargetEvicting || now != nil && now.State == hubv1.TargetEvicting {
			least = max(least, e.Revision)
		}
	}
	var out []rollout.Target
	for _, e := range p.Spec.Clusters {
		before, evicting := in.Spec().Target(e.Name), e.State == hubv1.TargetEvicting
		if e.State == hubv1.TargetAbsent || in.isTemplate(e.Name) || evicting && (before == nil || before.Revision == 0) {
			continue
		}
		t := rollout.Target{
			Cluster: e.Name, Wave: WaveOf(policy, in.Facts.Cluster(e.Name)), Least: least, Kept: in.keeps(e, p), Evicting: evicting,
		}
		if before != nil && before.State != hubv1.TargetAbsent {
			t.Holds, t.Least = before.Revision, 0
			if before.RevisionTime != nil {
				t.Since = before.RevisionTime.Time
			}
		}
		t.Row = in.rowFor(t)
		out = append(out, t)
	}
	return out
}

func (in input) isTemplate(cluster string) bool {
	if in.Binding == nil {
		return false
	}
	row := in.Binding.BindingStatus().Row(cluster)
	return row != nil && row.Reason == hubv1.ReasonIsTemplate
}

// keeps reports whether a cluster must keep the revision that it has now. This is the case if the removal of its copy
// waits for package guard, which holds large removals. It is also the case if the cluster is cordoned or has no
// MemberCluster, or if the placement suspends writes to the cluster.
func (in input) keeps(e hubv1.BindingTarget, p *Plan) bool {
	m := in.Facts.Cluster(e.Name)
	if e.Removal != nil || m == nil || m.Spec.Unschedulable {
		return true
	}
	for _, r := range p.Claims.Removals {
		if r.Cluster == e.Name {
			return true
		}
	}
	winner := in.Facts.Placement(p.Spec.PlacementRef)
	return winner != nil && winner.PlacementSpec().Suspend.SuspendsWrites(e.Name, m)
}

// WaveOf returns the index of a cluster's wave: the first wave that selects the cluster, or otherwise the last wave. m
// is nil if the cluster is not known.
func WaveOf(policy *hubv1.RolloutPolicy, m *hubv1.MemberCluster) int {
	last := len(policy.Waves) - 1
	if m == nil {
		return last
	}
	facts := overrides.ClusterOf(m)
	facts.Operators = nil // otherwise a cluster could leave its wave while its operator is changed
	for i, w := range policy.Waves {
		if ok, err := overrides.Selects(&hubv1.OverrideRule{Clusters: w.Clusters}, facts); err == nil && ok {
			return i
		}
	}
	return last
}

// refusedFor has the reasons of status rows for a refused write. Such a write fails until a user changes the object or
// the cluster.
var refusedFor = map[string]bool{
	hubv1.ReasonAlreadyExists: true, hubv1.ReasonOwnedByOther: true, hubv1.ReasonFieldConflict: true, hubv1.ReasonFieldsNotServed: true,
	hubv1.ReasonOverrideInvalid: true, hubv1.ReasonOverrideConflict: true, hubv1.ReasonPathOwnedByDivision: true,
	hubv1.ReasonManifestRefused: true, hubv1.ReasonAdmissionDenied: true, hubv1.ReasonNamespaceRefused: true, hubv1.ReasonForbidden: true,
	hubv1.ReasonSecretTypeRefused: true, hubv1.ReasonPodSecurityViolation: true, hubv1.ReasonTooLarge: true,
	hubv1.ReasonVersionNotServed: true, hubv1.ReasonRevisionMissing: true,
}

// rowFor returns the status row of a target in the form that package rollout reads.
func (in input) rowFor(t rollout.Target) rollout.Row {
	m := in.Facts.Cluster(t.Cluster)
	out := rollout.Row{Away: m == nil || m.IsAway()}
	if in.Binding == nil {
		return out
	}
	row := in.Binding.BindingStatus().Row(t.Cluster)
	if row == nil {
		return out
	}
	out.Revision, out.Health, out.Reason, out.Message = row.Revision, row.Health, row.Reason, row.Message
	out.Applied = row.Applied == metav1.ConditionTrue
	out.HeldByMember = row.Reason == hubv1.ReasonPaused
	if row.LastTransitionTime != nil {
		out.Changed = row.LastTransitionTime.Time
	}
	if row.PassingSince != nil {
		out.PassingSince = row.PassingSince.Time
	}
	if out.Refused = row.Applied == metav1.ConditionFalse && refusedFor[row.Reason]; out.Refused {
		out.Revision = t.Holds // the row names the earlier revision, but this revision was refused
	}
	if row.Observed == nil {
		out.Observes = row.LastTransitionTime != nil // without the time, the row was shortened: the copy may have a status
	} else {
		out.Observes = bytes.Contains(row.Observed.Raw, []byte(`"observedGeneration"`))
	}
	return out
}

// held returns the number of the revision that a cluster with the state Present gets. step is the result of package
// rollout. If step has no revision for the cluster, as for the hub's own cluster, the number is the newest revision of
// the rollout. In a simulation, the cluster keeps the revision that the binding records.
func (in input) held(before *hubv1.BindingTarget, step rollout.Result, cluster string) int64 {
	switch held := step.Holds[cluster]; {
	case held != 0:
		return held
	case in.Staging == nil && before != nil && before.Revision != 0:
		return before.Revision
	}
	return step.Rollout.Revision
}

// carried returns the number of the revision that a cluster with the state Evicting keeps. number is its previous
// revision. If spec.Revisions lacks this revision, carried adds it. If spec.Revisions has another revision with the
// same content, carried returns the number of that one instead.
func (in input) carried(spec *hubv1.BindingSpec, number int64) int64 {
	held := in.Spec().Revision(number)
	if held == nil || spec.Revision(number) != nil {
		return number
	}
	for _, r := range spec.Revisions {
		if r.Template == held.Template && r.Policies == held.Policies {
			return r.Number // a newer revision has the same content
		}
	}
	spec.Revisions = append([]hubv1.ObjectRevision{*held}, spec.Revisions...)
	return number
}

// hold writes into each entry of spec.clusters the revision that the rollout step has chosen for the cluster.
func (in input) hold(spec *hubv1.BindingSpec, step rollout.Result, now metav1.Time) {
	spec.Revisions, spec.Rollout = step.Revisions, &step.Rollout
	moved := map[string]bool{}
	for _, name := range step.Moved {
		moved[name] = true
	}
	for i := range spec.Clusters {
		e := &spec.Clusters[i]
		before := in.Spec().Target(e.Name)
		switch {
		case e.State == hubv1.TargetAbsent:
			e.Revision, e.RevisionTime = 0, nil
			continue
		case e.State == hubv1.TargetEvicting:
			if e.Revision, e.RevisionTime = step.Rollout.Revision, nil; before != nil && before.Revision != 0 {
				e.Revision, e.RevisionTime = in.carried(spec, before.Revision), before.RevisionTime
			}
			continue
		}
		e.Revision, e.RevisionTime = in.held(before, step, e.Name), nil
		switch {
		case moved[e.Name], before == nil && in.Spec().Rollout != nil && !now.IsZero():
			e.RevisionTime = &now
		case before != nil:
			e.RevisionTime = before.RevisionTime
		}
	}
}
