package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/guard"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/view"
)

const (
	rowsPerPage = 100
	memberKind  = "MemberCluster"
	// heldPath is the path of the list of held removals.
	heldPath = "/rollouts#held"
	// maxHeld is the maximum number of held removals that the page shows with a form to confirm. Each form needs an access
	// review.
	maxHeld = 50
	// maxNamed is the maximum number of objects that the page names in a wave. The table below the waves has all objects.
	maxNamed = 5
	// maxWaveCells is the maximum number of clusters that a wave shows one by one. The table of the wave has all of them.
	maxWaveCells = 60
)

// address returns a path with a query from pairs of names and values. Empty values are left out.
func address(path string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			q.Set(parameters[i], parameters[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func rolloutPath(namespace, name string) string {
	return address("/rollouts/placement", "namespace", namespace, "name", name)
}

func rolloutObjectPath(namespace, binding string) string {
	return address("/rollouts/object", "namespace", namespace, "binding", binding)
}

// part is the part of a long table that one page shows.
type part struct {
	From, To, Of   int
	Previous, Next string // URLs of the previous and next page; empty if there is none
}

// partOf returns the part of n rows that the parameter "page" of a request selects.
func partOf(v *visit, n int) part {
	asked, err := strconv.Atoi(v.URL.Query().Get("page"))
	if last := max(1, (n+rowsPerPage-1)/rowsPerPage); err != nil || asked < 1 {
		asked = 1
	} else {
		asked = min(asked, last)
	}
	to := func(number int) string {
		q := v.URL.Query()
		q.Set("page", strconv.Itoa(number))
		return v.URL.Path + "?" + q.Encode()
	}
	p := part{From: (asked - 1) * rowsPerPage, To: min(asked*rowsPerPage, n), Of: n}
	if asked > 1 {
		p.Previous = to(asked - 1)
	}
	if p.To < n {
		p.Next = to(asked + 1)
	}
	return p
}

// First returns the number of the first row of this part of the table, counted from 1. It is 0 if the table has no
// rows.
func (p part) First() int { return min(p.From+1, p.Of) }

// rolloutsBody has the data for the template of the page of all rollouts.
type rolloutsBody struct {
	Rollouts []rolloutRow
	Part     part
	// Result and Sort are the filter and the order that the user has chosen. Namespace is the namespace of the page.
	Result, Sort, Namespace string
	Held                    []heldRow
	MoreHeld                int
	CSRF                    string
}

// Results returns the values by which rollouts can be filtered.
func (rolloutsBody) Results() []view.RolloutResult {
	return []view.RolloutResult{view.RolloutBroken, view.RolloutRuns, view.RolloutDone}
}

type rolloutRow struct {
	view.PlacementRollout
	Path  string
	Track []step
}

// All returns the number of all objects of the placement's rollouts.
func (r rolloutRow) All() int32 {
	if r.Rollout == nil {
		return 0
	}
	of := r.Rollout.Objects
	return of.Moving + of.Passed + of.Failing + of.Pending
}

// heldRow is an object with a held removal.
type heldRow struct {
	Kind, Namespace, Name string
	Held                  *hubv1.RemovalHeld
	Confirmed, May        bool
	Since                 template.HTML
}

// Clusters returns the names of at most 20 clusters.
func (h heldRow) Clusters() []string { return h.Held.Clusters[:min(20, len(h.Held.Clusters))] }

// More returns the number of clusters that Clusters leaves out.
func (h heldRow) More() int { return len(h.Held.Clusters) - len(h.Clusters()) }

func rolloutsPage(ctx context.Context, v *visit) (*page, error) {
	placements, err := v.user.placements(ctx, v.namespace)
	if err != nil {
		return nil, err
	}
	body := rolloutsBody{Result: v.FormValue("result"), Sort: v.FormValue("sort"), Namespace: v.namespace, CSRF: v.session.CSRF}
	var holding []client.Object
	for _, p := range placements {
		if held, _ := guard.Held(p); held != nil {
			holding = append(holding, p)
		}
		if p.PlacementSpec().Rollout == nil {
			continue
		}
		if row := rolloutRowOf(p); body.Result == "" || body.Result == string(row.Result) {
			body.Rollouts = append(body.Rollouts, row)
		}
	}
	order := body.Results()
	slices.SortFunc(body.Rollouts, func(a, b rolloutRow) int {
		byName := cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		if body.Sort == "name" {
			return byName
		}
		return cmp.Or(cmp.Compare(slices.Index(order, a.Result), slices.Index(order, b.Result)), byName)
	})
	body.Part = partOf(v, len(body.Rollouts))
	body.Rollouts = body.Rollouts[body.Part.From:body.Part.To]
	if err := v.user.eachBundle(ctx, v.namespace, func(b hubv1.BundleObject) {
		if held, _ := guard.Held(b); held != nil {
			holding = append(holding, b)
		}
	}); err != nil {
		return nil, err
	}
	if v.namespace == "" {
		members, err := v.user.members(ctx)
		if err != nil {
			return nil, err
		}
		for i := range members {
			if held, _ := guard.Held(&members[i]); held != nil {
				holding = append(holding, &members[i])
			}
		}
	}
	if err := body.hold(ctx, v, holding); err != nil {
		return nil, err
	}
	return &page{Title: "Rollouts", Nav: "rollouts", template: "rollouts", Scope: v.scope(), Body: &body}, nil
}

// hold adds the objects with a held removal to the page. It also finds whether the user may confirm each removal.
func (b *rolloutsBody) hold(ctx context.Context, v *visit, holding []client.Object) error {
	b.MoreHeld = max(0, len(holding)-maxHeld)
	for _, o := range holding[:len(holding)-b.MoreHeld] {
		held, confirmed := guard.Held(o)
		row := heldRow{Kind: memberKind, Namespace: o.GetNamespace(), Name: o.GetName(), Held: held, Confirmed: confirmed, Since: ago(&held.Since, v.now)}
		switch o := o.(type) {
		case hubv1.PlacementObject:
			row.Kind = kindOf(o, "Placement")
		case hubv1.BundleObject:
			row.Kind = hubv1.ReferenceTo(o).Kind
		}
		right := heldResource(o)
		right.Verb = "patch"
		var err error
		if row.May, err = v.user.may(ctx, right); err != nil {
			return err
		}
		b.Held = append(b.Held, row)
	}
	return nil
}

// heldResource returns an object's resource attributes for an access review. The object has a held removal.
func heldResource(o client.Object) authorizationv1.ResourceAttributes {
	switch o := o.(type) {
	case hubv1.PlacementObject:
		return resourceOf(o)
	case hubv1.BundleObject:
		of := hubv1.ReferenceTo(o)
		return authorizationv1.ResourceAttributes{Group: hubv1.GroupVersion.Group, Resource: strings.ToLower(of.Kind) + "s", Namespace: of.Namespace, Name: of.Name}
	}
	return authorizationv1.ResourceAttributes{Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: o.GetName()}
}

// rolloutBody has the data for the template of the page with the rollouts of one placement.
type rolloutBody struct {
	view.RolloutTimeline
	// Rows are the objects in this part of the table.
	Rows  []rolloutObjectRow
	Part  part
	Phase string // the phase that the user chose as a filter
	May   steeringRights
	// State is a digest of the rollouts in progress that the page shows. It detects a form from an outdated page, so that
	// the console can refuse the form.
	State, CSRF string
	Now         metav1.Time
	Changing    int
	Seen        bool // whether the user may see the clusters
	// Changes has the change that an approval begins, by the name of the wave.
	Changes map[string]*waveChange
}

type rolloutObjectRow struct {
	view.RolloutObject
	Path string
}

// rank orders the rows. Rollouts that wait or have failed come first, and objects without a revision come last.
func (r rolloutObjectRow) rank() int {
	phases := rolloutBody{}.Phases()
	if r.Rollout == nil {
		return len(phases) + 1
	}
	if i := slices.Index(phases, r.Rollout.Phase); i >= 0 {
		return i
	}
	return len(phases)
}

// Verdict returns the display of the rollouts together. It names the wave, and the user if the wave waits for the user.
func (b rolloutBody) Verdict() state {
	out := rolloutState(b.PlacementRollout)
	wave := ""
	if b.Rollout != nil && b.Result == view.RolloutRuns {
		wave = b.Rollout.Wave
	}
	if asking := b.Asking(); len(asking) > 0 {
		return state{"held", "wave " + asking[0].Name + " waits for you"}
	}
	if wave != "" {
		out.Word = "wave " + wave + ": " + out.Word
	}
	return out
}

// Since returns the time since which the first object waits for the approval that the verdict names.
func (b rolloutBody) Since() *metav1.Time {
	if asking := b.Asking(); len(asking) > 0 {
		return asking[0].Since()
	}
	return nil
}

// Summary says how far the rollouts are, without the wave, which the verdict names.
func (b rolloutBody) Summary() string {
	if begin, rest, found := strings.Cut(b.Progress, ": "); found && strings.HasPrefix(begin, "Waiting for wave ") {
		return rest
	}
	return b.Progress
}

// steeringRights are the user's rights on the rollouts of a placement.
type steeringRights struct{ Approve, Pause, Skip, Promote bool }

// Paused reports whether a user has paused the placement's rollouts.
func (b rolloutBody) Paused() bool { return b.Asked["Paused"] == "true" }

// Waves returns each wave with the additional data that its template needs.
func (b rolloutBody) Waves() []waveOfPage {
	var out []waveOfPage
	for i, w := range b.RolloutTimeline.Waves {
		shown := waveOfPage{TimelineWave: w, Page: b}
		if i > 0 {
			shown.Before = &b.RolloutTimeline.Waves[i-1]
		}
		out = append(out, shown)
	}
	return out
}

// waveOfPage is a wave, together with the wave before it and the page's data.
type waveOfPage struct {
	view.TimelineWave
	Before *view.TimelineWave // nil for the first wave
	Page   rolloutBody
}

// Asks reports whether the page shows a form to approve the wave: an object waits for the approval, and the user may
// approve.
func (w waveOfPage) Asks() bool {
	return w.Page.May.Approve && !w.Approved && len(w.Waiting()) > 0
}

// Named returns the first objects of the wave, at most maxNamed. The page names only these.
func (w waveOfPage) Named() []view.RolloutObject {
	return w.Objects[:min(maxNamed, len(w.Objects))]
}

// More returns the number of objects of the wave that Named leaves out.
func (w waveOfPage) More() int { return len(w.Objects) - len(w.Named()) }

// Cells returns a cell for each cluster of the wave, at most maxWaveCells, those that are not well first.
func (w waveOfPage) Cells() []cell {
	var out []cell
	for _, c := range w.OnClusters {
		of := waveClusterState(c.State)
		if c.Skipped {
			of = state{"off", "skipped"}
		}
		label := fmt.Sprintf("%s: %s, %d of %d objects updated", c.Cluster, of.Word, c.Updated, c.Objects)
		out = append(out, cell{Class: of.Class, Path: "/clusters/" + c.Cluster, Label: label, Quiet: of.Class == "unknown" || w.State == view.WavePending})
	}
	slices.SortStableFunc(out, func(a, b cell) int { return cmp.Compare(slices.Index(signs, a.Class), slices.Index(signs, b.Class)) })
	return out[:min(len(out), maxWaveCells)]
}

// Rest returns the number of clusters without a cell.
func (w waveOfPage) Rest() int { return max(len(w.OnClusters)-maxWaveCells, 0) }

// Is returns the display of the wave's state: it names the user if the wave waits for the user.
func (w waveOfPage) Is() state {
	if w.Asks() {
		return state{"held", "waits for you"}
	}
	return waveState(w.State)
}

// Troubles returns the clusters of the wave that the user should know of before an approval, at most maxNamed.
func (w waveOfPage) Troubles() []view.TimelineCluster {
	var out []view.TimelineCluster
	for _, c := range w.OnClusters {
		if (c.State == view.WaveClusterDegraded || c.State == view.WaveClusterUnknown) && len(out) < maxNamed {
			out = append(out, c)
		}
	}
	return out
}

// Passed returns the waves before this one.
func (w waveOfPage) Passed() []view.TimelineWave {
	i := slices.IndexFunc(w.Page.RolloutTimeline.Waves, func(other view.TimelineWave) bool { return other.Name == w.Name })
	return w.Page.RolloutTimeline.Waves[:max(i, 0)]
}

// Command returns the command that approves the wave.
func (w waveOfPage) Command() string {
	name := w.Page.RolloutTimeline.Name
	if w.Page.Namespace == "" {
		return "hansectl rollout approve clusterplacement/" + name + " " + w.Name
	}
	return "hansectl rollout approve " + name + " " + w.Name + " -n " + w.Page.Namespace
}

// Asking returns the waves that wait for the user's approval.
func (b rolloutBody) Asking() []waveOfPage {
	return slices.DeleteFunc(b.Waves(), func(w waveOfPage) bool { return !w.Asks() })
}

// MaySkip reports whether the page shows a form to skip a cluster.
func (w waveOfPage) MaySkip(c view.TimelineCluster) bool {
	return w.Page.May.Skip && w.Page.Changing > 0 && !c.Skipped && c.State != view.WaveClusterPassing
}

func rolloutPage(ctx context.Context, v *visit) (*page, error) {
	if v.URL.Query().Get("name") == "" { // no object is chosen, because the user has just changed the namespace
		return rolloutsPage(ctx, v)
	}
	s, err := v.user.steering(ctx, v.namespace, v.URL.Query().Get("name"))
	if err != nil {
		return nil, err
	}
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	body := rolloutBody{
		RolloutTimeline: view.RolloutTimelineOf(s.Placement, s.Objects, members, v.now),
		State:           s.State(), CSRF: v.session.CSRF, Now: metav1.NewTime(v.now), Phase: v.FormValue("phase"), Seen: len(members) > 0,
	}
	for _, wave := range body.RolloutTimeline.Waves {
		body.Changing += len(wave.Objects)
	}
	names := map[string]hubv1.BindingObject{}
	for _, b := range s.Objects {
		names[hubv1.ObjectOf(b).String()] = b
	}
	for _, o := range body.Objects {
		if body.Phase == "" || o.Rollout != nil && string(o.Rollout.Phase) == body.Phase {
			row := rolloutObjectRow{RolloutObject: o}
			if b := names[o.Object]; o.Rollout != nil {
				row.Path = rolloutObjectPath(b.GetNamespace(), b.GetName())
			}
			body.Rows = append(body.Rows, row)
		}
	}
	slices.SortStableFunc(body.Rows, func(a, b rolloutObjectRow) int { return cmp.Compare(a.rank(), b.rank()) })
	body.Part = partOf(v, len(body.Rows))
	body.Rows = body.Rows[body.Part.From:body.Part.To]
	if body.May, err = v.user.steeringRights(ctx, s); err != nil {
		return nil, err
	}
	body.askChanges(ctx, v, names)
	return &page{Title: "Rollout of " + s.Named, Nav: "rollouts", template: "rollout", Scope: v.scope(), Crumbs: rolloutCrumbs(v.namespace, body.Kind), Body: &body}, nil
}

// Phases returns the values by which objects can be filtered.
func (rolloutBody) Phases() []hubv1.RolloutPhase {
	return []hubv1.RolloutPhase{
		hubv1.RolloutFailed, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForClusters, hubv1.RolloutWaitingForWindow,
		hubv1.RolloutWaitingForOthers, hubv1.RolloutPaused,
		hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutRollingBack, hubv1.RolloutRolledBack,
	}
}

func (u *user) steeringRights(ctx context.Context, s rollout.Steering) (steeringRights, error) {
	var r steeringRights
	on := resourceOf(s.Placement)
	has := func(verb string) (bool, error) {
		on.Verb = verb
		return u.may(ctx, on)
	}
	if may, err := has("patch"); err != nil || !may {
		return r, err
	}
	for verb, to := range map[string]*bool{"rollout-approve": &r.Approve, "rollout-pause": &r.Pause, "rollout-skip": &r.Skip, "rollout-promote": &r.Promote} {
		var err error
		if *to, err = has(verb); err != nil {
			return r, err
		}
	}
	return r, nil
}

// rolloutObjectBody has the data for the template of the page with the rollout of one object.
type rolloutObjectBody struct {
	view.Rollout
	History view.RolloutHistory
	// PlacementPath is the path of the placement's page. It is empty if no placement selects the object.
	PlacementPath string
	// Bundle is the bundle with which the object changes. It is empty if there is none.
	Bundle             string
	Namespace, Binding string
	State, CSRF        string
	MayUndo            bool
	// Stored lists the versions in which clusters store the objects of a CustomResourceDefinition. The user must know
	// these versions before a return to an earlier revision of the CRD.
	Stored string
	Now    metav1.Time
}

// Undoes reports whether the page shows a form to return the object to a revision.
func (b rolloutObjectBody) Undoes(r view.HistoryRevision) bool {
	return b.MayUndo && (r.Number != b.Rollout.Rollout.Revision || r.Number == b.Rollout.Rollout.Failed)
}

// rollingBinding reads the binding of an object that has a rollout.
func (u *user) rollingBinding(ctx context.Context, namespace, name string) (hubv1.BindingObject, error) {
	var b hubv1.BindingObject = &hubv1.ResourceBinding{}
	if namespace == "" {
		b = &hubv1.ClusterResourceBinding{}
	}
	if err := u.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b); err != nil {
		return nil, fmt.Errorf("reading the binding of an object: %w", err)
	}
	if b.BindingSpec().Rollout == nil {
		return nil, fmt.Errorf("%w rollout of %s", errNotFound, hubv1.ObjectOf(b))
	}
	return b, nil
}

// stateOfObject returns a digest of the revisions of an object. It detects a form from an outdated page, so that the
// console can refuse the form.
func stateOfObject(b hubv1.BindingObject) string {
	return stateOf(string(b.GetUID()), b.BindingSpec().Rollout)
}

func stateOf(uid string, r *hubv1.BindingRollout) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %s", uid, r.Revision, r.Newest, r.Failed, r.Undone))
	return hex.EncodeToString(sum[:])
}

func rolloutObjectPage(ctx context.Context, v *visit) (*page, error) {
	if v.URL.Query().Get("binding") == "" { // no object is chosen, because the user has just changed the namespace
		return rolloutsPage(ctx, v)
	}
	b, err := v.user.rollingBinding(ctx, v.namespace, v.URL.Query().Get("binding"))
	if err != nil {
		return nil, err
	}
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	id := hubv1.ObjectOf(b)
	in := view.RolloutInput{ID: id, Binding: b, Members: members, Now: v.now}
	body := rolloutObjectBody{
		History: view.RolloutHistoryOf(id, b), Namespace: b.GetNamespace(), Binding: b.GetName(), State: stateOfObject(b), Stored: view.StoredVersions(b), CSRF: v.session.CSRF, Now: metav1.NewTime(v.now),
	}
	if ref := b.BindingSpec().PlacementRef; ref != nil {
		body.PlacementPath = rolloutPath(ref.Namespace, ref.Name)
		p, err := v.user.placement(ctx, ref.Namespace, ref.Name)
		if err := v.user.unlessForbidden(client.IgnoreNotFound(err), "You do not see the waves"); err != nil {
			return nil, err
		}
		if p != nil {
			in.Placement = p
		}
	}
	body.Rollout = view.RolloutOf(in)
	set, err := v.user.setRolloutOf(ctx, b)
	if err != nil {
		return nil, err
	}
	if set != nil {
		if err := body.showSet(ctx, v.user, b, set, in); err != nil {
			return nil, err
		}
		id, body.Bundle = set.Bundle.Identity(), set.Bundle.String()
	}
	if set != nil || b.BindingSpec().ObjectRef.Bundle == nil {
		if body.MayUndo, err = v.user.mayUndo(ctx, id); err != nil {
			return nil, err
		}
	}
	return &page{Title: "Rollout of " + titleOf(id), Nav: "rollouts", template: "rolloutobject", Scope: v.scope(), Crumbs: rolloutCrumbs(v.namespace, id.Kind), Body: &body}, nil
}

// rolloutCrumbs returns the pages above the page of a rollout.
func rolloutCrumbs(namespace, kind string) []crumb {
	out := []crumb{{"/rollouts", "Rollouts"}}
	if namespace != "" {
		out = append(out, crumb{pathOf("/rollouts", "namespace", namespace), namespace})
	}
	return append(out, crumb{"", kind})
}
