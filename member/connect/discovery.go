package connect

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A cluster is asked which kinds it serves when its link comes up, by Look and by LookAgain, and else every 10 minutes.
// Discovery shows a changed definition late, so LookAgain asks several times.
var looksAgain = []time.Duration{0, time.Second, 3 * time.Second}

const looksSeldom = 10 * time.Minute

// Look asks every cluster soon which kinds it serves, because the wanted kinds changed.
func (p *Provider) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.askToLook(1)
	}
}

// LookAgain asks a cluster soon which kinds it serves, and again a little later, because one of its definitions
// changed.
func (p *Provider) LookAgain(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[cluster]; l != nil {
		l.askToLook(len(looksAgain))
	}
}

// discovery plans when to ask a cluster which kinds it serves.
type discovery struct {
	looks   []time.Time // when to ask, in order
	looking bool
	reads   chan servedRead
}

type servedRead struct {
	served map[schema.GroupKind][]string
	err    error
}

// soon plans when to ask, in addition to the plans for the next seconds.
func (d *discovery) soon(times int) {
	now := time.Now()
	last := now.Add(looksAgain[len(looksAgain)-1])
	d.looks = slices.DeleteFunc(d.looks, func(t time.Time) bool { return t.After(last) })
	for _, after := range looksAgain[:times] {
		d.looks = append(d.looks, now.Add(after))
	}
	slices.SortFunc(d.looks, time.Time.Compare)
}

// next is when to ask next; false if that is not planned, or if an answer is awaited.
func (d *discovery) next() (at time.Time, planned bool) {
	if d.looking || len(d.looks) == 0 {
		return time.Time{}, false
	}
	return d.looks[0], true
}

// begin marks the plans that are due as done.
func (d *discovery) begin() {
	now := time.Now()
	d.looks = slices.DeleteFunc(d.looks, func(t time.Time) bool { return !t.After(now) })
}

// end plans the next question, unless there is a plan.
func (d *discovery) end(pause time.Duration) {
	d.looking = false
	if len(d.looks) == 0 {
		d.looks = append(d.looks, time.Now().Add(jittered(pause)))
	}
}

// readServed starts discovery if it is due. A cluster whose discovery fails stays ready.
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
		r.link.options.Logger.V(1).Info("Which kinds a member cluster serves could not be read", "cluster", r.link.name, "reason", read.err.Error())
	}
	r.served.end(pause)
	if r.inUse == nil { // it turned out to be another cluster meanwhile
		return
	}
	r.facts.latest.Served = read.served
	r.report()
}
