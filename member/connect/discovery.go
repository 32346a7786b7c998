package connect

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// looksAgain are the delays after which the hub reads the served kinds of a cluster again when a
// CustomResourceDefinition has changed. Several reads are necessary because discovery shows the change late. Without a
// change, the hub reads the served kinds when the link becomes ready, after Look, and every 10 minutes.
var looksAgain = []time.Duration{0, time.Second, 3 * time.Second}

const looksSeldom = 10 * time.Minute

// Look makes the hub read the served kinds of every cluster again, because the kinds that the hub looks for have
// changed.
func (p *Provider) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.orders.askToLook(1)
	}
}

// LookAgain makes the hub read the served kinds of a cluster at once and again within seconds, because one of the
// cluster's CustomResourceDefinitions has changed.
func (p *Provider) LookAgain(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[cluster]; l != nil {
		l.orders.askToLook(len(looksAgain))
	}
}

// discovery has the times of the next reads of the kinds that a cluster serves.
type discovery struct {
	looks   []time.Time // times of the next reads, in order
	looking bool
	reads   chan servedRead
}

type servedRead struct {
	served map[schema.GroupKind][]string
	err    error
}

// soon schedules reads within the next seconds, at the first delays in looksAgain. times is the number of these reads.
// Reads that were scheduled for a later time are dropped.
func (d *discovery) soon(times int) {
	now := time.Now()
	last := now.Add(looksAgain[len(looksAgain)-1])
	d.looks = slices.DeleteFunc(d.looks, func(t time.Time) bool { return t.After(last) })
	for _, after := range looksAgain[:times] {
		d.looks = append(d.looks, now.Add(after))
	}
	slices.SortFunc(d.looks, time.Time.Compare)
}

// next returns the time of the next read of the served kinds. planned is false if no read is scheduled, or while a read
// is running.
func (d *discovery) next() (at time.Time, planned bool) {
	if d.looking || len(d.looks) == 0 {
		return time.Time{}, false
	}
	return d.looks[0], true
}

// begin removes all scheduled reads of the served kinds that are due, because the read that begins now replaces them.
func (d *discovery) begin() {
	now := time.Now()
	d.looks = slices.DeleteFunc(d.looks, func(t time.Time) bool { return !t.After(now) })
}

// end schedules the next read of the served kinds after the pause, unless a read is already scheduled.
func (d *discovery) end(pause time.Duration) {
	d.looking = false
	if len(d.looks) == 0 {
		d.looks = append(d.looks, time.Now().Add(jittered(pause)))
	}
}

// readServed starts a read of the kinds that the cluster serves, if the read is due. A cluster whose discovery fails
// stays ready.
func (r *runner) readServed(ctx context.Context) {
	at, planned := r.served.next()
	if !r.ready || !planned || r.link.options.kinds == nil || time.Now().Before(at) {
		return
	}
	r.served.begin()
	kinds := r.link.options.kinds()
	if kinds == nil {
		return
	}
	r.served.looking = true
	l, server, known := r.engaged.line, r.inUse.to.Server, r.facts.latest.Served
	r.readers.Go(func() {
		served, err := readServed(ctx, l, server, kinds, known)
		r.served.reads <- servedRead{served, err}
	})
}

func (r *runner) takeServed(read servedRead) {
	pause := looksSeldom
	if read.err != nil {
		pause = r.link.options.ProbeInterval
		r.link.options.Logger.V(1).Info("The kinds that a member cluster serves could not be read", "cluster", r.link.name, "reason", read.err.Error())
	}
	r.served.end(pause)
	if r.inUse == nil { // the link found another cluster meanwhile and ended
		return
	}
	r.facts.latest.Served = read.served
	r.report()
}
