package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/scopes"
)

// liveFacts reads the facts and the bindings of namespaces uncached, each at most once in pace.FreshFor, because many
// objects may lose a cluster at once. Facts that are older than the cache only delay a withdrawal.
type liveFacts struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu   sync.Mutex
	read map[string]readFacts
	all  map[string]readBindings
}

type readBindings struct {
	bindings []hubv1.BindingObject
	at       time.Time
}

// bindings lists the bindings of a namespace.
func (l *liveFacts) bindings(ctx context.Context, namespace string) ([]hubv1.BindingObject, error) {
	now := l.clock.Now()
	l.mu.Lock()
	maps.DeleteFunc(l.all, func(_ string, r readBindings) bool { return now.Sub(r.at) > pace.FreshFor })
	r, ok := l.all[namespace]
	l.mu.Unlock()
	if ok {
		return r.bindings, nil
	}
	found, err := scopes.Bindings(ctx, l.reader, namespace)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]readBindings{}
	}
	l.all[namespace] = readBindings{bindings: found, at: now}
	return found, nil
}

type readFacts struct {
	facts decide.Facts
	at    time.Time
}

func (l *liveFacts) get(ctx context.Context, namespace string) (decide.Facts, error) {
	now := l.clock.Now()
	l.mu.Lock()
	for ns, r := range l.read {
		if now.Sub(r.at) > pace.FreshFor {
			delete(l.read, ns)
		}
	}
	r, ok := l.read[namespace]
	l.mu.Unlock()
	if ok {
		return r.facts, nil
	}
	f, err := scopes.Facts(ctx, l.reader, namespace)
	if err != nil {
		return decide.Facts{}, err
	}
	// This check comes last: objects disappear with their definition only after the definition has a deletionTimestamp.
	if err := l.stand(ctx); err != nil {
		return decide.Facts{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read == nil {
		l.read = map[string]readFacts{}
	}
	l.read[namespace] = readFacts{facts: f, at: now}
	return f, nil
}

// definitionKind is the kind of definitions. Only their metadata is read.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

var errTerminating = errors.New("it is being deleted")

// stand returns an error if one of Hanse's own definitions is being deleted. Then policies and clusters disappear
// although no user wants to withdraw an object.
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
