package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

// editsOfFleet is the number of edits of each generated fleet. rapid generates 100 fleets, so 500 edits are planned.
const editsOfFleet = 5

func TestAPlanIsWhatTheDecisionsOnTheEditedFleetSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := drawFleet(t)
		for range editsOfFleet {
			after := drawEdit(t, before)
			got, err := Make(t.Context(), before, after, Options{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := decided(t.Context(), before, after, func(int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			was, is := d.was, d.is
			redivided := redividedIn(was, is)
			if diff := cmp.Diff(heldIn(is, redivided), carriedOut(heldIn(was, redivided), got, redivided)); diff != "" {
				t.Fatalf("copies after the plan (-settled +planned):\n%s", diff)
			}
			if diff := cmp.Diff(movedIn(d, redivided), movedBy(got, redivided)); diff != "" {
				t.Fatalf("objects that move (-decided +planned):\n%s", diff)
			}
			if diff := cmp.Diff(changedIn(d), changedBy(got)); diff != "" {
				t.Fatalf("copies with changed fields (-rendered +planned):\n%s", diff)
			}
			before = after.From(is)
		}
	})
}

// copies are the replicas by object and cluster. They are 0 if the object is not divided.
type copies map[string]map[string]int64

// redividedIn returns the objects that are divided only before or only after the change. A plan shows such an object as
// changes of fields.
func redividedIn(was, is *decide.Settlement) map[string]bool {
	before, out := map[string]hubv1.BindingObject{}, map[string]bool{}
	for i, o := range was.Outcomes {
		before[objectOf(was.Object(i).Identity()).String()] = o.Binding
	}
	for i, o := range is.Outcomes {
		name := objectOf(is.Object(i).Identity()).String()
		out[name] = before[name] != nil && divided(before[name]) != divided(o.Binding)
	}
	return out
}

func heldIn(s *decide.Settlement, redivided map[string]bool) copies {
	out := copies{}
	for i, o := range s.Outcomes {
		name, held := objectOf(s.Object(i).Identity()).String(), map[string]int64{}
		for cluster, t := range targetsOf(o.Binding) {
			held[cluster] = 0
			if !redivided[name] {
				held[cluster] = shareOf(t)
			}
		}
		if len(held) > 0 {
			out[name] = held
		}
	}
	return out
}

// carriedOut returns the copies after the plan was carried out.
func carriedOut(held copies, p Plan, redivided map[string]bool) copies {
	at := func(o Object) map[string]int64 {
		if held[o.String()] == nil {
			held[o.String()] = map[string]int64{}
		}
		return held[o.String()]
	}
	for _, r := range p.Removals {
		for _, c := range r.Clusters {
			delete(at(r.Object), c)
		}
	}
	shares := func(o Object, shares []Share) {
		for _, s := range shares {
			if _, there := at(o)[s.Cluster]; there && !redivided[o.String()] {
				at(o)[s.Cluster] = s.After
			}
		}
	}
	for _, m := range p.Moves {
		for _, c := range m.To {
			at(m.Object)[c] = 0
		}
		shares(m.Object, m.Shares)
	}
	for _, c := range p.Creations {
		for _, cluster := range c.Clusters {
			at(c.Object)[cluster] = 0
		}
		shares(c.Object, c.Shares)
	}
	for _, c := range p.Changes {
		shares(c.Object, c.Shares)
	}
	maps.DeleteFunc(held, func(_ string, clusters map[string]int64) bool { return len(clusters) == 0 })
	return held
}

// movedIn returns the objects whose copies or replicas move by the decisions.
func movedIn(d *decisions, redivided map[string]bool) []string {
	out := []string{}
	for p := range d.pairs() {
		if name := p.Object.String(); p.moves() && !redivided[name] {
			out = append(out, name)
		}
	}
	return out
}

// movedBy returns the objects of a plan whose copies or replicas move.
func movedBy(p Plan, redivided map[string]bool) []string {
	out := []string{}
	for _, o := range p.Objects() {
		of := func(other Object) bool { return other == o }
		moves := slices.ContainsFunc(p.Removals, func(r Removal) bool { return of(r.Object) }) || slices.ContainsFunc(p.Moves, func(m Move) bool { return of(m.Object) }) ||
			slices.ContainsFunc(p.Creations, func(c Creation) bool { return of(c.Object) }) || slices.ContainsFunc(p.Changes, func(c Change) bool { return of(c.Object) && len(c.Shares) > 0 })
		if name := o.String(); moves && !redivided[name] {
			out = append(out, name)
		}
	}
	return out
}

// changedIn renders all copies that stay on their clusters. It returns the copies that differ in fields other than
// their share.
func changedIn(d *decisions) []string {
	m := &maker{decisions: d}
	out := []string{}
	for p := range d.pairs() {
		if p.Old == nil {
			continue
		}
		old, now := m.render(d.before, *p.Old, p.Before.Binding, p.Stayed), m.render(d.after, *p.New, p.After.Binding, p.Stayed)
		for _, c := range p.Stayed {
			if old[c].Manifest == nil || now[c].Manifest == nil {
				continue
			}
			shared := isShare(old[c], "/spec/size") && isShare(now[c], "/spec/size")
			if withoutShare(old[c], shared) != withoutShare(now[c], shared) {
				out = append(out, p.Object.String()+" on "+c)
			}
		}
	}
	slices.Sort(out)
	return out
}

func withoutShare(r Rendering, shared bool) string {
	text, err := json.Marshal(r.Manifest)
	if err != nil {
		panic(err)
	}
	var copied map[string]any
	if err := json.Unmarshal(text, &copied); err != nil {
		panic(err)
	}
	if spec, ok := copied["spec"].(map[string]any); ok && shared {
		spec["size"] = "divided"
	}
	text, err = json.Marshal(copied)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func changedBy(p Plan) []string {
	out := []string{}
	for _, c := range p.Changes {
		for _, g := range c.Groups {
			for _, cluster := range g.Clusters {
				out = append(out, c.Object.String()+" on "+cluster)
			}
		}
	}
	slices.Sort(out)
	return out
}

var clusterNames = []string{"a", "b", "c", "d", "e"}

func drawFleet(t *rapid.T) decide.Fleet {
	f := decide.Fleet{Now: decidetest.Now, NamespaceLabels: map[string]map[string]string{"shop": {}}}
	for _, name := range clusterNames {
		f.Clusters = append(f.Clusters, drawCluster(t, name))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "objects") {
		f.Objects = append(f.Objects, drawObject(t, fmt.Sprintf("web-%d", i)))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "placements") {
		f.Placements = append(f.Placements, drawPlacement(t, fmt.Sprintf("p-%d", i), 1))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "policies") {
		f.Overrides = append(f.Overrides, drawOverrides(t, fmt.Sprintf("o-%d", i)))
	}
	return f
}

// drawEdit returns the fleet with one object, placement, policy or cluster changed or added.
func drawEdit(t *rapid.T, f decide.Fleet) decide.Fleet {
	f.Clusters, f.Objects, f.Placements, f.Overrides = slices.Clone(f.Clusters), slices.Clone(f.Objects), slices.Clone(f.Placements), slices.Clone(f.Overrides)
	switch rapid.IntRange(0, 3).Draw(t, "what is edited") {
	case 0:
		i := rapid.IntRange(0, len(f.Objects)).Draw(t, "object")
		o := drawObject(t, fmt.Sprintf("web-%d", i))
		if i == len(f.Objects) {
			f.Objects = append(f.Objects, o)
		} else {
			f.Objects[i].Object = Applied(f.Objects[i].Object, o.Object)
		}
	case 1:
		i := rapid.IntRange(0, len(f.Placements)).Draw(t, "placement")
		if i == len(f.Placements) {
			f.Placements = append(f.Placements, drawPlacement(t, fmt.Sprintf("p-%d", i), 1))
		} else {
			f.Placements[i] = drawPlacement(t, fmt.Sprintf("p-%d", i), f.Placements[i].GetGeneration()+1)
		}
	case 2:
		i := rapid.IntRange(0, len(f.Overrides)).Draw(t, "policy")
		p := drawOverrides(t, fmt.Sprintf("o-%d", i))
		if i == len(f.Overrides) {
			f.Overrides = append(f.Overrides, p)
		} else {
			f.Overrides[i] = p
		}
	default:
		i := rapid.IntRange(0, len(f.Clusters)-1).Draw(t, "cluster")
		f.Clusters[i] = drawCluster(t, f.Clusters[i].Name)
	}
	return f
}

func drawCluster(t *rapid.T, name string) *hubv1.MemberCluster {
	return decidetest.Cluster(name, func(c *hubv1.MemberCluster) {
		c.Labels["tier"] = drawTier(t)
		if rapid.IntRange(0, 5).Draw(t, "away") == 0 {
			decidetest.Unreachable(c)
		}
	})
}

func drawTier(t *rapid.T) string { return rapid.SampledFrom([]string{"gold", "lead"}).Draw(t, "tier") }

func drawObject(t *rapid.T, name string) decide.FleetObject {
	u := decidetest.Template(types.UID(name))
	u.SetName(name)
	u.SetLabels(map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app")})
	u.Object["spec"] = map[string]any{"size": rapid.Int64Range(0, 9).Draw(t, "size"), "image": rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "image")}
	return decide.FleetObject{Object: u}
}

func drawPlacement(t *rapid.T, name string, generation int64) *hubv1.Placement {
	p := decidetest.Policy(name)
	p.Generation = generation
	p.Spec.Priority = rapid.Int32Range(0, 2).Draw(t, "priority")
	switch rapid.IntRange(0, 2).Draw(t, "clusters by") {
	case 0:
		p.Spec.Clusters = hubv1.ClusterSelection{Names: rapid.SliceOfNDistinct(rapid.SampledFrom(clusterNames), 1, 4, rapid.ID[string]).Draw(t, "names")}
	case 1:
		p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": drawTier(t)}}
	}
	if rapid.Bool().Draw(t, "selects by label") {
		decidetest.Labelled("web")(p)
	}
	switch rapid.IntRange(0, 2).Draw(t, "spread or division") {
	case 0:
		n := rapid.Int32Range(1, 3).Draw(t, "number of clusters")
		p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: &n}
	case 1:
		decidetest.Dividing(hubv1.DivideByWeight)(p)
	}
	return p
}

func drawOverrides(t *rapid.T, name string) *hubv1.OverridePolicy {
	clusters := decidetest.Naming(rapid.SliceOfNDistinct(rapid.SampledFrom(clusterNames), 1, 3, rapid.ID[string]).Draw(t, "names")...)
	p := decidetest.Excluding(clusters)
	p.Name = name
	if rapid.Bool().Draw(t, "excludes") {
		return p
	}
	path := rapid.SampledFrom([]string{"/spec/image", "/spec/size"}).Draw(t, "path")
	value := &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%d", rapid.IntRange(1, 3).Draw(t, "value"))}
	p.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Clusters: clusters, Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: path, Value: value}}}}
	return p
}
