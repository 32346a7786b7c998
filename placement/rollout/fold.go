package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Part is the last report of a cluster about its copy of one object of a bundle.
type Part struct {
	Row
	// Object names the object in messages.
	Object string
	// Wants is the revision of the object that belongs to the revision of the bundle.
	Wants int64
	// Needed is true if the bundle works only while the object is healthy, as with a workload.
	Needed bool
}

// isThere reports whether the cluster has the wanted content of the object.
func (p *Part) isThere() bool { return p.Applied && p.Revision == p.Wants }

// isRefused reports whether the cluster refuses the wanted content of the object.
func (p *Part) isRefused() bool { return p.Refused && p.Revision == p.Wants }

// passes reports whether the object does not keep the bundle from passing the healthGate.
func (p *Part) passes() bool {
	return p.isThere() && (!p.Needed || p.Health == hubv1.HealthHealthy && !p.PassingSince.IsZero())
}

// severity orders the parts of a bundle by how much they say about its state, the most first.
func (p *Part) severity() int {
	switch {
	case p.isRefused():
		return 0
	case p.isThere() && p.Needed && p.Health == hubv1.HealthDegraded:
		return 1
	case p.HeldByMember:
		return 2
	case !p.isThere():
		return 3
	case !p.passes():
		return 4
	}
	return 5
}

// Fold returns the report of a cluster about a revision of a bundle, from its reports about all objects of this
// revision. The cluster has applied the revision if it has applied each object. The revision is healthy if each needed
// object is healthy, or each object if none is needed. One refused object means that the revision is refused. since is
// the time at which the cluster got the revision, or zero. The result does not depend on the order of the parts.
func Fold(revision int64, since time.Time, parts []Part) Row {
	parts = slices.Clone(parts)
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.Needed }) {
		for i := range parts {
			parts[i].Needed = true
		}
	}
	out := Row{Revision: revision, Applied: true, Health: hubv1.HealthHealthy, Observes: true, PassingSince: latest(since, time.Unix(0, 0).UTC())}
	if len(parts) == 0 {
		return out
	}
	out.PassingSince = time.Time{}
	for i := range parts {
		p := &parts[i]
		out.Applied = out.Applied && p.isThere()
		out.HeldByMember = out.HeldByMember || p.HeldByMember
		out.Observes = out.Observes && (p.Observes || !p.Needed)
		out.PassingSince = latest(out.PassingSince, p.PassingSince)
	}
	worst := slices.MinFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.severity(), b.severity()), a.Changed.Compare(b.Changed), cmp.Compare(a.Object, b.Object))
	})
	out.judge(&worst)
	for i := range parts {
		if p := &parts[i]; !worst.isBroken() && p.passes() == worst.passes() {
			out.Changed = latest(out.Changed, p.Changed)
		}
	}
	return out
}

// isBroken reports whether the object alone makes its bundle fail on the cluster.
func (p *Part) isBroken() bool { return p.severity() < 2 }

// judge sets the state of a bundle on a cluster. worst is the object that says most about it.
func (r *Row) judge(worst *Part) {
	if worst.passes() {
		return
	}
	r.PassingSince, r.Changed = time.Time{}, worst.Changed
	r.Refused = worst.isRefused()
	if r.Health = worst.Health; r.Health == hubv1.HealthHealthy || r.Health == "" || r.Health == hubv1.HealthDegraded && !worst.isBroken() {
		r.Health = hubv1.HealthProgressing
	}
	r.Reason, r.Message = worst.Reason, fmt.Sprintf("%s: %s", worst.Object, cmp.Or(worst.Message, worst.Reason, "the cluster has not reported it yet"))
}
