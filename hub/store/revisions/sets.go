package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// A revision of a bundle is a list of its objects, and a list of their override rules. A list has the digest of each
// part: an object, or a set of override rules. Lists and parts are Secrets with a label and names of their own. An
// earlier version of the hub therefore never deletes them as parts that no binding names.

// keptBytes is the maximum size of the lists and parts of bundles in memory, by the size of their stored form.
const keptBytes = 16 << 20

// setParts has the state of the lists and parts of bundles in this process.
type setParts struct {
	mu sync.Mutex
	// ensured has the Secrets that this process has stored or confirmed, each with the time.
	ensured map[string]time.Time
	// unnamed has the Secrets that no SetRollout names, each with the time of the sweep that first found this.
	unnamed map[string]time.Time
	// lost has the Secrets of the newest lists that the last sweep did not find.
	lost map[string]bool
	// incomplete has the newest lists that are lost, or lack a part.
	incomplete map[string]bool
	read       weighted
}

func newSetParts() *setParts {
	return &setParts{ensured: map[string]time.Time{}, unnamed: map[string]time.Time{}, read: weighted{max: keptBytes}}
}

func listName(digest string) string { return decide.SetListSecret(digest) }
func partName(digest string) string { return decide.SetPartSecret(digest) }

// OnSetLost registers a function that is called with the bundles whose newest list is not stored completely any more,
// because a user has deleted a Secret. Call OnSetLost before Lead. The function must not block.
func (s *Store) OnSetLost(f func(...hubv1.BundleReference)) { s.onSetLost = f }

// SetLost reports whether the last SweepSets did not find a newest list, or a part of it. It is false in a replica that
// does not lead.
func (s *Store) SetLost(digest string) bool {
	s.sets.mu.Lock()
	defer s.sets.mu.Unlock()
	return s.sets.incomplete[digest]
}

// EnsureSet stores a list of a bundle and the parts in it. The list is stored last, so that each part of a stored list
// is stored. If they are stored already, EnsureSet only delays their deletion by SweepSets. Call it before a SetRollout
// names the list.
func (s *Store) EnsureSet(ctx context.Context, list decide.Payload, parts []decide.Payload) error {
	for _, p := range parts {
		if err := s.ensureSet(ctx, partName(p.Digest), hubv1.SetPartSecretType, p.Content); err != nil {
			return err
		}
	}
	if err := s.ensureSet(ctx, listName(list.Digest), hubv1.SetListSecretType, list.Content); err != nil {
		return err
	}
	s.sets.mu.Lock()
	defer s.sets.mu.Unlock()
	delete(s.sets.incomplete, list.Digest)
	return nil
}

func (s *Store) ensureSet(ctx context.Context, name string, of corev1.SecretType, content []byte) error {
	now := s.opts.Clock.Now()
	s.sets.mu.Lock()
	last, known := s.sets.ensured[name]
	known = known && !s.sets.lost[name]
	s.sets.ensured[name] = now // before the write, so that a concurrent sweep does not delete the Secret
	s.sets.mu.Unlock()
	if known && now.Sub(last) < unusedFor/2 {
		return nil
	}
	used := now.UTC().Format(time.RFC3339)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.opts.Namespace, Name: name, Labels: map[string]string{hubv1.SetLabel: "true"}, Annotations: map[string]string{usedAnnotation: used},
		},
		Type: of, Immutable: ptr.To(true), Data: map[string][]byte{contentKey: content},
	}
	err := s.opts.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) { // see Store.ensure
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:"true"}}}`, usedAnnotation, used, hubv1.SetLabel)
		err = s.opts.Client.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if err != nil {
		s.sets.mu.Lock()
		defer s.sets.mu.Unlock()
		delete(s.sets.ensured, name)
		return fmt.Errorf("storing Secret %s with a part of a bundle: %w", name, err)
	}
	return nil
}

// SetList returns a list of a bundle. It is shared and must not be changed. The error may be decide.ErrRevisionMissing.
func (s *Store) SetList(ctx context.Context, digest string) (decide.SetList, error) {
	list, err := readSet(ctx, s, listName(digest), func(content []byte) (*decide.SetList, error) {
		list, err := decide.ReadSetList(content)
		return &list, err
	})
	if err != nil {
		return nil, err
	}
	return *list, nil
}

// SetPart returns the object with this digest in a list of a bundle, as the bundle has it. It is shared and must not be
// changed. The error may be decide.ErrRevisionMissing.
func (s *Store) SetPart(ctx context.Context, digest string) (*unstructured.Unstructured, error) {
	return readSet(ctx, s, partName(digest), decide.ReadTemplate)
}

// SetRules returns the override rules with this digest in a list of a bundle. They are shared and must not be changed.
// The error may be decide.ErrRevisionMissing.
func (s *Store) SetRules(ctx context.Context, digest string) (*decide.HeldRules, error) {
	if rules, ok := s.defaults[digest]; ok {
		return rules, nil
	}
	return readSet(ctx, s, partName(digest), decide.ReadRules)
}

func readSet[T any](ctx context.Context, s *Store, name string, parse func([]byte) (*T, error)) (*T, error) {
	if known, ok := s.sets.read.get(name).(*T); ok {
		return known, nil
	}
	var secret corev1.Secret
	err := s.opts.Reader.Get(ctx, client.ObjectKey{Namespace: s.opts.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		err = decide.ErrRevisionMissing
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	out, err := parse(secret.Data[contentKey])
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	s.sets.read.add(name, out, len(secret.Data[contentKey]))
	return out, nil
}

// leadSets sweeps the lists and parts of bundles until ctx ends: at first, after a SetRollout has stopped naming a
// list, and after a user has deleted a Secret.
func (s *Store) leadSets(ctx context.Context) {
	go s.watch(ctx, hubv1.SetLabel, func(string) { s.setsDue.Store(true) })
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if !s.setsDue.Swap(false) && !s.sets.hasUnnamed() {
			return
		}
		if err := s.SweepSets(ctx); err != nil && ctx.Err() == nil {
			s.setsDue.Store(!errors.Is(err, decide.ErrRevisionMissing)) // a lost list stays lost until a SetRollout changes
			ctrl.LoggerFrom(ctx).Error(err, "Deleting parts of old revisions of bundles")
		}
	}, unusedFor/4)
}

// SweepSets deletes each list and part of bundles that no SetRollout has named for the time unusedFor. It deletes
// nothing while a list that a SetRollout names is lost, because its parts are not known then. It also finds the newest
// lists that are not stored completely. The cache must have all SetRollouts.
func (s *Store) SweepSets(ctx context.Context) error {
	secrets := secretList()
	if err := s.opts.Reader.List(ctx, secrets, client.InNamespace(s.opts.Namespace), client.HasLabels{hubv1.SetLabel}); err != nil {
		return fmt.Errorf("listing the parts of bundles: %w", err)
	}
	began, stored := s.opts.Clock.Now(), map[string]bool{}
	for i := range secrets.Items {
		stored[secrets.Items[i].Name] = true
	}
	named, err := s.setsNamed(ctx, stored, began) // after the list, so that the SetRollouts of all listed parts are in the cache
	if err != nil {
		return err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if named[secret.Name] || !s.sets.isUnused(secret.Name, s.opts.Clock.Now()) {
			continue
		}
		uid, version := secret.GetUID(), secret.GetResourceVersion()
		err := s.opts.Client.Delete(ctx, secret, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting Secret %s with a part of a bundle: %w", secret.Name, err)
		}
		if !apierrors.IsConflict(err) {
			named[secret.Name] = true // makes forget drop the record of the Secret
		}
	}
	s.sets.forget(named, s.opts.Clock.Now())
	return nil
}

// setsNamed returns the names of the Secrets with all lists and parts that SetRollouts name. stored are the Secrets of
// a list that began at the given time. setsNamed reports the bundles whose newest list is not stored completely. The
// error is decide.ErrRevisionMissing if a list is lost.
func (s *Store) setsNamed(ctx context.Context, stored map[string]bool, began time.Time) (map[string]bool, error) {
	var records hubv1.SetRolloutList
	if err := s.opts.Client.List(ctx, &records, client.InNamespace(s.opts.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the SetRollouts that name parts of bundles: %w", err)
	}
	named, lost := map[string]bool{}, map[string]bool{}
	var incomplete []*hubv1.SetRollout
	var missing error
	for i := range records.Items {
		record := &records.Items[i]
		for n, digest := range listsOf(&record.Spec) {
			names, err := s.secretsOf(ctx, digest)
			if errors.Is(err, decide.ErrRevisionMissing) {
				missing = fmt.Errorf("reading a list that SetRollout %s names: %w", record.Name, err)
			} else if err != nil {
				return nil, fmt.Errorf("reading a list that SetRollout %s names: %w", record.Name, err)
			}
			whole := true
			for _, name := range names {
				named[name] = true
				if n == 0 && !stored[name] && !s.sets.ensuredSince(name, began) {
					lost[name], whole = true, false
				}
			}
			if !whole {
				incomplete = append(incomplete, record)
			}
		}
	}
	s.loseSets(ctx, lost, incomplete)
	return named, missing
}

// secretsOf returns the names of the Secrets of a list and its parts. If the list is lost, it returns only the name of
// the list, and decide.ErrRevisionMissing.
func (s *Store) secretsOf(ctx context.Context, digest string) ([]string, error) {
	out := []string{listName(digest)}
	list, err := s.SetList(ctx, digest)
	for _, part := range list {
		out = append(out, partName(part))
	}
	return out, err
}

// loseSets records which Secrets of newest lists are lost, and reports the bundles of these lists.
func (s *Store) loseSets(ctx context.Context, lost map[string]bool, of []*hubv1.SetRollout) {
	s.sets.mu.Lock()
	s.sets.lost, s.sets.incomplete = lost, map[string]bool{}
	var bundles []hubv1.BundleReference
	for _, record := range of {
		s.sets.incomplete[record.Spec.Newest.List] = true
		bundles = append(bundles, record.Spec.Bundle)
	}
	s.sets.mu.Unlock()
	if len(bundles) > 0 {
		ctrl.LoggerFrom(ctx).Info("Secrets with the objects of a bundle are missing", "secrets", len(lost), "bundle", bundles[0].String(), "bundles", len(bundles))
		s.onSetLost(bundles...)
	}
}

// ensuredSince reports whether EnsureSet was called for a Secret since a time.
func (p *setParts) ensuredSince(name string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known := p.ensured[name]
	return known && !at.Before(since)
}

// listsOf returns the digests of the lists that a SetRollout names: those of objects, and those of override rules.
func listsOf(spec *hubv1.SetRolloutSpec) []string {
	out := []string{spec.Newest.List}
	for _, r := range spec.Revisions {
		out = append(out, r.List)
		if r.Policies != "" {
			out = append(out, r.Policies)
		}
	}
	return out
}

// isUnused reports whether no SetRollout has named a Secret for unusedFor, and EnsureSet did not store it in this time.
func (p *setParts) isUnused(name string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, seen := p.unnamed[name]
	if !seen {
		p.unnamed[name] = now
		return false
	}
	ensured, known := p.ensured[name]
	return now.Sub(since) >= unusedFor && (!known || now.Sub(ensured) >= unusedFor)
}

// forget drops records that SweepSets no longer needs.
func (p *setParts) forget(named map[string]bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.unnamed {
		if named[name] {
			delete(p.unnamed, name)
		}
	}
	for name, at := range p.ensured {
		if now.Sub(at) >= time.Hour {
			delete(p.ensured, name)
		}
	}
}

func (p *setParts) hasUnnamed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unnamed) > 0
}

// SetRolloutChanged must be called for every change of the spec of a SetRollout, and for its deletion. It records
// whether the SetRollout has stopped naming a list.
func (s *Store) SetRolloutChanged(_ context.Context, c changes.SetRollout) {
	if c.Before != nil && (c.After == nil || !slices.Equal(listsOf(&c.Before.Spec), listsOf(&c.After.Spec))) {
		s.setsDue.Store(true)
	}
}
