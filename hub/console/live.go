package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// tellEvery is the interval at which the hub tells open pages that an object has changed.
	tellEvery = 500 * time.Millisecond
	// pagesPerSecond is the maximum number of open pages that the hub tells about changes in a second. A page loads again
	// when it is told. Without this limit, many open pages would read from the hub at the same time.
	pagesPerSecond = 20
	// beatEvery is the interval at which the hub sends a heartbeat to each open page.
	beatEvery = 15 * time.Second
	// maxStreams is the maximum number of open connections on which the hub tells pages about changes. maxStreamsPerUser
	// is the maximum for one user. All ServiceAccounts of a namespace count as one user.
	maxStreams        = 1000
	maxStreamsPerUser = 100
	// checkEvery is the interval at which the hub checks again whether the user of an open page may still see the objects
	// on this page.
	checkEvery = time.Minute
	// justNow is how old a page is assumed to be when it connects to the hub to be told about changes. If an object has
	// changed within this time, the page loads again, because it may not show the change.
	justNow = 15 * time.Second
	// slowestReader is the timeout of one write to a browser.
	slowestReader = 10 * time.Second
)

// scope names the objects that a page shows: the objects of a namespace, the cluster-scoped objects, or all objects. A
// page with an empty scope does not load again after changes.
type scope string

const (
	everywhere scope = "*"
	inCluster  scope = "/" // cluster-scoped objects
)

func in(namespace string) scope {
	if namespace == "" {
		return inCluster
	}
	return scope(namespace)
}

// Live tells open pages that an object in their scope has changed.
type Live struct {
	pace *rate.Limiter
	// sendWithin is the timeout of a write to a browser.
	sendWithin time.Duration

	mu      sync.Mutex
	streams map[*stream]struct{}
	byUser  map[string]int
	dirty   map[scope]bool
	last    time.Time // time of the last change
}

type stream struct {
	user    string
	scope   scope
	changed chan struct{}
}

func newLive() *Live {
	return &Live{
		pace: rate.NewLimiter(pagesPerSecond, pagesPerSecond), sendWithin: slowestReader,
		streams: map[*stream]struct{}{}, byUser: map[string]int{}, dirty: map[scope]bool{},
	}
}

// Changed records a change of an object. namespace is empty for a cluster-scoped object.
func (l *Live) Changed(namespace string) { l.note(in(namespace)) }

// ChangedEverywhere records a change that every page shows, such as a change of a cluster.
func (l *Live) ChangedEverywhere() { l.note(everywhere) }

func (l *Live) note(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	if len(l.streams) > 0 {
		l.dirty[s] = true
	}
}

// Start implements manager.Runnable.
func (l *Live) Start(ctx context.Context) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.notify()
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because every replica serves.
func (l *Live) NeedLeaderElection() bool { return false }

func (l *Live) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dirty) == 0 {
		return
	}
	for s := range l.streams {
		if l.dirty[s.scope] || l.dirty[everywhere] || s.scope == everywhere {
			select {
			case s.changed <- struct{}{}:
			default: // an earlier notification is still unread
			}
		}
	}
	clear(l.dirty)
}

func (l *Live) open(user string, of scope) (*stream, func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) >= maxStreams || l.byUser[user] >= maxStreamsPerUser {
		return nil, nil, false
	}
	s := &stream{user: user, scope: of, changed: make(chan struct{}, 1)}
	if time.Since(l.last) < justNow {
		s.changed <- struct{}{}
	}
	l.streams[s] = struct{}{}
	l.byUser[user]++
	openStreams.Inc()
	return s, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.streams, s)
		openStreams.Dec()
		if l.byUser[user]--; l.byUser[user] == 0 {
			delete(l.byUser, user)
		}
	}, true
}

// live answers with server-sent events: "changed" when the page's scope has changed, and "ended" when the session has
// ended. An event has no data: the browser loads the page again to get the change.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	v, leave, ok := c.enter(w, r)
	if !ok {
		return
	}
	of := scope(r.URL.Query().Get("scope"))
	err := func() error {
		defer leave() // an open stream holds no slot
		ctx, cancel := context.WithTimeout(r.Context(), readWithin)
		defer cancel()
		return v.user.mayList(ctx, of)
	}()
	if err != nil {
		c.refuse(w, v, err)
		return
	}
	s, closed, ok := c.Live.open(v.session.party(), of)
	if !ok {
		w.Header().Set("Retry-After", "30")
		c.fail(w, v, http.StatusServiceUnavailable, errBusy)
		return
	}
	defer closed()
	w.Header().Set("Content-Type", "text/event-stream")
	answer := http.NewResponseController(w)
	_ = answer.SetReadDeadline(time.Time{}) // otherwise HTTP/1.1 would end the stream at the server's limit for requests
	sendEvent := func(event string) bool {
		_ = answer.SetWriteDeadline(time.Now().Add(c.Live.sendWithin))
		_, err := fmt.Fprintf(w, "event: %s\ndata:\n\n", event)
		if err != nil || answer.Flush() != nil {
			return false
		}
		_ = answer.SetWriteDeadline(time.Time{}) // otherwise HTTP/2 would end the stream at the deadline even without a write
		return true
	}
	if !sendEvent("open") {
		return
	}
	beat, check := time.NewTicker(beatEvery), time.NewTicker(checkEvery)
	defer beat.Stop()
	defer check.Stop()
	end := time.NewTimer(v.session.Until.Sub(c.opts.Clock.Now()))
	defer end.Stop()
	for {
		event := "beat"
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
		case <-check.C:
			if c.mayNotWatch(r.Context(), v, of) {
				sendEvent("ended")
				return
			}
		case <-end.C:
			sendEvent("ended")
			return
		case <-s.changed:
			if c.Live.pace.Wait(r.Context()) != nil {
				return
			}
			event = "changed"
		}
		if !sendEvent(event) {
			return
		}
	}
}
