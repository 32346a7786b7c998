package view

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

var widgets = schema.GroupKind{Group: "example.com", Kind: "Widget"}

// kindsHub serves Widgets at v1. It is not known which kinds of asleep.example.com it serves. It serves no other kinds.
var kindsHub = HubKinds{
	Kinds: map[schema.GroupKind]HubKind{
		widgets:                   {Version: "v1", Plural: "widgetry", Namespaced: true},
		{Kind: "Namespace"}:       {Version: "v1", Plural: "namespaces"},
		{Group: "a", Kind: "Two"}: {Version: "v1", Plural: "twos", Namespaced: true},
		{Group: "b", Kind: "Two"}: {Version: "v1", Plural: "twos", Namespaced: true},
	},
	Unread: map[string]bool{"asleep.example.com": true},
}

// serving returns a Ready cluster that serves a kind at these versions. Without versions, the cluster does not serve
// the kind.
func serving(name string, kind schema.GroupKind, versions ...string) hubv1.MemberCluster {
	m := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	m.Status.APIResources = []hubv1.ServedKind{{Group: kind.Group, Kind: kind.Kind, Versions: versions}}
	m.Status.LastObservedTime = &metav1.Time{Time: now}
	m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
	return m
}

// silentMember returns a cluster that has not reported its kinds.
func silentMember(name string) hubv1.MemberCluster {
	return hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll}}}
}

// on returns the binding of an object that is Present on these clusters.
func on(kind schema.GroupKind, version string, clusters ...string) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: kind.WithVersion(version).GroupVersion().String(), Kind: kind.Kind, Name: "x"}
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	return b
}

func bundled(b *hubv1.ResourceBinding) *hubv1.ResourceBinding {
	b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "stack"}
	return b
}

// without adds to the decision a cluster that does not get the object.
func without(b *hubv1.ResourceBinding, cluster, reason string, chosen ...hubv1.ChosenCluster) *hubv1.ResourceBinding {
	b.Status.Decision = &hubv1.DecisionStatus{
		Reasons:  chosen,
		Rejected: []hubv1.RejectedClusters{{Reason: reason, Count: 1, Examples: []string{cluster + ": why"}}},
	}
	return b
}

func selecting(kind schema.GroupKind, change ...func(*hubv1.PlacementSpec)) *hubv1.Placement {
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: kind.Group, Kind: kind.Kind}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func TestKindsInUse(t *testing.T) {
	t.Parallel()
	other := schema.GroupKind{Group: "other.example.com", Kind: "Gadget"}
	for name, tc := range map[string]struct {
		members    []hubv1.MemberCluster
		bindings   []*hubv1.ResourceBinding
		placements []*hubv1.Placement
		namespace  string
		want       string // the table without its header, cells separated by " | "
	}{
		"a kind that every wanted cluster serves at the hub's version has no problem": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets, "v1")},
			bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a", "b"), on(widgets, "v1", "a")},
			want:     "Widget.example.com | 2 | 3 | 2/2 | v1 | v1 | -",
		},
		"a copy that moves away counts, and one that is withdrawn does not": {
			members: []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets, "v1")},
			bindings: []*hubv1.ResourceBinding{{
				Spec: hubv1.BindingSpec{
					ObjectRef: on(widgets, "v1").Spec.ObjectRef,
					Clusters:  []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetEvicting}, {Name: "b", State: hubv1.TargetAbsent}},
				},
			}},
			want: "Widget.example.com | 1 | 1 | 1/1 | v1 | v1 | -",
		},
		"clusters that decisions leave out because they do not serve the kind are named": {
			members: []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets), serving("c", widgets)},
			bindings: []*hubv1.ResourceBinding{
				without(on(widgets, "v1", "a"), "b", hubv1.ReasonKindNotServed), without(on(widgets, "v1", "a"), "c", hubv1.ReasonKindNotServed),
			},
			want: "Widget.example.com | 2 | 2 | 1/3 | v1 | v1 | not served by 2 clusters: b, c",
		},
		"a cluster that is left out for another reason is not wanted": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets)},
			bindings: []*hubv1.ResourceBinding{without(on(widgets, "v1", "a"), "b", hubv1.ReasonTaintNotTolerated)},
			want:     "Widget.example.com | 1 | 1 | 1/1 | v1 | v1 | -",
		},
		"a cluster that a placement can do without is not wanted": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets)},
			bindings: []*hubv1.ResourceBinding{without(on(widgets, "v1", "a"), "b", hubv1.ReasonKindNotServed, hubv1.ChosenCluster{Reason: hubv1.ReasonScheduled})},
			want:     "Widget.example.com | 1 | 1 | 1/1 | v1 | v1 | -",
		},
		"a cluster that has not reported its kinds is unknown, not lacking": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1"), silentMember("b"), serving("c", other, "v1")},
			bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a", "b", "c")},
			want:     "Widget.example.com | 1 | 3 | 1/3 (2 unknown) | v1 | v1 | -",
		},
		"a cluster that the user does not see is unknown": {
			bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a")},
			want:     "Widget.example.com | 1 | 1 | 0/1 (1 unknown) | - | v1 | -",
		},
		"versions have counts if clusters differ, and a cluster without the hub's version is named": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1", "v1beta1"), serving("b", widgets, "v1"), serving("c", widgets, "v1beta1")},
			bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a", "b", "c")},
			want:     "Widget.example.com | 1 | 3 | 3/3 | v1 (2), v1beta1 (2) | v1 | 1 cluster does not serve v1, which the objects need; it serves only v1beta1: c: update the CustomResourceDefinition or the cluster",
		},
		"a version that no wanted cluster serves alone is no problem": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets, "v1beta1")},
			bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a")},
			want:     "Widget.example.com | 1 | 1 | 1/1 | v1 (1), v1beta1 (1) | v1 | -",
		},
		"a kind of bundles need not be on the hub": {
			members:  []hubv1.MemberCluster{serving("a", other, "v2", "v1"), serving("b", other, "v2", "v1")},
			bindings: []*hubv1.ResourceBinding{bundled(on(other, "v1", "a", "b"))},
			want:     "Gadget.other.example.com | 1 | 2 | 2/2 | v2, v1 | not on the hub | -",
		},
		"a cluster without the version of an object of a bundle is named": {
			members:  []hubv1.MemberCluster{serving("a", other, "v2", "v1"), serving("b", other, "v2")},
			bindings: []*hubv1.ResourceBinding{bundled(on(other, "v1", "a", "b"))},
			want:     "Gadget.other.example.com | 1 | 2 | 2/2 | v2 (2), v1 (1) | not on the hub | 1 cluster does not serve v1, which the objects need; it serves only v2: b: update the CustomResourceDefinition or the cluster",
		},
		"objects of bundles need their own version, not the hub's": {
			members:  []hubv1.MemberCluster{serving("a", widgets, "v1beta1"), serving("b", widgets, "v1")},
			bindings: []*hubv1.ResourceBinding{bundled(on(widgets, "v1beta1", "a", "b"))},
			want:     "Widget.example.com | 1 | 2 | 2/2 | v1 (1), v1beta1 (1) | v1 | 1 cluster does not serve v1beta1, which the objects need; it serves only v1: b: update the CustomResourceDefinition or the cluster",
		},
		"objects whose kind has gone from the hub are a problem": {
			members:  []hubv1.MemberCluster{serving("a", other, "v1")},
			bindings: []*hubv1.ResourceBinding{on(other, "v1", "a")},
			want:     "Gadget.other.example.com | 1 | 1 | 1/1 | v1 | not on the hub | not on the hub, and bindings place 1 object of the hub",
		},
		"a kind that a placement selects and the hub lacks is a problem": {
			members:    []hubv1.MemberCluster{serving("a", other, "v1")},
			placements: []*hubv1.Placement{selecting(other)},
			want:       "Gadget.other.example.com | 0 | 0 | 1/1 | v1 | not on the hub | not on the hub, and a placement selects it",
		},
		"a group that the hub cannot read is unknown, and no problem": {
			placements: []*hubv1.Placement{selecting(schema.GroupKind{Group: "asleep.example.com", Kind: "Sheep"})},
			want:       "Sheep.asleep.example.com | 0 | 0 | 0/0 | - | unknown | -",
		},
		"without an object the clusters count that the placement selects": {
			members: []hubv1.MemberCluster{serving("a", widgets, "v1"), serving("b", widgets), serving("c", widgets)},
			placements: []*hubv1.Placement{selecting(widgets, func(s *hubv1.PlacementSpec) {
				s.Clusters.Names = []string{"a", "b"}
			})},
			want: "Widget.example.com | 0 | 0 | 1/2 | v1 | v1 | not served by 1 cluster: b",
		},
		"a placement that chooses by an expression wants no cluster before it has an object": {
			members: []hubv1.MemberCluster{serving("a", widgets)},
			placements: []*hubv1.Placement{selecting(widgets, func(s *hubv1.PlacementSpec) {
				s.Clusters.Expression = "'Widget.example.com' in servedKinds"
			})},
			want: "Widget.example.com | 0 | 0 | 0/0 | - | v1 | -",
		},
		"kinds of Hanse and every kind of a group are not listed": {
			members: []hubv1.MemberCluster{serving("a", widgets, "v1")},
			placements: []*hubv1.Placement{
				selecting(schema.GroupKind{Group: "hanse.dev", Kind: "Bundle"}), selecting(schema.GroupKind{Group: "example.com", Kind: "*"}),
			},
		},
		"kinds without namespaces are not of a namespace": {
			placements: []*hubv1.Placement{selecting(schema.GroupKind{Kind: "Namespace"}), selecting(widgets)},
			namespace:  "shop",
			want:       "Widget.example.com | 0 | 0 | 0/0 | - | v1 | -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := NewInventory(tc.members, kindsHub)
			for _, p := range tc.placements {
				found.AddPlacement(p)
			}
			for _, b := range tc.bindings {
				found.AddBinding(b)
			}
			kinds := found.Kinds(tc.namespace)
			if diff := cmp.Diff(tc.want, cells(kinds)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			problems := 0
			for _, k := range kinds.Kinds {
				problems += min(1, len(k.Problems))
			}
			if got := len(kinds.WithProblems().Kinds); got != problems {
				t.Errorf("%d kinds with problems, want %d", got, problems)
			}
		})
	}
}

// cells returns the lines of the table without its header. The cells of a line are separated by " | ".
func cells(k Kinds) string {
	var text bytes.Buffer
	k.Write(&text, now)
	_, rows, _ := strings.Cut(text.String(), "\n")
	return regexp.MustCompile(gap+" *").ReplaceAllString(strings.TrimSpace(rows), " | ")
}

func TestOneKindByCluster(t *testing.T) {
	t.Parallel()
	away := serving("away", widgets, "v1beta1")
	away.Status.LastObservedTime = &metav1.Time{Time: now.Add(-5 * time.Minute)}
	away.Status.Conditions[0].Status = metav1.ConditionFalse
	found := NewInventory([]hubv1.MemberCluster{serving("good", widgets, "v1", "v1beta1"), away, serving("lacking", widgets), silentMember("new")}, kindsHub)
	first := without(on(widgets, "v1", "good", "away", "gone"), "lacking", hubv1.ReasonKindNotServed)
	first.Status.Clusters = []hubv1.ClusterRow{
		{Name: "good", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
		{Name: "away", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown},
	}
	second := on(widgets, "v1", "good")
	second.Status.Clusters = []hubv1.ClusterRow{{Name: "good", Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded}}
	found.AddBinding(first)
	found.AddBinding(second)

	var text bytes.Buffer
	found.Of(widgets, nil, now).Write(&text, now)
	want := `Widget.example.com   hub: v1   objects 2   copies 4   served 2/4 (1 unknown)
Problem:   not served by 1 cluster: lacking
Problem:   1 cluster does not serve v1, which the objects need; it serves only v1beta1: away: update the CustomResourceDefinition or the cluster
CLUSTER   VERSIONS      WANTED   OBJECTS   APPLIED   HEALTHY   PROBLEMS   AS OF
away      v1beta1       yes      1         0         0         1          5m
gone      unknown       yes      1         0         0         0          -
good      v1, v1beta1   yes      2         2         1         1          live
lacking   not served    yes      0         0         0         0          live
new       unknown       no       0         0         0         0          -
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Run("no row is live while no hub runs", func(t *testing.T) {
		t.Parallel()
		for _, c := range found.Of(widgets, &Silence{}, now).Clusters {
			if c.Live {
				t.Errorf("%s is live", c.Cluster)
			}
		}
	})
}

func TestAKindIsFoundByItsNames(t *testing.T) {
	t.Parallel()
	found := NewInventory(nil, kindsHub)
	away := schema.GroupKind{Group: "other.example.com", Kind: "Gadget"}
	for _, kind := range []schema.GroupKind{widgets, away, {Group: "a", Kind: "Two"}, {Group: "b", Kind: "Two"}} {
		found.AddPlacement(selecting(kind))
	}
	for name, tc := range map[string]struct {
		typed string
		want  schema.GroupKind
		fault string
	}{
		"by the kind in any case":                     {typed: "widget", want: widgets},
		"by the kind and group":                       {typed: "Widget.example.com", want: widgets},
		"by the hub's plural":                         {typed: "widgetry", want: widgets},
		"by the plural and group":                     {typed: "widgetry.example.com", want: widgets},
		"by the usual plural if the hub lacks a kind": {typed: "gadgets", want: away},
		"by a kind of two groups with its group":      {typed: "twos.b", want: schema.GroupKind{Group: "b", Kind: "Two"}},
		"a kind of two groups is ambiguous":           {typed: "two", fault: "several groups have this kind, name one: Two.a, Two.b"},
		"a kind that is not in use is not found":      {typed: "deployments", fault: ErrNoSuchKind.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := found.Find(tc.typed)
			fault := ""
			if err != nil {
				fault = err.Error()
			}
			if got != tc.want || fault != tc.fault {
				t.Errorf("got %s, %q", got, fault)
			}
		})
	}
}

func TestAKindThatTheHubCannotRead(t *testing.T) {
	t.Parallel()
	p := selecting(widgets, func(s *hubv1.PlacementSpec) {
		s.ResourceSelectors = append([]hubv1.ResourceSelector{{Kind: "ConfigMap"}}, s.ResourceSelectors...)
	})
	unknown := metav1.Condition{
		Type: hubv1.ConditionScheduled, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonKindUnreadable,
		Message: "resourceSelectors[1]: the hub cannot read Widget.example.com: ServerError: conversion webhook failed; 1 of 1 objects",
	}
	p.Status.Conditions = []metav1.Condition{unknown}
	i := NewInventory(nil, kindsHub)
	i.AddPlacement(p)
	problems := map[string][]KindProblem{}
	for _, k := range i.Kinds("").Kinds {
		problems[k.Kind] = k.Problems
	}
	want := []KindProblem{{Reason: hubv1.ReasonKindUnreadable, Message: "the hub cannot read Widget.example.com: ServerError: conversion webhook failed"}}
	if diff := cmp.Diff(want, problems["Widget"]); diff != "" {
		t.Errorf("problems of Widget (-want +got):\n%s", diff)
	}
	for _, other := range problems["ConfigMap"] {
		if other.Reason == hubv1.ReasonKindUnreadable {
			t.Errorf("ConfigMap has the problem %+v of another kind", other)
		}
	}

	g := NewGatherer(nil)
	g.AddPolicy("Placement shop/all", p.Status.Conditions)
	if got := g.Worst(10).OfPolicies; len(got) != 1 || got[0].Reason != hubv1.ReasonKindUnreadable || got[0].Message != unknown.Message {
		t.Errorf("problems of policies: %+v", got)
	}
}

func TestAKindThatIsNeverUnderstood(t *testing.T) {
	unread := hubv1.ClusterRow{Name: "eu", Applied: metav1.ConditionTrue, Health: hubv1.HealthUnknown, Reason: health.ReasonStatusNotUnderstood}
	tests := map[string]struct {
		rows []hubv1.ClusterRow
		want string // the message; empty: no problem
	}{
		"one copy": {
			rows: []hubv1.ClusterRow{unread},
			want: "the status of 1 copy is not understood: it never becomes Healthy, and holds waves and drains; set a healthExpression or the chart value statusVocabulary (try it with hansectl health)",
		},
		"several copies": {
			rows: []hubv1.ClusterRow{unread, {Name: "cn", Health: hubv1.HealthProgressing}, {Name: "us", Health: hubv1.HealthUnknown, Reason: health.ReasonStatusNotUnderstood}},
			want: "the status of 2 copies is not understood: they never become Healthy, and hold waves and drains; set a healthExpression or the chart value statusVocabulary (try it with hansectl health)",
		},
		"a copy of the kind is Healthy":   {rows: []hubv1.ClusterRow{unread, {Name: "cn", Health: hubv1.HealthHealthy}}},
		"the health is Unknown otherwise": {rows: []hubv1.ClusterRow{{Name: "eu", Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := on(widgets, "v1", "eu", "cn", "us")
			b.Status.Clusters = tc.rows
			inventory := NewInventory([]hubv1.MemberCluster{serving("eu", widgets, "v1"), serving("cn", widgets, "v1"), serving("us", widgets, "v1")}, kindsHub)
			inventory.AddBinding(b)
			g := NewGatherer(nil)
			g.Add(b)
			var kinds, problems []string
			for _, k := range inventory.Kinds("").WithProblems().Kinds {
				for _, p := range k.Problems {
					kinds = append(kinds, p.Message)
				}
			}
			for _, p := range g.Worst(10).OfKinds {
				problems = append(problems, p.Message)
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, kinds) + cmp.Diff(want, problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
