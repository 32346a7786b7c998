package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var web = hubv1.SelectableObject{
	ObjectIdentity:  hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"},
	Labels:          map[string]string{"team": "sre"},
	NamespaceLabels: map[string]string{"env": "prod"},
}

func byKind() hubv1.ResourceSelector {
	return hubv1.ResourceSelector{APIGroup: web.Group, Kind: web.Kind}
}

func byName() hubv1.ResourceSelector {
	return hubv1.ResourceSelector{APIGroup: web.Group, Kind: web.Kind, Name: web.Name}
}

func byLabels(op metav1.LabelSelectorOperator) hubv1.ResourceSelector {
	s := byKind()
	s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: op, Values: []string{"sre"}}}}
	return s
}

type edit func(p hubv1.PlacementObject)

func priority(n int32) edit { return func(p hubv1.PlacementObject) { p.PlacementSpec().Priority = n } }

func selecting(s hubv1.ResourceSelector) edit {
	return func(p hubv1.PlacementObject) { p.PlacementSpec().ResourceSelectors = []hubv1.ResourceSelector{s} }
}

func enforced(p hubv1.PlacementObject) { p.(*hubv1.ClusterPlacement).Spec.Enforced = true }

func preempting(p hubv1.PlacementObject) { p.PlacementSpec().Preemption = hubv1.PreemptionAlways }

func deleting(p hubv1.PlacementObject) {
	now := metav1.Unix(1, 0)
	p.SetDeletionTimestamp(&now)
}

func edited(p hubv1.PlacementObject, name string, edits []edit) hubv1.PlacementObject {
	p.SetName(name)
	selecting(byKind())(p)
	for _, e := range edits {
		e(p)
	}
	return p
}

func namespaced(name string, edits ...edit) hubv1.PlacementObject {
	return edited(&hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace}}, name, edits)
}

func clusterWide(name string, edits ...edit) hubv1.PlacementObject {
	return edited(&hubv1.ClusterPlacement{Spec: hubv1.ClusterPlacementSpec{NamespaceSelector: &metav1.LabelSelector{}}}, name, edits)
}

func ref(kind, namespace, name string) *hubv1.PlacementReference {
	return &hubv1.PlacementReference{Kind: kind, Namespace: namespace, Name: name, UID: "as it was when it was first made"}
}

// name returns "monitoring/a" for a namespaced placement and "a" for a cluster-scoped one.
func name(p hubv1.PlacementObject) string {
	if p.GetNamespace() == "" {
		return p.GetName()
	}
	return p.GetNamespace() + "/" + p.GetName()
}

func names(c Choice) []string {
	if c.Winner == nil {
		return nil
	}
	out := []string{name(c.Winner)}
	for _, p := range c.Others {
		out = append(out, name(p))
	}
	return out
}

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		placements []hubv1.PlacementObject
		current    *hubv1.PlacementReference
		want       []string // the winner, then the other matching placements in order
		invalid    []string
	}{
		"an enforced one comes before every namespaced one, whatever the priority": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(1000), selecting(byName()), preempting), clusterWide("b", priority(-1000), enforced), clusterWide("c", priority(1000))},
			want:       []string{"b", "monitoring/a", "c"},
		},
		"among enforced ones the priority decides, then the narrower selector, then the name": {
			placements: []hubv1.PlacementObject{
				clusterWide("d", enforced), clusterWide("c", enforced), clusterWide("b", enforced, selecting(byName())), clusterWide("a", enforced, priority(-1)), clusterWide("e", enforced, priority(1)),
			},
			want: []string{"e", "b", "c", "d", "a"},
		},
		"an enforced one takes the object from one that is not, without preemption": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(1000), preempting), clusterWide("b", enforced)}, current: ref("Placement", web.Namespace, "a"),
			want: []string{"b", "monitoring/a"},
		},
		"a cluster placement that is not enforced keeps nothing from one that is": {
			placements: []hubv1.PlacementObject{clusterWide("a", priority(1000)), clusterWide("b", enforced)}, current: ref("ClusterPlacement", "", "a"),
			want: []string{"b", "a"},
		},
		"an enforced one keeps the object though a better enforced one came": {
			placements: []hubv1.PlacementObject{clusterWide("a", enforced, priority(9)), clusterWide("b", enforced)}, current: ref("ClusterPlacement", "", "b"),
			want: []string{"b", "a"},
		},
		"an enforced one with preemption Always takes it over from another enforced one": {
			placements: []hubv1.PlacementObject{clusterWide("a", enforced, priority(9), preempting), clusterWide("b", enforced)}, current: ref("ClusterPlacement", "", "b"),
			want: []string{"a", "b"},
		},
		"nobody keeps the object from an enforced one by a selector that cannot be read": {
			placements: []hubv1.PlacementObject{namespaced("a", selecting(byLabels("Odd"))), clusterWide("b", enforced)}, current: ref("Placement", web.Namespace, "a"),
			want: []string{"b"}, invalid: []string{"monitoring/a"},
		},
		"an enforced current one keeps the object while it cannot be read": {
			placements: []hubv1.PlacementObject{clusterWide("a", enforced, priority(9), preempting), clusterWide("b", enforced, selecting(byLabels("Odd")))}, current: ref("ClusterPlacement", "", "b"),
			want: []string{"b", "a"}, invalid: []string{"b"},
		},
		"no placement matches": {
			placements: []hubv1.PlacementObject{namespaced("a", selecting(hubv1.ResourceSelector{Kind: "ConfigMap"}))},
		},
		"a namespaced placement comes before every cluster-scoped one, whatever the priority": {
			placements: []hubv1.PlacementObject{clusterWide("a", priority(1000), selecting(byName())), namespaced("b", priority(-1000))},
			want:       []string{"monitoring/b", "a"},
		},
		"then the higher priority": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(-1), selecting(byName())), namespaced("b")},
			want:       []string{"monitoring/b", "monitoring/a"},
		},
		"then the narrower selector: name, labels, kind, group": {
			placements: []hubv1.PlacementObject{
				namespaced("a", selecting(hubv1.ResourceSelector{APIGroup: web.Group, Kind: "*"})), namespaced("b"),
				namespaced("c", selecting(byLabels("In"))), namespaced("d", selecting(byName())),
			},
			want: []string{"monitoring/d", "monitoring/c", "monitoring/b", "monitoring/a"},
		},
		"then the name": {
			placements: []hubv1.PlacementObject{namespaced("b"), namespaced("a")},
			want:       []string{"monitoring/a", "monitoring/b"},
		},
		"the current placement keeps the object though a better one came": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(5)), namespaced("b")}, current: ref("Placement", web.Namespace, "b"),
			want: []string{"monitoring/b", "monitoring/a"},
		},
		"a better one with preemption Always takes it over": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(9)), namespaced("b", priority(5), preempting), namespaced("c")}, current: ref("Placement", web.Namespace, "c"),
			want: []string{"monitoring/b", "monitoring/a", "monitoring/c"},
		},
		"preemption does not help one that comes later": {
			placements: []hubv1.PlacementObject{namespaced("a"), namespaced("b", preempting)}, current: ref("Placement", web.Namespace, "a"),
			want: []string{"monitoring/a", "monitoring/b"},
		},
		"a placement and a cluster placement of one name are two": {
			placements: []hubv1.PlacementObject{namespaced("a"), clusterWide("a")}, current: ref("ClusterPlacement", "", "a"),
			want: []string{"a", "monitoring/a"},
		},
		"a current placement that matches no more gives way": {
			placements: []hubv1.PlacementObject{namespaced("a"), namespaced("b", selecting(hubv1.ResourceSelector{Kind: "Secret"}))}, current: ref("Placement", web.Namespace, "b"),
			want: []string{"monitoring/a"},
		},
		"a placement that is being deleted matches nothing, even if it is the current one": {
			placements: []hubv1.PlacementObject{namespaced("a"), namespaced("b", deleting)}, current: ref("Placement", web.Namespace, "b"),
			want: []string{"monitoring/a"},
		},
		"a placement of another namespace is out of scope, even with a broken selector": {
			placements: []hubv1.PlacementObject{namespaced("a", selecting(byLabels("Odd")), func(p hubv1.PlacementObject) { p.SetNamespace("other") })},
		},
		"a cluster placement without namespaceSelector leaves namespaced objects alone": {
			placements: []hubv1.PlacementObject{clusterWide("a", func(p hubv1.PlacementObject) { p.(*hubv1.ClusterPlacement).Spec.NamespaceSelector = nil })},
		},
		"a placement that cannot be read is reported and the others are weighed": {
			placements: []hubv1.PlacementObject{namespaced("a", selecting(byLabels("Odd"))), namespaced("b")},
			want:       []string{"monitoring/b"}, invalid: []string{"monitoring/a"},
		},
		"the current placement keeps the object while it cannot be read": {
			placements: []hubv1.PlacementObject{namespaced("a", priority(9), preempting), namespaced("b", selecting(byLabels("Odd")))}, current: ref("Placement", web.Namespace, "b"),
			want: []string{"monitoring/b", "monitoring/a"}, invalid: []string{"monitoring/b"},
		},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			got, invalid := Choose(web, tc.placements, tc.current)
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			var broken []string
			for _, i := range invalid {
				broken = append(broken, name(i.Placement))
			}
			if diff := cmp.Diff(tc.invalid, broken); diff != "" {
				t.Errorf("invalid (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrderOfPlacementsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []hubv1.PlacementObject
		selectors := rapid.SampledFrom([]hubv1.ResourceSelector{byKind(), byName(), byLabels("In"), byLabels("NotIn"), byLabels("Odd")})
		for _, n := range []string{"a", "b", "c", "d"} {
			edits := []edit{priority(rapid.Int32Range(0, 1).Draw(t, "priority")), selecting(selectors.Draw(t, "selector"))}
			if rapid.Bool().Draw(t, "preempts") {
				edits = append(edits, preempting)
			}
			if rapid.Bool().Draw(t, "namespaced") {
				all = append(all, namespaced(n, edits...))
			} else {
				if rapid.Bool().Draw(t, "enforced") {
					edits = append(edits, enforced)
				}
				all = append(all, clusterWide(n, edits...))
			}
		}
		current := rapid.SampledFrom([]*hubv1.PlacementReference{nil, ref("Placement", web.Namespace, "a"), ref("ClusterPlacement", "", "b"), ref("Placement", web.Namespace, "gone")}).Draw(t, "current")
		want, wantInvalid := Choose(web, all, current)
		got, invalid := Choose(web, rapid.Permutation(all).Draw(t, "order"), current)
		if diff := cmp.Diff(names(want), names(got)); diff != "" || len(wantInvalid) != len(invalid) {
			t.Fatalf("%s\n%v\n%v", diff, wantInvalid, invalid)
		}
		if got.Winner == nil {
			return
		}
		settled := ref("ClusterPlacement", "", got.Winner.GetName())
		if ns := got.Winner.GetNamespace(); ns != "" {
			settled = ref("Placement", ns, got.Winner.GetName())
		}
		if again, _ := Choose(web, all, settled); name(again.Winner) != name(got.Winner) {
			t.Fatalf("%s took the object and lost it to %s at once", name(got.Winner), name(again.Winner))
		}
	})
}

func TestHubWouldRun(t *testing.T) {
	gk := schema.ParseGroupKind
	tests := map[string]struct {
		kinds               []string
		bare, withWorkloads bool
	}{
		"kinds that act on any API server": {
			kinds: []string{
				"ClusterRole.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
				"MutatingAdmissionPolicy.admissionregistration.k8s.io", "APIService.apiregistration.k8s.io", "ResourceQuota", "LimitRange",
				"NetworkPolicy.networking.k8s.io", "PriorityClass.scheduling.k8s.io", "StorageClass.storage.k8s.io",
			},
			bare: true, withWorkloads: true,
		},
		"workloads, where the hub runs them": {
			kinds: []string{"Pod", "ReplicationController", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "CronJob.batch"},
			bare:  false, withWorkloads: true,
		},
		"everything else": {
			kinds: []string{
				"Prometheus.monitoring.coreos.com", "CustomResourceDefinition.apiextensions.k8s.io", "ConfigMap", "Secret", "Namespace", "Ingress.networking.k8s.io",
				"Deployment.example.com", "ResourceQuota.example.com",
			},
		},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			for _, k := range tc.kinds {
				if got := HubWouldRun(gk(k), false); got != tc.bare {
					t.Errorf("%s on a bare hub: %v", k, got)
				}
				if got := HubWouldRun(gk(k), true); got != tc.withWorkloads {
					t.Errorf("%s on a hub that runs workloads: %v", k, got)
				}
			}
		})
	}
}

func TestDefaultRemoval(t *testing.T) {
	tests := map[string]struct {
		kind   string
		policy hubv1.DeletionPolicy
		want   [2]hubv1.RemovalPolicy
	}{
		"an unset policy deletes": {
			kind: "Prometheus.monitoring.coreos.com", want: [2]hubv1.RemovalPolicy{hubv1.RemovalDelete, hubv1.RemovalDelete},
		},
		"CustomResourceDefinitions are orphaned": {
			kind: "CustomResourceDefinition.apiextensions.k8s.io", want: [2]hubv1.RemovalPolicy{hubv1.RemovalOrphan, hubv1.RemovalOrphan},
		},
		"what is written counts, field by field": {
			kind: "Namespace", policy: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalDelete}, want: [2]hubv1.RemovalPolicy{hubv1.RemovalDelete, hubv1.RemovalOrphan},
		},
		"Orphan can be asked for": {
			kind: "ConfigMap", policy: hubv1.DeletionPolicy{WhenUnselected: hubv1.RemovalOrphan}, want: [2]hubv1.RemovalPolicy{hubv1.RemovalDelete, hubv1.RemovalOrphan},
		},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			deleted, unselected := DefaultRemoval(schema.ParseGroupKind(tc.kind), tc.policy)
			if diff := cmp.Diff(tc.want, [2]hubv1.RemovalPolicy{deleted, unselected}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
