package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/placement/guard"
	"github.com/hanse-dev/hanse/view"
)

const (
	// maxProblems is the maximum number of listed problems.
	maxProblems = 20
	// maxCells is the maximum number of clusters that a tile shows one by one.
	maxCells = 24
	// maxRunning is the maximum number of listed rollouts.
	maxRunning = 10
)

// fleetBody has the data for the template of the first page: counts, what needs the user, and the clusters.
type fleetBody struct {
	Needs  []need
	Counts []count
	// Verdict begins the sentence beside the title, and Rest ends it.
	Verdict, Rest string
	// More is the number of problems that are not listed.
	More     int
	Regions  []regionOfClusters
	Clusters int
	// Table is true if the page shows the clusters as one table. Rows are those of this part of the table.
	Table    bool
	Rows     []view.Cluster
	Part     part
	Rollouts []rolloutRow
	Now      time.Time
	// Namespace is the only namespace of the page. It is empty if the page shows all namespaces.
	Namespace string
	// TilesPath and TablePath are the paths of the two views of clusters.
	TilesPath, TablePath string
}

// count is one of the numbers on top of the page, with the states behind it. Of is the whole, or negative if there is
// none.
type count struct {
	Title, Path string
	N, Of       int
	Parts       []countPart
	// Hidden says why there is no number. It is empty if there is one.
	Hidden string
}

// countPart is the number of things in one state. Word is empty for a part that only the bar shows.
type countPart struct {
	Class, Word string
	N           int
}

// Loud returns the parts that the page names, the loudest first.
func (c count) Loud() []countPart {
	out := slices.DeleteFunc(slices.Clone(c.Parts), func(p countPart) bool { return p.N == 0 || p.Word == "" })
	slices.SortStableFunc(out, func(a, b countPart) int {
		return cmp.Compare(slices.Index(signs, a.Class), slices.Index(signs, b.Class))
	})
	return out
}

// barPart is a rectangle of a bar.
type barPart struct {
	Class string
	X, W  int
}

// bar is a bar of coloured parts.
type bar struct {
	Width int
	Parts []barPart
}

// Bar returns the bar of the count.
func (c count) Bar() bar { return barOf(c.Parts) }

// minBarPart is the least width of a part of a bar, so that one of many is visible.
const minBarPart = 10

// barOf returns a bar of about a thousand parts.
func barOf(parts []countPart) bar {
	all := 0
	for _, p := range parts {
		all += p.N
	}
	var out bar
	for _, p := range parts {
		if p.N > 0 {
			w := max(p.N*1000/all, minBarPart)
			out.Parts = append(out.Parts, barPart{p.Class, out.Width, w})
			out.Width += w
		}
	}
	return out
}

// regionOfClusters is a tile: the clusters of a region. The empty name is for clusters without a region.
type regionOfClusters struct {
	Name         string
	Cells        []cell
	Ready, Total int
	Copies       int
	// Path is the path of the table of these clusters. Rest is the number of clusters without a cell of their own.
	Path string
	Rest int
	// Worst is the worst state of the clusters if it needs a user, and WorstCount the number of clusters in this state.
	Worst      state
	WorstCount int
}

// fleetReading has what the fleet page reads from the hub.
type fleetReading struct {
	members    []hubv1.MemberCluster
	problems   *view.Gatherer
	copies     *view.FleetGatherer
	placements []hubv1.PlacementObject
	operators  []*hubv1.FederatedOperator
	held       int // removals
	heldCopies int
	// noPolicies is true if the user may not see all policies, and noBundles if the user may not see all bundles.
	noPolicies, noBundles bool
}

func readFleetPage(ctx context.Context, v *visit) (*fleetReading, error) {
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	r := &fleetReading{members: members, problems: view.NewGatherer(members), copies: view.NewFleetGatherer(members, v.now)}
	err = v.user.eachBinding(ctx, v.namespace, func(b hubv1.BindingObject) {
		r.problems.Add(b)
		r.copies.Add(b)
	})
	if err != nil {
		return nil, err
	}
	seen := len(v.user.notes)
	if r.placements, err = v.user.eachPolicy(ctx, v.namespace, r.problems.AddPolicy); err != nil {
		return nil, err
	}
	r.noPolicies, seen = len(v.user.notes) > seen, len(v.user.notes)
	for _, p := range r.placements {
		r.hold(hubv1.RemovalHeldOf(p))
	}
	err = v.user.eachBundle(ctx, v.namespace, func(b hubv1.BundleObject) {
		r.problems.AddBundle(b)
		held, _ := guard.Held(b)
		r.hold(held)
		if o, is := b.(*hubv1.FederatedOperator); is {
			r.operators = append(r.operators, o)
		}
	})
	for i := range members {
		if v.namespace == "" {
			r.hold(members[i].Status.RemovalHeld)
		}
	}
	r.noBundles = len(v.user.notes) > seen
	return r, err
}

func (r *fleetReading) hold(held *hubv1.RemovalHeld) {
	if held != nil {
		r.held++
		r.heldCopies += int(held.Copies)
	}
}

func fleetPage(ctx context.Context, v *visit) (*page, error) {
	read, err := readFleetPage(ctx, v)
	if err != nil {
		return nil, err
	}
	needs := read.problems.Needs(maxProblems)
	body := fleetBody{
		More: needs.Total() - len(needs.Entries), Now: v.now, Namespace: v.namespace, Table: v.FormValue("view") == "table",
		TilesPath: pathOf("/", "namespace", v.namespace), TablePath: pathOf("/", "namespace", v.namespace, "view", "table"),
	}
	if body.Needs, err = v.needsOf(ctx, needs.Entries); err != nil {
		return nil, err
	}
	body.Verdict, body.Rest = verdictOf(needs)
	clusters := view.Clusters(read.members, copiesOn(read.copies), nil, v.now).Clusters
	body.Clusters = len(clusters)
	body.tile(clusters, read.copies)
	body.Rollouts = running(read.placements)
	body.Counts = body.counts(read, clusters)
	if body.Table {
		slices.SortStableFunc(clusters, func(a, b view.Cluster) int { return cmp.Compare(a.Region, b.Region) })
		if region := v.FormValue("region"); region != "" {
			clusters = slices.DeleteFunc(clusters, func(c view.Cluster) bool { return c.Region != region })
		}
		body.Part = partOf(v, len(clusters))
		body.Rows = clusters[body.Part.From:body.Part.To]
	}
	return &page{Title: "Fleet", Nav: "fleet", template: "fleet", Scope: v.scope(), Body: body}, nil
}

// copiesOn returns the number of copies on each cluster.
func copiesOn(g *view.FleetGatherer) map[string]int {
	out := map[string]int{}
	for name, copies := range g.Clusters {
		out[name] = copies.Total()
	}
	return out
}

// verdictOf says in words how many things need the user.
func verdictOf(n view.Needs) (verdict, rest string) {
	all := n.Total()
	if all == 0 {
		return "Nothing needs you.", ""
	}
	var parts []string
	for _, of := range []struct {
		topic     view.Topic
		one, many string
	}{
		{view.TopicObject, "object", "objects"}, {view.TopicCluster, "cluster", "clusters"}, {view.TopicRollout, "rollout", "rollouts"},
		{view.TopicRemoval, "held removal", "held removals"}, {view.TopicPolicy, "policy", "policies"}, {view.TopicKind, "kind", "kinds"},
	} {
		if count := n.Of[of.topic]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, plural(count, of.one, of.many)))
		}
	}
	return fmt.Sprintf("%d %s you:", all, plural(all, "thing needs", "things need")), strings.Join(parts, ", ") + "."
}

// plural returns the word for one thing, or for another number of things. n is an integer.
func plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return one
	}
	return many
}

// tile makes the tiles of regions, sorted by name.
func (b *fleetBody) tile(clusters []view.Cluster, copies *view.FleetGatherer) {
	byRegion := map[string]*regionOfClusters{}
	for _, c := range clusters {
		r := byRegion[c.Region]
		if r == nil {
			r = &regionOfClusters{Name: c.Region, Path: pathOf("/", "namespace", b.Namespace, "view", "table", "region", c.Region)}
			byRegion[c.Region] = r
		}
		shown := b.cellOf(c, copies.Clusters[c.Name])
		r.Total++
		if clusterState(c).Class == "ok" || clusterState(c).Class == "off" && c.Live {
			r.Ready++
		}
		if of := copies.Clusters[c.Name]; of != nil {
			r.Copies += of.Total()
		}
		r.Cells = append(r.Cells, shown)
	}
	for _, r := range byRegion {
		r.fold()
		b.Regions = append(b.Regions, *r)
	}
	slices.SortFunc(b.Regions, func(a, c regionOfClusters) int { return cmp.Compare(a.Name, c.Name) })
}

// fold finds the worst state of the region, and leaves out cells if there are too many: first those of ready clusters.
func (r *regionOfClusters) fold() {
	worst := len(signs)
	for _, c := range r.Cells {
		if at := slices.Index(signs, c.Class); at < worst {
			worst, r.WorstCount = at, 0
		}
		if c.Class == signs[worst] {
			r.WorstCount++
		}
	}
	if worst < 4 {
		r.Worst = state{signs[worst], map[string]string{"down": "not ready", "bad": "degraded", "unknown": "unknown", "held": "waiting"}[signs[worst]]}
	}
	if len(r.Cells) <= maxCells {
		return
	}
	slices.SortStableFunc(r.Cells, func(a, b cell) int { return cmp.Compare(slices.Index(signs, a.Class), slices.Index(signs, b.Class)) })
	notOK := slices.IndexFunc(r.Cells, func(c cell) bool { return c.Class == "ok" })
	if notOK < 0 {
		notOK = len(r.Cells)
	}
	kept := min(notOK, maxCells)
	r.Rest = len(r.Cells) - kept
	r.Cells = r.Cells[:kept]
}

// cellOf returns the cell of a cluster: the worst state of the cluster and of its copies.
func (b *fleetBody) cellOf(c view.Cluster, copies *view.CopyCounts) cell {
	of := clusterState(c)
	out := cell{Class: of.Class, Path: pathOf("/clusters/"+c.Name, "namespace", b.Namespace), Label: c.Name + ": " + of.Word}
	if of.Class == "unknown" && c.LastObservedTime != nil {
		out.Label += ", last seen " + c.LastObservedTime.UTC().Format("2006-01-02 15:04 UTC")
	}
	if copies == nil || of.Class == "down" || of.Class == "unknown" {
		return out
	}
	worst := copies.Worst()
	if shown := copyState(worst); worst != 0 && slices.Index(signs, shown.Class) < slices.Index(signs, of.Class) {
		n := copies.Of(worst)
		out.Class, out.Label = shown.Class, fmt.Sprintf("%s: %d %s %s", c.Name, n, plural(n, "object", "objects"), shown.Word)
		if of.Class != "ok" {
			out.Label += ", " + of.Word
		}
	}
	return out
}

// counts returns the numbers on top of the page.
func (b *fleetBody) counts(read *fleetReading, clusters []view.Cluster) []count {
	ready := count{Title: "Clusters ready", Path: "#clusters", Of: len(clusters), Parts: []countPart{
		{Class: "ok"}, {Class: "off", Word: "set aside"}, {Class: "down", Word: "not ready"}, {Class: "unknown", Word: "unknown"},
	}}
	for _, c := range clusters {
		class := clusterState(c).Class
		i := slices.IndexFunc(ready.Parts, func(p countPart) bool { return p.Class == class })
		ready.Parts[max(i, 0)].N++
	}
	ready.N = ready.Parts[0].N + ready.Parts[1].N
	objects := count{Title: "Objects healthy", Path: pathOf("/objects", "namespace", b.Namespace), N: read.copies.Objects.Healthy(), Of: read.copies.Objects.Total()}
	states := rollup.CopyStates()
	for i := range states {
		s := states[len(states)-1-i]
		part := countPart{Class: copyState(s).Class, N: read.copies.Objects.Of(s)}
		if s != rollup.CopyHealthy {
			part.Word = copyState(s).Word
		}
		objects.Parts = append(objects.Parts, part)
	}
	return []count{ready.unlessNone(), objects.unlessNone(), b.rolloutCount(read).unless(read.noPolicies), count{
		Title: "Removals held", Path: pathOf("/rollouts", "namespace", b.Namespace) + "#held", N: read.held, Of: -1,
		Parts: []countPart{{Class: "held", Word: plural(read.heldCopies, "copy", "copies"), N: read.heldCopies}},
	}.unless(read.noPolicies || read.noBundles), b.operatorCount(read)}
}

// unlessNone returns the count without a number if there is nothing to count.
func (c count) unlessNone() count {
	if c.Of == 0 {
		c.Hidden = "none that you may see"
	}
	return c
}

// unless returns the count without a number if the user may not see everything that it counts.
func (c count) unless(hidden bool) count {
	if hidden {
		c.Hidden = "not all are visible to you"
	}
	return c
}

// operatorCount counts the operators that are ready on all their clusters.
func (b *fleetBody) operatorCount(read *fleetReading) count {
	out := count{Title: "Operators ready everywhere", Path: "/operators", Of: len(read.operators)}
	if b.Namespace != "" {
		out.Hidden = "of the whole hub: see all namespaces"
		return out
	}
	missing := 0
	for _, o := range read.operators {
		if o.Status.Ready == o.Status.Total && o.Status.Total > 0 {
			out.N++
		} else {
			missing++
		}
	}
	out.Parts = []countPart{{Class: "ok", N: out.N}, {Class: "run", Word: "not everywhere", N: missing}}
	return out.unlessNone()
}

// rolloutCount counts the placements whose rollouts are not complete.
func (b *fleetBody) rolloutCount(read *fleetReading) count {
	out := count{Title: "Rollouts not complete", Path: pathOf("/rollouts", "namespace", b.Namespace), Of: -1, Parts: []countPart{
		{Class: "down", Word: "failed"}, {Class: "held", Word: "waiting"}, {Class: "run", Word: "running"},
	}}
	for _, p := range read.placements {
		if p.PlacementSpec().Rollout == nil {
			continue
		}
		class := rolloutState(view.PlacementRolloutOf(p, nil)).Class
		if i := slices.IndexFunc(out.Parts, func(p countPart) bool { return p.Class == class }); i >= 0 {
			out.N++
			out.Parts[i].N++
		}
	}
	return out
}

// running returns the rollouts that are not complete, the worst first.
func running(placements []hubv1.PlacementObject) []rolloutRow {
	var out []rolloutRow
	for _, p := range placements {
		if p.PlacementSpec().Rollout == nil {
			continue
		}
		if row := rolloutRowOf(p); row.Result != view.RolloutDone {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b rolloutRow) int {
		return cmp.Or(cmp.Compare(slices.Index(signs, rolloutState(a.PlacementRollout).Class), slices.Index(signs, rolloutState(b.PlacementRollout).Class)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxRunning)]
}
