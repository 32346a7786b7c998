// Package revisions stores and reads the contents of revisions. A revision is one state of a hub object and its
// override rules. A rollout brings a revision to clusters, or goes back to one.
//
// A revision has two parts: a template, which is the object, and a set of override rules. A part is a Secret in the
// hub's namespace, named after the digest of its content. Many objects can share one part. Because a part may contain a
// user's Secret, only the hub may read the Secrets of this namespace.
//
//   - Ensure is called before a binding names a part, so that a part that a binding names is always stored.
//   - If a part is missing, the error is decide.ErrRevisionMissing. The hub never uses the newest state of the object
//     instead. The default sets of override rules are read from no Secret (decide.DefaultRules).
//   - The leader deletes parts that no binding has named for a minute (sweep.go).
//   - The contents of bundles as a whole have Secrets of their own (sets.go).
//   - The leader finds parts that a binding names and that are not stored, because a user has deleted the Secret
//     (lost.go). It stores them again, if the hub object or the override rules still have this content.
package revisions

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
)

const (
	// unusedFor is the time after which a part of a revision is deleted if no binding names it.
	unusedFor = time.Minute
	// kept is the maximum number of parts of revisions in memory. A part is a template or a set of override rules.
	kept = 512

	contentKey     = decide.ContentKey
	usedAnnotation = hubv1.Prefix + "used"
)

// Options of a Store. All except Clock are required.
type Options struct {
	// Client writes Secrets, and lists bindings from the cache.
	Client client.Client
	// Reader reads and watches Secrets without a cache.
	Reader    client.WithWatch
	Namespace string
	// Key is the key of the digests.
	Key   canonical.Key
	Clock clock.PassiveClock
}

// Store stores and reads the parts of revisions: templates, and sets of override rules.
type Store struct {
	opts             Options
	templates, rules *lru.Cache
	defaults         map[string]*decide.HeldRules
	sets             *setParts
	onLost           func(...hubv1.ObjectIdentity)
	onSetLost        func(...hubv1.BundleReference)

	// due is true if a binding has stopped naming a part of a revision since the last Sweep, or if a user may have deleted
	// a part.
	due atomic.Bool
	// setsDue is true if a SetRollout has stopped naming a list since the last SweepSets.
	setsDue atomic.Bool

	mu sync.Mutex
	// ensured has the digests of the parts for which Ensure was called in this process, each with the time of the last
	// call.
	ensured map[string]time.Time
	// unnamed has the digests of the parts that no binding names, each with the time of the Sweep that first found this.
	unnamed map[string]time.Time
	// lost has the digests of the parts that bindings name, but that the last Sweep did not find.
	lost map[string]bool
	// swept has the digests of the parts that Sweep has deleted, and whose deletion the watch has not reported yet.
	swept map[string]bool
}

// New returns a Store.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Store{
		opts: o, templates: lru.New(kept), rules: lru.New(kept), defaults: decide.DefaultRules(o.Key), onLost: func(...hubv1.ObjectIdentity) {}, onSetLost: func(...hubv1.BundleReference) {},
		sets: newSetParts(), ensured: map[string]time.Time{}, unnamed: map[string]time.Time{}, lost: map[string]bool{}, swept: map[string]bool{},
	}
}

func secretName(digest string) string { return "revision-" + digest }

// Ensure stores a part of a revision. If the part is already stored, Ensure only delays its deletion by Sweep.
func (s *Store) Ensure(ctx context.Context, p decide.Payload) error {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	last, known := s.ensured[p.Digest]
	lost := s.lost[p.Digest]
	delete(s.swept, p.Digest)
	s.ensured[p.Digest] = now // before the write, so that a concurrent sweep does not delete the part
	s.mu.Unlock()
	if known && !lost && now.Sub(last) < unusedFor/2 {
		return nil
	}
	if err := s.ensure(ctx, p, now); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ensured, p.Digest)
		return fmt.Errorf("storing part %s of a revision: %w", p.Digest, err)
	}
	if lost {
		s.found(ctx, p.Digest)
	}
	return nil
}

func (s *Store) ensure(ctx context.Context, p decide.Payload, now time.Time) error {
	used := now.UTC().Format(time.RFC3339)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.opts.Namespace, Name: secretName(p.Digest), Labels: map[string]string{hubv1.RevisionLabel: "true"},
			Annotations: map[string]string{usedAnnotation: used},
		},
		Type: hubv1.RevisionSecretType, Immutable: ptr.To(true), Data: map[string][]byte{contentKey: p.Content},
	}
	err := s.opts.Client.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The patch changes the resourceVersion of the Secret. The Sweep of another leader deletes a Secret only at the
	// resourceVersion that it has read, and therefore does not delete this Secret. A user may have removed the label.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:"true"}}}`, usedAnnotation, used, hubv1.RevisionLabel)
	return s.opts.Client.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// Template returns the template with this digest. It is shared and must not be changed. The error may be
// decide.ErrRevisionMissing.
func (s *Store) Template(ctx context.Context, digest string) (*unstructured.Unstructured, error) {
	return read(ctx, s, s.templates, digest, decide.ReadTemplate)
}

// Rules returns the override rules with this digest. They are shared and must not be changed. The error may be
// decide.ErrRevisionMissing.
func (s *Store) Rules(ctx context.Context, digest string) (*decide.HeldRules, error) {
	if rules, ok := s.defaults[digest]; ok {
		return rules, nil
	}
	return read(ctx, s, s.rules, digest, decide.ReadRules)
}

func read[T any](ctx context.Context, s *Store, cache *lru.Cache, digest string, parse func([]byte) (*T, error)) (*T, error) {
	if known, ok := cache.Get(digest); ok {
		return known.(*T), nil
	}
	var secret corev1.Secret
	err := s.opts.Reader.Get(ctx, client.ObjectKey{Namespace: s.opts.Namespace, Name: secretName(digest)}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading Secret %s: %w", secretName(digest), decide.ErrRevisionMissing)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", secretName(digest), err)
	}
	out, err := parse(secret.Data[contentKey])
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", secretName(digest), err)
	}
	cache.Add(digest, out)
	return out, nil
}
