package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/browser"
)

const (
	// openPages is the number of pages that are open at the same time. pagesPerUser is the number of pages that one
	// user has open.
	openPages    = 500
	pagesPerUser = 50
	// visits is the number of visits of each page, to measure its first paint.
	visits = 10
	// creates is the number of single creates that are measured without open pages, and again with open pages.
	creates = 40
)

// consolePages are the pages that the benchmark visits and keeps open: the page of the fleet, of all objects, and of
// one object.
var consolePages = []string{"/", "/objects", "/object?group=" + widgets.Group + "&kind=" + widgetKind.Kind + "&namespace=" + inPlaceNamespace + "&name=" + widgetName(0)}

// connections is an HTTP transport that reuses its connections to the console, as a browser does.
var connections = &http.Transport{MaxIdleConnsPerHost: openPages}

// Pages is the result of the profile pages: how fast the console shows pages, and the cost of open pages.
type Pages struct {
	// FirstPaints has, for each path of a page, the time until a browser paints the page. The hub is idle meanwhile.
	FirstPaints map[string]Latency `json:"firstPaints"`
	// Closed has the latencies of single creates without an open page of the console, and Open has those with OpenPages
	// open pages.
	Closed    Beside `json:"closed"`
	Open      Beside `json:"open"`
	OpenPages int    `json:"openPages"`
	// ReadsPerSecond is the number of pages that browsers read again per second while objects were created.
	ReadsPerSecond float64 `json:"readsPerSecond"`
	// MiB is the peak of the hub's resident memory with open pages, minus the peak without open pages.
	MiB float64 `json:"mib"`
	// P50Ratio is the median of Create divided by the median of Raw with open pages, divided by the same quotient
	// without open pages.
	P50Ratio float64 `json:"p50Ratio"`
}

// Beside has the latencies of single creates and the memory of the hub meanwhile.
type Beside struct {
	// Create is the latency from the user's write to the last copy. Raw is the latency of the same writes without
	// Hanse, which alternate with the creates.
	Create Latency `json:"create"`
	Raw    Latency `json:"raw"`
	// PeakMiB is the largest resident memory of the hub.
	PeakMiB float64 `json:"peakMiB"`
}

// pages measures the first paint of the console's pages, and single creates without and with open pages. All are
// measured with many objects in place.
func (r *run) pages(ctx context.Context) error {
	return r.onLab(ctx, r.members, []string{warmNamespace, inPlaceNamespace, besideNamespace}, func(ctx context.Context, s *setting) error {
		w, err := s.running(ctx, false)
		if err != nil {
			return err
		}
		if err := s.putInPlace(ctx, w, s.objects); err != nil {
			return err
		}
		if _, err := s.meter.settle(ctx); err != nil {
			return err
		}
		out := &Pages{FirstPaints: map[string]Latency{}}
		if err := s.firstPaints(ctx, out); err != nil {
			return err
		}
		if out.Closed, err = s.besidePages(ctx, w, warm); err != nil {
			return err
		}
		return s.opened(ctx, w, out)
	})
}

func (s *setting) firstPaints(ctx context.Context, out *Pages) error {
	running, err := browser.Start(ctx)
	if err != nil {
		return fmt.Errorf("starting the browser, which make browser installs: %w", err)
	}
	defer func() { _ = running.Stop() }()
	token, err := s.viewer(ctx, "viewer")
	if err != nil {
		return err
	}
	all, err := running.FirstPaints(ctx, s.process.Console, token, consolePages, visits)
	if err != nil {
		return err
	}
	for _, path := range consolePages {
		out.FirstPaints[path] = latency(all[path])
		s.say("first paint of %s: %s", path, quantiles(out.FirstPaints[path]))
	}
	return nil
}

// viewer creates a user who may read everything of Hanse, and returns a token of the user.
func (s *setting) viewer(ctx context.Context, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}}
	if err := s.Hub.Create(ctx, account); err != nil {
		return "", err
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}
	for _, role := range []string{"hanse-view", "hanse-fleet-view"} {
		err := s.Hub.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
		if err != nil {
			return "", err
		}
	}
	return s.Hub.Token(ctx, name)
}

// besidePages measures single creates. from is the index of the first object.
func (s *setting) besidePages(ctx context.Context, w *watcher, from int) (Beside, error) {
	if err := resetPeak(s.process.PID); err != nil {
		return Beside{}, err
	}
	all, raw, err := s.createInTurn(ctx, w, from, creates)
	if err != nil {
		return Beside{}, err
	}
	peak, _, err := memory(s.process.PID)
	return Beside{Create: latency(all), Raw: latency(raw), PeakMiB: peak}, err
}

// opened measures single creates while pages are open.
func (s *setting) opened(ctx context.Context, w *watcher, out *Pages) error {
	out.OpenPages = openPages
	s.say("without open pages: create %s, raw %s; opening %d pages", quantiles(out.Closed.Create), quantiles(out.Closed.Raw), openPages)
	pages, closePages := context.WithCancel(ctx)
	defer closePages()
	group, pages := errgroup.WithContext(pages)
	var reads atomic.Int64
	if err := each(ctx, openPages/pagesPerUser, openPages, func(_ context.Context, u int) error {
		return s.openPages(pages, group, u, &reads)
	}); err != nil {
		return err
	}
	begin, before := time.Now(), reads.Load()
	var err error
	if out.Open, err = s.besidePages(ctx, w, warm+creates); err != nil {
		return err
	}
	out.ReadsPerSecond = round(float64(reads.Load()-before) / time.Since(begin).Seconds())
	out.MiB = round(out.Open.PeakMiB - out.Closed.PeakMiB)
	out.P50Ratio = round(out.Open.Create.P50 / out.Open.Raw.P50 / (out.Closed.Create.P50 / out.Closed.Raw.P50))
	s.result.Pages = out
	s.say("with %d open pages: create %s, raw %s; %.1f pages a second read again, %.0f MiB", openPages, quantiles(out.Open.Create), quantiles(out.Open.Raw), out.ReadsPerSecond, out.MiB)
	closePages()
	return group.Wait()
}

// openPages opens the pages of one user, one after the other. They stay open until ctx ends.
func (s *setting) openPages(ctx context.Context, group *errgroup.Group, user int, reads *atomic.Int64) error {
	token, err := s.viewer(ctx, fmt.Sprintf("viewer-%d", user))
	if err != nil {
		return err
	}
	session, err := signIn(ctx, s.process.Console, token)
	if err != nil {
		return err
	}
	for i := range pagesPerUser {
		p := &openPage{origin: s.process.Console, path: consolePages[i%len(consolePages)], session: session, reads: reads}
		if _, err := p.read(ctx); err != nil {
			return err
		}
		stream, err := p.get(ctx, "/live?scope="+url.QueryEscape(p.scope()))
		if err != nil {
			return err
		}
		group.Go(func() error { return p.follow(ctx, stream.Body) })
	}
	return nil
}

// signIn returns the cookies of a new session of a user.
func signIn(ctx context.Context, origin, token string) (string, error) {
	form := url.Values{"token": {token}, "next": {"/"}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, origin+"/signin", strings.NewReader(form))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := connections.RoundTrip(r) // RoundTrip follows no redirect
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("signing in to the console: %s", answer.Status)
	}
	var cookies []string
	for _, c := range answer.Cookies() {
		if c.MaxAge >= 0 {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
	}
	return strings.Join(cookies, "; "), nil
}

// openPage is a page that a user keeps open in a browser. The benchmark reads the page again as often as
// hub/console/assets/console.js does.
type openPage struct {
	origin, path, session string
	reads                 *atomic.Int64
}

// scope returns the scope of the changes that the page shows: a namespace, or "*" for all namespaces.
func (p *openPage) scope() string {
	if at, err := url.Parse(p.path); err == nil && at.Query().Has("namespace") {
		return at.Query().Get("namespace")
	}
	return "*"
}

// follow reads the page again after each event in its stream of changes, until ctx ends.
func (p *openPage) follow(ctx context.Context, stream io.ReadCloser) error {
	defer stream.Close()
	changed := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.readAgain(ctx, changed) })
	group.Go(func() error {
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			if lines.Text() == "event: changed" {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
		return p.unlessEnded(ctx, fmt.Errorf("the stream of %s has ended: %w", p.path, lines.Err()))
	})
	return group.Wait()
}

// readAgain reads the page after a change. Then it pauses for at least one second, and for at least four times as long
// as the read took.
func (p *openPage) readAgain(ctx context.Context, changed <-chan struct{}) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-changed:
			begin := time.Now()
			answered, err := p.read(ctx)
			if err != nil {
				return p.unlessEnded(ctx, err)
			}
			if answered {
				p.reads.Add(1)
			}
			_ = rest(ctx, max(time.Second, 4*time.Since(begin)))
		}
	}
	return nil
}

// unlessEnded returns err, or nil if the page was closed.
func (p *openPage) unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// read requests the page. answered is false if the console is too busy: the page is then requested again after the next
// change.
func (p *openPage) read(ctx context.Context) (answered bool, err error) {
	answer, err := p.get(ctx, p.path)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode == http.StatusOK, err
}

func (p *openPage) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.origin+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cookie", p.session)
	answer, err := connections.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if busy := answer.StatusCode == http.StatusServiceUnavailable && path == p.path; answer.StatusCode != http.StatusOK && !busy {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("reading %s: %s", path, answer.Status)
	}
	return answer, nil
}
