package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// given has the parts of an Input that test cases set.
type given struct {
	binding    *hubv1.ResourceBinding
	uid        types.UID // UID of the object; empty if state says that it does not exist
	state      State
	labels     map[string]string
	withdraw   string // value of the annotation that requests a withdrawal
	placements []hubv1.PlacementObject
	clusters   []*hubv1.MemberCluster
	others     []string // versions besides v1 at which the object may be sent
	refused    bool
	holdBack   bool
}

func (g given) input() Input {
	f := Input{
		Object: Object{ID: object, State: g.state, Problem: "no answer", HubRuns: g.refused, Unconfirmed: g.holdBack},
		Facts:  Facts{Placements: g.placements, Clusters: g.clusters, NamespaceRead: true}, Now: now,
	}
	if g.binding != nil {
		f.Binding = g.binding
	}
	if g.state == Exists {
		f.Object.Template, f.Object.OtherVersions = template(g.uid), g.others
		if g.labels != nil {
			f.Object.Template.SetLabels(g.labels)
		}
		if g.withdraw != "" {
			f.Object.Template.SetAnnotations(map[string]string{hubv1.WithdrawAnnotation: g.withdraw})
		}
	}
	return f
}

func TestWhatNeverGoesToMembersIsNotPlaced(t *testing.T) {
	t.Parallel()
	placed := given{uid: "a", placements: only(policy("web", named("eu"))), clusters: three()}
	for name, tc := range map[string]struct {
		in     given
		change func(*Input)
		want   []hubv1.BindingTarget
		reason string
	}{
		"a token of a ServiceAccount": {placed, func(f *Input) {
			f.Object.Template.SetAPIVersion("v1")
			f.Object.Template.SetKind("Secret")
			f.Object.Template.Object["type"] = "kubernetes.io/service-account-token"
		}, nil, hubv1.ReasonSecretTypeRefused},
		"an object of kube-system": {placed, func(f *Input) {
			f.Object.ID.Namespace = "kube-system"
			f.Facts.Placements[0].SetNamespace("kube-system")
		}, nil, hubv1.ReasonNamespaceRefused},
		"a Role of kube-system that a ClusterBundle has": {placed, inKubeSystem(hubv1.ClusterBundleKind), nil, hubv1.ReasonNamespaceRefused},
		"where it is already, it stays": {
			given{binding: bound(present("sg")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()}, func(f *Input) {
				f.Object.ID.Namespace = "kube-system"
				f.Facts.Placements[0].SetNamespace("kube-system")
			}, []hubv1.BindingTarget{present("sg")}, hubv1.ReasonNamespaceRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.in.input()
			f.Facts.Placements = []hubv1.PlacementObject{f.Facts.Placements[0].DeepCopyObject().(hubv1.PlacementObject)}
			tc.change(&f)
			p := Decide(f)
			var got []hubv1.BindingTarget
			if p.Spec != nil {
				got = p.Spec.Clusters
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.Status.Scheduled.Reason != tc.reason || p.Status.Scheduled.Status != metav1.ConditionFalse {
				t.Errorf("%+v%s", p.Status.Scheduled, diff)
			}
		})
	}
}

// inKubeSystem makes the object a Role in kube-system, of a bundle of this kind, which a ClusterPlacement selects.
func inKubeSystem(kind string) func(*Input) {
	return func(f *Input) {
		of := hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: kind, Name: "issuer"}}
		f.Object.ID = hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "kube-system", Name: "issuer"}
		f.Object.Template.SetAPIVersion("rbac.authorization.k8s.io/v1")
		f.Object.Template.SetKind("Role")
		f.Object.Template.SetNamespace("kube-system")
		f.Object.Template.SetName("issuer")
		f.Object.Template.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
		f.Facts.Placements = []hubv1.PlacementObject{&hubv1.ClusterPlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "operators", UID: "p"},
			Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: kind}}, Clusters: hubv1.ClusterSelection{Names: []string{"eu"}},
			}},
		}}
	}
}

func TestARoleOfAnOperatorInKubeSystemIsPlaced(t *testing.T) {
	t.Parallel()
	f := given{uid: "a", placements: only(policy("web", named("eu"))), clusters: three()}.input()
	inKubeSystem(hubv1.FederatedOperatorKind)(&f)
	p := Decide(f)
	if p.Spec == nil || len(p.Spec.Clusters) != 1 || p.Spec.Clusters[0].Name != "eu" || !p.Spec.ObjectRef.IsOfOperator() {
		t.Errorf("%+v, %+v", p.Spec, p.Status.Scheduled)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		del    = hubv1.RemovalDelete
		orphan = hubv1.RemovalOrphan
	)
	tests := map[string]struct {
		in      given
		want    []hubv1.BindingTarget // nil and no reason: there is no binding
		reason  string
		message string // expected message; empty: not checked
		takes   bool
		remove  bool
		left    []string
		again   time.Duration
	}{
		"a new object goes to every selected cluster": {
			in:     given{uid: "a", placements: only(policy("web", named("eu", "sg"))), clusters: three()},
			want:   []hubv1.BindingTarget{present("eu"), present("sg")},
			reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 not selected",
		},
		"an object that no placement selects gets no binding": {
			in: given{uid: "a", placements: only(policy("web", labelled("other"))), clusters: three()},
		},
		"a copy that another hub sent is no template": {
			in: given{uid: "a", labels: map[string]string{hubv1.HubLabel: "x"}, placements: only(policy("web")), clusters: three()},
		},
		"an object without any cluster has a binding that says so": {
			in:   given{uid: "a", placements: only(policy("web", named("mars"))), clusters: three()},
			want: nil, reason: hubv1.ReasonNoClusterSelected, message: "0 of 3 clusters: 3 not selected",
		},
		"a cluster that is no longer selected turns Absent": {
			in:   given{binding: bound(present("eu"), present("sg")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonNotSelected, del)}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"an unselected cluster orphans if the placement says so": {
			in: given{binding: bound(present("sg")), uid: "a", clusters: three(), placements: only(policy("web", named("eu"), func(p *hubv1.Placement) {
				p.Spec.Deletion.WhenUnselected = orphan
			}))},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonNotSelected, orphan)}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"nothing is taken from a cluster while it is held back, but others are added": {
			in:   given{binding: bound(present("sg")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three(), holdBack: true},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonScheduled,
		},
		"an Absent cluster stays until its row says Withdrawn": {
			in: given{binding: bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, del)), uid: "a",
				placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonNotSelected, del)}, reason: hubv1.ReasonScheduled,
		},
		"a withdrawn cluster is dropped": {
			in: given{binding: withdrawnRow(bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, del)), "sg"), uid: "a",
				placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a row of an older decision confirms nothing": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := withdrawnRow(bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, del)), "sg")
				b.Status.ObservedGeneration = 1
				return b
			}(), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonNotSelected, del)}, reason: hubv1.ReasonScheduled,
		},
		"a row of the decision just before confirms": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := withdrawnRow(bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, del)), "sg")
				b.Status.ObservedGeneration = 2
				return b
			}(), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a cluster that is selected again while it is Absent is Present again": {
			in:   given{binding: bound(absent("sg", hubv1.ReasonNotSelected, del)), uid: "a", placements: only(policy("web", named("sg"))), clusters: three()},
			want: []hubv1.BindingTarget{present("sg")}, reason: hubv1.ReasonScheduled,
		},
		"an unreachable cluster keeps the object and gets no new one": {
			in: given{binding: bound(present("eu")), uid: "a", placements: only(policy("web")),
				clusters: []*hubv1.MemberCluster{cluster("eu", unreachable), cluster("sg", unreachable), cluster("us")}},
			want: []hubv1.BindingTarget{present("eu"), present("us")}, reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 1 not ready",
		},
		"an object that no placement selects is withdrawn if its user asks for it": {
			in:     given{binding: known(bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, orphan))), uid: "a", withdraw: "binding-1", clusters: three()},
			want:   []hubv1.BindingTarget{absent("eu", hubv1.ReasonPlacementGone, del), absent("sg", hubv1.ReasonNotSelected, orphan)},
			reason: hubv1.ReasonPlacementGone, takes: true,
		},
		"it is orphaned if its placement had said so": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := known(bound(present("eu")))
				b.Annotations = map[string]string{WhenDeletedAnnotation: string(orphan)}
				return b
			}(), uid: "a", withdraw: "binding-1", clusters: three()},
			want:   []hubv1.BindingTarget{absent("eu", hubv1.ReasonPlacementGone, orphan)},
			reason: hubv1.ReasonPlacementGone, takes: true,
		},
		"its binding goes with the last copy": {
			in:     given{binding: withdrawnRow(known(bound(absent("eu", hubv1.ReasonPlacementGone, del))), "eu"), uid: "a", withdraw: "binding-1", clusters: three()},
			reason: hubv1.ReasonPlacementGone, remove: true,
		},
		"nothing is withdrawn that was asked of an earlier binding": {
			in:   given{binding: known(bound(present("eu"))), uid: "a", withdraw: "binding-0", clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
		},
		"nothing is withdrawn of an object that a placement selects": {
			in:   given{binding: known(bound(present("eu"))), uid: "a", withdraw: "binding-1", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"nothing is withdrawn while reads do not confirm it": {
			in:   given{binding: known(bound(present("eu"))), uid: "a", withdraw: "binding-1", clusters: three(), holdBack: true},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
		},
		"a deleted object is withdrawn from everywhere": {
			in:     given{binding: bound(present("eu"), absent("sg", hubv1.ReasonNotSelected, orphan)), state: Deleted, placements: only(policy("web")), clusters: three()},
			want:   []hubv1.BindingTarget{absent("eu", hubv1.ReasonObjectDeleted, del), absent("sg", hubv1.ReasonNotSelected, orphan)},
			reason: hubv1.ReasonObjectDeleted, takes: true,
		},
		"a deleted object orphans if its placement, gone as well, had said so": {
			in: given{binding: func() *hubv1.ResourceBinding {
				b := bound(present("eu"))
				b.Annotations = map[string]string{WhenDeletedAnnotation: "Orphan"}
				return b
			}(), state: Deleted, clusters: three()},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonObjectDeleted, orphan)}, reason: hubv1.ReasonObjectDeleted, takes: true,
		},
		"the binding of a deleted object goes after the last row": {
			in:     given{binding: withdrawnRow(bound(absent("eu", hubv1.ReasonObjectDeleted, del)), "eu"), state: Deleted, clusters: three()},
			reason: hubv1.ReasonObjectDeleted, remove: true,
		},
		"a withdrawal is cancelled when the same object is back": {
			in:   given{binding: bound(absent("eu", hubv1.ReasonObjectDeleted, del), present("sg")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonNotSelected, del)}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"a withdrawal goes on when another object of the name is there": {
			in: given{binding: bound(absent("eu", hubv1.ReasonObjectDeleted, del), present("sg")), uid: "b", placements: only(policy("web", named("eu"))), clusters: three()},
			// Both copies have the UID of the object that was deleted.
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonMadeAnew, del), absent("sg", hubv1.ReasonNotSelected, del)}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"an object that is back keeps its decision if no placement selects it": {
			in:   given{binding: bound(absent("eu", hubv1.ReasonObjectDeleted, del)), uid: "a", clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
		},
		"a withdrawal goes on when another object of the name is there, and no placement selects it": {
			in:   given{binding: bound(absent("eu", hubv1.ReasonObjectDeleted, del)), uid: "b", clusters: three()},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonMadeAnew, del)}, reason: hubv1.ReasonPlacementGone,
		},
		"nothing changes when the placement is gone": {
			in:   given{binding: bound(present("eu")), uid: "a", clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
			message: "Placement/web is deleted: every cluster keeps its copy until a placement selects the object or the object is deleted; hansectl withdraw removes the copies",
		},
		"nothing changes when the placement no longer selects the object": {
			in:   given{binding: bound(present("eu")), uid: "a", placements: only(policy("web", labelled("other"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonPlacementGone,
			message: "Placement/web no longer selects the object: every cluster keeps its copy until a placement selects the object or the object is deleted; hansectl withdraw removes the copies",
		},
		"a binding without clusters goes with its placement": {
			in: given{binding: bound(), uid: "a", clusters: three()}, reason: hubv1.ReasonPlacementGone, remove: true,
		},
		"a binding that knows of copies left on clusters stays": {
			in: given{binding: remembering(bound()), uid: "a", clusters: three()}, reason: hubv1.ReasonPlacementGone,
		},
		"a binding that knows of copies left on clusters goes with its object": {
			in: given{binding: remembering(bound()), state: Deleted, clusters: three()}, reason: hubv1.ReasonObjectDeleted, remove: true,
		},
		"a suspended placement keeps its decision": {
			in: given{binding: bound(present("eu")), uid: "a", clusters: three(), placements: only(policy("web", named("sg"), func(p *hubv1.Placement) {
				p.Spec.Suspend.Scheduling = true
			}))},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonSuspended,
		},
		"a placement of higher rank takes over only with preemption": {
			in: given{binding: bound(present("eu")), uid: "a", clusters: three(), placements: only(policy("web", named("eu")), policy("aaa", named("sg"), func(p *hubv1.Placement) {
				p.Spec.Priority = 5
			}))},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a preempting placement moves the object": {
			in: given{binding: bound(present("eu")), uid: "a", clusters: three(), placements: only(policy("web", named("eu")), policy("aaa", named("sg"), func(p *hubv1.Placement) {
				p.Spec.Priority, p.Spec.Preemption = 5, hubv1.PreemptionAlways
			}))},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotSelected, del), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"an enforced placement moves the object, though the one that it follows is suspended": {
			in: given{binding: bound(present("eu")), uid: "a", clusters: three(), placements: append(only(policy("web", named("eu"), func(p *hubv1.Placement) {
				p.Spec.Priority, p.Spec.Suspend.Scheduling = 1000, true
			})), enforced("fixed", "sg"))},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotSelected, del), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"a broken cluster selector changes nothing": {
			in: given{binding: bound(present("eu")), uid: "a", clusters: three(), placements: only(policy("web", func(p *hubv1.Placement) {
				p.Spec.Clusters.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sometimes"}}
			}))},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonInvalid,
		},
		"a cluster that does not serve the kind gets no object and keeps the one it has": {
			in: given{binding: bound(present("sg")), uid: "a", placements: only(policy("web")),
				clusters: []*hubv1.MemberCluster{cluster("eu", serving("v1")), cluster("sg", serving()), cluster("us", serving()), cluster("za", serving("v1beta1"))}},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonScheduled,
			message: "2 of 4 clusters: 1 do not serve the kind, 1 do not serve the version",
		},
		"a cluster that serves another version at which it may get the object is as good as others": {
			in: given{uid: "a", placements: only(policy("web")), others: []string{"v1beta1"},
				clusters: []*hubv1.MemberCluster{cluster("eu", serving("v1")), cluster("sg", serving("v2")), cluster("za", serving("v1beta1"))}},
			want: []hubv1.BindingTarget{present("eu"), present("za")}, reason: hubv1.ReasonScheduled,
			message: "2 of 3 clusters: 1 do not serve the version",
		},
		"a cluster that has not said whether it serves the kind is waited for": {
			in: given{uid: "a", placements: only(policy("web")), clusters: []*hubv1.MemberCluster{cluster("eu"), cluster("sg", func(c *hubv1.MemberCluster) {
				c.Status.APIResources = []hubv1.ServedKind{{Group: "other.example.com", Kind: "Other"}}
			})}},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled, message: "1 of 2 clusters: 1 do not serve the kind",
		},
		"fewer clusters than were asked for are no success": {
			in:   given{uid: "a", placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](4)}))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), present("sg"), present("us")}, reason: hubv1.ReasonSpreadUnsatisfied,
			message: "3 of 3 clusters; numberOfClusters: 3 of 4",
		},
		"a lower number takes the object from the clusters that come last": {
			in: given{binding: bound(present("eu"), present("sg"), present("us")), uid: "a", clusters: three(),
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})))},
			want:   []hubv1.BindingTarget{absent("eu", hubv1.ReasonNotChosen, del), absent("sg", hubv1.ReasonNotChosen, del), present("us")},
			reason: hubv1.ReasonScheduled, message: "1 of 3 clusters: 2 not needed", takes: true,
		},
		"a constraint that cannot hold moves nothing": {
			in: given{binding: bound(present("eu"), present("sg")), uid: "a", clusters: three(),
				placements: only(policy("web", spreading(hubv1.SpreadPolicy{TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{
					{TopologyKey: "name", MinDomains: ptr.To[int32](4)},
				}})))},
			want: []hubv1.BindingTarget{present("eu"), present("sg")}, reason: hubv1.ReasonSpreadUnsatisfied,
			message: "2 of 3 clusters: 1 wait for the spread to be satisfied; label name: 3 of at least 4 domains; every cluster keeps its copy",
		},
		"a kind that the hub would run is refused": {
			in: given{uid: "a", placements: only(policy("web")), clusters: three(), refused: true}, reason: hubv1.ReasonHubWouldRun,
		},
		"a kind that the hub would run goes where its placement allows it": {
			in: given{uid: "a", clusters: three(), refused: true, placements: only(policy("web", named("eu"), func(p *hubv1.Placement) {
				p.Spec.HubExecution = hubv1.HubExecutionAllowed
			}))},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled,
		},
		"a leaving cluster orphans by default": {
			in: given{binding: bound(present("eu"), present("sg")), uid: "a", placements: only(policy("web", named("eu", "sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", leaving("")), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
		},
		"a cluster may leave although the object cannot be read": {
			in:   given{binding: bound(present("eu"), present("sg")), state: Unreadable, clusters: []*hubv1.MemberCluster{cluster("eu", leaving(del)), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, del), present("sg")}, reason: hubv1.ReasonTemplateMissing, takes: true,
		},
		"what cannot be read keeps its decision": {
			in:   given{binding: bound(present("eu"), absent("sg", hubv1.ReasonObjectDeleted, del)), state: Undecided, placements: only(policy("web")), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), absent("sg", hubv1.ReasonObjectDeleted, del)}, reason: hubv1.ReasonTemplateMissing, again: 5 * time.Minute,
		},
		"a missing MemberCluster keeps a Present entry": {
			in:   given{binding: bound(present("mars")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu"), present("mars")}, reason: hubv1.ReasonScheduled, message: "2 of 3 clusters: 2 not selected, 1 without a MemberCluster",
		},
		"a missing MemberCluster drops an Absent entry and what it held is left behind": {
			in:   given{binding: bound(present("eu"), absent("mars", hubv1.ReasonNotSelected, del)), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()},
			want: []hubv1.BindingTarget{present("eu")}, reason: hubv1.ReasonScheduled, takes: true, left: []string{"mars: its MemberCluster is deleted"},
		},
		"an unreachable cluster that leaves is waited for until its time is up": {
			in: given{binding: bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), uid: "a", placements: only(policy("web", named("sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", unreachable, leaving(""), abandonAfter(90)), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled, again: 30 * time.Second,
		},
		"an unreachable cluster is abandoned when its time is up": {
			in: given{binding: bound(present("eu")), uid: "a", placements: only(policy("web", named("sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", unreachable, leaving(""), abandonAfter(60)), cluster("sg")}},
			want: []hubv1.BindingTarget{present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
			left: []string{"eu: the cluster does not answer and is abandoned (spec.leave.whenUnreachable)"},
		},
		"a cluster that answers and refuses the withdrawal is abandoned when its time is up": {
			in: given{binding: refusedRow(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu"), uid: "a", placements: only(policy("web", named("sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(60)), cluster("sg")}},
			want: []hubv1.BindingTarget{present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
			left: []string{"eu: the cluster refuses the withdrawal (Forbidden) and is abandoned (spec.leave.whenUnreachable)"},
		},
		"a cluster where a definition has objects is abandoned when its time is up": {
			in: given{binding: rowSays(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu", hubv1.ReasonDefinitionKept, "it has objects"),
				uid: "a", placements: only(policy("web", named("sg"))), clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(60)), cluster("sg")}},
			want: []hubv1.BindingTarget{present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
			left: []string{"eu: the cluster refuses the withdrawal (DefinitionKept) and is abandoned (spec.leave.whenUnreachable)"},
		},
		"a cluster where finalizers keep the copy is abandoned when its time is up, and they are named": {
			in: given{binding: rowSays(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu", hubv1.ReasonFinalizersRemain, "Widget shop/web waits for its finalizers a.b/c"),
				uid: "a", placements: only(policy("web", named("sg"))), clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(60)), cluster("sg")}},
			want: []hubv1.BindingTarget{present("sg")}, reason: hubv1.ReasonScheduled, takes: true,
			left: []string{"eu: Widget shop/web waits for its finalizers a.b/c and is abandoned (spec.leave.whenUnreachable)"},
		},
		"a cluster where finalizers keep the copy is waited for until its time is up": {
			in: given{binding: rowSays(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu", hubv1.ReasonFinalizersRemain, "it waits"),
				uid: "a", placements: only(policy("web", named("sg"))), clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(90)), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled, again: 30 * time.Second,
		},
		"a withdrawal that is under way without a hindrance is never abandoned": {
			in: given{binding: rowSays(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu", hubv1.ReasonDeleting, "to be withdrawn"),
				uid: "a", placements: only(policy("web", named("sg"))), clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(0)), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled,
		},
		"a cluster that refuses the withdrawal is waited for unless it is to be abandoned": {
			in: given{binding: refusedRow(bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), "eu"), uid: "a", placements: only(policy("web", named("sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", leaving("")), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled,
		},
		"a cluster that answers and withdraws is never abandoned": {
			in: given{binding: bound(absent("eu", hubv1.ReasonClusterLeaving, orphan)), uid: "a", placements: only(policy("web", named("sg"))),
				clusters: []*hubv1.MemberCluster{cluster("eu", leaving(""), abandonAfter(0)), cluster("sg")}},
			want: []hubv1.BindingTarget{absent("eu", hubv1.ReasonClusterLeaving, orphan), present("sg")}, reason: hubv1.ReasonScheduled,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Decide(tc.in.input())
			var got []hubv1.BindingTarget
			if p.Spec != nil {
				got = p.Spec.Clusters
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if p.Status.Scheduled.Reason != tc.reason {
				t.Errorf("reason %q, want %q (%s)", p.Status.Scheduled.Reason, tc.reason, p.Status.Scheduled.Message)
			}
			if tc.message != "" && p.Status.Scheduled.Message != tc.message {
				t.Errorf("message %q, want %q", p.Status.Scheduled.Message, tc.message)
			}
			if p.Withdraws != tc.takes || p.Remove != tc.remove || p.Again != tc.again {
				t.Errorf("takes %v, remove %v, again %v; want %v, %v, %v", p.Withdraws, p.Remove, p.Again, tc.takes, tc.remove, tc.again)
			}
			if diff := cmp.Diff(tc.left, p.LeftBehind); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideTwiceIsDecideOnce(t *testing.T) {
	t.Parallel()
	in := given{binding: bound(present("eu"), present("sg")), uid: "a", placements: only(policy("web", named("eu", "us"))), clusters: three()}
	first := Decide(in.input())
	next := bound()
	next.Spec = *first.Spec
	in.binding = next
	if diff := cmp.Diff(first.Spec, Decide(in.input()).Spec); diff != "" {
		t.Errorf("a second decision differs (-first +second):\n%s", diff)
	}
}

func TestPlacementGenerationIsKeptWhileTheDecisionIs(t *testing.T) {
	t.Parallel()
	before := bound(present("eu")).Spec
	same := before.DeepCopy()
	same.PlacementRef.Generation = 9
	keepRecorded(&before, same)
	if same.PlacementRef.Generation != 1 {
		t.Errorf("generation %d, want the 1 of the decision", same.PlacementRef.Generation)
	}
	other := before.DeepCopy()
	other.PlacementRef.Generation = 9
	other.Clusters = nil
	keepRecorded(&before, other)
	if other.PlacementRef.Generation != 9 {
		t.Errorf("generation %d, want the 9 of the new decision", other.PlacementRef.Generation)
	}
}

func TestANewVersionOfTheKindIsNoReasonToWriteADecision(t *testing.T) {
	t.Parallel()
	in := given{binding: bound(present("eu")), uid: "a", placements: only(policy("web", named("eu"))), clusters: three()}.input()
	in.Object.Template.SetAPIVersion("example.com/v2")
	if diff := cmp.Diff(in.Spec(), Decide(in).Spec); diff != "" {
		t.Errorf("the same decision at another version differs (-was +is):\n%s", diff)
	}
	in.Facts.Placements = only(policy("web", named("eu", "us")))
	if got := Decide(in).Spec.ObjectRef.APIVersion; got != "example.com/v2" {
		t.Errorf("a new decision names %s, want the version at which the hub reads the object", got)
	}
}

// remembering adds an orphaned copy on a cluster to the status of a binding.
func remembering(b *hubv1.ResourceBinding) *hubv1.ResourceBinding {
	b.Status.Orphaned = []hubv1.OrphanedCopy{{ClusterID: "id-eu", UID: "u"}}
	return b
}
