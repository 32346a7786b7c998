package connect

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// judgement is the status, reason and message of a condition.
type judgement struct {
	status          metav1.ConditionStatus
	reason, message string
}

// attempts counts consecutive failed attempts to connect to the cluster or to probe it, and has the time of the next
// attempt.
type attempts struct {
	failures int
	last     verdict // the verdict on the last failed attempt
	due      time.Time
}

func (a *attempts) failed(v verdict) {
	a.failures++
	a.last = v
	a.due = time.Now().Add(max(pauseAfter(a.failures), v.retryAfter))
}

// succeeded schedules the next attempt after the interval.
func (a *attempts) succeeded(interval time.Duration) {
	*a = attempts{due: time.Now().Add(jittered(interval))}
}

// runner is the state machine of one link. Only the goroutine of the link uses its fields. Other goroutines only send
// on its channels.
//
//	nothing in use -- candidate delivers --> in use -- another kubeconfig --> in use, candidate beside it
//	      ^                                    |
//	      +------------ another cluster -------+
type runner struct {
	link     *link
	engaging Engage

	wanted       wanted
	inUse        *session    // nil until a candidate session has delivered an event
	engaged      *engagement // nil exactly when inUse is nil
	probes       attempts    // the probes of the session in use
	ready        bool
	lastObserved time.Time // the last time when a watch of the cluster delivered an event

	facts   factsReader // its ClusterID is the ID of the last cluster that delivered an event
	served  discovery
	readers sync.WaitGroup
	larger  chan struct{} // gets a value when an answer exceeded its size limit
}

// wanted is the newest requested connection, with the results of the attempts to use it.
type wanted struct {
	want
	tries attempts  // attempts to connect, while the wanted connection is not in use
	creds judgement // the last judgement on the credentials; zero if no cluster has checked them
}

func newRunner(l *link, engage Engage) *runner {
	return &runner{
		link: l, engaging: engage, facts: factsReader{reads: make(chan factsRead, 1)},
		served: discovery{reads: make(chan servedRead, 1)}, larger: make(chan struct{}, 1),
	}
}

// end closes all connections and waits for the goroutines of the runner.
func (r *runner) end() {
	r.hangUp()
	r.readers.Wait()
}

// step does the work that is due, and returns the time until more work is due.
func (r *runner) step(ctx context.Context) time.Duration {
	attempt, cancel, newest := r.link.orders.begin(ctx)
	defer cancel()
	if !newest.equal(r.wanted.want) {
		r.wanted.want = newest
		r.wanted.tries, r.probes.due = attempts{}, time.Time{}
	}
	if r.link.orders.takeProbe() {
		r.wanted.tries.due, r.probes.due = time.Time{}, time.Time{}
	}
	if r.pending() && !time.Now().Before(r.wanted.tries.due) {
		r.tryCandidate(ctx, attempt)
	}
	if attempt.Err() == nil && r.inUse != nil && !time.Now().Before(r.probes.due) {
		r.probeInUse(attempt)
	}
	if attempt.Err() != nil {
		return 0
	}
	r.report()
	r.readFacts(ctx)
	if times := r.link.orders.takeLooks(); times > 0 {
		r.served.soon(times)
	}
	r.readServed(ctx)
	return r.untilDue()
}

// pending reports whether the newest kubeconfig is valid, but the link does not use it yet.
func (r *runner) pending() bool {
	return r.wanted.fault == nil && (r.inUse == nil || r.inUse.to != r.wanted.to)
}

func (r *runner) untilDue() time.Duration {
	next := time.Now().Add(time.Hour) // only another kubeconfig can help
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if r.pending() {
		earlier(r.wanted.tries.due)
	}
	if r.inUse != nil {
		earlier(r.probes.due)
		if r.ready && !r.facts.reading {
			earlier(r.facts.due)
		}
		if at, planned := r.served.next(); r.ready && planned {
			earlier(at)
		}
	}
	return time.Until(next)
}

// tryCandidate opens a session with the newest kubeconfig, and probes the cluster through it. The session in use stays
// open meanwhile.
func (r *runner) tryCandidate(ctx, attempt context.Context) {
	s, err := openSession(r.wanted.to, r.inUse, r.link.options.Proxy)
	if err != nil {
		r.candidateFailed(verdict{reason: hubv1.ReasonKubeconfigInvalid, message: err.Error()})
		return
	}
	l := newLine(s)
	id, err := probe(attempt, l, s.to.Server, r.link.options.ProbeTimeout)
	if attempt.Err() != nil {
		r.discard(s)
		return
	}
	if v, bad := r.verdictOn(id, err, s.to); bad {
		r.discard(s)
		r.candidateFailed(v)
		return
	}
	if err := r.use(ctx, s, l, id); err != nil {
		r.discard(s)
		r.hangUp()
		r.candidateFailed(verdict{reason: hubv1.ReasonConnecting, message: err.Error()})
	}
}

// discard closes the connections of a session, unless the session in use shares them.
func (r *runner) discard(s *session) {
	if r.inUse == nil || r.inUse.pool != s.pool {
		s.pool.close()
	}
}

// verdictOn judges the result of a probe. bad is false if the probe succeeded. verdictOn then sets lastObserved to the
// present time. After a failed probe, it sets lastObserved to the time of the last event of another watch through the
// link, unless the probe found another cluster at the address.
func (r *runner) verdictOn(id string, err error, to member.Connection) (v verdict, bad bool) {
	expected := cmp.Or(r.wanted.expectedID, r.facts.latest.ClusterID)
	switch {
	case err != nil:
		v, bad = judge(err, to, r.link.options.ProbeTimeout), true
	case expected != "" && expected == r.link.options.HubID && id != expected:
		v, bad = notTheHub(to, id), true
	case expected != "" && id != expected:
		v, bad = anotherCluster(to, id, expected), true
	case expected == "" && id == r.link.options.HubID: // an ID is not secret, because each copy contains the hub's ID
		v, bad = claimsToBeTheHub(to), true
	}
	switch {
	case !bad:
		r.lastObserved = time.Now()
	case r.engaged != nil && v.reason != hubv1.ReasonIdentityChanged:
		if at := r.engaged.line.lastDelivered(); at.After(r.lastObserved) {
			r.lastObserved = at
		}
	}
	return v, bad
}

func (r *runner) candidateFailed(v verdict) {
	r.wanted.tries.failed(v)
	r.wanted.creds = judgement{metav1.ConditionUnknown, v.reason, v.message}
	r.wanted.judgeCredentials(v)
	if v.reason == hubv1.ReasonIdentityChanged {
		r.hangUp()
	}
}

// use makes the given session the current one. If the server address is unchanged, existing clients of the cluster use
// the new session. Otherwise use makes a new Cluster. Running requests of the old session may continue until their
// timeout.
func (r *runner) use(ctx context.Context, s *session, l *line, id string) error {
	if r.engaged != nil && r.inUse.to.Server == s.to.Server {
		r.engaged.line.session.Store(s)
	} else if err := r.engage(ctx, s, l, id); err != nil {
		return err
	}
	if before := r.inUse; before != nil && before.pool != s.pool {
		before.pool.drain()
	}
	r.inUse, r.facts.latest.ClusterID = s, id
	r.wanted.tries = attempts{}
	r.succeeded()
	r.facts.due = time.Time{}
	r.served.soon(1)
	return nil
}

func (r *runner) engage(ctx context.Context, s *session, l *line, id string) error {
	c := newCluster(l, s.to.Server, id)
	if r.engaged != nil {
		r.engaged.cancel()
	}
	l.tellOfLarge(func() {
		select {
		case r.larger <- struct{}{}:
		default:
		}
	})
	life, cancel := context.WithCancel(ctx)
	r.engaged = &engagement{cluster: c, line: l, cancel: cancel}
	r.link.setEngaged(r.engaged)
	if err := r.engaging(life, r.link.name, c); err != nil {
		return fmt.Errorf("engaging cluster %q: %w", r.link.name, err)
	}
	return nil
}

// hangUp ends the use of the link: all its connections are closed and its clients fail.
func (r *runner) hangUp() {
	if r.engaged != nil {
		r.engaged.end()
		r.link.setEngaged(nil)
		r.engaged = nil
	}
	if r.inUse != nil {
		r.inUse.pool.close()
		r.inUse = nil
	}
	r.ready = false
}

func (r *runner) probeInUse(attempt context.Context) {
	id, err := probe(attempt, r.engaged.line, r.inUse.to.Server, r.link.options.ProbeTimeout)
	if attempt.Err() != nil {
		return
	}
	v, bad := r.verdictOn(id, err, r.inUse.to)
	if !bad {
		r.succeeded()
		return
	}
	r.probes.failed(v)
	if v.atOnce || r.probes.failures >= 2 {
		r.ready = false
	} else { // the second probe after a failure waits a little
		r.probes.due = time.Now().Add(max(v.retryAfter, min(time.Second, r.link.options.ProbeInterval)))
	}
	if !r.pending() {
		r.wanted.judgeCredentials(v)
	}
	if v.reason == hubv1.ReasonIdentityChanged {
		r.hangUp()
		r.wanted.tries.failed(v)
	}
}

func (r *runner) succeeded() {
	r.ready = true
	r.probes.succeeded(r.link.options.ProbeInterval)
	if !r.pending() {
		r.wanted.creds = credentialsTaken
	}
}

// judgeCredentials sets the judgement on the credentials: accepted or refused. If the cluster has not checked the
// credentials, the last judgement stays.
func (w *wanted) judgeCredentials(v verdict) {
	switch v.credentials {
	case metav1.ConditionTrue:
		w.creds = credentialsTaken
	case metav1.ConditionFalse:
		w.creds = judgement{metav1.ConditionFalse, v.reason, v.message}
	}
}

var credentialsTaken = judgement{metav1.ConditionTrue, hubv1.ReasonCredentialsTaken, "the cluster accepts the credentials of the kubeconfig"}
