package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A cluster is asked which kinds it serves when its link comes up and when somebody says Look or LookAgain. Beside that it is asked
// seldom. Discovery follows a definition late, so that a change of one is looked at again.
var looksAgain = []time.Duration{0, time.Second, 3 * time.Second}

const (
	looksSeldom       = 10 * time.Minute
	versionsPerGroup  = 16
	longestOfOneGroup = 4 << 20
)

// Look asks every cluster soon which kinds it serves, since others are wanted.
func (p *Provider) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.askToLook(1)
	}
}

// LookAgain asks a cluster soon which kinds it serves, and a little later again, since one of its definitions has changed.
func (p *Provider) LookAgain(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[cluster]; l != nil {
		l.askToLook(len(looksAgain))
	}
}

func (l *link) askToLook(times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks = max(l.looks, times)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) takeLooks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.looks
	l.looks = 0
	return asked
}

type servedRead struct {
	served map[schema.GroupKind][]string
	err    error
}

// lookSoon plans when to ask, beside what is planned for the next seconds.
func (r *runner) lookSoon(times int) {
	now := time.Now()
	last := now.Add(looksAgain[len(looksAgain)-1])
	r.looks = slices.DeleteFunc(r.looks, func(t time.Time) bool { return t.After(last) })
	for _, after := range looksAgain[:times] {
		r.looks = append(r.looks, now.Add(after))
	}
	slices.SortFunc(r.looks, time.Time.Compare)
}

// readServed starts to ask if that is due. A cluster that does not say stays ready.
func (r *runner) readServed(ctx context.Context) {
	if !r.ready || r.looking || r.link.options.Kinds == nil || len(r.looks) == 0 || time.Now().Before(r.looks[0]) {
		return
	}
	now, kinds := time.Now(), r.link.options.Kinds()
	r.looks = slices.DeleteFunc(r.looks, func(t time.Time) bool { return !t.After(now) })
	if kinds == nil {
		return
	}
	r.looking = true
	l, server, known := r.engaged.line, r.inUse.target.server, r.latest.Served
	r.readers.Go(func() {
		served, err := readServed(ctx, l, server, kinds, known)
		r.served <- servedRead{served, err}
	})
}

func (r *runner) takeServed(read servedRead) {
	r.looking = false
	pause := looksSeldom
	if read.err != nil {
		pause = retryFacts
		r.link.options.Logger.V(1).Info("Which kinds a member cluster serves could not be read", "cluster", r.link.name, "reason", read.err.Error())
	}
	if len(r.looks) == 0 {
		r.looks = append(r.looks, time.Now().Add(jittered(pause)))
	}
	if r.inUse == nil { // it turned out to be another cluster meanwhile
		return
	}
	r.latest.Served = read.served
	r.report()
}

// readServed returns the versions of the kinds at which the cluster serves them, the one it prefers first; none for a kind that it
// does not serve. Of a group that cannot be read it returns what was known before.
func readServed(ctx context.Context, l *line, server string, kinds []schema.GroupKind, known map[schema.GroupKind][]string) (map[schema.GroupKind][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	byGroup := map[string][]schema.GroupKind{}
	for _, gk := range kinds {
		byGroup[gk.Group] = append(byGroup[gk.Group], gk)
	}
	out := map[schema.GroupKind][]string{}
	var failed []error
	for _, group := range slices.SortedFunc(maps.Keys(byGroup), cmp.Compare) {
		versions, err := readGroup(ctx, l, server, group)
		if err != nil {
			failed = append(failed, fmt.Errorf("reading what is served of group %q: %w", group, err))
		}
		for _, gk := range byGroup[group] {
			before, wasKnown := known[gk]
			switch {
			case err == nil:
				out[gk] = versions[gk.Kind]
			case wasKnown:
				out[gk] = before
			}
		}
	}
	return out, errors.Join(failed...)
}

// readGroup returns the versions of a group's kinds.
func readGroup(ctx context.Context, l *line, server, group string) (map[string][]string, error) {
	if group == "" {
		kinds, err := readVersionOf(ctx, l, server+"/api/v1")
		return versionsOf(kinds, "v1", nil), err
	}
	var g metav1.APIGroup
	if err := readJSON(ctx, l, server+"/apis/"+group, &g); isNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var out map[string][]string
	for _, v := range g.Versions[:min(len(g.Versions), versionsPerGroup)] {
		kinds, err := readVersionOf(ctx, l, server+"/apis/"+group+"/"+v.Version)
		if err != nil {
			return nil, err
		}
		out = versionsOf(kinds, v.Version, out)
	}
	return out, nil
}

func versionsOf(kinds []string, version string, out map[string][]string) map[string][]string {
	if out == nil {
		out = map[string][]string{}
	}
	for _, kind := range kinds {
		if !slices.Contains(out[kind], version) {
			out[kind] = append(out[kind], version)
		}
	}
	return out
}

// readVersionOf returns the kinds of one group and version; none if it went since the group was read.
func readVersionOf(ctx context.Context, l *line, url string) ([]string, error) {
	var list metav1.APIResourceList
	if err := readJSON(ctx, l, url, &list); err != nil && !isNotFound(err) {
		return nil, err
	}
	var kinds []string
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // a subresource may have the kind of another group
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds, nil
}

func readJSON(ctx context.Context, l *line, url string, into any) error {
	body, err := ask(ctx, requestClient(l), url, asJSON)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(io.LimitReader(body, longestOfOneGroup)).Decode(into); err != nil {
		return fmt.Errorf("%w: %s", errStrange, bounded(err.Error()))
	}
	return nil
}

func isNotFound(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusNotFound
}
