package console

import (
	"context"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// maxDiffLines is the maximum number of lines of a difference on a page.
const maxDiffLines = 2000

// difference has the lines of a difference, without the lines that only tools need.
type difference struct {
	Lines []view.DiffLine
	// Cut is true if lines are left out.
	Cut bool
}

// differenceOf returns the lines of a difference. The names of both sides are left out. A position in the file becomes
// a gap, except at the beginning.
func differenceOf(d view.ClusterDiff) difference {
	var out []view.DiffLine
	for _, l := range d.Lines() {
		switch l.Sign {
		case "=":
			continue
		case "@":
			if len(out) == 0 {
				continue
			}
			l.Text = "⋯"
		}
		out = append(out, l)
	}
	return difference{Lines: out[:min(len(out), maxDiffLines)], Cut: len(out) > maxDiffLines}
}

// waveChange is the change of one object on one cluster that an approval of a wave begins.
type waveChange struct {
	Object, Cluster, Path string
	// From and To are the revision that the cluster has, and the one that it gets.
	From, To int64
	Diff     view.ClusterDiff
}

// askChanges asks members for the change of the first waiting object of each wave that waits for the user. Each wave
// names one cluster. All requests share one timeout, and a wave without an answer says so.
func (b *rolloutBody) askChanges(ctx context.Context, v *visit, bindings map[string]hubv1.BindingObject) {
	ctx, cancel := context.WithTimeout(ctx, drawnWithin)
	defer cancel()
	ask := v.questions()
	if ask.views == nil {
		return
	}
	b.Changes = map[string]*waveChange{}
	for _, w := range b.Asking() {
		change, of := w.change(bindings)
		if change == nil {
			continue
		}
		var answer wire.DiffAnswer
		fault := ask.one(ctx, change.Cluster, func(ctx context.Context, cluster string) error {
			request := wire.DiffRequest{Object: wire.ObjectOf(of), Next: true}
			return ask.views.Ask(ctx, cluster, wire.Diff, of.Namespace, request, &answer)
		})
		change.Diff = view.DiffOf(change.Cluster, of, answer, fault)
		b.Changes[w.Name] = change
	}
}

// change returns the first object that waits for the approval of the wave, on the first cluster that answers and has an
// earlier revision. It returns nil if there is none.
func (w waveOfPage) change(bindings map[string]hubv1.BindingObject) (*waveChange, hubv1.ObjectIdentity) {
	for _, o := range w.Waiting() {
		b := bindings[o.Object]
		if b == nil || o.Rollout == nil {
			continue
		}
		for _, c := range w.OnClusters {
			t := b.BindingSpec().Target(c.Cluster)
			if c.State == view.WaveClusterUnknown || c.Skipped || t == nil || t.State != hubv1.TargetPresent || t.Revision == o.Rollout.Revision {
				continue
			}
			id := hubv1.ObjectOf(b)
			return &waveChange{Object: o.Object, Cluster: c.Cluster, Path: objectPath(id, ""), From: t.Revision, To: o.Rollout.Revision}, id
		}
	}
	return nil, hubv1.ObjectIdentity{}
}

// Change returns the change that an approval of the wave begins. It is nil if it is not known.
func (w waveOfPage) Change() *waveChange { return w.Page.Changes[w.Name] }

// OtherWaiting returns the number of objects that wait for the approval, besides the one whose change is shown.
func (w waveOfPage) OtherWaiting() int { return len(w.Waiting()) - 1 }
