package connect

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

const (
	delivers      = "watches deliver"
	keysTaken     = "the agent of the cluster has a key of spec.connection.tunnel.keys, and the cluster accepts the agent's credentials"
	underWay      = "the first connection is under way"
	beforeIsInUse = "; until then the previous kubeconfig stays in use"
)

// report sets the state of the link, which controllers read. The state follows from the results of the attempts to
// connect to the cluster and to probe it.
func (r *runner) report() {
	ready, creds := r.readiness(), r.credentials()
	tooLarge, inUse := "", credential.Credential{}
	if r.engaged != nil {
		tooLarge = r.engaged.line.lastTooLarge()
	}
	if r.inUse != nil {
		inUse = r.inUse.credential
	}
	r.link.setState(member.LinkState{
		TooLarge: tooLarge, InUse: inUse,
		Ready: ready.status, Reason: ready.reason, Message: ready.message,
		Credentials: creds.status, CredentialsReason: creds.reason, CredentialsMessage: creds.message,
		LastObserved: r.lastObserved,
		Facts:        r.facts.latest,
	})
}

func (r *runner) readiness() judgement {
	switch {
	case r.ready:
		return judgement{metav1.ConditionTrue, hubv1.ReasonConnected, delivers}
	case r.inUse == nil && r.wanted.fault != nil:
		return judgement{metav1.ConditionFalse, r.wanted.fault.reason, r.wanted.fault.message}
	case r.pending() && r.wanted.tries.failures > 0: // the user can correct the new kubeconfig, so its fault is reported first
		return r.away(r.wanted.tries.last)
	case r.probes.failures > 0:
		return r.away(r.probes.last)
	}
	return judgement{metav1.ConditionUnknown, hubv1.ReasonConnecting, underWay}
}

// away returns the condition for a probe or connection attempt that failed. If the cluster did not answer, the message
// has the last time at which the hub heard from it. If the cluster answered, the message has no time, because the time
// would change with every probe.
func (r *runner) away(v verdict) judgement {
	message := v.message
	if !v.answered && !r.lastObserved.IsZero() {
		message += "; last heard " + r.lastObserved.UTC().Format(time.RFC3339)
	}
	return judgement{metav1.ConditionFalse, v.reason, message}
}

func (r *runner) credentials() judgement {
	j := r.wanted.creds
	if r.wanted.fault != nil {
		j = judgement{metav1.ConditionFalse, r.wanted.fault.reason, r.wanted.fault.message}
	}
	switch {
	case j == judgement{}:
		return judgement{metav1.ConditionUnknown, hubv1.ReasonConnecting, underWay}
	case j.status == metav1.ConditionTrue && r.wanted.to.Lanes != nil:
		j.message = keysTaken
	case j.status != metav1.ConditionTrue && r.inUse != nil && (r.pending() || r.wanted.fault != nil):
		j.message += beforeIsInUse
	}
	return j
}
