package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/placement"
)

// world is what decisions about the objects of one namespace depend on, beside the objects. It is shared: nobody changes it.
type world struct {
	placements []hubv1.PlacementObject // those of the namespace and the cluster-scoped ones
	clusters   []*hubv1.MemberCluster
	// overrides are the override policies of the namespace and the cluster-scoped ones, those alone that exclude clusters.
	overrides []hubv1.OverridePolicyObject
	// namespaceLabels are those of the namespace; unknown before namespaceRead.
	namespaceLabels map[string]string
	namespaceRead   bool
}

func (w world) cluster(name string) *hubv1.MemberCluster {
	for _, c := range w.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// placement returns the one that a reference names, whatever its uid, or nil.
func (w world) placement(ref *hubv1.PlacementReference) hubv1.PlacementObject {
	if ref == nil {
		return nil
	}
	for _, p := range w.placements {
		if kindOf(p) == ref.Kind && p.GetNamespace() == ref.Namespace && p.GetName() == ref.Name {
			return p
		}
	}
	return nil
}

func kindOf(p hubv1.PlacementObject) string {
	if _, ok := p.(*hubv1.ClusterPlacement); ok {
		return "ClusterPlacement"
	}
	return "Placement"
}

// snapshot is the clusters as the pure packages see them, for an object that is on the held ones.
func (w world) snapshot(m *memory, namespace string, held map[string]bool) []placement.Cluster {
	out := make([]placement.Cluster, len(w.clusters))
	for i, c := range w.clusters {
		out[i] = m.see(c)
		allowed, err := c.Spec.AllowedNamespaces.Allows(namespace, w.namespaceLabels)
		out[i].NamespaceAllowed = err == nil && allowed // a selector that cannot be read lets nothing new in and takes nothing away
		if out[i].Objects = m.objectsOn(c.Name); held[c.Name] {
			out[i].Objects--
		}
	}
	return out
}

// away is true for a cluster that does not answer. One that is being taken down in an orderly way does.
func away(c *hubv1.MemberCluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	return ready == nil || (ready.Status != metav1.ConditionTrue && ready.Reason != hubv1.ReasonLeaving)
}

// readWorld reads the world of a namespace; "" for cluster-scoped objects.
func readWorld(ctx context.Context, r client.Reader, namespace string, options ...client.ListOption) (world, error) {
	var w world
	var clusters hubv1.MemberClusterList
	if err := r.List(ctx, &clusters, options...); err != nil {
		return world{}, fmt.Errorf("listing MemberClusters: %w", err)
	}
	for i := range clusters.Items {
		w.clusters = append(w.clusters, &clusters.Items[i])
	}
	var err error
	if w.placements, err = scopes.PlacementsFor(ctx, r, namespace, options...); err != nil {
		return world{}, err
	}
	if w.overrides, err = excludingPolicies(ctx, r, namespace, options...); err != nil {
		return world{}, err
	}
	if namespace == "" {
		return w, nil
	}
	var ns corev1.Namespace
	err = r.Get(ctx, client.ObjectKey{Name: namespace}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return world{}, fmt.Errorf("reading namespace %q: %w", namespace, err)
	}
	w.namespaceLabels, w.namespaceRead = ns.Labels, err == nil
	return w, nil
}

// worldAge is how old an uncached world may be. It spares the API server when many objects lose a cluster at once; one that is too
// old to show what the cache shows only delays the withdrawal.
const worldAge = time.Second

// liveWorlds reads worlds uncached, each at most once a second.
type liveWorlds struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu   sync.Mutex
	read map[string]readAt
}

type readAt struct {
	world world
	at    time.Time
}

func (l *liveWorlds) get(ctx context.Context, namespace string) (world, error) {
	now := l.clock.Now()
	l.mu.Lock()
	for ns, r := range l.read {
		if now.Sub(r.at) > worldAge {
			delete(l.read, ns)
		}
	}
	r, ok := l.read[namespace]
	l.mu.Unlock()
	if ok {
		return r.world, nil
	}
	w, err := readWorld(ctx, l.reader, namespace)
	if err != nil {
		return world{}, err
	}
	// Asked last: objects vanish with their definition only after that is marked for deletion.
	if err := l.stand(ctx); err != nil {
		return world{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read == nil {
		l.read = map[string]readAt{}
	}
	l.read[namespace] = readAt{world: w, at: now}
	return w, nil
}

// definitionKind is the kind of definitions, of which only the metadata is read.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

var errTerminating = errors.New("it is being deleted")

// stand returns an error if one of our own definitions is on its way out: policies and clusters then vanish without anybody having
// changed his mind about an object.
func (l *liveWorlds) stand(ctx context.Context) error {
	for _, plural := range []string{"memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies"} {
		name := plural + "." + hubv1.GroupVersion.Group
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		err := l.reader.Get(ctx, client.ObjectKey{Name: name}, definition)
		if err == nil && definition.DeletionTimestamp != nil {
			err = errTerminating
		}
		if err != nil {
			return fmt.Errorf("reading the CustomResourceDefinition %s: %w", name, err)
		}
	}
	return nil
}
