package connect

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

type nodeOption func(*corev1.Node)

// aNode returns a ready node in region eu and zone eu-a, with 4 CPUs, of which 3 are allocatable.
func aNode(options ...nodeOption) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{hubv1.RegionLabel: "eu", hubv1.ZoneLabel: "eu-a"}},
		Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		},
	}
	for _, o := range options {
		o(&n)
	}
	return n
}

func in(region, zone string) nodeOption {
	return func(n *corev1.Node) { n.Labels = map[string]string{hubv1.RegionLabel: region, hubv1.ZoneLabel: zone} }
}

func notReady(n *corev1.Node)  { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func cordoned(n *corev1.Node)  { n.Spec.Unschedulable = true }
func unlabeled(n *corev1.Node) { n.Labels = nil }

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

// add adds nodes in the JSON form in which a server sends them.
func add(t *testing.T, sum *nodeSum, nodes ...corev1.Node) {
	t.Helper()
	for i := range nodes {
		raw, err := json.Marshal(nodes[i])
		must(t, err)
		must(t, sum.read(raw))
	}
}

func TestNodesFoldIntoFacts(t *testing.T) {
	tests := map[string]struct {
		nodes []corev1.Node
		want  member.Facts
	}{
		"a cluster without nodes has a capacity of nothing": {
			want: member.Facts{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}},
		},
		"nodes of one region add up and their zones are sorted": {
			nodes: []corev1.Node{aNode(in("eu", "eu-b")), aNode(), aNode()},
			want: member.Facts{
				Region: "eu", Zones: []string{"eu-a", "eu-b"}, Nodes: hubv1.NodeSummary{Total: 3, Ready: 3},
				Capacity: cpus("12"), Allocatable: cpus("9"),
			},
		},
		"what is not ready or cordoned is capacity and cannot be allocated": {
			nodes: []corev1.Node{aNode(), aNode(notReady), aNode(cordoned)},
			want: member.Facts{
				Region: "eu", Zones: []string{"eu-a"}, Nodes: hubv1.NodeSummary{Total: 3, Ready: 2},
				Capacity: cpus("12"), Allocatable: cpus("3"),
			},
		},
		"nodes of two regions have none in common": {
			nodes: []corev1.Node{aNode(), aNode(in("us", "us-a"))},
			want: member.Facts{
				Zones: []string{"eu-a", "us-a"}, Nodes: hubv1.NodeSummary{Total: 2, Ready: 2}, Capacity: cpus("8"), Allocatable: cpus("6"),
			},
		},
		"a node without a region leaves it open": {
			nodes: []corev1.Node{aNode(), aNode(unlabeled)},
			want: member.Facts{
				Zones: []string{"eu-a"}, Nodes: hubv1.NodeSummary{Total: 2, Ready: 2}, Capacity: cpus("8"), Allocatable: cpus("6"),
			},
		},
		"a label that is none is ignored": {
			nodes: []corev1.Node{aNode(in("<b>eu</b>", "a b"))},
			want:  member.Facts{Nodes: hubv1.NodeSummary{Total: 1, Ready: 1}, Capacity: cpus("4"), Allocatable: cpus("3")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sum := newNodeSum()
			add(t, sum, tc.nodes...)
			if diff := cmp.Diff(tc.want, sum.facts(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if sum.facts().Capacity == nil {
				t.Error("capacity is nil although the nodes were read")
			}
		})
	}
}

func TestFactsFitIntoAStatus(t *testing.T) {
	sum := newNodeSum()
	odd := aNode()
	for i := range 200 {
		odd.Status.Capacity[corev1.ResourceName(fmt.Sprintf("example.com/r%03d", i))] = resource.MustParse("1")
		odd.Status.Capacity[corev1.ResourceName(fmt.Sprintf("not a name %d", i))] = resource.MustParse("1")
		add(t, sum, aNode(in("eu", fmt.Sprintf("z-%03d", i))))
	}
	add(t, sum, odd)
	f := sum.facts()
	if len(f.Capacity) != maxResources || len(f.Zones) != maxZones {
		t.Errorf("%d resources and %d zones", len(f.Capacity), len(f.Zones))
	}
	if _, ok := f.Capacity[corev1.ResourceCPU]; !ok {
		t.Error("other resources crowded the CPUs out")
	}
}

func TestFactsAreReadPageByPageAndKeptWhenTheyCannotBeRead(t *testing.T) {
	f := newFakeCluster(t)
	f.set(func(f *fakeCluster) { f.nodes = []corev1.Node{aNode(), aNode(), aNode(), aNode(), aNode()} })
	p := New(quick)
	start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	want := member.Facts{
		ClusterID: "cluster-1", Kubernetes: "v1.36.3", Region: "eu", Zones: []string{"eu-a"},
		Nodes: hubv1.NodeSummary{Total: 5, Ready: 5}, Capacity: cpus("20"), Allocatable: cpus("15"),
	}
	facts := func() string {
		s, _ := p.State("eu")
		return cmp.Diff(want, s.Facts)
	}
	eventually(t, "facts", facts)

	f.setRespond(refuseNodes)
	s, _ := p.State("eu")
	eventually(t, "probes after the nodes are refused", func() string {
		if now, _ := p.State("eu"); now.LastObserved.After(s.LastObserved) {
			return ""
		}
		return "none yet"
	})
	if diff := facts(); diff != "" {
		t.Errorf("facts that cannot be read now have changed: %s", diff)
	}
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
}
