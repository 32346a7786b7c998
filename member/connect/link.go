package connect

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// link is the connection to one cluster. Its methods may be called from any goroutine. Only the goroutine of run, and
// goroutines that it starts, send requests to the cluster. They hold no lock during a request.
type link struct {
	name    string
	options Options
	changed func(cluster string)
	done    chan struct{} // closed when run has returned
	orders  orders

	// before is the former link of this name, whose goroutine must end first. cancel ends this link. The provider's mutex
	// guards both, and both are set before run.
	before *link
	cancel context.CancelFunc

	mu      sync.Mutex
	state   member.LinkState
	engaged *engagement // nil while no connection is in use
	lost    bool        // the link was ready before and is not ready now
	removed bool        // the link was removed; its metric may belong to a later link of this name
}

func newLink(name string, options Options, changed func(string)) *link {
	reconnects.WithLabelValues(name)
	return &link{
		name: name, options: options, changed: changed,
		orders: orders{wake: make(chan struct{}, 1)}, done: make(chan struct{}),
		state: member.LinkState{
			Ready: metav1.ConditionUnknown, Reason: hubv1.ReasonConnecting, Message: underWay,
			Credentials: metav1.ConditionUnknown, CredentialsReason: hubv1.ReasonConnecting, CredentialsMessage: underWay,
		},
	}
}

func (l *link) currentState() member.LinkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// setState stores the state. It calls the listeners if a field other than LastObserved has changed.
func (l *link) setState(s member.LinkState) {
	l.mu.Lock()
	before := l.state
	l.state = s
	l.countReconnect(before)
	l.mu.Unlock()

	if before.Ready != s.Ready || before.Reason != s.Reason {
		l.options.Logger.Info("Link to member cluster has changed", "cluster", l.name, "ready", s.Ready, "reason", s.Reason, "message", s.Message)
	}
	if !sameButLastObserved(before, s) {
		l.changed(l.name)
	}
}

// countReconnect increments a metric if the link was ready before, failed, and is ready again now. The caller holds
// l.mu.
func (l *link) countReconnect(before member.LinkState) {
	switch is := l.state.Ready == metav1.ConditionTrue; {
	case is && l.lost && !l.removed:
		reconnects.WithLabelValues(l.name).Inc()
		l.lost = false
	case is:
		l.lost = false
	case before.Ready == metav1.ConditionTrue:
		l.lost = true
	}
}

// dropMetrics removes the metric series of a link that is being removed.
func (l *link) dropMetrics() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = true
	reconnects.DeleteLabelValues(l.name)
}

func sameButLastObserved(a, b member.LinkState) bool {
	return a.Ready == b.Ready && a.Reason == b.Reason && a.Message == b.Message &&
		a.TooLarge == b.TooLarge && a.InUse == b.InUse &&
		a.Credentials == b.Credentials && a.CredentialsReason == b.CredentialsReason && a.CredentialsMessage == b.CredentialsMessage &&
		equality.Semantic.DeepEqual(a.Facts, b.Facts)
}

func (l *link) currentEngagement() *engagement {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.engaged
}

func (l *link) setEngaged(e *engagement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engaged = e
}

// run is the goroutine of the link. It returns after ctx has ended.
func (l *link) run(ctx context.Context, engage Engage) {
	r := newRunner(l, engage)
	defer r.end()
	for {
		timer := time.NewTimer(r.step(ctx))
		if !r.wait(ctx, timer.C) {
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// wait returns true when the link has work to do, such as a probe of the cluster. It returns false when ctx has ended.
func (r *runner) wait(ctx context.Context, due <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.link.orders.wake:
			return true
		case <-due:
			return true
		case <-r.larger:
			r.report()
		case read := <-r.facts.reads:
			r.takeFacts(read)
		case read := <-r.served.reads:
			r.takeServed(read)
			return true
		}
	}
}

// pauseAfter returns the pause after a number of consecutive failures. It doubles from 0.2 s to 8 s, so that the hub
// soon notices a cluster that is back. For a cluster that has been unreachable for some minutes, it is 30 s.
func pauseAfter(failures int) time.Duration {
	pause := min(200*time.Millisecond<<min(failures-1, 10), 8*time.Second)
	if failures > 30 {
		pause = 30 * time.Second
	}
	return jittered(pause)
}

// jittered changes a duration by a random part. Otherwise, clusters that failed together would all be tried at the same
// time.
func jittered(d time.Duration) time.Duration {
	return d - d/8 + rand.N(d/4+1)
}
