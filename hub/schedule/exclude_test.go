package schedule

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// excluding is a policy for the objects of the cases with one rule that excludes clusters.
func excluding(clusters *hubv1.RuleClusters, change ...func(*hubv1.OverridePolicy)) *hubv1.OverridePolicy {
	p := &hubv1.OverridePolicy{}
	p.Namespace, p.Name = object.Namespace, "x"
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: object.Group, Kind: object.Kind}}
	p.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Exclude: true, Clusters: clusters}}
	for _, f := range change {
		f(p)
	}
	return p
}

func naming(clusters ...string) *hubv1.RuleClusters { return &hubv1.RuleClusters{Names: clusters} }

func TestDecideOnExcludedClusters(t *testing.T) {
	t.Parallel()
	const del, orphan = hubv1.RemovalDelete, hubv1.RemovalOrphan
	odd := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Odd"}}}
	everywhere := only(policy("web"))
	tests := map[string]struct {
		in        given
		overrides []hubv1.OverridePolicyObject
		want      []hubv1.BindingTarget // nil: there is no binding
		reason    string
		message   string
		takes     bool
	}{
		"an excluded cluster does not get the object": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("sg"), present("us")}, reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 excluded by override policies",
		},
		"a cluster that is excluded turns Absent": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), placements: only(policy("web", named("eu", "sg"))), clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, del), present("sg")}, reason: hubv1.ReasonScheduled,
			message: "1 of 3 clusters: 1 excluded by override policies, 1 not selected", takes: true,
		},
		"what becomes of its copy is what the placement says of unselected clusters": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), clusters: three(), placements: only(policy("web", named("eu", "sg"), func(p *hubv1.Placement) {
				p.Spec.Deletion.WhenUnselected = orphan
			}))}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, orphan), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"nothing is taken while it is held back": {
			in: given{uid: "a", binding: bound(present("eu")), placements: only(policy("web", named("eu"))), clusters: three(), holdBack: true}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a cluster that is no longer excluded gets the object again": {
			in:   given{uid: "a", binding: bound(absent("eu", hubv1.ReasonExcludedByOverride, del)), placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"another cluster takes its place in a spread": {
			in:        given{uid: "a", binding: bound(present("eu")), clusters: three(), placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: new(int32(1))})))},
			overrides: these(excluding(naming("eu"))),
			want:      []hubv1.BindingTarget{absent("eu", hubv1.ReasonExcludedByOverride, del), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"what a cluster is takes nothing away": {
			in: given{uid: "a", binding: bound(present("eu")), placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{Expression: "version < 'v1.36'"})),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled, message: "1 of 3 clusters: 2 excluded by override policies",
		},
		"a policy for other objects excludes nothing": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(naming("eu"), func(p *hubv1.OverridePolicy) {
				p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
			})),
			want: []hubv1.BindingTarget{present("eu"), present("sg"), present("us")}, reason: hubv1.ReasonScheduled,
		},
		"a policy whose objects cannot be read leaves the decision as it is": {
			in:        given{uid: "a", binding: bound(present("eu"), present("sg")), placements: only(policy("web", named("us"))), clusters: three()},
			overrides: these(excluding(naming("us"), func(p *hubv1.OverridePolicy) { p.Spec.ResourceSelectors[0].LabelSelector = odd })),
			want:      []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonOverrideInvalid,
			message: `every cluster keeps what it has: OverridePolicy shop/x: resourceSelectors[0].labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"a rule whose clusters cannot be read leaves the decision as it is": {
			in: given{uid: "a", binding: bound(present("eu"), present("sg")), placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{LabelSelector: odd})),
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonOverrideInvalid,
			message: `every cluster keeps what it has: OverridePolicy shop/x, rule "r": clusters.labelSelector: "Odd" is not a valid label selector operator: correct the selector`,
		},
		"an object that is nowhere yet waits for a policy that can be read": {
			in: given{uid: "a", placements: everywhere, clusters: three()}, overrides: these(excluding(&hubv1.RuleClusters{LabelSelector: odd})),
			reason: hubv1.ReasonOverrideInvalid,
		},
		"a placement that suspends scheduling keeps excluded clusters": {
			in:        given{uid: "a", binding: bound(present("eu")), clusters: three(), placements: only(policy("web", func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true }))},
			overrides: these(excluding(naming("eu"))),
			want:      []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonSuspended,
		},
		"an excluded cluster keeps what it has when its placement is gone": {
			in: given{uid: "a", binding: bound(present("eu")), clusters: three()}, overrides: these(excluding(naming("eu"))),
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.in.facts()
			f.world.overrides = tc.overrides
			p := decide(f)
			var got []hubv1.BindingTarget
			if p.spec != nil {
				got = p.spec.Clusters
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if p.scheduled.Reason != tc.reason || tc.message != "" && p.scheduled.Message != tc.message || p.takes != tc.takes {
				t.Errorf("%s: %s, takes %t; want %s: %s, takes %t", p.scheduled.Reason, p.scheduled.Message, p.takes, tc.reason, tc.message, tc.takes)
			}
			if tc.in.binding == nil || tc.in.holdBack {
				return
			}
			live := Live{Object: f.template, Binding: tc.in.binding, Placements: f.world.placements, Clusters: f.world.clusters, Overrides: tc.overrides, Now: now}
			if diff := cmp.Diff(*p.spec, live.Replay().Spec); diff != "" {
				t.Errorf("replayed (-decided +replayed):\n%s", diff)
			}
		})
	}
}

func these(policies ...hubv1.OverridePolicyObject) []hubv1.OverridePolicyObject { return policies }

func TestTheShareOfAnExcludedClusterGoesToTheOthers(t *testing.T) {
	t.Parallel()
	f := given{
		uid: "a", binding: divided(share("eu", 4), share("sg", 3), share("us", 3)), clusters: three(), placements: only(policy("web", dividing(hubv1.DivideByWeight))),
	}.facts()
	f.template.Object["spec"] = map[string]any{"size": int64(10)}
	f.world.overrides = these(excluding(naming("eu")))
	if got, want := shares(decide(f).spec), "-eu sg=5 us=5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFleetIsSettledWithoutExcludedClusters(t *testing.T) {
	t.Parallel()
	fleet := Fleet{
		Clusters: three(), Placements: only(policy("web")), Overrides: these(excluding(naming("eu"))), Now: now,
		Objects: []FleetObject{{Object: template("a"), Binding: bound(present("eu"), present("sg"), present("us"))}},
	}
	s, err := fleet.Settle(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []hubv1.BindingTarget{present("sg"), present("us")}
	if diff := cmp.Diff(want, s.Outcomes[0].Binding.BindingSpec().Clusters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOverridePoliciesThatExcludeWakeTheirObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exclude", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("eu", "sg")
	x := excluding(naming(s.cluster("eu")), func(p *hubv1.OverridePolicy) { p.Namespace = s.id.Namespace })
	s.create(x)
	s.becomes("-eu ExcludedByOverride Delete", "sg")
	s.eventually("the decision names policy and rule", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if want := s.cluster("eu") + `: excluded by OverridePolicy ` + s.id.Namespace + `/x, rule "r"`; d == nil || !slices.ContainsFunc(d.Rejected, func(r hubv1.RejectedClusters) bool {
			return r.Reason == hubv1.ReasonExcludedByOverride && slices.Contains(r.Examples, want)
		}) {
			return fmt.Errorf("it is %+v", d)
		}
		return nil
	})
	x.Spec.Rules[0].Clusters.Names = []string{s.cluster("sg")}
	s.updates(x)
	s.becomes("eu", "-sg ExcludedByOverride Delete")
	if err := hubClient.Delete(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	s.becomes("eu", "sg")
}

func TestAnExclusionByVersionOnlyKeepsNewObjectsOut(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exclude-version", "eu", "sg")
	s.reports("eu", `{"version":{"kubernetes":"v1.30.1"}}`)
	s.create(excluding(&hubv1.RuleClusters{Expression: "version.startsWith('v1.30')"}, func(p *hubv1.OverridePolicy) { p.Namespace = s.id.Namespace }))
	s.eventually("the scheduler knows the policy and the version", func() error {
		var c hubv1.MemberCluster
		var p hubv1.OverridePolicy
		if err := scheduler.Client.Get(t.Context(), client.ObjectKey{Name: s.cluster("eu")}, &c); err != nil || c.Status.Version.Kubernetes == "" {
			return fmt.Errorf("the version is %q, %w", c.Status.Version.Kubernetes, err)
		}
		return scheduler.Client.Get(t.Context(), client.ObjectKey{Namespace: s.id.Namespace, Name: "x"}, &p)
	})
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("sg")
	s.reports("eu", `{"version":{"kubernetes":"v1.31.0"}}`)
	s.becomes("eu", "sg")
	s.reports("sg", `{"version":{"kubernetes":"v1.30.2"}}`)
	s.eventually("it is seen and kept", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if d == nil || !slices.Contains(d.Reasons, hubv1.ChosenCluster{Cluster: s.cluster("sg"), Reason: hubv1.ReasonExcludedByOverride}) {
			return fmt.Errorf("the decision is %+v", d)
		}
		return nil
	})
	s.becomes("eu", "sg")
}

func (s *scene) updates(o client.Object) {
	s.t.Helper()
	if err := hubClient.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}
