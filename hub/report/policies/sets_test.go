package policies

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/placement/decide"
)

// setStore is a hub with one SetRollout, and the lists of bundles.
type setStore struct {
	client.Client
	record hubv1.SetRollout
	lists  map[string]decide.SetList
}

// Get implements client.Client.
func (s *setStore) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.record.DeepCopyInto(into.(*hubv1.SetRollout))
	return nil
}

// SetList implements Sets.
func (s *setStore) SetList(_ context.Context, digest string) (decide.SetList, error) {
	if list, ok := s.lists[digest]; ok {
		return list, nil
	}
	return nil, decide.ErrRevisionMissing
}

func TestAnObjectCountsOnTheClustersWhoseRevisionHasIt(t *testing.T) {
	t.Parallel()
	added := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "added"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "added.example.com"}
	of := hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
	s := &setStore{lists: map[string]decide.SetList{"a": {}, "b": {added: "1", definition: "1"}}}
	s.record.Spec = hubv1.SetRolloutSpec{
		Bundle: of, Rollout: &hubv1.BindingRollout{Revision: 2, Newest: 2},
		Revisions: []hubv1.SetRevision{{Number: 1, List: "a"}, {Number: 2, List: "b"}},
		Clusters:  []hubv1.SetCluster{{Name: "behind", Revision: 1}, {Name: "there", Revision: 2}, {Name: "returned", Revision: 1, Definitions: 2}},
	}
	p := &bundles{Options{Client: s, Clusters: clusters.New(s), Sets: s}, operatorNamed}
	check := func(id hubv1.ObjectIdentity, want map[string]bool) {
		t.Helper()
		notOn, err := p.notInRevision(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		f := notOn(id)
		for cluster, want := range want {
			if got := f != nil && f(cluster); got != want {
				t.Errorf("%s on %s: %t", id, cluster, got)
			}
		}
	}
	check(added, map[string]bool{"behind": true, "there": false, "returned": true, "unknown": false})
	check(definition, map[string]bool{"behind": true, "there": false, "returned": false})
	delete(s.lists, "a")
	check(added, map[string]bool{"behind": false})
	s.record.Spec.Rollout = nil
	check(definition, map[string]bool{"behind": false})
}
