package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanse-dev/hanse/answer"
)

// The link asks a cluster for its served kinds when it comes up, after Look and LookAgain, and otherwise every 10
// minutes. Discovery shows a changed definition late, so LookAgain asks several times.
var looksAgain = []time.Duration{0, time.Second, 3 * time.Second}

const (
	looksSeldom      = 10 * time.Minute
	versionsPerGroup = 16
	maxVersions      = 1000      // of a group; the first are kept
	maxGroup         = 256 << 10 // bytes
	maxResourcesOf   = 10_000    // of a group and version
	maxResource      = 64 << 10  // bytes
	maxVersionBytes  = 16 << 20  // of the resources of a group and version
)

// Look makes every link ask its cluster soon for the served kinds, because the wanted kinds changed.
func (p *Provider) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.askToLook(1)
	}
}

// LookAgain makes a link ask its cluster soon for the served kinds, and again a little later, because a definition on
// it changed.
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

// lookSoon schedules further requests, in addition to those already scheduled.
func (r *runner) lookSoon(times int) {
	now := time.Now()
	last := now.Add(looksAgain[len(looksAgain)-1])
	r.looks = slices.DeleteFunc(r.looks, func(t time.Time) bool { return t.After(last) })
	for _, after := range looksAgain[:times] {
		r.looks = append(r.looks, now.Add(after))
	}
	slices.SortFunc(r.looks, time.Time.Compare)
}

// readServed starts discovery if it is due. A cluster whose discovery fails stays ready.
func (r *runner) readServed(ctx context.Context) {
	if !r.ready || r.looking || r.link.options.kinds == nil || len(r.looks) == 0 || time.Now().Before(r.looks[0]) {
		return
	}
	now, kinds := time.Now(), r.link.options.kinds()
	r.looks = slices.DeleteFunc(r.looks, func(t time.Time) bool { return !t.After(now) })
	if kinds == nil {
		return
	}
	r.looking = true
	l, server, known := r.engaged.line, r.inUse.to.Server, r.latest.Served
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
	if r.inUse == nil { // it turned out to be another cluster
		return
	}
	r.latest.Served = read.served
	r.report()
}

// readServed returns the versions at which the cluster serves the kinds, the preferred one first, and none for a kind
// that it does not serve. For a group that cannot be read, it returns the earlier versions.
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
		versions, err := readGroup(ctx, l, server, group, byGroup[group])
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

// readGroup returns the versions of the requested kinds of a group.
func readGroup(ctx context.Context, l *line, server, group string, wanted []schema.GroupKind) (map[string][]string, error) {
	out := map[string][]string{}
	if group == "" {
		return out, readVersionOf(ctx, l, server+"/api/v1", "v1", wanted, out)
	}
	at := server + "/apis/" + group
	body, err := ask(answer.Streamed(ctx, maxGroup), requestClient(l), at)
	if isNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var versions []string
	_, err = answer.List(body, "versions", answer.ListBounds{Items: maxVersions, ItemBytes: maxGroup}, func(item []byte) error {
		var v struct {
			Version string `json:"version"`
		}
		if err := utiljson.Unmarshal(item, &v); err != nil {
			return err
		}
		if len(versions) < versionsPerGroup && len(validation.IsDNS1035Label(v.Version)) == 0 {
			versions = append(versions, v.Version)
		}
		return nil
	})
	if err != nil {
		return nil, listError(l, "GET /apis/"+group, err)
	}
	for _, v := range versions {
		if err := readVersionOf(ctx, l, at+"/"+v, v, wanted, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readVersionOf adds a version to the requested kinds that it contains. It adds none if the version has disappeared
// since the group was read.
func readVersionOf(ctx context.Context, l *line, at, version string, wanted []schema.GroupKind, out map[string][]string) error {
	body, err := ask(answer.Streamed(ctx, maxVersionBytes), requestClient(l), at)
	if isNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	_, err = answer.List(body, "resources", answer.ListBounds{Items: maxResourcesOf, ItemBytes: maxResource}, func(item []byte) error {
		var r struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		}
		if err := utiljson.Unmarshal(item, &r); err != nil {
			return err
		}
		if strings.Contains(r.Name, "/") { // a subresource may have the kind of another group
			return nil
		}
		asked := slices.ContainsFunc(wanted, func(gk schema.GroupKind) bool { return gk.Kind == r.Kind })
		if asked && !slices.Contains(out[r.Kind], version) {
			out[r.Kind] = append(out[r.Kind], version)
		}
		return nil
	})
	path := at
	if u, failed := url.Parse(at); failed == nil {
		path = u.Path
	}
	return listError(l, "GET "+path, err)
}

func isNotFound(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusNotFound
}
