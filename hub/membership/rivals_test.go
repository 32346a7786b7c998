package membership

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// stored has MemberClusters, with an index by clusterID if it is a cache. It counts the requests.
type stored struct {
	client.Client
	clusters     []hubv1.MemberCluster
	lists, reads int
}

func (s *stored) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	s.lists++
	var asked client.ListOptions
	asked.ApplyOptions(options)
	for _, c := range s.clusters {
		if asked.FieldSelector == nil || asked.FieldSelector.String() == clusterIDIndex+"="+c.Status.ClusterID {
			into.(*hubv1.MemberClusterList).Items = append(into.(*hubv1.MemberClusterList).Items, c)
		}
	}
	return nil
}

func (s *stored) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads++
	for _, c := range s.clusters {
		if c.Name == key.Name {
			c.DeepCopyInto(into.(*hubv1.MemberCluster))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "memberclusters"}, key.Name)
}

func withID(name, id string) hubv1.MemberCluster {
	c := hubv1.MemberCluster{}
	c.Name, c.Status.ClusterID = name, id
	return c
}

// TestAClaimReadsOnlyMemberClustersThatMayHaveTheCluster: a list of all MemberClusters for each of them that joins
// would cost the square of their number.
func TestAClaimReadsOnlyMemberClustersThatMayHaveTheCluster(t *testing.T) {
	var many []hubv1.MemberCluster
	for i := range 50 {
		many = append(many, withID(fmt.Sprintf("m%d", i), fmt.Sprintf("id-%d", i)))
	}
	many = slices.Clip(many) // each case appends to an array of its own
	for name, tc := range map[string]struct {
		cached, live  []hubv1.MemberCluster
		claimedBefore string
		reads         int
		refused       bool
	}{
		"no other one has the cluster":                     {many, many, "", 0, false},
		"another one has it":                               {append(many, withID("other", "new")), append(many, withID("other", "new")), "", 1, true},
		"another one had it, and is gone":                  {append(many, withID("other", "new")), many, "", 1, false},
		"this replica has just claimed it for another one": {many, append(many, withID("other", "new")), "other", 1, true},
		"the write of that claim has failed":               {many, append(many, withID("other", "")), "other", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := &stored{clusters: tc.cached}, &stored{clusters: tc.live}
			r := New(cached, live, nil, &fakeLinks{}, "hub", 0)
			if tc.claimedBefore != "" {
				r.records.change(tc.claimedBefore, func(known *record) { known.claimed = "new" })
			}
			joining := withID("joining", "")
			claim := &run{cluster: &joining, before: joining.DeepCopy()}
			refused, err := r.claim(t.Context(), claim, "new")
			if err != nil || refused != tc.refused || (claim.cluster.Status.ClusterID == "new") == tc.refused {
				t.Errorf("refused: %t (%v), want %t", refused, err, tc.refused)
			}
			if live.lists != 0 || live.reads != tc.reads || cached.reads != 0 {
				t.Errorf("%d lists and %d reads of the API server, want no list and %d reads", live.lists, live.reads, tc.reads)
			}
		})
	}
}
