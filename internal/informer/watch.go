package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// shortWatch is the minimum duration of a watch without an event. A shorter watch counts as a failure, so that a pause
	// follows. Without the pause, a server that closes each watch at once would get five requests a second. A longer watch
	// ends a series of failures, even if it delivers no event.
	shortWatch = 500 * time.Millisecond
	// brokenBeforeList is the number of consecutive errors inside watches after which the kind is listed again. The
	// resourceVersion at which the watches begin may be the cause of the errors.
	brokenBeforeList = 3
)

var errShortWatch = errors.New("the server ended the watch at once")

// watch watches the kind from the resourceVersion k.version on. It returns nil if the watch worked before it ended: the
// watch delivered an event, or was open for longer than shortWatch.
func (k *kind) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := k.open(ctx, cancel)
	if err != nil {
		return err
	}
	defer w.Stop()

	works := false
	working := func() {
		works, k.streaks = true, streaks{}
		k.report(func(s *State) { s.Reason, s.Message = "", "" })
	}
	holds := time.NewTimer(shortWatch)
	defer holds.Stop()
	idle := time.NewTimer(k.set.options.IdleTimeout)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-idle.C:
			return nil
		case <-holds.C:
			working()
		case u := <-k.orders.reread:
			k.takeReread(u)
		case e, ok := <-w.ResultChan():
			switch {
			case !ok && works:
				return nil
			case !ok:
				return errShortWatch
			case e.Type == watch.Error:
				return k.streamError(e)
			case k.goesBack(e):
				k.continueAt("")
				return nil
			}
			if err := k.take(e); err != nil {
				return k.broke(err)
			}
			working()
			idle.Reset(k.set.options.IdleTimeout)
		}
	}
}

// goesBack reports whether an event has an older resourceVersion than the stored objects. In this case, the server was
// restored from a backup. The objects must be listed again, because the stored resourceVersion lies in the server's
// future.
func (k *kind) goesBack(e watch.Event) bool {
	u, ok := unreadOf(e.Object)
	if !ok {
		return false
	}
	return hubv1.Older(u.version, k.place.version)
}

// open opens the watch. API servers send the header of the response at once. If the header does not come within
// ListTimeout, the server hangs, and open returns an error.
func (k *kind) open(ctx context.Context, cancel context.CancelFunc) (watch.Interface, error) {
	late := time.AfterFunc(k.set.options.ListTimeout, cancel)
	w, err := k.server().Watch(ctx, metav1.ListOptions{
		LabelSelector:       k.set.options.LabelSelector,
		ResourceVersion:     k.place.version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(300 + rand.Int64N(300)), // spread, so that watches opened together do not end together
	})
	if late.Stop() {
		return w, err
	}
	if err == nil {
		w.Stop()
	}
	return nil, fmt.Errorf("%w within %s", errNoAnswer, k.set.options.ListTimeout)
}

// streamError returns the error that a watch event reports. Such an event has a Status, from the server or from the
// decoder, instead of an object.
func (k *kind) streamError(e watch.Event) error { return k.broke(apierrors.FromObject(e.Object)) }

// broke counts an error inside a watch, and returns it. After brokenBeforeList such errors, the next attempt lists the
// objects again.
func (k *kind) broke(err error) error {
	if k.streaks.broken++; k.streaks.broken >= brokenBeforeList {
		k.streaks.broken = 0
		k.continueAt("")
	}
	return err
}

// take processes one event of the watch. It returns an error if the object of the event cannot be decoded, or if the
// kind has too many objects.
func (k *kind) take(e watch.Event) error {
	u, ok := unreadOf(e.Object)
	if !ok {
		return nil
	}
	if err := u.check(); err != nil {
		k.refuse(u.namespace, u.name, err)
		return nil
	}
	key := Key(u.namespace, u.name)
	switch e.Type {
	case watch.Added, watch.Modified:
		object := k.awaited(key, &u.glance)
		if object == nil {
			whole, err := u.read()
			if err != nil {
				return fmt.Errorf("reading an event of %s: %w", key, err)
			}
			object = k.transform(whole)
		}
		if object == nil {
			break
		}
		if err := k.put(key, object); err != nil {
			return err
		}
	case watch.Deleted:
		k.awaited(key, &u.glance)
		k.drop(key)
	}
	if u.version != "" {
		k.continueAt(u.version)
	}
	return nil
}
