package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// PlacementRollout is the output of `rollout status` for a placement.
type PlacementRollout struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Result is the result of the placement's rollouts together: Running, Done or Failed. Progress describes the result in
	// one line.
	Result   RolloutResult           `json:"result"`
	Progress string                  `json:"progress"`
	Rollout  *hubv1.PlacementRollout `json:"rollout,omitempty"`
	// Asked are the rollout annotations of the placement, with which users have requested actions.
	Asked map[string]string `json:"asked,omitempty"`
	// Objects are the objects whose rollout is not complete, except objects that are being deleted.
	Objects []RolloutObject `json:"objects,omitempty"`
}

// RolloutObject is an object whose rollout is not complete.
type RolloutObject struct {
	Object string `json:"object"`
	// Bundle is the bundle whose rollout this is. The object is the first one that the change of the bundle changes.
	// Bundle is empty if the object has a rollout of its own.
	Bundle string `json:"bundle,omitempty"`
	// Rollout is the state of the object's rollout. It is absent until the hub has stored a revision of the object.
	Rollout *hubv1.BindingRollout `json:"rollout,omitempty"`
	// Updated is the number of clusters with the newest revision. Desired is the number of clusters that shall hold the
	// object.
	Updated int32 `json:"updated"`
	Desired int32 `json:"desired"`
}

// Name returns the name of what is rolled out: the bundle, or the object.
func (o RolloutObject) Name() string { return cmp.Or(o.Bundle, o.Object) }

// rolloutAnnotations pairs each annotation that controls a rollout with its text in the output.
var rolloutAnnotations = [][2]string{
	{hubv1.RolloutPauseAnnotation, "Paused"}, {hubv1.RolloutApproveAnnotation, "Approved"},
	{hubv1.RolloutSkipAnnotation, "Skipped"}, {hubv1.RolloutPromoteAnnotation, "Promoted"},
}

// PlacementRolloutOf returns the rollouts of a placement's objects. following has the bindings of these objects. It is
// empty if the caller shows only the placement.
func PlacementRolloutOf(p hubv1.PlacementObject, following []hubv1.BindingObject) PlacementRollout {
	r := PlacementRollout{Kind: kindOf(p), Namespace: p.GetNamespace(), Name: p.GetName(), Rollout: p.PlacementStatus().Rollout}
	for _, a := range rolloutAnnotations {
		if value := p.GetAnnotations()[a[0]]; value != "" {
			if r.Asked == nil {
				r.Asked = map[string]string{}
			}
			r.Asked[a[1]] = value
		}
	}
	for _, b := range onePerSet(following) {
		spec := b.BindingSpec()
		if b.GetDeletionTimestamp() != nil || spec.Rollout != nil && spec.Rollout.Phase == hubv1.RolloutComplete {
			continue
		}
		o := RolloutObject{Object: hubv1.ObjectOf(b).String(), Rollout: spec.Rollout}
		if FollowsSet(b) {
			o.Bundle = spec.ObjectRef.Bundle.String()
		}
		if n := b.BindingStatus().Summary.Updated; n != nil {
			o.Updated = *n
		}
		for _, t := range spec.Clusters {
			if t.State == hubv1.TargetPresent {
				o.Desired++
			}
		}
		r.Objects = append(r.Objects, o)
	}
	slices.SortFunc(r.Objects, func(a, b RolloutObject) int { return cmp.Compare(a.Object, b.Object) })
	r.Result, r.Progress = r.result()
	return r
}

func (r *PlacementRollout) result() (RolloutResult, string) {
	s := r.Rollout
	if s == nil {
		return RolloutRuns, "Waiting for the hub to count the rollouts"
	}
	n := s.Objects
	all := n.Moving + n.Passed + n.Failing + n.Pending
	verb := "have their"
	if all == 1 {
		verb = "has its"
	}
	counts := fmt.Sprintf("%d of %s %s newest revision on all clusters", n.Passed, counted(int(all), "object"), verb)
	switch {
	case s.Stopped != nil:
		text := fmt.Sprintf("Revision %d of %s failed, which stops the placement: %s", s.Stopped.Revision, s.Stopped.Object, s.Message)
		return RolloutBroken, strings.TrimSuffix(text, ": ")
	case n.Moving > 0, s.Phase == hubv1.RolloutRollingBack:
		return RolloutRuns, "Waiting for wave " + s.Wave + ": " + counts
	case n.Failing > 0:
		return RolloutBroken, "Objects were rolled back: " + counts
	case n.Pending > 0:
		return RolloutRuns, fmt.Sprintf("Waiting for the first revision of %s", counted(int(n.Pending), "object"))
	}
	return RolloutDone, fmt.Sprintf("%s %s successfully rolled out: %s", r.Kind, r.name(), counts)
}

func (r *PlacementRollout) name() string { return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }

// Write writes the counts, and a table of the objects whose rollout is not complete.
func (r PlacementRollout) Write(w io.Writer, now time.Time) {
	head := r.Kind + " " + r.name()
	if s := r.Rollout; s != nil {
		head += fmt.Sprintf("%smoving %d%spassed %d%sfailing %d%spending %d", gap, s.Objects.Moving, gap, s.Objects.Passed, gap, s.Objects.Failing, gap, s.Objects.Pending)
	}
	fmt.Fprintln(w, printable(head))
	if s := r.Rollout; s != nil {
		wave := string(s.Phase)
		if s.Wave != "" {
			wave = s.Wave + ", " + wave
		}
		line(w, "Wave", wave)
		if s.Stopped != nil {
			line(w, "Stopped", fmt.Sprintf("by %s, whose revision %d failed at %s", s.Stopped.Object, s.Stopped.Revision, s.Stopped.Since.UTC().Format(time.RFC3339)))
		}
		line(w, "Message", s.Message)
	}
	for _, a := range rolloutAnnotations {
		line(w, a[1], r.Asked[a[1]])
	}
	r.writeObjects(w, now)
	line(w, "Progress", r.Progress)
}

func (r PlacementRollout) writeObjects(w io.Writer, now time.Time) {
	if len(r.Objects) == 0 {
		return
	}
	var rows [][]string
	for _, o := range r.Objects {
		updated := fmt.Sprintf("%d/%d", o.Updated, o.Desired)
		if o.Rollout == nil {
			rows = append(rows, []string{o.Name(), "", "", "", hubv1.ReasonBaselinePending, updated, "", ""})
			continue
		}
		s := o.Rollout
		rows = append(rows, []string{o.Name(), revisionCell(s.Revision), revisionCell(s.Newest), s.Wave, string(s.Phase), updated, age(s.Since, now), s.Message})
	}
	table(w, []string{"OBJECT", "REVISION", "NEWEST", "WAVE", "PHASE", "UPDATED", "SINCE", "WHY"}, rows)
}
