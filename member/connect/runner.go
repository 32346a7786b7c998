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

// judgement is the value of one condition.
type judgement struct {
	status          metav1.ConditionStatus
	reason, message string
}

// attempts counts failed attempts.
type attempts struct {
	failures int
	last     verdict // of the last failure
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

// runner is the state machine of one link. Its fields belong to the link's goroutine.
//
//	nothing in use -- candidate delivers --> in use -- another kubeconfig --> in use, candidate beside it
//	      ^                                    |
//	      +------------ another cluster -------+
type runner struct {
	link     *link
	engaging Engage

	wanted    wanted
	inUse     *session    // nil until a candidate has delivered
	engaged   *engagement // nil if and only if inUse is
	probes    attempts    // of the session in use
	ready     bool
	lastHeard time.Time // when a watch of the cluster last delivered

	facts   factsReader // latest.ClusterID is that of the last cluster that delivered
	served  discovery
	readers sync.WaitGroup
	larger  chan struct{} // gets a value when an answer exceeded its size limit
}

// wanted is the newest requested connection, with the results of its attempts.
type wanted struct {
	want
	tries attempts  // to connect, while the connection is not in use
	creds judgement // the last judgement on the credentials; zero if there is none
}

func newRunner(l *link, engage Engage) *runner {
	return &runner{
		link: l, engaging: engage, facts: factsReader{reads: make(chan factsRead, 1)},
		served: discovery{reads: make(chan servedRead, 1)}, larger: make(chan struct{}, 1),
	}
}

// end closes all connections and ends all goroutines.
func (r *runner) end() {
	r.hangUp()
	r.readers.Wait()
}

// step does the due work and returns the time until the next work.
func (r *runner) step(ctx context.Context) time.Duration {
	attempt, cancel, newest := r.link.begin(ctx)
	defer cancel()
	if !newest.equal(r.wanted.want) {
		r.wanted.want = newest
		r.wanted.tries, r.probes.due = attempts{}, time.Time{}
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
	if times := r.link.takeLooks(); times > 0 {
		r.served.soon(times)
	}
	r.readServed(ctx)
	return r.untilDue()
}

// pending is true while the newest kubeconfig is not in use.
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

// tryCandidate opens a connection with the newest kubeconfig, beside the current one.
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

// discard closes the connections of a session, unless the session in use has the same connections.
func (r *runner) discard(s *session) {
	if r.inUse == nil || r.inUse.pool != s.pool {
		s.pool.close()
	}
}

// verdictOn judges a probe. Events of other watches since the last probe count as a delivery, unless another cluster
// may have sent them.
func (r *runner) verdictOn(id string, err error, to member.Connection) (v verdict, bad bool) {
	expected := cmp.Or(r.wanted.expectedID, r.facts.latest.ClusterID)
	switch {
	case err != nil:
		v, bad = judge(err, to, r.link.options.ProbeTimeout), true
	case expected != "" && expected == r.link.options.HubID && id != expected:
		v, bad = notTheHub(to, id), true
	case expected != "" && id != expected:
		v, bad = anotherCluster(to, id, expected), true
	case expected == "" && id == r.link.options.HubID: // IDs are not secret: each copy contains the hub's
		v, bad = claimsToBeTheHub(to), true
	}
	switch {
	case !bad:
		r.lastHeard = time.Now()
	case r.engaged != nil && v.reason != hubv1.ReasonIdentityChanged:
		if at := r.engaged.line.lastDelivered(); at.After(r.lastHeard) {
			r.lastHeard = at
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

// use makes the session the current one. If the address is the same, existing clients of the cluster use the session.
// For another address, use makes a new Cluster; requests on the old Cluster may run until their timeout.
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

// hangUp ends the link and the clients that use it.
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
	} else { // the second probe is not sent at once
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

// judgeCredentials keeps the last judgement if the cluster did not check the credentials.
func (w *wanted) judgeCredentials(v verdict) {
	switch v.credentials {
	case metav1.ConditionTrue:
		w.creds = credentialsTaken
	case metav1.ConditionFalse:
		w.creds = judgement{metav1.ConditionFalse, v.reason, v.message}
	}
}

var credentialsTaken = judgement{metav1.ConditionTrue, hubv1.ReasonCredentialsTaken, "the cluster takes the credentials of the kubeconfig"}
