package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/replicas"
)

// Live is one object and what decides on it, as an API server gives them. What the hub alone knows is not part of it: for how long a cluster
// has said the same of its nodes, and which clusters it is still waiting for.
type Live struct {
	// Object is not being deleted, and at the version at which it is sent.
	Object *unstructured.Unstructured
	// Binding of the object.
	Binding hubv1.BindingObject
	// Placements are those of the object's namespace and the cluster-scoped ones.
	Placements []hubv1.PlacementObject
	Clusters   []*hubv1.MemberCluster
	// Overrides are the override policies of the object's namespace and the cluster-scoped ones. Those that exclude no clusters decide nothing.
	Overrides       []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// Objects is how many objects the hub sends to each cluster; nil if that is not known.
	Objects map[string]int
	// ScalePath is where the kind's definition says that its scale subresource has the replicas; empty if that is not known.
	ScalePath string
	// Refused says whether the hub itself would act on the kind.
	Refused bool
	Now     time.Time
}

// ReadLive reads what decides on the objects of a namespace, "" for cluster-scoped ones, by the reads that the hub does.
func ReadLive(ctx context.Context, r client.Reader, namespace string) (Live, error) {
	w, err := readWorld(ctx, r, namespace)
	if err != nil {
		return Live{}, fmt.Errorf("reading what decides: %w", err)
	}
	return Live{Placements: w.placements, Clusters: w.clusters, Overrides: w.overrides, NamespaceLabels: w.namespaceLabels}, nil
}

// Replayed is a decision, told in full.
type Replayed struct {
	// Choice is the placement to follow. There may be none.
	Choice  placement.Choice
	Invalid []placement.InvalidPlacement
	// Input of the decision on clusters, nil if none was asked for: Scheduled says why.
	Input    *placement.Input
	Decision placement.Decision
	Trace    placement.Trace
	// Division is nil if no replicas were divided.
	Division *ReplayedDivision
	// Spec is the binding as it would be written.
	Spec hubv1.BindingSpec
	// Scheduled is what would be said of it.
	Scheduled metav1.Condition
}

// ReplayedDivision is a division of replicas with what it came from.
type ReplayedDivision struct {
	Field  replicas.Field
	Input  replicas.Input
	Result replicas.Division
}

// Replay decides on the object again, from the binding as it is, by the function that the hub decides by. It writes nothing.
func (l Live) Replay() Replayed {
	f := facts{
		id: identityOf(l.Object), binding: l.Binding, template: l.Object, scalePath: l.ScalePath, refused: l.Refused, now: l.Now,
		world: world{placements: l.Placements, clusters: l.Clusters, overrides: excludingOf(slices.Clone(l.Overrides)), namespaceLabels: l.NamespaceLabels, namespaceRead: true},
	}
	if l.Objects != nil {
		f.memory = &memory{objects: l.Objects}
	}
	return f.replay()
}

func (f facts) replay() Replayed {
	var out Replayed
	f.replayed = &out
	p := decide(f)
	if p.spec != nil {
		out.Spec = *p.spec
	}
	out.Scheduled = p.scheduled
	return out
}
