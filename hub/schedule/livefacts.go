package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// liveFacts reads the inputs of decisions, and the bindings of a namespace, from the API server. It reads a namespace
// at most once in pace.FreshFor, because many objects may lose a cluster at the same time. If such a shared read is
// older than the cache, the only effect is that a withdrawal comes later.
type liveFacts struct {
	reader client.Reader
	facts  recent[decide.Facts]
	all    recent[[]hubv1.BindingObject]
}

func newLiveFacts(reader client.Reader, clock clock.PassiveClock) *liveFacts {
	return &liveFacts{
		reader: reader, facts: recent[decide.Facts]{clock: clock, kept: map[string]readAt[decide.Facts]{}},
		all: recent[[]hubv1.BindingObject]{clock: clock, kept: map[string]readAt[[]hubv1.BindingObject]{}},
	}
}

// bindings lists the bindings of a namespace.
func (l *liveFacts) bindings(ctx context.Context, namespace string) ([]hubv1.BindingObject, error) {
	return l.all.get(namespace, func() ([]hubv1.BindingObject, error) { return scopes.Bindings(ctx, l.reader, namespace) })
}

// get reads the inputs that all decisions of a namespace have in common, such as placements and clusters.
func (l *liveFacts) get(ctx context.Context, namespace string) (decide.Facts, error) {
	return l.facts.get(namespace, func() (decide.Facts, error) {
		f, err := scopes.Facts(ctx, l.reader, namespace)
		if err != nil {
			return decide.Facts{}, err
		}
		// stand fails if one of Hanse's own CustomResourceDefinitions is missing or being deleted. It must be called after
		// the reads: the CustomResourceDefinition has a deletionTimestamp before its objects disappear.
		return f, l.stand(ctx)
	})
}

// recent caches one read for each namespace for the time pace.FreshFor. Calls at the same time share one read.
type recent[T any] struct {
	clock  clock.PassiveClock
	flight singleflight.Group

	mu   sync.Mutex
	kept map[string]readAt[T]
}

type readAt[T any] struct {
	value T
	at    time.Time // time at which the read began
}

func (r *recent[T]) get(namespace string, read func() (T, error)) (T, error) {
	value, err, _ := r.flight.Do(namespace, func() (any, error) {
		now := r.clock.Now()
		r.mu.Lock()
		maps.DeleteFunc(r.kept, func(_ string, k readAt[T]) bool { return now.Sub(k.at) > pace.FreshFor })
		k, ok := r.kept[namespace]
		r.mu.Unlock()
		if ok {
			return k.value, nil
		}
		value, err := read()
		if err != nil {
			return value, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kept[namespace] = readAt[T]{value, now}
		return value, nil
	})
	return value.(T), err
}

// definitionKind is the kind CustomResourceDefinition. Only the metadata of definitions is read.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

var errTerminating = errors.New("it is being deleted")

// stand returns an error if one of Hanse's own CustomResourceDefinitions is missing or being deleted. Policies and
// clusters then disappear, although no user wants to withdraw an object.
func (l *liveFacts) stand(ctx context.Context) error {
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
