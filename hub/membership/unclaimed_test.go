package membership

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// copiesOf has the copies that the hub watches on one member.
type copiesOf []member.Observation

func (c copiesOf) Each(visit func(member.Observation)) {
	for _, o := range c {
		visit(o)
	}
}

// boundNames has the objects with a binding. For each object, it has the clusters that the binding names.
type boundNames struct {
	client.Reader
	on  map[string][]string
	err error
}

func (b boundNames) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if b.err != nil {
		return b.err
	}
	for name, clusters := range b.on {
		if key != copied(name).Owner.BindingKey() {
			continue
		}
		for _, cluster := range clusters {
			spec := out.(hubv1.BindingObject).BindingSpec()
			spec.Clusters = append(spec.Clusters, hubv1.BindingTarget{Name: cluster, State: hubv1.TargetAbsent})
		}
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// copied returns a copy of a hub object.
func copied(name string) member.Observation {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Machine"}
	return member.Observation{
		GVK: gvk, Namespace: "shop", Name: name, CopyState: member.CopyState{Hash: "h"},
		Owner: hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: "shop", Name: name},
	}
}

func TestUnclaimedAreCopiesThatNoBindingClaims(t *testing.T) {
	child, restored, going := copied("lost-child"), copied("restored"), copied("going")
	child.Owner.Name = "lost" // an operator has passed on the labels of the copy
	restored.Hash = ""        // a backup tool restored the copy, without the hub's field manager
	going.Deleting = true
	held := copiesOf{copied("web"), copied("lost"), child, restored, going, copied("elsewhere")}
	members := map[string]WatchedCopies{"eu": held, "us": copiesOf{copied("web"), copied("elsewhere")}}
	var reported []string
	bindings := &boundNames{on: map[string][]string{"web": {"eu", "us"}, "elsewhere": {"us"}}}
	u := &Unclaimed{bindings: bindings, members: func() map[string]WatchedCopies { return members }, changed: func(cluster string) { reported = append(reported, cluster) }}
	if _, ok := u.of("eu"); ok {
		t.Error("counted before the first count")
	}
	for range 2 {
		if err := u.count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, ok := u.of("eu"); n != 2 || !ok {
		t.Errorf("eu has %d, want the copy of lost and that of an object whose binding has no entry for eu", n)
	}
	if n, ok := u.of("us"); n != 0 || !ok {
		t.Errorf("us has %d, want none", n)
	}
	if slices.Sort(reported); !slices.Equal(reported, []string{"eu", "us"}) {
		t.Errorf("told of %v, want each once", reported)
	}

	bindings.err = errors.New("the cache is away")
	if err := u.count(t.Context()); err == nil {
		t.Error("bindings that cannot be read are counted as missing")
	}
	if n, _ := u.of("eu"); n != 2 {
		t.Errorf("eu has %d after a count that failed", n)
	}
	bindings.err = nil
	delete(members, "us")
	if err := u.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := u.of("us"); ok {
		t.Error("a member that left is still counted")
	}
}
