package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

func TestTopologyIsPinned(t *testing.T) {
	at := func(region string, zones ...string) hubv1.ClusterTopology {
		return hubv1.ClusterTopology{Region: region, Zones: zones}
	}
	nodes := func(region string, zones ...string) member.Facts { return member.Facts{Region: region, Zones: zones} }
	tests := map[string]struct {
		before hubv1.ClusterTopology
		labels map[string]string
		facts  member.Facts
		want   hubv1.ClusterTopology
		moved  []string // parts of the message; nil: the topology has not changed
	}{
		"a new cluster has the topology of its nodes": {facts: nodes("eu", "a", "b"), want: at("eu", "a", "b")},
		"a label wins over the nodes": {
			labels: map[string]string{hubv1.RegionLabel: "us", hubv1.ZoneLabel: "us-1"}, facts: nodes("eu", "a"), want: at("us", "us-1"),
		},
		"a label wins over what was pinned": {
			before: at("eu", "a"), labels: map[string]string{hubv1.RegionLabel: "us"}, facts: nodes("eu", "a"), want: at("us", "a"),
		},
		"nodes of another region change nothing": {
			before: at("eu", "a"), facts: nodes("us", "a"), want: at("eu", "a"), moved: []string{"us", "eu", hubv1.RegionLabel},
		},
		"a new zone changes nothing": {
			before: at("eu", "a"), facts: nodes("eu", "a", "c"), want: at("eu", "a"), moved: []string{"a, c", hubv1.ZoneLabel},
		},
		"a cluster without nodes keeps its topology":   {before: at("eu", "a"), want: at("eu", "a")},
		"nodes that do not agree keep the region":      {before: at("eu", "a"), facts: nodes("", "a"), want: at("eu", "a")},
		"a zone whose nodes are gone stays":            {before: at("eu", "a", "b"), facts: nodes("eu", "b"), want: at("eu", "a", "b")},
		"a label taken off leaves its value":           {before: at("us", "us-1"), want: at("us", "us-1")},
		"a region is derived later, once nodes agree":  {before: at("", "a"), facts: nodes("eu", "a"), want: at("eu", "a")},
		"nothing is known of a cluster without labels": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, moved := pinned(tc.before, tc.labels, tc.facts)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if (moved != "") != (tc.moved != nil) {
				t.Errorf("moved: %q", moved)
			}
			for _, words := range tc.moved {
				if !strings.Contains(moved, words) {
					t.Errorf("%q does not hold %q", moved, words)
				}
			}
		})
	}
}

func TestLongListsAreCut(t *testing.T) {
	if got, want := listed([]string{"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnAnswerThatIsTooLargeIsACondition(t *testing.T) {
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-fra-1"}}
	state := member.LinkState{Ready: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, TooLarge: "GET /api/v1/nodes: the list is larger than 50000 objects"}
	observed(c, state, "hub", time.Now())
	got := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionAnswersTooLarge)
	if got == nil || got.Status != metav1.ConditionTrue || got.Reason != hubv1.ReasonAnswerTooLarge ||
		!strings.Contains(got.Message, "eu-fra-1") || !strings.Contains(got.Message, state.TooLarge) {
		t.Errorf("the condition is %+v", got)
	}
	state.TooLarge = ""
	observed(c, state, "hub", time.Now())
	if got := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionAnswersTooLarge); got != nil {
		t.Errorf("it stays: %+v", got)
	}
}

func TestUnclaimedCopiesAreACondition(t *testing.T) {
	c := &hubv1.MemberCluster{}
	setUnclaimed(c, 0)
	if c.Status.Unclaimed != nil || len(c.Status.Conditions) != 0 {
		t.Errorf("without any: %+v", c.Status)
	}
	setUnclaimed(c, 40)
	if *c.Status.Unclaimed != 40 || !meta.IsStatusConditionTrue(c.Status.Conditions, hubv1.ConditionUnclaimed) {
		t.Errorf("with 40: %+v", c.Status)
	}
	setUnclaimed(c, 1)
	if got := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionUnclaimed).Message; !strings.HasPrefix(got, "the hub wrote 1 object of the cluster and no binding claims it") {
		t.Errorf("with one: %q", got)
	}
	setUnclaimed(c, 0)
	if c.Status.Unclaimed != nil || len(c.Status.Conditions) != 0 {
		t.Errorf("after they are gone: %+v", c.Status)
	}
}
