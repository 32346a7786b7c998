package revisions

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// OnLost registers a function that is called with the objects whose bindings name a part that is stored no more. Each
// lost part is reported once. Call OnLost before Lead. The function must not block.
func (s *Store) OnLost(f func(...hubv1.ObjectIdentity)) { s.onLost = f }

// Lost reports whether the last Sweep did not find a part that a binding names. It is false in a replica that does not
// lead.
func (s *Store) Lost(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[digest]
}

// lose records which of the named parts are not stored, and reports the objects of the parts that were lost since the
// last call. stored are the parts of a list that began at the given time: a part for which Ensure was called since may
// be missing in the list.
func (s *Store) lose(ctx context.Context, named map[string][]hubv1.ObjectIdentity, stored map[string]bool, began time.Time) {
	log := ctrl.LoggerFrom(ctx)
	objects := map[hubv1.ObjectIdentity]bool{}
	s.mu.Lock()
	before := s.lost
	s.lost = map[string]bool{}
	for digest, of := range named {
		if at, ok := s.ensured[digest]; len(of) == 0 || stored[digest] || ok && !at.Before(began) {
			continue
		}
		s.lost[digest] = true
		if before[digest] {
			continue
		}
		log.Info("The Secret with a part of a revision is missing", "secret", secretName(digest), "objects", len(of), "first", of[0].String())
		for _, id := range of {
			objects[id] = true
		}
	}
	s.mu.Unlock()
	if len(objects) > 0 {
		s.onLost(slices.Collect(maps.Keys(objects))...)
	}
}

// found records that a lost part is stored again.
func (s *Store) found(ctx context.Context, digest string) {
	s.mu.Lock()
	delete(s.lost, digest)
	s.mu.Unlock()
	ctrl.LoggerFrom(ctx).Info("Stored a lost part of a revision again", "secret", secretName(digest))
}

// sweeps records that Sweep deletes a part, so that the watch does not take this for a deletion by a user.
func (s *Store) sweeps(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept[digest] = true
}

func digestOf(secret string) string { return strings.TrimPrefix(secret, secretName("")) }

// watch calls a function with the name of each Secret with a label that is deleted, until ctx ends. It calls the
// function with an empty name when a watch begins, because a Secret may have been deleted before. It keeps no part in
// memory.
func (s *Store) watch(ctx context.Context, label string, deleted func(name string)) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.watchOnce(ctx, label, deleted); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Watching the parts of revisions")
		}
	}, pace.RetryAfter)
}

// watchOnce watches the parts until the API server ends the watch. The watch begins at the present state, without the
// parts that are stored now.
func (s *Store) watchOnce(ctx context.Context, label string, deleted func(name string)) error {
	latest := secretList()
	if err := s.opts.Reader.List(ctx, latest, append(s.labelled(label), client.Limit(1))...); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: latest.GetResourceVersion()}}
	w, err := s.opts.Reader.Watch(ctx, secretList(), append(s.labelled(label), from)...)
	if err != nil {
		return err
	}
	defer w.Stop()
	deleted("")
	for e := range w.ResultChan() {
		if o, ok := e.Object.(metav1.Object); ok && e.Type == watch.Deleted {
			deleted(o.GetName())
		}
	}
	return nil
}

// isSwept reports whether Sweep has deleted the part, and forgets this.
func (s *Store) isSwept(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	swept := s.swept[digest]
	delete(s.swept, digest)
	return swept
}
