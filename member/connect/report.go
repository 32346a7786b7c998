package connect

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/credential"
	"github.com/hanse-dev/hanse/member"
)

const (
	delivers      = "watches deliver"
	underWay      = "the first connection is under way"
	beforeIsInUse = "; until then the kubeconfig before it stays in use"
	retryFacts    = 10 * time.Second
)

// report publishes the runner's state as the link's state.
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
		LastHeard: r.lastHeard,
		Facts:     r.latest,
	})
}

func (r *runner) readiness() judgement {
	switch {
	case r.ready:
		return judgement{metav1.ConditionTrue, hubv1.ReasonConnected, delivers}
	case r.inUse == nil && r.want.fault != nil:
		return judgement{metav1.ConditionFalse, r.want.fault.reason, r.want.fault.message}
	case r.pending() && r.candidate.failures > 0: // the user can only correct the newest kubeconfig
		return r.away(r.candidate.last)
	case r.probes.failures > 0:
		return r.away(r.probes.last)
	}
	return judgement{metav1.ConditionUnknown, hubv1.ReasonConnecting, underWay}
}

// away adds the last time at which an unreachable cluster answered. While a cluster answers, the time would change with
// every probe.
func (r *runner) away(v verdict) judgement {
	message := v.message
	if !v.answered && !r.lastHeard.IsZero() {
		message += "; last heard " + r.lastHeard.UTC().Format(time.RFC3339)
	}
	return judgement{metav1.ConditionFalse, v.reason, message}
}

func (r *runner) credentials() judgement {
	j := r.creds
	if r.want.fault != nil {
		j = judgement{metav1.ConditionFalse, r.want.fault.reason, r.want.fault.message}
	}
	switch {
	case j == judgement{}:
		return judgement{metav1.ConditionUnknown, hubv1.ReasonConnecting, underWay}
	case j.status != metav1.ConditionTrue && r.inUse != nil && (r.pending() || r.want.fault != nil):
		j.message += beforeIsInUse
	}
	return j
}

// readFacts starts to read facts if they are due. A cluster whose facts cannot be read stays ready.
func (r *runner) readFacts(ctx context.Context) {
	if !r.ready || r.reading || time.Now().Before(r.factsDue) {
		return
	}
	r.reading = true
	l, server, known := r.engaged.line, r.inUse.to.Server, r.latest
	r.readers.Go(func() {
		facts, err := readFacts(ctx, l, server, known)
		r.facts <- factsRead{facts, err}
	})
}

func (r *runner) takeFacts(read factsRead) {
	r.reading = false
	interval := r.link.options.FactsInterval
	if read.err != nil {
		interval = min(interval, retryFacts)
		r.link.options.Logger.V(1).Info("Facts of a member cluster could not be read", "cluster", r.link.name, "reason", read.err.Error())
	}
	r.factsDue = time.Now().Add(jittered(interval))
	if r.inUse == nil { // it turned out to be another cluster
		return
	}
	read.facts.Served = r.latest.Served
	r.latest = read.facts
	r.report()
}
