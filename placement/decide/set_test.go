package decide

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// errNotStored is the error of a read of a part that the bundles of the test have not stored.
var errNotStored = errors.New("it is not stored")

// fleetOfSet is a hub with one operator and its clusters. The test changes the operator, and runs the decisions on the
// operator and on its objects, as the leader of the hub does.
type fleetOfSet struct {
	t        interface{ Fatalf(string, ...any) }
	key      canonical.Key
	policy   *hubv1.ClusterPlacement
	clusters []*hubv1.MemberCluster
	spec     *hubv1.SetRolloutSpec
	lists    map[string]SetList
	parts    map[string]*unstructured.Unstructured
	partOf   map[string]string // parts by object and digest of the template
	rules    map[string]Rules
	payloads map[string]bool
	bindings map[hubv1.ObjectIdentity]*hubv1.ClusterResourceBinding
	latest   map[hubv1.ObjectIdentity]*unstructured.Unstructured
	chosen   map[hubv1.ObjectIdentity]map[string]bool
	verdicts map[hubv1.ObjectIdentity]map[string]Verdict
	removals map[hubv1.ObjectIdentity][]Removal
	// has is the content of each object on each cluster, and broken are the contents that never become healthy.
	has        map[string]map[string]string
	writes     map[hubv1.ObjectIdentity]int // number of writes of each binding
	broken     map[string]bool
	generation int64
	now        time.Time
	undo       string // the annotation hanse.dev/rollout-undo of the operator
	overrides  []hubv1.OverridePolicyObject
}

var kueue = hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "kueue"}

func newFleetOfSet(t interface{ Fatalf(string, ...any) }, onFailure hubv1.RolloutFailure) *fleetOfSet {
	f := &fleetOfSet{
		t: t, key: canonical.Key("key"), policy: &hubv1.ClusterPlacement{}, lists: map[string]SetList{}, parts: map[string]*unstructured.Unstructured{}, partOf: map[string]string{},
		rules: map[string]Rules{}, payloads: map[string]bool{}, bindings: map[hubv1.ObjectIdentity]*hubv1.ClusterResourceBinding{},
		latest: map[hubv1.ObjectIdentity]*unstructured.Unstructured{}, chosen: map[hubv1.ObjectIdentity]map[string]bool{},
		verdicts: map[hubv1.ObjectIdentity]map[string]Verdict{}, has: map[string]map[string]string{}, broken: map[string]bool{}, now: now, writes: map[hubv1.ObjectIdentity]int{},
	}
	f.policy.Name, f.policy.UID, f.policy.Generation = "operators", "p", 1
	f.policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind}}
	f.policy.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	f.policy.Spec.Rollout = &hubv1.RolloutPolicy{
		SettleSeconds: ptr.To[int32](0), OnFailure: onFailure, HealthGate: hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)},
		Waves: []hubv1.RolloutWave{{Name: "first", Clusters: naming("a")}, {Name: "second", Clusters: naming("b")}, {Name: "rest"}},
	}
	for _, name := range []string{"a", "b", "c"} {
		f.clusters = append(f.clusters, cluster(name))
		f.has[name] = map[string]string{}
	}
	f.spec = &hubv1.SetRolloutSpec{Bundle: kueue, BundleUID: "u"}
	return f
}

// manifestOf returns the object "Kind/name" with this content.
func manifestOf(object, content string) *unstructured.Unstructured {
	kind, name, _ := strings.Cut(object, "/")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"content": content}}}
	u.SetAPIVersion(map[string]string{"ClusterRole": "rbac.authorization.k8s.io/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1"}[kind])
	if u.GetAPIVersion() == "" {
		u.SetAPIVersion("apps/v1")
	}
	u.SetKind(kind)
	u.SetName(name)
	return u
}

func short(id hubv1.ObjectIdentity) string { return id.Kind + "/" + id.Name }

// brings stores a new content of the operator: "Kind/name" to content.
func (f *fleetOfSet) brings(objects map[string]string) {
	f.generation++
	list := SetList{}
	for object, content := range objects {
		m := manifestOf(object, content)
		p, err := PackPart(f.key, m)
		if err != nil {
			f.t.Fatalf("packing: %v", err)
		}
		f.parts[p.Digest], list[hubv1.IdentityOf(m)] = m, p.Digest
		names, err := NamesOf(f.key, m, nil, nil)
		if err != nil {
			f.t.Fatalf("%v", err)
		}
		for _, name := range names {
			f.partOf[hubv1.IdentityOf(m).String()+name] = p.Digest
		}
		u := m.DeepCopy()
		u.SetUID("u")
		u.SetGeneration(f.generation)
		u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: kueue}.Annotation()})
		f.latest[hubv1.IdentityOf(m)] = u
	}
	f.spec = f.spec.DeepCopy()
	f.spec.Newest = hubv1.SetList{List: f.keep(list), Generation: f.generation, Time: metav1.NewTime(f.now)}
}

func (f *fleetOfSet) keep(list SetList) string {
	p, err := list.Pack(f.key)
	if err != nil {
		f.t.Fatalf("packing a list: %v", err)
	}
	f.lists[p.Digest] = list
	return p.Digest
}

func (f *fleetOfSet) objects() []hubv1.ObjectIdentity {
	return slices.SortedFunc(maps.Keys(f.latest), byIdentity)
}

func (f *fleetOfSet) input(id hubv1.ObjectIdentity) Input {
	in := Input{
		Object: Object{ID: id, Template: f.latest[id]}, Now: f.now, Facts: Facts{Placements: []hubv1.PlacementObject{f.policy}, Clusters: f.clusters, Overrides: f.overrides},
		Staging: &Staging{Key: f.key, Peers: func(Owner) rollout.Peers { return rollout.NewPeers(nil) }},
	}
	if b := f.bindings[id]; b != nil {
		in.Binding = b
	}
	if !f.uses(id) {
		in.Object.State, in.Object.Template = Deleted, nil
		return in
	}
	if f.spec.Rollout != nil {
		in.Set = ViewSet(f.spec, f.lists).Of(id)
		in.Set.Read = f.part
		in.Set.ReadRules = func(digest string) (*HeldRules, error) {
			if rules, ok := f.rules[digest]; ok {
				return rules.Held(), nil
			}
			return nil, errNotStored
		}
	}
	return in
}

// uses reports whether the bundle still has the object, or a revision that is in use has it.
func (f *fleetOfSet) uses(id hubv1.ObjectIdentity) bool {
	_, has := f.lists[f.spec.Newest.List][id]
	return has || f.spec.Rollout != nil && len(ViewSet(f.spec, f.lists).Contents(id)) > 0
}

func (f *fleetOfSet) part(digest string) (*unstructured.Unstructured, error) {
	if u, ok := f.parts[digest]; ok {
		return u, nil
	}
	return nil, errNotStored
}

// decide decides on one object, and writes its binding.
func (f *fleetOfSet) decide(id hubv1.ObjectIdentity) (wrote bool) {
	in := f.input(id)
	p := Decide(in)
	f.chosen[id] = nil
	if in.Object.State == Exists && (in.Set == nil || !in.Set.Dropped || len(in.Set.Contents) > 0) {
		f.chosen[id] = map[string]bool{}
	}
	for _, name := range p.Chosen {
		f.chosen[id][name] = true
	}
	for _, payload := range p.Payloads {
		f.payloads[payload.Digest] = true
	}
	if p.Spec == nil || p.Remove {
		if delete(f.bindings, id); in.Object.State == Deleted {
			delete(f.latest, id)
		}
		return false
	}
	for _, r := range p.Spec.Revisions {
		if !f.payloads[r.Template] || !f.payloads[r.Policies] {
			f.t.Fatalf("revision %d of %s names contents that are not stored", r.Number, id)
		}
	}
	for _, e := range p.Spec.Clusters {
		if p.Spec.Rollout != nil && e.State == hubv1.TargetPresent && p.Spec.Revision(e.Revision) == nil {
			f.t.Fatalf("%s on %s has revision %d, which the binding does not list: %s", id, e.Name, e.Revision, cmp.Diff(nil, p.Spec))
		}
	}
	b := f.bindings[id]
	if b == nil {
		b = &hubv1.ClusterResourceBinding{}
		b.Name, b.Generation = id.BindingName(), 1
	}
	after := b.DeepCopy()
	if after.Spec = *p.Spec.DeepCopy(); cmp.Equal(b.Spec, after.Spec) {
		return false
	}
	after.Generation++
	f.writes[id]++
	f.bindings[id] = after
	return true
}

// step makes one step of the operator.
func (f *fleetOfSet) step() (wrote bool) {
	in := SetInput{
		Spec: f.spec, Lists: f.lists, Placement: f.policy, Clusters: f.clusters, Objects: map[hubv1.ObjectIdentity]SetObject{}, Now: f.now, Peers: rollout.NewPeers(nil), Undo: f.undo,
		Digests: func(_ hubv1.ObjectIdentity, part string) ([]string, error) {
			u, err := f.part(part)
			if err != nil {
				return nil, err
			}
			return NamesOf(f.key, u, nil, nil)
		},
	}
	rules := SetList{}
	for id := range f.lists[f.spec.Newest.List] {
		of, err := RulesOf(hubv1.SelectableObject{ObjectIdentity: id}, f.overrides, &f.policy.Spec.PlacementSpec)
		if err != nil {
			f.t.Fatalf("%v", err)
		}
		rules[id] = digest(f.key, of)
		f.rules[rules[id]] = of
	}
	in.Policies = f.keep(rules)
	for _, id := range f.objects() {
		if f.chosen[id] == nil && f.uses(id) {
			return false // as errNotDecided of hub/schedule
		}
		o := SetObject{Chosen: f.chosen[id], Removals: f.verdicts[id]}
		if b := f.bindings[id]; b != nil {
			o.Binding = b
		}
		in.Objects[id] = o
	}
	if f.spec.Rollout == nil && len(f.bindings) > 0 {
		return f.adopt(in, rules)
	}
	p, err := SetStep(in)
	if err != nil {
		f.t.Fatalf("the step fails: %v", err)
	}
	f.removals = p.Removals
	wrote = !cmp.Equal(f.spec, p.Spec)
	f.spec = p.Spec
	f.restores()
	return wrote
}

// restores stores the objects again that only revisions in use have, as hub/bundles does.
func (f *fleetOfSet) restores() {
	for _, n := range slices.Backward(SetInUse(f.spec)) {
		for id, part := range f.lists[f.spec.Revision(n).List] {
			if f.latest[id] == nil {
				u := f.parts[part].DeepCopy()
				u.SetUID("u")
				u.SetGeneration(f.generation)
				u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: kueue}.Annotation()})
				f.latest[id] = u
			}
		}
	}
}

func (f *fleetOfSet) adopt(in SetInput, rules SetList) bool {
	spec, lists, err := AdoptSet(Adoption{SetInput: in, Key: f.key, Rules: rules, Part: func(id hubv1.ObjectIdentity, template string) (string, error) {
		if part, ok := f.partOf[id.String()+template]; ok {
			return part, nil
		}
		return "", errNotStored
	}})
	if err != nil {
		f.t.Fatalf("the adoption fails: %v", err)
	}
	if spec == nil {
		return false
	}
	for _, p := range lists {
		list, err := ReadSetList(p.Content)
		if err != nil {
			f.t.Fatalf("%v", err)
		}
		f.lists[p.Digest] = list
	}
	f.spec = spec
	return true
}

// content returns the content of a revision of an object.
func (f *fleetOfSet) content(id hubv1.ObjectIdentity, r *hubv1.ObjectRevision) string {
	u := f.latest[id]
	if r != nil {
		u = f.parts[f.partOf[id.String()+r.Template]]
	}
	text, _, _ := unstructured.NestedString(u.Object, "spec", "content")
	return text
}

// report makes the clusters carry out the decisions, and report it.
func (f *fleetOfSet) report() {
	for id, b := range f.bindings {
		var rows []hubv1.ClusterRow
		for _, e := range b.Spec.Clusters {
			row := hubv1.ClusterRow{Name: e.Name, Reason: hubv1.ReasonWithdrawn, Applied: metav1.ConditionFalse}
			if e.State == hubv1.TargetAbsent {
				if delete(f.has[e.Name], short(id)); e.Absent.Policy == hubv1.RemovalOrphan {
					f.has[e.Name]["orphan "+short(id)] = "left"
				}
			} else {
				content := f.content(id, b.Spec.Revision(e.Revision))
				f.has[e.Name][short(id)] = content
				row = hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Revision: e.Revision}
				row.LastTransitionTime, row.PassingSince = &metav1.Time{Time: f.now}, &metav1.Time{Time: f.now}
				if f.broken[e.Name+" "+short(id)+" "+content] {
					row.Health, row.PassingSince = hubv1.HealthDegraded, nil
				}
				if before := b.Status.Row(e.Name); before != nil && before.Revision == row.Revision && before.Health == row.Health {
					row = *before
				}
			}
			rows = append(rows, row)
		}
		b.Status.Clusters, b.Status.ObservedGeneration = rows, b.Generation
	}
}

// settles runs decisions, steps and reports for some time, and checks that the fleet then rests.
func (f *fleetOfSet) settles() {
	for range 80 {
		f.round(nil)
	}
	if f.step() {
		f.t.Fatalf("the operator does not rest: %+v", f.spec.Rollout)
	}
	for _, id := range f.objects() {
		if f.decide(id) {
			f.t.Fatalf("%s does not rest", id)
		}
	}
}

// round runs one decision of everything. check is called after each.
func (f *fleetOfSet) round(check func()) {
	f.now = f.now.Add(20 * time.Second)
	for _, id := range f.objects() {
		if f.decide(id); check != nil {
			check()
		}
	}
	f.report()
	f.step()
}

// on returns the objects on a cluster, such as "ClusterRole/a=1 Deployment/m=2".
func (f *fleetOfSet) on(cluster string) string {
	var out []string
	for _, object := range slices.Sorted(maps.Keys(f.has[cluster])) {
		out = append(out, object+"="+f.has[cluster][object])
	}
	return strings.Join(out, " ")
}

func (f *fleetOfSet) is(phase hubv1.RolloutPhase, wave string, on map[string]string) {
	f.t.(*testing.T).Helper()
	if r := f.spec.Rollout; r == nil || r.Phase != phase || r.Wave != wave {
		f.t.Fatalf("the rollout is %+v, want %s %q", r, phase, wave)
	}
	for name, want := range on {
		if got := f.on(name); got != want {
			f.t.Fatalf("%s has %q, want %q; the rollout is %+v", name, got, want, f.spec.Rollout)
		}
	}
}

var (
	contentOne = map[string]string{"ClusterRole/r": "1", "Deployment/m": "1", "Service/old": "1", "CustomResourceDefinition/x": "1"}
	contentTwo = map[string]string{"ClusterRole/r": "1", "Deployment/m": "2", "ClusterRole/new": "2", "CustomResourceDefinition/x": "2"}
)

const (
	hasOne = "ClusterRole/r=1 CustomResourceDefinition/x=1 Deployment/m=1 Service/old=1"
	hasTwo = "ClusterRole/new=2 ClusterRole/r=1 CustomResourceDefinition/x=2 Deployment/m=2"
	// hasBack is the first content with the definitions of the second one.
	hasBack = "ClusterRole/r=1 CustomResourceDefinition/x=2 Deployment/m=1 Service/old=1"
)

// permits makes package guard permit each removal.
func (f *fleetOfSet) permits() {
	for id := range f.latest {
		f.verdicts[id] = map[string]Verdict{}
		for name := range f.has {
			f.verdicts[id][name] = Verdict{Reason: hubv1.ReasonNotInRevision, Released: true}
		}
	}
}

func TestAnUpgradeThatAddsChangesAndRemovesObjectsGoesWaveByWave(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	f.brings(contentOne)
	f.settles()
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasOne, "b": hasOne, "c": hasOne})

	f.brings(contentTwo)
	f.permits()
	seen := []string{}
	for range 80 {
		f.round(nil)
		state := f.on("a") + "|" + f.on("b") + "|" + f.on("c")
		if len(seen) == 0 || seen[len(seen)-1] != state {
			seen = append(seen, state)
		}
	}
	want := []string{
		hasOne + "|" + hasOne + "|" + hasOne, hasTwo + "|" + hasOne + "|" + hasOne, hasTwo + "|" + hasTwo + "|" + hasOne, hasTwo + "|" + hasTwo + "|" + hasTwo,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Fatalf("the clusters had (-want +got):\n%s", diff)
	}
	f.settles()
	f.is(hubv1.RolloutComplete, "", nil)
}

func TestAFailedWaveReturnsTheWholeBundle(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	f.brings(contentOne)
	f.settles()
	f.broken["b Deployment/m 2"] = true
	f.brings(contentTwo)
	f.permits()
	for range 80 {
		f.round(func() {
			if got := f.on("c"); got != hasOne {
				t.Fatalf("c, which is in the last wave, has %q", got)
			}
		})
	}
	f.settles()
	f.is(hubv1.RolloutRolledBack, "", map[string]string{"a": hasBack, "b": hasBack, "c": hasOne})

	f.brings(map[string]string{"ClusterRole/r": "1", "Deployment/m": "3", "CustomResourceDefinition/x": "3"})
	f.permits()
	f.settles()
	third := "ClusterRole/r=1 CustomResourceDefinition/x=3 Deployment/m=3"
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": third, "b": third, "c": third})
}

func TestAClusterKeepsItsWholeRevisionUntilTheGuardPermitsTheRemovals(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	f.brings(contentOne)
	f.settles()
	f.brings(contentTwo)
	for range 10 {
		f.round(nil)
	}
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasOne, "b": hasOne, "c": hasOne})
	old := hubv1.ObjectIdentity{Group: "apps", Kind: "Service", Name: "old"}
	if got := f.removals[old]; len(f.removals) != 1 || len(got) != 1 || got[0].Cluster != "a" || got[0].Reason != hubv1.ReasonNotInRevision {
		t.Fatalf("the guard judges %+v", f.removals)
	}
	f.verdicts[old] = map[string]Verdict{"a": {Reason: hubv1.ReasonNotInRevision, HeldSince: &metav1.Time{Time: f.now}}}
	for range 10 {
		f.round(nil)
	}
	f.is(hubv1.RolloutWaitingForClusters, "first", map[string]string{"a": hasOne, "b": hasOne, "c": hasOne})
	if !strings.Contains(f.spec.Rollout.Message, "hansectl confirm") {
		t.Errorf("the message is %q", f.spec.Rollout.Message)
	}
	f.permits()
	f.settles()
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasTwo, "b": hasTwo, "c": hasTwo})
}

// An upgrade of 4 of 20 objects goes to 6 clusters, one after the other.
func TestAnUpgradeWritesOnlyTheBindingsOfTheObjectsThatChange(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	for _, name := range []string{"d", "e", "f"} {
		f.clusters, f.has[name] = append(f.clusters, cluster(name)), map[string]string{}
	}
	f.policy.Spec.Rollout.Waves = []hubv1.RolloutWave{{Name: "all", MaxConcurrent: ptr.To(intstr.FromInt32(1))}}
	before, after := map[string]string{}, map[string]string{}
	for i := range 20 {
		object := fmt.Sprintf("ClusterRole/r%02d", i)
		before[object], after[object] = "1", "1"
		if i%5 == 3 {
			after[object] = "2"
		}
	}
	f.brings(before)
	f.settles()
	f.writes = map[hubv1.ObjectIdentity]int{}
	f.brings(after)
	f.settles()
	const clusters, steps = 6, 4 // steps of the rollout that only the binding of the leading object shows
	for id, n := range f.writes {
		most := clusters
		if id.Name == "r03" {
			most += steps
		}
		if after[short(id)] != "2" || n > most {
			t.Errorf("the binding of %s was written %d times", id, n)
		}
	}
	if len(f.writes) != 4 {
		t.Errorf("the bindings of %d objects were written", len(f.writes))
	}
	f.is(hubv1.RolloutComplete, "", nil)
}

// An upgrade of the hub finds objects with rollouts of their own in each state.
func TestAnUpgradeOfTheHubWritesNothingOnMembers(t *testing.T) {
	ended := map[string]bool{"complete": true, "rolled back": true, "in the middle of a wave": false, "failed": false, "the first revision is not healthy": true}
	for name, begins := range ended {
		t.Run(name, func(t *testing.T) {
			f := newFleetOfSet(t, map[string]hubv1.RolloutFailure{"failed": hubv1.FailurePause}[name])
			if name == "rolled back" {
				f.policy.Spec.Rollout.OnFailure = hubv1.FailureRollback
			}
			alone := func(rounds int) {
				for range rounds {
					f.now = f.now.Add(20 * time.Second)
					for _, id := range f.objects() {
						f.decide(id)
					}
					f.report()
				}
			}
			if name == "the first revision is not healthy" {
				f.broken["c Deployment/m 1"] = true
			}
			f.brings(map[string]string{"ClusterRole/r": "1", "Deployment/m": "1"})
			alone(6)
			switch name {
			case "rolled back", "failed":
				f.broken["b Deployment/m 2"] = true
				f.brings(map[string]string{"ClusterRole/r": "1", "Deployment/m": "2"})
				alone(60)
			case "in the middle of a wave":
				f.policy.Spec.Rollout.Waves[1].Approval = hubv1.ApprovalManual
				f.brings(map[string]string{"ClusterRole/r": "1", "Deployment/m": "2"})
				alone(30)
			}
			before := f.on("a") + "|" + f.on("b") + "|" + f.on("c")
			for range 10 {
				f.round(nil)
			}
			if after := f.on("a") + "|" + f.on("b") + "|" + f.on("c"); after != before {
				t.Errorf("the clusters had %q, and have %q", before, after)
			}
			if got := f.spec.Rollout != nil; got != begins {
				t.Errorf("the bundle is decided on as a whole: %t, want %t", got, begins)
			}
		})
	}
}
