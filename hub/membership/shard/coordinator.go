// Package shard distributes the members among the replicas of the hub. It decides which replica works on which member,
// and ensures that two replicas never work on the same member at the same time.
//
// Each replica has a Lease, the peer Lease, which it renews every 5 s. Each member also has a Lease, the fence. The
// fence names the replica that works on the member. The fence is written only when a replica takes or releases the
// member.
//
//   - A member belongs to the replica that rendezvous hashing selects among the live replicas. It moves only if the
//     hashing selects another replica. Before the move, the previous replica must stop its work and release the fence,
//     or lose its peer Lease.
//   - If a replica sees no change of another replica's peer Lease for 15 s, it deletes this version of the Lease. From
//     then on the other replica cannot renew the Lease. Clocks of replicas are not compared.
//   - A replica that could not renew in time, by its own clock, releases all its members at once: see Hold. Then Run
//     ends, and so must the process. A process that was stopped and resumed has outdated watches of the hub, and cannot
//     know when they are current: it would write outdated data. A new process lists first.
//   - A failed renewal has no effect while there is time for another try.
//   - A hub that was restored from a backup has an older version of a Lease than this replica. The process then ends at
//     once. After each lost connection to the hub, writes wait for a renewal, which shows whether the hub was restored.
//   - Writes of Leases use a separate client, and each write of a fence has its own goroutine. Neither load nor a
//     failing write of a fence therefore delays a renewal. No lock is held during a request.
//
// Other packages do the work on a member: hub/membership connects, hub/dispatch writes, and hub/report reports. This
// package does not decide which replica is the leader.
package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/clusters"
)

// Options has the settings of a Coordinator. The fields Identity, Annotations and Logger are optional; all other fields
// are required.
type Options struct {
	// Config is the configuration of the clients that read and write Leases. These clients share no connection and no rate
	// limit with other clients.
	Config *rest.Config
	// Namespace is the namespace of the Leases.
	Namespace string
	// Identity is the identity of the replica, such as the UID of its pod. It has at most 40 characters, which must be
	// allowed in a DNS label. No other running process may have the same identity. At the start, Leases of an ended
	// process with this identity are deleted. The default is a random identity.
	Identity string
	// Members has the MemberClusters.
	Members *clusters.Store
	// HangUp ends the work on a member. After HangUp has returned, this process sends no more requests to the member.
	HangUp func(member string)
	// Annotations are the annotations of this replica's peer Lease. Other replicas read them with Holder.
	Annotations map[string]string
	Logger      logr.Logger
}

// Coordinator takes and releases members for one replica.
type Coordinator struct {
	opts     Options
	clients  clients
	now      func() time.Time
	book     *book
	writes   *leaseWrites
	signals  signals
	restored atomic.Bool // the hub was restored from a backup, so that the term is over
	onChange func(member string)

	mu   sync.Mutex
	term *term // nil before the start of the term; a process has only one term
	left bool  // Leave was called, so that no term begins
	held map[string]*Hold
}

// clients read and write Leases.
type clients struct {
	requests coordinationclient.LeaseInterface
	watching kubernetes.Interface // a client for watches, whose requests have no deadline
}

// signals wake the goroutines of a term.
type signals struct {
	wake  chan struct{} // has a value after a change
	again chan struct{} // has a value if the peer Lease must be renewed at once
}

const maxIdentityLength = 40

// New returns a Coordinator that holds no member before Run.
func New(o Options) (*Coordinator, error) {
	if o.Identity == "" {
		o.Identity = utilrand.String(maxIdentityLength / 2)
	}
	if len(o.Identity) > maxIdentityLength || len(validation.IsDNS1123Label(o.Identity)) > 0 {
		return nil, fmt.Errorf("the identity %q of this replica is not a DNS label of at most %d characters", o.Identity, maxIdentityLength)
	}
	short := rest.CopyConfig(o.Config)
	short.Timeout = requestTimeout
	requests, err := kubernetes.NewForConfig(short)
	if err != nil {
		return nil, fmt.Errorf("making the client for Leases: %w", err)
	}
	watching, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client that watches Leases: %w", err)
	}
	return &Coordinator{
		opts: o, clients: clients{requests: requests.CoordinationV1().Leases(o.Namespace), watching: watching}, now: time.Now,
		book: &book{now: time.Now, leases: map[string]entry{}}, writes: newLeaseWrites(),
		signals: signals{wake: make(chan struct{}, 1), again: make(chan struct{}, 1)}, held: map[string]*Hold{}, onChange: func(string) {},
	}, nil
}

// OnChange sets the function that is called when this replica has taken or released a member. The function must not
// block. Call OnChange before Run.
func (c *Coordinator) OnChange(f func(member string)) { c.onChange = f }

// Hold returns this replica's Hold of a member, which is its right to work on the member. It returns nil if this
// replica does not work on the member.
func (c *Coordinator) Hold(member string) *Hold {
	c.mu.Lock()
	h := c.held[member]
	c.mu.Unlock()
	if h == nil || !h.Valid() {
		return nil
	}
	return h
}

// Holds reports whether this replica works on the member.
func (c *Coordinator) Holds(member string) bool { return c.Hold(member) != nil }

// Holder returns the annotations of the peer Lease of the replica that works on the member. It returns nil if this
// replica knows of no such replica.
func (c *Coordinator) Holder(member string) map[string]string {
	fence := c.book.get(fencePrefix + member)
	if fence == nil {
		return nil
	}
	peer := c.book.get(peerPrefix + holderOf(fence))
	if peer == nil {
		return nil
	}
	return peer.Annotations
}

// EveryReplica reports whether the peer Lease of each replica has an annotation with this value. An expired Lease
// counts, too. It returns false while no peer Lease is known.
func (c *Coordinator) EveryReplica(annotation, value string) bool {
	return c.book.all(func(l *coordinationv1.Lease) bool { return l.Annotations[annotation] == value })
}

// RequireRenewal is called after a connection to the hub's API server was lost. The server that answers next may have
// been restored from a backup. Its watches would deliver older objects than this process has, or none at all. All
// writes therefore wait until the peer Lease was renewed once more.
func (c *Coordinator) RequireRenewal() {
	if t := c.current(); t != nil && t.requireRenewal() {
		select {
		case c.signals.again <- struct{}{}:
		default:
		}
	}
}

// sure waits until this replica may write to the hub. It returns ErrUnsure if that can no longer happen, or if ctx ends
// first. A replica without a peer Lease may write, because it does so only while it starts.
func (c *Coordinator) sure(ctx context.Context) error {
	if t := c.current(); t != nil {
		return t.sure(ctx)
	}
	return nil
}

// IfHeld calls f if this replica works on the member. IfHeld holds the lock during the call, so that f must not block.
func (c *Coordinator) IfHeld(member string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.held[member]; h != nil && h.Valid() {
		f()
	}
}

func (c *Coordinator) current() *term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term
}

// ErrLapsed is the error of Run if the replica's Lease has expired, or if other replicas have deleted the Lease.
var ErrLapsed = errors.New("the Lease of this replica was not renewed in time: other replicas may work on its members, and its cache may be old, so it must restart")

// ErrRestored is the error of Run if the hub's API server has an older version of a Lease than this replica.
var ErrRestored = errors.New("the hub was restored from a backup while this replica ran: its caches are newer than the hub, so it must restart")

// Run takes part in the distribution of members until ctx ends, the Lease expires (ErrLapsed) or the hub was restored
// (ErrRestored). work gets a context that ends at the same time. Run waits until work has returned, and then releases
// all members at once.
func (c *Coordinator) Run(ctx context.Context, work func(context.Context) error) error {
	own, stop := context.WithCancel(context.WithoutCancel(ctx)) // Leases are renewed until the work has ended
	defer stop()
	if err := c.watch(own); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var running sync.WaitGroup
	var lapsed error
	running.Go(func() {
		lapsed = c.renewals(own)
		end()
	})
	running.Go(func() { c.decisions(ctx) })
	err := work(ctx)
	stop()
	running.Wait()
	c.writes.running.Wait()
	return errors.Join(lapsed, err, c.Leave(context.WithoutCancel(ctx)))
}

// Leave ends this replica's right to work on members for good, and deletes the peer Lease. Other replicas may then take
// the members at once. A process that ends without waiting for Run must call Leave. A second call has no effect.
func (c *Coordinator) Leave(ctx context.Context) error {
	c.mu.Lock()
	c.left = true
	t := c.term
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	t.end()
	if err := c.clients.requests.Delete(ctx, peerPrefix+t.id, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the Lease of this replica: %w", err)
	}
	return nil
}

// renewals creates the peer Lease and renews it until ctx ends. It returns ErrLapsed when the Lease has expired, and
// ErrRestored when the hub was restored.
func (c *Coordinator) renewals(ctx context.Context) error {
	for {
		pause := renewEvery
		t := c.current()
		if t == nil {
			if err := c.begin(ctx); err != nil {
				c.opts.Logger.Error(err, "This replica does not work on members yet")
				pause = pace.RetryAfter
			}
		} else if err := c.renew(ctx, t); err != nil {
			c.opts.Logger.Info("The Lease of this replica was not renewed", "lease", peerPrefix+t.id, "reason", err.Error())
			pause = pace.RetryAfter
		} else if t.needsRenewal() { // since this renewal was sent
			pause = pace.RetryAfter
		}
		if t = c.current(); t != nil && !t.valid() {
			c.giveUp()
			switch {
			case c.leaving():
				return nil
			case c.restored.Load():
				return ErrRestored
			}
			return ErrLapsed
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.signals.again:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *Coordinator) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// begin creates the peer Lease. It deletes other Leases with the same identity, which belong to processes that have
// ended.
func (c *Coordinator) begin(ctx context.Context) error {
	if c.leaving() {
		return errors.New("this replica is shutting down")
	}
	list, err := c.clients.requests.List(ctx, metav1.ListOptions{LabelSelector: leaseLabel + "=" + peerLease + "," + seatLabel + "=" + c.opts.Identity})
	if err != nil {
		return fmt.Errorf("looking for Leases of this replica: %w", err)
	}
	for i := range list.Items {
		if err := c.clients.requests.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Lease %s of this replica: %w", list.Items[i].Name, err)
		}
		c.book.strike(&list.Items[i])
	}
	began := c.now()
	id := c.opts.Identity + "-" + utilrand.String(5)
	l, err := c.clients.requests.Create(ctx, newPeerLease(c.opts.Namespace, id, c.opts.Identity, c.opts.Annotations, began), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the Lease of this replica: %w", err)
	}
	c.mu.Lock()
	c.term = newTerm(id, c.now, began)
	if c.left {
		c.term.end()
	}
	c.mu.Unlock()
	c.opts.Logger.Info("Taking part", "lease", l.Name)
	c.book.note(l)
	c.poke() // wake the loop, even if the watch already showed the Lease
	return nil
}

func (c *Coordinator) renew(ctx context.Context, t *term) error {
	known := c.book.get(peerPrefix + t.id)
	if known == nil {
		t.end()
		return errors.New("the Lease was deleted: another replica found it expired")
	}
	sent := c.now()
	known.Spec.RenewTime = &metav1.MicroTime{Time: sent}
	l, err := c.clients.requests.Update(ctx, known, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		t.end()
		return err
	case apierrors.IsConflict(err): // an earlier renewal was stored, but its answer was lost and the watch is late
		return errors.Join(err, c.reread(ctx, known.Name, known))
	case err != nil:
		return err
	}
	if !t.renew(sent) {
		return errors.New("the API server answered after the Lease had expired")
	}
	c.noted(l)
	return nil
}

// giveUp stops the work on all held members.
func (c *Coordinator) giveUp() {
	c.mu.Lock()
	members := make([]string, 0, len(c.held))
	for m := range c.held {
		members = append(members, m)
	}
	c.mu.Unlock()
	for _, m := range members {
		c.letGo(m)
	}
}

// letGo stops the work on a member, if this replica holds the member.
func (c *Coordinator) letGo(member string) {
	c.mu.Lock()
	h := c.held[member]
	delete(c.held, member)
	c.mu.Unlock()
	if h == nil {
		return
	}
	h.release()
	c.opts.HangUp(member)
	c.onChange(member)
}

func (c *Coordinator) noted(l *coordinationv1.Lease) {
	if c.book.note(l) {
		c.poke()
	}
}

func (c *Coordinator) poke() {
	select {
	case c.signals.wake <- struct{}{}:
	default:
	}
}
