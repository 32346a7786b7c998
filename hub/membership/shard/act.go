package shard

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// ClusterChanged is called for a new or deleted MemberCluster. It causes a new decision on which replica works on which
// member.
func (c *Coordinator) ClusterChanged(context.Context, changes.Cluster) { c.poke() }

// watch stores the state of every Lease of this package in c.book. The states come from a watch.
func (c *Coordinator) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.clients.watching, 0, informers.WithNamespace(c.opts.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = leaseLabel }))
	leases := factory.Coordination().V1().Leases().Informer()
	registered, err := leases.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.leaseChanged(obj) },
		UpdateFunc: func(_, obj any) { c.leaseChanged(obj) },
		DeleteFunc: c.leaseGone,
	})
	if err != nil {
		return fmt.Errorf("watching Leases: %w", err)
	}
	factory.StartWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return fmt.Errorf("watching Leases: %w", ctx.Err())
	}
	return nil
}

func (c *Coordinator) leaseChanged(obj any) {
	if l, ok := obj.(*coordinationv1.Lease); ok {
		c.noted(l)
	}
}

func (c *Coordinator) leaseGone(obj any) {
	if l, ok := scopes.Last(obj).(*coordinationv1.Lease); ok {
		c.book.strike(l)
		c.poke()
	}
}

// decisions runs decide after each change of a Lease or member, and when a Lease expires.
func (c *Coordinator) decisions(ctx context.Context) {
	for {
		timer := time.NewTimer(c.look(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.signals.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look decides which actions are due, and starts them. It returns the time until the next call.
func (c *Coordinator) look(ctx context.Context) time.Duration {
	t := c.current()
	if t == nil {
		return renewEvery // the start of the term wakes the loop
	}
	if !t.valid() {
		c.giveUp()
		return renewEvery
	}
	v, lapsed, next, err := c.view(ctx, t)
	if err != nil {
		c.opts.Logger.Error(err, "Assigning members to replicas failed")
		return pace.RetryAfter
	}
	for _, l := range lapsed {
		if l.Name != peerPrefix+t.id {
			c.bury(ctx, l)
		}
	}
	for _, a := range decide(v) {
		c.act(ctx, t, a)
	}
	return max(next, 10*time.Millisecond)
}

func (c *Coordinator) view(ctx context.Context, t *term) (v view, lapsed []*coordinationv1.Lease, next time.Duration, err error) {
	all, err := c.opts.Members.Current(ctx)
	if err != nil {
		return view{}, nil, 0, err
	}
	v = view{self: t.id, members: all.Names(), held: map[string]bool{}}
	v.peers, lapsed, v.fences, next = c.book.read()
	for i := range v.peers {
		if v.peers[i].id == t.id {
			v.peers[i].live = true // this replica's term is valid by its own clock
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.held {
		v.held[m] = true
	}
	if len(lapsed) > 0 {
		next = pace.RetryAfter
	}
	return v, lapsed, next, nil
}

func (c *Coordinator) act(ctx context.Context, t *term, a action) {
	switch a.step {
	case hold:
		c.hold(t, a.member)
	case drop:
		c.letGo(a.member)
	case take:
		c.write(ctx, fencePrefix+a.member, func(ctx context.Context, l *coordinationv1.Lease) error { return c.fence(ctx, l, a.member, t.id) })
	case release:
		c.letGo(a.member)
		c.write(ctx, fencePrefix+a.member, func(ctx context.Context, l *coordinationv1.Lease) error { return c.fence(ctx, l, a.member, "") })
	case forget:
		c.letGo(a.member)
		c.write(ctx, fencePrefix+a.member, c.remove)
	}
}

func (c *Coordinator) hold(t *term, member string) {
	if c.writes.underWay(fencePrefix + member) {
		return
	}
	c.mu.Lock()
	c.held[member] = &Hold{term: t}
	c.mu.Unlock()
	c.opts.Logger.Info("Working on member cluster", "cluster", member)
	c.onChange(member)
}

// bury deletes the expired Lease of another replica. If that replica has renewed the Lease since, the API server
// refuses the deletion.
func (c *Coordinator) bury(ctx context.Context, l *coordinationv1.Lease) {
	c.write(ctx, l.Name, func(ctx context.Context, _ *coordinationv1.Lease) error { return c.remove(ctx, l) })
}

// write starts one write of a Lease in a goroutine, unless another write of this Lease is running. do makes the write.
// do gets the Lease on which the decision to write is based, or nil if there was no Lease. A write that returns an
// error may have succeeded on the server, and the watch may be late. The Lease is therefore read again after a failed
// write.
func (c *Coordinator) write(ctx context.Context, name string, do func(context.Context, *coordinationv1.Lease) error) {
	if !c.writes.begin(name) {
		return
	}
	known := c.book.get(name)
	c.writes.running.Go(func() {
		err := c.inSlot(func() error { return do(ctx, known) })
		for err != nil && ctx.Err() == nil {
			c.opts.Logger.V(1).Info("A Lease was not written", "lease", name, "reason", err.Error())
			timer := time.NewTimer(pace.RetryAfter)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
			err = c.inSlot(func() error { return c.reread(ctx, name, known) })
		}
		c.writes.end(name)
		c.poke()
	})
}

// inSlot calls f when fewer than writesAtATime other requests for Leases are running. Until then, it waits.
func (c *Coordinator) inSlot(f func() error) error {
	c.writes.slots <- struct{}{}
	defer func() { <-c.writes.slots }()
	return f()
}

// reread reads a Lease and stores its state. known is the last known state. It is nil if there was no Lease. The
// request has no resourceVersion, so that the server reads its etcd, and not a cache that may be late. An older state
// than the known one therefore shows that the hub was restored from a backup, and ends the term.
func (c *Coordinator) reread(ctx context.Context, name string, known *coordinationv1.Lease) error {
	l, err := c.clients.requests.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if known != nil {
			c.book.strike(known)
		}
		return nil
	case err != nil:
		return fmt.Errorf("reading Lease %s again: %w", name, err)
	case known != nil && hubv1.Older(l.ResourceVersion, known.ResourceVersion):
		c.restored.Store(true)
		c.current().end()
		return fmt.Errorf("reading Lease %s again: %w", name, ErrRestored)
	}
	c.noted(l)
	return nil
}

// fence writes into a member's Lease which replica works on the member. The write fails if the Lease has changed since
// the decision. If two replicas write at the same time, one of them therefore fails.
func (c *Coordinator) fence(ctx context.Context, l *coordinationv1.Lease, member, holder string) error {
	var err error
	if l == nil {
		l, err = c.clients.requests.Create(ctx, newFence(c.opts.Namespace, member, holder), metav1.CreateOptions{})
	} else {
		l.Spec.HolderIdentity = &holder
		l, err = c.clients.requests.Update(ctx, l, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	c.noted(l)
	return nil
}

// remove deletes a Lease, if the Lease has not changed since this replica decided to delete it.
func (c *Coordinator) remove(ctx context.Context, l *coordinationv1.Lease) error {
	if l == nil {
		return nil
	}
	err := c.clients.requests.Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c.book.strike(l)
	return nil
}
