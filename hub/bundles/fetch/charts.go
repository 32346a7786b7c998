// Package fetch fetches the archives of Helm charts, and the lists of their versions, from OCI registries and HTTPS
// repositories.
//
//   - A caller of Get never waits for the network. Get returns the archive if it is cached, and otherwise starts a
//     goroutine that fetches it. One attempt takes at most MaxTime. Only one chart or list of versions at a time is
//     fetched from a host, so a slow registry delays no other host.
//   - A chart is fetched once for each owner, and stays in memory until the owner requests another chart. A tag that
//     later names another archive has no effect.
//   - A failed attempt is repeated. The pause doubles after each failure, up to a limit. The error tells since when the
//     attempts fail.
//   - Only the hosts in Repositories are contacted, only with TLS, and the size of their answers is limited.
//   - Credentials are sent only to the host that they are for, and to the token server that this host names.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/hub/pace"
)

// ErrFetching means that the first attempt to fetch a chart is still running.
var ErrFetching = errors.New("the chart is being fetched")

// Chart names one version of a chart.
type Chart struct {
	// URL, Name and Version have the same meanings as in ChartRepository: the URL of the repository, and the name and the
	// version of the chart.
	URL, Name, Version string
	// Digest is the required digest of the archive. Empty means that any digest is accepted.
	Digest string
	// Known is the digest of the archive from an earlier fetch. It is empty if the chart was never fetched.
	Known string
	// CA has the certificates of the trusted CAs in PEM. Empty means the CAs of the system.
	CA string
	// Credentials has the text of a Docker configuration with user and password. It is empty for a public repository.
	Credentials string
}

// String implements fmt.Stringer.
func (c Chart) String() string { return fmt.Sprintf("chart %s %s from %s", c.Name, c.Version, c.URL) }

// archive returns a Chart with only the fields that determine which archive is fetched.
func (c Chart) archive() Chart {
	return Chart{URL: c.URL, Name: c.Name, Version: c.Version, Digest: c.Digest}
}

// try returns a Chart without the field Known. The remaining fields decide whether an attempt to fetch the chart can
// succeed.
func (c Chart) try() Chart {
	c.Known = ""
	return c
}

// TryError is the error of the last attempt to fetch a chart.
type TryError struct {
	Chart Chart
	// Since is the time of the first failure after the last success.
	Since time.Time
	Cause error
}

// Error implements error.
func (f *TryError) Error() string {
	return fmt.Sprintf("fetching %s fails since %s: %v", f.Chart, f.Since.UTC().Format(time.RFC3339), f.Cause)
}

// Unwrap returns the cause of the failed attempt to fetch the chart.
func (f *TryError) Unwrap() error { return f.Cause }

// Options of a Fetcher. Proxy and Clock are optional.
type Options struct {
	// Repositories that the Fetcher may contact.
	Repositories Repositories
	// Proxy returns the proxy for a request. If the field is nil, there is no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// Clock determines when a failed attempt is repeated. Default: the clock of the system.
	Clock clock.PassiveClock
}

// Fetcher fetches charts.
type Fetcher struct {
	Options

	mu    sync.Mutex
	tries map[string]*tried        // tries by the owner of the chart
	hosts map[string]chan struct{} // holds a value while a chart or a list of versions is fetched from the host

	reading sync.Mutex // held while an index is read
}

// tried has the state of the attempts to fetch the chart of one owner, which is a FederatedOperator, and the cached
// archive.
type tried struct {
	chart   Chart
	archive []byte
	// cancel ends the running attempt. It is nil if no attempt runs.
	cancel  context.CancelFunc
	failure *TryError
	pause   time.Duration
	next    time.Time // time of the next try after a failure
}

// New returns a Fetcher.
func New(o Options) *Fetcher {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Fetcher{Options: o, tries: map[string]*tried{}, hosts: map[string]chan struct{}{}}
}

// Kept returns the cached archive of an owner's chart. It returns false if the archive was not fetched, or if the owner
// has requested another chart since.
func (f *Fetcher) Kept(owner string, ch Chart) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tries[owner]
	if t == nil || t.archive == nil || t.chart.archive() != ch.archive() {
		return nil, false
	}
	return t.archive, true
}

// Get returns the archive of an owner's chart. If it is not cached, Get returns ErrFetching or the TryError of the last
// attempt. It also starts an attempt, unless one is running or the last one was too recent. When the attempt ends, done
// is called. The end of ctx ends the attempt.
func (f *Fetcher) Get(ctx context.Context, owner string, ch Chart, done func()) ([]byte, error) {
	if archive, ok := f.Kept(owner, ch); ok {
		return archive, nil
	}
	u, err := f.allowed(ch)
	if err != nil {
		f.Forget(owner)
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tries[owner]
	if t == nil || t.chart.try() != ch.try() {
		t.stop()
		t = &tried{chart: ch, pause: pace.FirstSlowRetry}
		f.tries[owner] = t
	}
	if t.cancel == nil && !f.Clock.Now().Before(t.next) {
		var trying context.Context
		trying, t.cancel = context.WithTimeoutCause(ctx, MaxTime, errTime)
		t.chart.Known = ch.Known
		go f.run(trying, t, u, done)
	}
	if t.failure == nil {
		return nil, ErrFetching
	}
	return nil, t.failure
}

// allowed returns the URL of a chart's repository. The error is ErrNotAllowed if the Fetcher may not contact it.
func (f *Fetcher) allowed(ch Chart) (*url.URL, error) {
	u, err := parse(ch.URL)
	if err != nil {
		return nil, fmt.Errorf("reading chart.repository.url %q: %w", ch.URL, err)
	}
	if !f.Repositories.allow(u, ch.Name) {
		return nil, fmt.Errorf("fetching %s: %w", ch, ErrNotAllowed)
	}
	return u, nil
}

// Forget drops the cached archive of an owner, and cancels its attempt.
func (f *Fetcher) Forget(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[owner].stop()
	delete(f.tries, owner)
}

func (t *tried) stop() {
	if t != nil && t.cancel != nil {
		t.cancel()
	}
}

// run makes one attempt to fetch a chart.
func (f *Fetcher) run(ctx context.Context, t *tried, u *url.URL, done func()) {
	archive, err := f.inTurn(ctx, t.chart, u)
	f.mu.Lock()
	t.cancel()
	t.cancel = nil
	if err == nil {
		t.archive, t.failure = archive, nil
		t.chart.Credentials = ""
	} else {
		now := f.Clock.Now()
		since := now
		if t.failure != nil {
			since = t.failure.Since
		}
		t.failure = &TryError{Chart: t.chart.archive(), Since: since, Cause: err}
		t.next, t.pause = now.Add(t.pause), min(2*t.pause, pace.MaxSlowRetry)
	}
	f.mu.Unlock()
	done()
}

// inTurn fetches a chart. It waits until other fetches from the same host have ended.
func (f *Fetcher) inTurn(ctx context.Context, ch Chart, u *url.URL) ([]byte, error) {
	end, err := f.turn(ctx, u)
	if err != nil {
		return nil, errBusy
	}
	defer end()
	var archive []byte
	err = f.with(ctx, ch, u, func(t *fetching) (err error) {
		archive, err = t.archive(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return archive, nil
}

// turn waits until nothing is fetched from the host of u. The caller must call end after its own fetch. The error is
// that of ctx.
func (f *Fetcher) turn(ctx context.Context, u *url.URL) (end func(), err error) {
	f.mu.Lock()
	turn := f.hosts[u.Host]
	if turn == nil {
		turn = make(chan struct{}, 1)
		f.hosts[u.Host] = turn
	}
	f.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
