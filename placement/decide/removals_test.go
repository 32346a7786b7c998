package decide

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// guarded returns the input for an object. removals has, by cluster, the verdict of package guard on the removal of the
// copy. Without a verdict, the guard has not judged the removal yet.
func guarded(b *hubv1.ResourceBinding, p *hubv1.Placement, removals map[string]Verdict, clusters ...*hubv1.MemberCluster) Input {
	if removals == nil {
		removals = map[string]Verdict{}
	}
	return Input{
		Object: Object{ID: object, Template: template("a")}, Binding: b, Now: now, Removals: removals,
		Facts: Facts{Placements: []hubv1.PlacementObject{p}, Clusters: clusters, NamespaceRead: true},
	}
}

// readEntries returns the items of spec.clusters as text, like entriesOf. The prefix "!" marks an item whose removal is
// held.
func readEntries(spec *hubv1.BindingSpec) string {
	out := entriesOf(spec)
	for i, e := range spec.Clusters {
		if e.Removal != nil {
			out[i] = "!" + out[i] + " " + e.Removal.Reason
		}
	}
	return strings.Join(out, ", ")
}

func TestWhatTheGuardKeeps(t *testing.T) {
	since := metav1.NewTime(now)
	held := map[string]Verdict{"eu": {Reason: hubv1.ReasonNotSelected, HeldSince: &since}}
	released := map[string]Verdict{"eu": {Reason: hubv1.ReasonNotSelected, Released: true}}
	three := func() []*hubv1.MemberCluster {
		return []*hubv1.MemberCluster{cluster("eu"), cluster("sg"), cluster("us")}
	}
	one := func(p *hubv1.Placement) { spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})(p) }
	orphan := func(p *hubv1.Placement) { p.Spec.Deletion.WhenUnselected = hubv1.RemovalOrphan }
	empty := func(p *hubv1.Placement) { p.Spec.AllowEmpty = true }
	deleteAdopted := func(p *hubv1.Placement) { p.Spec.Deletion.Adopted = hubv1.RemovalDelete }
	adopted := func(cluster string, entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
		b := bound(entries...)
		b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Adopted: true})
		return b
	}
	drained := func(c *hubv1.MemberCluster) { c.Spec.Drain = &hubv1.DrainPolicy{} }
	refused := func(c *hubv1.MemberCluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
	}
	for name, tc := range map[string]struct {
		in     Input
		want   string
		claims string // "cluster reason owner", and "last" for a last copy
	}{
		"an unselected cluster keeps its copy until that is judged": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web]",
		},
		"one whose removal is held says so": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), held, three()...),
			"!eu NotSelected, sg", "[eu NotSelected Placement shop/web]",
		},
		"one whose removal is released loses it": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), released, three()...),
			"-eu NotSelected Delete, sg", "[]",
		},
		"a verdict for another reason does not count": {
			guarded(bound(present("eu"), present("sg")), policy("web"), released, cluster("eu", refused), cluster("sg")),
			"eu, sg", "[eu TaintNotTolerated Placement shop/web]",
		},
		"an entry that is wanted again is held no more": {
			guarded(bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: "NotSelected"}}, present("sg")),
				policy("web", named("eu", "sg")), held, three()...),
			"eu, sg", "[]",
		},
		"the last copy is told apart": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("typo")), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web last sg NotSelected Placement shop/web last]",
		},
		"unless nowhere is meant": {
			guarded(bound(present("eu")), policy("web", named("typo"), empty), nil, three()...),
			"eu", "[eu NotSelected Placement shop/web]",
		},
		"an object that moves has no last copy, and its new place waits": {
			guarded(bound(present("eu")), policy("web", named("sg", "us"), one), nil, three()...),
			"eu", "[eu NotSelected Placement shop/web]",
		},
		"it moves once its removal is released": {
			guarded(bound(present("eu")), policy("web", named("sg", "us"), one), released, three()...),
			"-eu NotSelected Delete, us", "[]",
		},
		"a cluster that is newly selected need not wait": {
			guarded(bound(present("eu")), policy("web", named("sg")), held, three()...),
			"!eu NotSelected, sg", "[eu NotSelected Placement shop/web]",
		},
		"orphans are not held": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg"), orphan), nil, three()...),
			"-eu NotSelected Orphan, sg", "[]",
		},
		"copies that were adopted are orphaned, and are not held": {
			guarded(adopted("eu", present("eu"), present("sg")), policy("web", named("sg")), nil, three()...),
			"-eu NotSelected Delete, sg", "[]",
		},
		"unless adopted copies are deleted as well": {
			guarded(adopted("eu", present("eu"), present("sg")), policy("web", named("sg"), deleteAdopted), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web]",
		},
		"a cluster that leaves and deletes asks for itself": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", leaving(hubv1.RemovalDelete)), cluster("sg")),
			"eu, sg", "[eu ClusterLeaving MemberCluster eu]",
		},
		"one that leaves and orphans does not": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", leaving(hubv1.RemovalOrphan)), cluster("sg")),
			"-eu ClusterLeaving Orphan, sg", "[]",
		},
		"one that is abandoned is given up at once": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", unreachable, leaving(hubv1.RemovalDelete), abandonAfter(1)), cluster("sg")),
			"sg", "[]",
		},
		"a drain moves what is not to be removed, beside what is": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg", "us"),
				spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2)})), held, cluster("eu"), cluster("sg", drained), cluster("us")),
			"!eu NotSelected, ~sg Drained by us, us", "[eu NotSelected Placement shop/web]",
		},
	} {
		p := Decide(tc.in)
		if got := readEntries(p.Spec); got != tc.want {
			t.Errorf("%s: entries are %s, want %s", name, got, tc.want)
		}
		var claims []string
		for _, c := range p.Claims.Removals {
			claims = append(claims, c.Cluster+" "+c.Reason+" "+c.Owner.String())
			if c.Last {
				claims = append(claims, "last")
			}
		}
		if got := fmt.Sprint(claims); got != tc.claims {
			t.Errorf("%s: claims are %s, want %s", name, got, tc.claims)
		}
	}
}

func TestADeletedObjectGoesWhateverTheGuardSays(t *testing.T) {
	f := guarded(bound(present("eu")), policy("web"), nil, cluster("eu"))
	f.Object.State, f.Object.Template = Deleted, nil
	if got := readEntries(Decide(f).Spec); got != "-eu ObjectDeleted Delete" {
		t.Errorf("entries are %s", got)
	}
}

func TestTheConditionSaysThatHeldCopiesStay(t *testing.T) {
	held := Verdict{Reason: hubv1.ReasonNotSelected, HeldSince: ptr.To(metav1.NewTime(now))}
	for name, tc := range map[string]struct {
		selected, reason, want string
	}{
		"beside a cluster that is selected": {
			"us", hubv1.ReasonScheduled,
			"3 of 3 clusters; the hub holds the removal from 2 clusters until a user confirms it by hansectl confirm: eu (NotSelected), sg (NotSelected)",
		},
		"without one": {
			"mars", hubv1.ReasonNoClusterSelected,
			"the placement selects no cluster any more, and copies stay on 2 of 3 clusters: 1 not selected; " +
				"the hub holds the removal from 2 clusters until a user confirms it by hansectl confirm: eu (NotSelected), sg (NotSelected)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := guarded(bound(present("eu"), present("sg")), policy("web", named(tc.selected)), map[string]Verdict{"eu": held, "sg": held},
				cluster("eu"), cluster("sg"), cluster("us"))
			if got := Decide(in).Status.Scheduled; got.Reason != tc.reason || got.Message != tc.want {
				t.Errorf("got %s: %s\nwant %s: %s", got.Reason, got.Message, tc.reason, tc.want)
			}
		})
	}
}

func TestAHeldCopyKeepsItsShareAndHindersNoEviction(t *testing.T) {
	since := metav1.NewTime(now)
	b := bound(present("eu"), present("sg"))
	b.Spec.Division = &hubv1.Division{Path: "/spec/replicas"}
	b.Spec.Clusters[0].Replicas, b.Spec.Clusters[1].Replicas = ptr.To[int32](4), ptr.To[int32](4)
	p := policy("web", named("sg"))
	p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas"}
	f := guarded(b, p, map[string]Verdict{"eu": {Reason: hubv1.ReasonNotSelected, HeldSince: &since}}, cluster("eu"), cluster("sg"))
	f.Object.Template.Object["spec"] = map[string]any{"replicas": int64(20)}
	got := Decide(f)
	if eu, sg := got.Spec.Target("eu"), got.Spec.Target("sg"); eu == nil || sg == nil || ptr.Deref(eu.Replicas, 0) != 4 || ptr.Deref(sg.Replicas, 0) != 16 {
		t.Errorf("of 20 replicas the clusters get %+v, want 4 and 16", got.Spec.Clusters)
	}
	b = bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{}},
		hubv1.BindingTarget{Name: "sg", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: hubv1.ReasonDrained}})
	if waits := Awaited(b, b.Spec.Clusters[1], hubv1.HubObject{}); len(waits) > 0 {
		t.Errorf("the eviction waits for %v", waits)
	}
}

func TestAWithdrawalThatEveryClusterConfirmed(t *testing.T) {
	gone := absent("eu", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete)
	tests := map[string]struct {
		entry     hubv1.BindingTarget
		confirmed bool
		want      string
		remove    bool
	}{
		"ends the binding without a row":                 {entry: gone, confirmed: true, remove: true},
		"is awaited without a confirmation":              {entry: gone, want: "-eu ObjectDeleted Delete"},
		"says nothing of an entry that was not recorded": {entry: present("eu"), confirmed: true, want: "-eu ObjectDeleted Delete"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := guarded(bound(tc.entry), policy("web"), nil, cluster("eu"))
			f.Object.State, f.Object.Template, f.Withdrawn = Deleted, nil, tc.confirmed
			p := Decide(f)
			if got := readEntries(p.Spec); got != tc.want || p.Remove != tc.remove {
				t.Errorf("entries are %q, remove is %v; want %q, %v", got, p.Remove, tc.want, tc.remove)
			}
		})
	}
}

func TestAnObjectThatItsBundleNoLongerContainsIsGuarded(t *testing.T) {
	of := hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}
	since := metav1.NewTime(now)
	held := Verdict{Reason: hubv1.ReasonObjectDeleted, HeldSince: &since}
	released := Verdict{Reason: hubv1.ReasonObjectDeleted, Released: true}
	both := func(v Verdict) map[string]Verdict { return map[string]Verdict{"eu": v, "sg": v} }
	shown := func(cluster string) hubv1.BindingTarget {
		return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: hubv1.ReasonObjectDeleted, Since: since, Policy: hubv1.RemovalDelete}}
	}
	adopted := bound(present("eu"), present("sg"))
	adopted.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Adopted: true}}
	orphan := func(p *hubv1.Placement) { p.Spec.Deletion.WhenDeleted = hubv1.RemovalOrphan }
	moving := hubv1.BindingTarget{Name: "eu", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: hubv1.ReasonDrained}}
	two := []*hubv1.MemberCluster{cluster("eu"), cluster("sg")}
	const claimed = "eu ObjectDeleted Bundle shop/all in Bundle shop/all"
	for name, tc := range map[string]struct {
		in      Input
		bundle  *hubv1.BundleReference
		want    string
		claims  string // "cluster reason owner in group", and "last" for a last copy
		message string
	}{
		"its copies stay until the removal is judged, and are the last ones": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, two...), &of,
			"eu, sg", "[" + claimed + " last sg ObjectDeleted Bundle shop/all in Bundle shop/all last]",
			"RemovalHeld: Bundle shop/all no longer contains the object",
		},
		"they are no last ones if the placement allows none": {
			guarded(bound(present("eu")), policy("web", func(p *hubv1.Placement) { p.Spec.AllowEmpty = true }), nil, two...), &of,
			"eu", "[" + claimed + "]", "RemovalHeld: Bundle shop/all no longer contains the object",
		},
		"held copies say so": {
			guarded(bound(present("eu"), present("sg")), policy("web"), both(held), two...), &of,
			"!eu ObjectDeleted, !sg ObjectDeleted", "[" + claimed + " last sg ObjectDeleted Bundle shop/all in Bundle shop/all last]",
			"RemovalHeld: Bundle shop/all no longer contains the object; the hub holds the removal from 2 clusters until a user confirms it by hansectl confirm: eu (ObjectDeleted), sg (ObjectDeleted)",
		},
		"without a guard, copies that are shown as held stay": {
			func() Input {
				in := guarded(bound(shown("eu")), policy("web"), nil, two...)
				in.Removals = nil
				return in
			}(), &of, "!eu ObjectDeleted", "[" + claimed + " last]",
			"RemovalHeld: Bundle shop/all no longer contains the object; the hub holds the removal from 1 cluster until a user confirms it by hansectl confirm: eu (ObjectDeleted)",
		},
		"released copies go": {
			guarded(bound(shown("eu"), shown("sg")), policy("web"), both(released), two...), &of,
			"-eu ObjectDeleted Delete, -sg ObjectDeleted Delete", "[]",
			"ObjectDeleted: Bundle shop/all no longer contains the object: it is withdrawn from 2 clusters",
		},
		"held copies go if the bundle is deleted": {
			guarded(bound(shown("eu"), shown("sg")), policy("web"), both(held), two...), nil,
			"-eu ObjectDeleted Delete, -sg ObjectDeleted Delete", "[]", "ObjectDeleted: the object is deleted: it is withdrawn from 2 clusters",
		},
		"a copy that another cluster replaces waits with the replacement": {
			guarded(bound(moving, present("sg")), policy("web"), nil, two...), &of,
			"~eu Drained by, sg", "[sg ObjectDeleted Bundle shop/all in Bundle shop/all last]", "RemovalHeld: Bundle shop/all no longer contains the object",
		},
		"both go together": {
			guarded(bound(moving, shown("sg")), policy("web"), map[string]Verdict{"sg": released}, two...), &of,
			"-eu ObjectDeleted Delete, -sg ObjectDeleted Delete", "[]", "ObjectDeleted: Bundle shop/all no longer contains the object: it is withdrawn from 2 clusters",
		},
		"orphans are not judged": {
			guarded(bound(present("eu")), policy("web", orphan), nil, two...), &of, "-eu ObjectDeleted Orphan", "[]",
			"ObjectDeleted: Bundle shop/all no longer contains the object: it is withdrawn from 1 cluster",
		},
		"adopted copies are orphaned, and are not judged": {
			guarded(adopted, policy("web"), nil, two...), &of, "-eu ObjectDeleted Delete, sg", "[sg ObjectDeleted Bundle shop/all in Bundle shop/all last]",
			"RemovalHeld: Bundle shop/all no longer contains the object",
		},
		"a cluster that leaves and keeps its copies need not wait": {
			guarded(bound(shown("eu"), shown("sg")), policy("web"), both(held), cluster("eu", leaving(hubv1.RemovalOrphan)), cluster("sg")), &of,
			"-eu ClusterLeaving Orphan, !sg ObjectDeleted", "[sg ObjectDeleted Bundle shop/all in Bundle shop/all last]",
			"RemovalHeld: Bundle shop/all no longer contains the object; the hub holds the removal from 1 cluster until a user confirms it by hansectl confirm: sg (ObjectDeleted)",
		},
		"a cluster that leaves and deletes its copies asks for itself": {
			guarded(bound(shown("eu")), policy("web"), both(held), cluster("eu", leaving(hubv1.RemovalDelete))), &of,
			"!eu ObjectDeleted", "[eu ClusterLeaving MemberCluster eu in Placement shop/web last]", "RemovalHeld: Bundle shop/all no longer contains the object",
		},
		"a cluster whose MemberCluster is deleted is given up": {
			guarded(bound(shown("eu"), shown("sg")), policy("web"), both(held), cluster("sg")), &of,
			"!sg ObjectDeleted", "[sg ObjectDeleted Bundle shop/all in Bundle shop/all last]",
			"RemovalHeld: Bundle shop/all no longer contains the object; the hub holds the removal from 1 cluster until a user confirms it by hansectl confirm: sg (ObjectDeleted)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Object.State, tc.in.Object.Template, tc.in.Object.CutFrom = Deleted, nil, tc.bundle
			p := Decide(tc.in)
			if got := readEntries(p.Spec); got != tc.want {
				t.Errorf("entries are %s, want %s", got, tc.want)
			}
			var claims []string
			for _, c := range p.Claims.Removals {
				claims = append(claims, c.Cluster+" "+c.Reason+" "+c.Owner.String()+" in "+c.Group().String())
				if c.Last {
					claims = append(claims, "last")
				}
			}
			if got := fmt.Sprint(claims); got != tc.claims {
				t.Errorf("claims are %s, want %s", got, tc.claims)
			}
			if got := p.Status.Scheduled.Reason + ": " + p.Status.Scheduled.Message; got != tc.message {
				t.Errorf("the condition is %s\nwant %s", got, tc.message)
			}
		})
	}
}

func TestContentThatComesBackEndsTheHold(t *testing.T) {
	since := metav1.NewTime(now)
	b := bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: hubv1.ReasonObjectDeleted, Since: since}})
	in := guarded(b, policy("web"), map[string]Verdict{"eu": {Reason: hubv1.ReasonObjectDeleted, HeldSince: &since}}, cluster("eu"))
	if p := Decide(in); readEntries(p.Spec) != "eu" || len(p.Claims.Removals) > 0 {
		t.Errorf("entries are %s, claims %+v", readEntries(p.Spec), p.Claims.Removals)
	}
}
