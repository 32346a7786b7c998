package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/overrides"
)

// binding returns a binding with the given clusters. Its conditions Applied and Healthy have the given statuses.
func binding(name string, applied, healthy metav1.ConditionStatus, clusters ...string) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Namespace, b.Name, b.Generation = "monitoring", name, 1
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "monitoring.coreos.com/v1", Kind: "Prometheus", Name: name}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: c, State: hubv1.TargetPresent})
	}
	b.Status.ObservedGeneration = 1
	for kind, status := range map[string]metav1.ConditionStatus{
		hubv1.ConditionScheduled: metav1.ConditionTrue, hubv1.ConditionApplied: applied, hubv1.ConditionHealthy: healthy,
	} {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Because" + string(status)})
	}
	return b
}

func TestFold(t *testing.T) {
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	outdated := binding("a", yes, yes, "eu")
	outdated.Generation = 2
	leaving := binding("a", no, no, "eu")
	leaving.DeletionTimestamp = &metav1.Time{}
	type want struct {
		Objects, Clusters           int32
		Applied, Healthy            metav1.ConditionStatus
		AppliedReason, AppliedTells string
	}
	tests := map[string]struct {
		following []hubv1.BindingObject
		want      want
	}{
		"a placement that nothing follows is not applied, it is unknown": {
			want: want{0, 0, unknown, unknown, hubv1.ReasonNothingSelected, "no object follows this placement"},
		},
		"everything is well": {
			following: []hubv1.BindingObject{binding("a", yes, yes, "eu", "us"), binding("b", yes, yes, "us", "cn")},
			want:      want{2, 3, yes, yes, hubv1.ReasonAppliedEverywhere, "2 of 2 objects"},
		},
		"what failed comes before what is unknown": {
			following: []hubv1.BindingObject{binding("a", unknown, unknown, "eu"), binding("b", no, unknown, "eu")},
			want:      want{2, 1, no, unknown, "BecauseFalse", "1 of 2 objects: Prometheus monitoring/b"},
		},
		"three objects are named": {
			following: []hubv1.BindingObject{
				binding("a", unknown, yes), binding("b", unknown, yes), binding("c", unknown, yes), binding("d", unknown, yes),
			},
			want: want{
				4, 0, unknown, yes, hubv1.ReasonNotYetReported,
				"4 of 4 objects: Prometheus monitoring/a, Prometheus monitoring/b, Prometheus monitoring/c and 1 more",
			},
		},
		"rows of an older decision say nothing": {
			following: []hubv1.BindingObject{outdated},
			want:      want{1, 1, unknown, unknown, hubv1.ReasonNotYetReported, "1 of 1 objects: Prometheus monitoring/a"},
		},
		"a binding that is going does not count": {
			following: []hubv1.BindingObject{leaving},
			want:      want{0, 0, unknown, unknown, hubv1.ReasonNothingSelected, "no object follows this placement"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s hubv1.PlacementStatus
			fold(&s, 4, selected{following: tc.following})
			applied := meta.FindStatusCondition(s.Conditions, hubv1.ConditionApplied)
			healthy := meta.FindStatusCondition(s.Conditions, hubv1.ConditionHealthy)
			got := want{s.Objects, s.SelectedClusters, applied.Status, healthy.Status, applied.Reason, applied.Message}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			again := *s.DeepCopy()
			fold(&again, 4, selected{following: tc.following})
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("folding the same again changed something: %s", diff)
			}
		})
	}
}

func TestAPlacementSaysWhyItsObjectsHaveNoCluster(t *testing.T) {
	b := binding("a", metav1.ConditionUnknown, metav1.ConditionUnknown)
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: hubv1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: hubv1.ReasonNoClusterSelected,
		Message: "0 of 12 clusters: 7 not selected, 3 do not serve the kind, 2 tainted",
	})
	var s hubv1.PlacementStatus
	fold(&s, 1, selected{following: []hubv1.BindingObject{b}})
	got := meta.FindStatusCondition(s.Conditions, hubv1.ConditionScheduled)
	want := "1 of 1 objects: Prometheus monitoring/a; the first has 0 of 12 clusters: 7 not selected, 3 do not serve the kind, 2 tainted"
	if got.Reason != hubv1.ReasonNoClusterSelected || got.Message != want {
		t.Errorf("Scheduled is %s %q, want %q", got.Reason, got.Message, want)
	}
}

func TestAPlacementSaysWhyObjectsDoNotFollowIt(t *testing.T) {
	yes := metav1.ConditionTrue
	mine, other := binding("mine", yes, yes, "eu"), binding("other", yes, yes, "eu")
	other.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Name: "metrics"}
	tests := map[string]struct {
		of                         selected
		reason, scheduled, applied string
	}{
		"all that it selects follows another one": {
			of:     selected{lost: []hubv1.BindingObject{other}},
			reason: hubv1.ReasonOtherFollowed,
			scheduled: "no object follows this placement; 1 of the selected objects follow another placement, such as Prometheus monitoring/other, " +
				"which follows Placement/metrics",
			applied: "no object follows this placement",
		},
		"some of it does": {
			of:     selected{following: []hubv1.BindingObject{mine}, lost: []hubv1.BindingObject{other}},
			reason: hubv1.ReasonScheduled,
			scheduled: "1 of 1 objects; 1 of the selected objects follow another placement, such as Prometheus monitoring/other, " +
				"which follows Placement/metrics",
			applied: "1 of 1 objects",
		},
		"scheduling is suspended": {
			of:        selected{following: []hubv1.BindingObject{mine}, suspend: hubv1.SuspendPolicy{Scheduling: true}},
			reason:    hubv1.ReasonSuspended,
			scheduled: "scheduling is suspended: every cluster keeps its copies, and new objects wait; 1 of 1 objects",
			applied:   "1 of 1 objects",
		},
		"writing is suspended": {
			of:        selected{following: []hubv1.BindingObject{mine}, suspend: hubv1.SuspendPolicy{Dispatching: true, Clusters: []string{"eu"}}},
			reason:    hubv1.ReasonScheduled,
			scheduled: "1 of 1 objects",
			applied:   "writing to members is suspended; 1 of 1 objects",
		},
		"writing to a cluster is suspended": {
			of:        selected{following: []hubv1.BindingObject{mine}, suspend: hubv1.SuspendPolicy{Clusters: []string{"eu"}}},
			reason:    hubv1.ReasonScheduled,
			scheduled: "1 of 1 objects",
			applied:   "writing to 1 of the clusters is suspended (spec.suspend.clusters); 1 of 1 objects",
		},
		"writing to a cluster and to clusters with a label is suspended": {
			of: selected{following: []hubv1.BindingObject{mine}, suspend: hubv1.SuspendPolicy{
				Clusters: []string{"eu"}, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "test"}},
			}},
			reason:    hubv1.ReasonScheduled,
			scheduled: "1 of 1 objects",
			applied: "writing to 1 of the clusters is suspended (spec.suspend.clusters); " +
				"writing to clusters with tier=test is suspended (spec.suspend.clusterSelector); 1 of 1 objects",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s hubv1.PlacementStatus
			fold(&s, 1, tc.of)
			scheduled := meta.FindStatusCondition(s.Conditions, hubv1.ConditionScheduled)
			if scheduled.Reason != tc.reason || scheduled.Message != tc.scheduled {
				t.Errorf("Scheduled is %s %q, want %s %q", scheduled.Reason, scheduled.Message, tc.reason, tc.scheduled)
			}
			if applied := meta.FindStatusCondition(s.Conditions, hubv1.ConditionApplied); applied.Message != tc.applied {
				t.Errorf("Applied says %q, want %q", applied.Message, tc.applied)
			}
		})
	}
}

func TestAcceptance(t *testing.T) {
	prometheus := hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}
	role := hubv1.ResourceSelector{APIGroup: "rbac.authorization.k8s.io", Kind: "Role"}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	synced := informer.State{Synced: true}
	tests := map[string]struct {
		spec      hubv1.PlacementSpec
		namespace string
		state     informer.State
		want      metav1.Condition
		wantOK    bool
	}{
		"a served kind is accepted": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}}, state: synced,
			want: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"before the first list nothing is known": {
			spec:   hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}},
			wantOK: false,
		},
		"a kind that the hub does not serve": {
			spec:  hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}},
			state: informer.State{Reason: hubv1.ReasonKindNotServed},
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonKindNotServed}, wantOK: true,
		},
		"a kind that the hub may not read": {
			spec:  hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}},
			state: informer.State{Synced: true, Reason: hubv1.ReasonForbidden},
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonNotFederated}, wantOK: true,
		},
		"a kind that the hub may read in other namespaces": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}}, state: synced, namespace: "elsewhere",
			want: metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonNotFederated}, wantOK: true,
		},
		"a kind that the hub may read in this namespace": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus}}, state: synced, namespace: "shop",
			want: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"a kind that the hub would act on": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{prometheus, role}}, state: synced,
			want: metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonHubWouldRun}, wantOK: true,
		},
		"unless that is allowed": {
			spec:  hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{role}, HubExecution: hubv1.HubExecutionAllowed},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"Bundles, whose kind the hub never lists": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "hanse.dev", Kind: "Bundle"}}}, namespace: "elsewhere",
			want: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"Bundles and a kind that is not listed yet": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "hanse.dev", Kind: "Bundle"}, prometheus}}, namespace: "shop",
			wantOK: false,
		},
		"ClusterBundles by a Placement": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "hanse.dev", Kind: "ClusterBundle"}}}, namespace: "shop",
			want: metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid}, wantOK: true,
		},
		"ClusterBundles by a ClusterPlacement": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "hanse.dev", Kind: "ClusterBundle"}}},
			want: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"a ClusterBundle of another group by a Placement": {
			spec: hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "ClusterBundle"}}}, state: synced, namespace: "shop",
			want: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, wantOK: true,
		},
		"a broken selector": {
			spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{prometheus}, Clusters: hubv1.ClusterSelection{LabelSelector: broken},
			},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid}, wantOK: true,
		},
		"a division that does not say where the replicas are": {
			spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{prometheus}, Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide},
			},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonDivisionRefused}, wantOK: true,
		},
		"a weight for clusters that cannot be read": {
			spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{prometheus}, Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas", Divide: &hubv1.DividePolicy{
					Weights: []hubv1.ReplicaWeight{{Clusters: &hubv1.RuleClusters{LabelSelector: broken}}},
				}},
			},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid}, wantOK: true,
		},
		"a health expression that does not compile": {
			spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{prometheus}, StatusAggregation: hubv1.StatusAggregation{HealthExpression: "object.status."},
			},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid}, wantOK: true,
		},
		"an expression that does not compile": {
			spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{prometheus}, Clusters: hubv1.ClusterSelection{Expression: "nodes.ready >= many"},
			},
			state: synced,
			want:  metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid}, wantOK: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.spec.Clusters.LabelSelector == nil {
				tc.spec.Clusters.LabelSelector = &metav1.LabelSelector{}
			}
			a := acceptance{
				policy:    &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace}, Spec: tc.spec},
				watches:   func(_ schema.GroupKind, namespace string) bool { return namespace == "shop" },
				kinds:     func(schema.GroupKind) (informer.State, bool) { return tc.state, true },
				scalePath: func(schema.GroupKind) string { return ".spec.shards" },
				resource:  func(gk schema.GroupKind) string { return resourceOf(meta.NewDefaultRESTMapper(nil), gk) },
			}
			got, ok := a.condition()
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(metav1.Condition{}, "Type", "Message")); diff != "" || ok != tc.wantOK {
				t.Errorf("known %v, want %v; %s\nmessage: %s", ok, tc.wantOK, diff, got.Message)
			}
		})
	}
}

// TestAcceptanceWhileTheHubStarts uses a placement with several errors, whose kinds the hub lists one after another.
// The condition must not change in between.
func TestAcceptanceWhileTheHubStarts(t *testing.T) {
	lamp, bulb, issuer := schema.GroupKind{Group: "example.com", Kind: "Lamp"}, schema.GroupKind{Group: "example.com", Kind: "Bulb"}, schema.GroupKind{Group: "example.com", Kind: "Issuer"}
	forbidden := informer.State{Reason: hubv1.ReasonForbidden}
	synced, notServed, down := informer.State{Synced: true}, informer.State{Reason: hubv1.ReasonKindNotServed}, informer.State{Reason: hubv1.ReasonServerError}
	spec := hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: lamp.Group, Kind: lamp.Kind}, {APIGroup: bulb.Group, Kind: bulb.Kind}},
		References:        []hubv1.ReferenceRule{{APIGroup: issuer.Group, Kind: issuer.Kind, Path: "/spec/issuer"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
	}
	tests := map[string]struct {
		states map[schema.GroupKind]informer.State
		want   string // start of the message; empty for a condition that is not known or has no error
		known  bool
	}{
		"only the second kind has an error, and the first is not listed yet": {
			states: map[schema.GroupKind]informer.State{lamp: {}, bulb: notServed, issuer: synced},
		},
		"the first kind is not watched yet": {
			states: map[schema.GroupKind]informer.State{bulb: notServed, issuer: synced},
		},
		"the first kind is listed": {
			states: map[schema.GroupKind]informer.State{lamp: synced, bulb: notServed, issuer: synced},
			want:   "resourceSelectors[1]", known: true,
		},
		"both kinds have an error": {
			states: map[schema.GroupKind]informer.State{lamp: notServed, bulb: notServed, issuer: notServed},
			want:   "resourceSelectors[0]", known: true,
		},
		"the API server fails to list the first kind": {
			states: map[schema.GroupKind]informer.State{lamp: down, bulb: notServed, issuer: synced},
			want:   "resourceSelectors[1]", known: true,
		},
		"the kind of a reference is not listed yet": {
			states: map[schema.GroupKind]informer.State{lamp: synced, bulb: synced, issuer: {}},
		},
		"the kind of a reference is not served": {
			states: map[schema.GroupKind]informer.State{lamp: synced, bulb: synced, issuer: notServed},
			want:   "references[0]", known: true,
		},
		"the hub may not read the first kind and that of the reference": {
			states: map[schema.GroupKind]informer.State{lamp: forbidden, bulb: synced, issuer: forbidden},
			want: "the hub may not list and watch Lamp.example.com (resourceSelectors[0]), Issuer.example.com (references[0]): run hansectl federate lamps.example.com issuers.example.com, or add to the value federatedKinds of the chart hanse-hub: " +
				"{apiGroups: [example.com], resources: [lamps, issuers]}; ", known: true,
		},
		"the hub may not read the first kind, and has not asked for the last": {
			states: map[schema.GroupKind]informer.State{lamp: forbidden, bulb: synced},
		},
		"all kinds are listed": {
			states: map[schema.GroupKind]informer.State{lamp: synced, bulb: synced, issuer: synced}, known: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := acceptance{
				policy:   &hubv1.Placement{Spec: spec},
				watches:  func(schema.GroupKind, string) bool { return true },
				resource: func(gk schema.GroupKind) string { return resourceOf(meta.NewDefaultRESTMapper(nil), gk) },
				kinds: func(gk schema.GroupKind) (informer.State, bool) {
					state, watched := tc.states[gk]
					return state, watched
				},
			}
			got, known := a.condition()
			if known != tc.known || known && (got.Status == metav1.ConditionTrue) != (tc.want == "") || !strings.HasPrefix(got.Message, tc.want) {
				t.Errorf("known %v, %s %q, want known %v, %q", known, got.Status, got.Message, tc.known, tc.want)
			}
		})
	}
}

func TestTheResourceOfAKindIsThatOfTheHub(t *testing.T) {
	gateway := schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gateway.GroupVersion()})
	mapper.AddSpecific(gateway, gateway.GroupVersion().WithResource("gateways"), gateway.GroupVersion().WithResource("gateway"), meta.RESTScopeNamespace)
	for kind, want := range map[schema.GroupKind]string{gateway.GroupKind(): "gateways", {Group: "example.com", Kind: "Lamp"}: "lamps"} {
		if got := resourceOf(mapper, kind); got != want {
			t.Errorf("the resource of %s is %s, want %s", kind, got, want)
		}
	}
}

func TestAKindThatIsNotServed(t *testing.T) {
	core := hubv1.ResourceSelector{Kind: "Prometheus"}
	tests := map[string]struct {
		spec hubv1.PlacementSpec
		want string
	}{
		"one with a group": {
			hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "Lamp"}}},
			"resourceSelectors[0]: the hub does not serve Lamp.example.com; install its CustomResourceDefinition on the hub",
		},
		"one whose group is forgotten": {
			hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{core}},
			"resourceSelectors[0]: the core group has no kind Prometheus; set the apiGroup of the kind, or correct its name",
		},
		"a reference whose group is forgotten": {
			hubv1.PlacementSpec{References: []hubv1.ReferenceRule{{Kind: "Issuer", Path: "/spec/issuer"}}},
			"references[0]: the core group has no kind Issuer; set the apiGroup of the kind, or correct its name",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.spec.Clusters.LabelSelector = &metav1.LabelSelector{}
			a := acceptance{
				policy:  &hubv1.Placement{Spec: tc.spec},
				watches: func(schema.GroupKind, string) bool { return true },
				kinds: func(schema.GroupKind) (informer.State, bool) {
					return informer.State{Reason: hubv1.ReasonKindNotServed}, true
				},
			}
			got, known := a.condition()
			if got.Reason != hubv1.ReasonKindNotServed || got.Message != tc.want || !known {
				t.Errorf("known %v, reason %s, message\n%s, want\n%s", known, got.Reason, got.Message, tc.want)
			}
		})
	}
}

func TestConflictNamesExactlyThisPolicy(t *testing.T) {
	message := `OverridePolicy monitoring/metrics-two, rule "a", and ClusterOverridePolicy metrics, rule "b", both of rank x, disagree about path /spec`
	tests := map[string]struct {
		ref  string
		want bool
	}{
		"the first one":                          {"OverridePolicy monitoring/metrics-two", true},
		"the second one":                         {"ClusterOverridePolicy metrics", true},
		"one whose name starts in the same way":  {"OverridePolicy monitoring/metrics", false},
		"one of another kind with the same name": {"OverridePolicy metrics", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := names(message, tc.ref); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRules(t *testing.T) {
	policy := &hubv1.OverridePolicy{}
	policy.Namespace, policy.Name = "monitoring", "metrics"
	region := func(r string) *hubv1.RuleClusters {
		return &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: r}}}
	}
	policy.Spec.Rules = []hubv1.OverrideRule{{Name: "everywhere"}, {Name: "cn", Clusters: region("cn")}, {Name: "mars", Clusters: region("mars")}, {Name: "not-on-mars", Clusters: region("mars"), Exclude: true}}
	selected := []hubv1.BindingObject{
		binding("a", metav1.ConditionTrue, metav1.ConditionTrue, "cn-1", "eu-1"),
		binding("b", metav1.ConditionTrue, metav1.ConditionTrue, "cn-1"),
	}
	clusters := map[string]overrides.Cluster{}
	for name, region := range map[string]string{"cn-1": "cn", "eu-1": "eu", "mars-1": "mars"} {
		clusters[name] = overrides.Cluster{Name: name, Labels: map[string]string{hubv1.RegionLabel: region}}
	}
	want := []hubv1.RuleStatus{
		{Name: "everywhere", Rank: "Namespaced/0/none/0", Objects: 2, Clusters: 2},
		{Name: "cn", Rank: "Namespaced/0/region/1", Objects: 2, Clusters: 1},
		{Name: "mars", Rank: "Namespaced/0/region/1", Objects: 2, Clusters: 0},
		{Name: "not-on-mars", Rank: "Namespaced/0/region/1", Objects: 2, Clusters: 1},
	}
	if diff := cmp.Diff(want, rules(policy, selected, clusters)); diff != "" {
		t.Error(diff)
	}
}

func TestKindsThatTheHubCannotRead(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	prometheus := hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}
	group := hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "*"}
	broken := func(since time.Duration, synced bool) informer.State {
		return informer.State{Synced: synced, Reason: hubv1.ReasonServerError, Message: "conversion webhook failed; no answer", Since: at.Add(-since)}
	}
	says := "the hub cannot read Prometheus.monitoring.coreos.com: ServerError: conversion webhook failed, no answer"
	tests := map[string]struct {
		selectors  []hubv1.ResourceSelector
		references []hubv1.ReferenceRule
		state      informer.State
		want       []string
		again      time.Duration
	}{
		"a kind that was never listed": {
			selectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}, prometheus}, state: broken(time.Minute, false),
			want: []string{"resourceSelectors[0]: " + strings.Replace(says, "Prometheus.monitoring.coreos.com", "ConfigMap", 1), "resourceSelectors[1]: " + says},
		},
		"a kind of a selector for all kinds of its group": {
			selectors: []hubv1.ResourceSelector{group}, state: broken(time.Minute, false), want: []string{"resourceSelectors[0]: " + says},
		},
		"a kind of a reference": {
			references: []hubv1.ReferenceRule{{APIGroup: prometheus.APIGroup, Kind: prometheus.Kind}}, state: broken(time.Minute, false),
			want: []string{"references[0]: " + says},
		},
		"a kind that has just failed":     {selectors: []hubv1.ResourceSelector{prometheus}, state: broken(4*time.Second, false), again: 6 * time.Second},
		"a watch that has failed for 20s": {selectors: []hubv1.ResourceSelector{prometheus}, state: broken(20*time.Second, true), again: 40 * time.Second},
		"a watch that has failed for 60s": {selectors: []hubv1.ResourceSelector{prometheus}, state: broken(time.Minute, true), want: []string{"resourceSelectors[0]: " + says}},
		"a kind that the hub reads":       {selectors: []hubv1.ResourceSelector{prometheus, group}, state: informer.State{Synced: true}},
		"a kind that is not served, which the condition Accepted says": {
			selectors: []hubv1.ResourceSelector{prometheus}, state: informer.State{Reason: hubv1.ReasonKindNotServed},
		},
		"a missing right, which the condition Accepted says": {
			selectors: []hubv1.ResourceSelector{prometheus}, state: informer.State{Reason: hubv1.ReasonForbidden},
		},
		"Bundles, whose kind the hub never lists": {selectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: "Bundle"}}, state: broken(time.Minute, false)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &hubv1.Placement{Spec: hubv1.PlacementSpec{ResourceSelectors: tc.selectors, References: tc.references}}
			got, again := unreadableKinds(p, &fakeTemplates{state: tc.state}, at)
			if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
				t.Errorf("again after %s, want %s; causes (-want +got):\n%s", again, tc.again, diff)
			}
		})
	}
}

func TestScheduledOfAKindThatTheHubCannotRead(t *testing.T) {
	for name, tc := range map[string]struct {
		before, want metav1.Condition
	}{
		"objects of other kinds are scheduled": {
			metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled, Message: "1 of 1 objects"},
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: hubv1.ReasonKindUnreadable, Message: "cause; 1 of 1 objects"},
		},
		"an object of another kind is not scheduled": {
			metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonNoClusterSelected, Message: "1 of 2 objects"},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.ReasonNoClusterSelected, Message: "1 of 2 objects; cause"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withUnreadable(tc.before, []string{"cause"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
