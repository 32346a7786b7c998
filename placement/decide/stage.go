package decide

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/rollout"
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
	// Lost reports whether the part of a revision with this digest is known to be stored no more. Nil means never.
	Lost func(digest string) bool
	// UndoBlocked says why the object must not go back to the revision that the annotation RolloutUndoAnnotation names. It
	// is empty if the object may go back, or if there is no such request.
	UndoBlocked string
}

// NoRollback reports whether the object with this identity never goes back to an earlier revision when its rollout
// fails.
func NoRollback(id hubv1.ObjectIdentity) bool { return id.GroupKind() == definition }

// stage writes into each entry of spec.clusters the revision that the rollout gives to the cluster. If the placement
// has no rollout, all clusters get the newest state.
func (in input) stage(p *Plan, winner hubv1.PlacementObject) error {
	policy := winner.PlacementSpec().Rollout
	switch {
	case in.Set != nil && in.Staging != nil:
		return in.followSet(p, winner)
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
	live.Template = inputs.Named(in.Staging.Key, p.Spec.Division, in.Spec().Revisions, live.Template)
	if p.Payloads, err = in.payloads(inputs, live); err != nil {
		return err
	}
	now := metav1.NewTime(in.Now).Rfc3339Copy()
	self := in.Object.ID.String()
	step := rollout.Step(rollout.Input{
		Names:  namesOf(winner, in.Object.ID, hubv1.BundleOf(in.Object.Template)),
		Policy: policy, Before: in.Spec().Rollout, Revisions: in.Spec().Revisions, Live: live, Targets: in.staged(p, policy),
		Undo:       in.Object.Template.GetAnnotations()[hubv1.RolloutUndoAnnotation],
		NoRollback: NoRollback(in.Object.ID), UndoBlocked: in.Staging.UndoBlocked,
		Verbs: rollout.VerbsOf(winner), Peers: in.Staging.Peers(OwnerOf(ReferenceTo(winner))).Without(self), Now: now.Time,
	})
	in.hold(p.Spec, step, now)
	step.Progress.Object = self
	p.Claims.Rollout = &step.Progress
	p.Again = earlier(p.Again, step.Again)
	return nil
}

// namesOf returns the names of a placement and an object for commands in messages. bundle contains the object, or is
// nil.
func namesOf(winner hubv1.PlacementObject, id hubv1.ObjectIdentity, bundle *hubv1.ObjectBundle) rollout.Names {
	names := rollout.NamesOf(winner)
	if bundle != nil {
		names.Bundle = bundle.Kind + " " + strings.TrimPrefix(bundle.Namespace+"/"+bundle.Name, "/")
	}
	names.Object, names.ObjectNamespace = strings.ToLower(id.Kind)+" "+id.Name, id.Namespace
	return names
}

// unstage removes the revisions from the binding's spec, so that all clusters get the newest state of the hub object.
func unstage(spec *hubv1.BindingSpec) {
	spec.Revisions, spec.Rollout = nil, nil
	for i := range spec.Clusters {
		spec.Clusters[i].Revision, spec.Clusters[i].RevisionTime, spec.Clusters[i].KeptHealth = 0, nil, ""
	}
}

// payloads returns the template and the override rules of the current revision, each only if it is not stored. Each one
// is stored if a revision in the binding has the same digest, unless it has been lost since.
func (in input) payloads(inputs Inputs, live hubv1.ObjectRevision) (out []Payload, err error) {
	template, rules := false, false
	for _, r := range in.Spec().Revisions {
		template, rules = template || r.Template == live.Template, rules || r.Policies == live.Policies
	}
	lost := in.Staging.Lost
	add := func(named bool, digest string, content any) {
		if err != nil || named && (lost == nil || !lost(digest)) {
			return
		}
		var p Payload
		p, err = Pack(digest, content)
		out = append(out, p)
	}
	add(template, live.Template, inputs.Whole.Object)
	add(rules, live.Policies, inputs.Rules)
	return out, err
}

// staged returns the clusters that take part in the rollout, as targets. These are the Present entries, and the
// Evicting entries that already have a revision. The hub's own cluster takes no part.
func (in input) staged(p *Plan, policy *hubv1.RolloutPolicy) []rollout.Target {
	var out []rollout.Target
	for _, e := range p.Spec.Clusters {
		before, evicting := in.Spec().Target(e.Name), e.State == hubv1.TargetEvicting
		if e.State == hubv1.TargetAbsent || in.isTemplate(e.Name) || evicting && (before == nil || before.Revision == 0) {
			continue
		}
		t := rollout.Target{
			Cluster: e.Name, Wave: WaveOf(policy, in.Facts.Cluster(e.Name)), Least: in.least(e.Name, p), Kept: in.kept(e, p), Evicting: evicting,
		}
		if before != nil && before.State != hubv1.TargetAbsent {
			t.Holds, t.Least, t.KeptHealth = before.Revision, 0, before.KeptHealth
			if before.RevisionTime != nil {
				t.Since = before.RevisionTime.Time
			}
		}
		t.Row = in.rowFor(t)
		out = append(out, t)
	}
	return out
}

// least returns the highest revision of the clusters that a new cluster replaces. It is 0 if the cluster replaces none.
// If an entry with the state Evicting records no replacements, each new cluster counts as one.
func (in input) least(cluster string, p *Plan) (revision int64) {
	for _, before := range in.Spec().Clusters {
		e := &before
		if now := p.Spec.Target(e.Name); now != nil && now.State == hubv1.TargetEvicting {
			e = now
		}
		if e.State == hubv1.TargetEvicting && isReplacement(cluster, e.Evicting.Replacements) {
			revision = max(revision, before.Revision)
		}
	}
	return revision
}

func isReplacement(cluster string, replacements []hubv1.Replacement) bool {
	return len(replacements) == 0 || slices.ContainsFunc(replacements, func(r hubv1.Replacement) bool { return r.Cluster == cluster })
}

func (in input) isTemplate(cluster string) bool {
	if in.Binding == nil {
		return false
	}
	row := in.Binding.BindingStatus().Row(cluster)
	return row != nil && row.Reason == hubv1.ReasonIsTemplate
}

// kept says why a cluster must keep the revision that it has now, and how a user ends this. It is empty for a cluster
// that may change. A cluster keeps its revision if the removal of its copy waits for package guard. It also keeps it if
// the cluster is cordoned or has no MemberCluster, or if the placement suspends writes to the cluster.
func (in input) kept(e hubv1.BindingTarget, p *Plan) string {
	m := in.Facts.Cluster(e.Name)
	winner := in.Facts.Placement(p.Spec.PlacementRef)
	removed := func(r Removal) bool { return r.Cluster == e.Name }
	switch {
	case m == nil:
		return "has no MemberCluster"
	case e.Removal != nil || slices.ContainsFunc(p.Claims.Removals, removed):
		return "waits for a confirmation of its removal: see hansectl confirm"
	case m.Spec.Unschedulable:
		return "is cordoned: hansectl uncordon " + e.Name
	case winner != nil && winner.PlacementSpec().Suspend.SuspendsWrites(e.Name, m):
		return "is suspended by spec.suspend of the placement: see hansectl resume"
	}
	return ""
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
	hubv1.ReasonVersionNotServed: true, hubv1.ReasonRevisionMissing: true, hubv1.ReasonStoredVersionKept: true, hubv1.ReasonMadeAnew: true,
}

// rowFor returns the status row of a target in the form that package rollout reads.
func (in input) rowFor(t rollout.Target) rollout.Row {
	m := in.Facts.Cluster(t.Cluster)
	away := m == nil || m.IsAway()
	if in.Binding == nil {
		return rollout.Row{Away: away}
	}
	return rowOf(in.Binding.BindingStatus().Row(t.Cluster), t.Holds, away)
}

// rowOf returns a status row in the form that package rollout reads. row is nil if there is none. holds is the revision
// that the cluster shall hold, and away says whether the cluster is unreachable.
func rowOf(row *hubv1.ClusterRow, holds int64, away bool) rollout.Row {
	out := rollout.Row{Away: away}
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
		out.Revision = holds // the row names the earlier revision, but this revision was refused
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
	began := now // the clock of the leader that began the change may have been ahead
	if !now.IsZero() && now.Before(&step.Rollout.Began) {
		began = step.Rollout.Began
	}
	for i := range spec.Clusters {
		e := &spec.Clusters[i]
		e.KeptHealth = step.KeptHealth[e.Name]
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
			e.RevisionTime = &began
		case before != nil:
			e.RevisionTime = before.RevisionTime
		}
	}
}
