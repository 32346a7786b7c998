package revisions

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// Lead deletes each part of a revision that no binding names, and finds lost parts, until ctx ends. Only the leader
// runs Lead. Lead lists the parts when it starts, after a binding has stopped naming a part, and after a user has
// deleted one.
func (s *Store) Lead(ctx context.Context) error {
	s.due.Store(true)
	s.setsDue.Store(true)
	go s.watch(ctx, hubv1.RevisionLabel, func(deleted string) {
		if !s.isSwept(digestOf(deleted)) {
			s.due.Store(true)
		}
	})
	go s.leadSets(ctx)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if !s.due.Swap(false) && !s.hasUnnamed() {
			return
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.due.Store(true)
			ctrl.LoggerFrom(ctx).Error(err, "Deleting parts of old revisions")
		}
	}, unusedFor/4)
	return nil
}

// BindingChanged must be called for every change of a binding. It records whether the binding has stopped naming a part
// of a revision.
func (s *Store) BindingChanged(_ context.Context, c changes.Binding) {
	if c.Before == nil || len(c.Before.BindingSpec().Revisions) == 0 {
		return
	}
	if c.After == nil || !slices.Equal(c.Before.BindingSpec().Revisions, c.After.BindingSpec().Revisions) {
		s.due.Store(true)
	}
}

func (s *Store) hasUnnamed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unnamed) > 0
}

// Sweep deletes each part of a revision that no binding has named for the time unusedFor, and finds parts that bindings
// name and that are not stored. The cache must have all bindings.
func (s *Store) Sweep(ctx context.Context) error {
	began := s.opts.Clock.Now()
	secrets := secretList()
	if err := s.opts.Reader.List(ctx, secrets, s.labelled(hubv1.RevisionLabel)...); err != nil {
		return fmt.Errorf("listing the parts of revisions: %w", err)
	}
	named, err := s.named(ctx) // after the list, so that the bindings of all listed parts are in the cache
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		digest := digestOf(secret.Name)
		stored[digest] = true
		if named[digest] != nil || !s.isUnused(digest) {
			continue
		}
		s.sweeps(digest)
		uid, version := secret.GetUID(), secret.GetResourceVersion()
		err := s.opts.Client.Delete(ctx, secret, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil {
			s.isSwept(digest)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting part %s of a revision: %w", digest, err)
		}
		if !apierrors.IsConflict(err) {
			named[digest] = []hubv1.ObjectIdentity{} // makes forget drop the record of the part
		}
	}
	s.lose(ctx, named, stored, began)
	s.forget(named)
	return nil
}

// labelled returns the options with which the Secrets with a label are listed and watched.
func (s *Store) labelled(label string) []client.ListOption {
	return []client.ListOption{client.InNamespace(s.opts.Namespace), client.HasLabels{label}}
}

func secretList() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return l
}

// named returns the digests of all parts of revisions that bindings name, each with the objects of these bindings.
func (s *Store) named(ctx context.Context) (map[string][]hubv1.ObjectIdentity, error) {
	bindings, err := scopes.Bindings(ctx, s.opts.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the bindings that name revisions: %w", err)
	}
	out := map[string][]hubv1.ObjectIdentity{}
	for _, b := range bindings {
		id := hubv1.ObjectOf(b)
		for _, r := range b.BindingSpec().Revisions {
			for _, digest := range []string{r.Template, r.Policies} {
				if of := out[digest]; len(of) == 0 || of[len(of)-1] != id {
					out[digest] = append(of, id)
				}
			}
		}
	}
	return out, nil
}

// isUnused reports whether no binding has named a part of a revision for unusedFor, and Ensure was not called for it in
// this time.
func (s *Store) isUnused(digest string) bool {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	since, seen := s.unnamed[digest]
	if !seen {
		s.unnamed[digest] = now
		return false
	}
	ensured, known := s.ensured[digest]
	return now.Sub(since) >= unusedFor && (!known || now.Sub(ensured) >= unusedFor)
}

// forget drops records that Sweep no longer needs: parts in unnamed that bindings name now, and records in ensured that
// are older than an hour.
func (s *Store) forget(named map[string][]hubv1.ObjectIdentity) {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest := range s.unnamed {
		if named[digest] != nil {
			delete(s.unnamed, digest)
		}
	}
	for digest, at := range s.ensured {
		if now.Sub(at) >= time.Hour {
			delete(s.ensured, digest)
		}
	}
}
