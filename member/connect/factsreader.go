package connect

import (
	"context"
	"time"

	"github.com/hanse-dev/hanse/member"
)

// factsReader has the time of the next read of a cluster's facts.
type factsReader struct {
	latest  member.Facts
	due     time.Time
	reading bool
	reads   chan factsRead
}

type factsRead struct {
	facts member.Facts
	err   error
}

// readFacts starts a read of the cluster's facts if it is due. A cluster whose facts cannot be read stays ready.
func (r *runner) readFacts(ctx context.Context) {
	if !r.ready || r.facts.reading || time.Now().Before(r.facts.due) {
		return
	}
	r.facts.reading = true
	l, server, known := r.engaged.line, r.inUse.to.Server, r.facts.latest
	r.readers.Go(func() {
		facts, err := readFacts(ctx, l, server, known)
		r.facts.reads <- factsRead{facts, err}
	})
}

func (r *runner) takeFacts(read factsRead) {
	r.facts.reading = false
	interval := r.link.options.FactsInterval
	if read.err != nil {
		interval = min(interval, r.link.options.ProbeInterval)
		r.link.options.Logger.V(1).Info("Facts of a member cluster could not be read", "cluster", r.link.name, "reason", read.err.Error())
	}
	r.facts.due = time.Now().Add(jittered(interval))
	if r.inUse == nil { // the link found another cluster meanwhile and ended
		return
	}
	read.facts.ClusterID, read.facts.Served = r.facts.latest.ClusterID, r.facts.latest.Served
	r.facts.latest = read.facts
	r.report()
}
