package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
)

const (
	// membersWithin is the timeout of all requests to members for one page. It is shorter than readWithin, so that the
	// page is in time even if a member hangs.
	membersWithin = 12 * time.Second
	// askedAtOnce is the maximum number of concurrent requests to members for one page. It is 2, because
	// package views lets a user have only two concurrent requests to a member, and two slow requests in all.
	askedAtOnce = 2
	// maxAskedMembers is the maximum number of members from which one page requests data.
	maxAskedMembers = 20
	// maxViewBytes limits the size of an answer about a member, in bytes.
	maxViewBytes = 4 << 20
)

// local is an http.RoundTripper that calls a handler of this process.
type local struct{ handler http.Handler }

var errLargeAnswer = fmt.Errorf("the answer is larger than %d MiB", maxViewBytes>>20)

// RoundTrip implements http.RoundTripper. It returns when the context of the request ends, even if the handler still
// runs.
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr = "console"
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				ended <- fmt.Errorf("answering %s: %v", r.URL.Path, fault)
			}
		}()
		l.handler.ServeHTTP(answer, r)
		ended <- nil
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case err := <-ended:
		if err == nil && answer.large {
			err = errLargeAnswer
		}
		if err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: answer.status, Status: http.StatusText(answer.status), Header: answer.header, Request: r,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// recorder records the response of a handler. Its methods for deadlines do nothing, because no connection exists.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	large  bool
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(part []byte) (int, error) {
	if a.body.Len()+len(part) > maxViewBytes {
		a.large = true
		return 0, errLargeAnswer
	}
	return a.body.Write(part)
}

// SetReadDeadline implements the optional method of http.ResponseController.
func (a *recorder) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements the optional method of http.ResponseController.
func (a *recorder) SetWriteDeadline(time.Time) error { return nil }

// viewsOf returns a client of package views that uses a user's token. It is nil if the hub does not serve requests
// about members.
func (c *Console) viewsOf(token string) *views.Client {
	if c.opts.Views == nil {
		return nil
	}
	return &views.Client{
		Base: &url.URL{Scheme: "https", Host: "hub.invalid"}, HTTP: &http.Client{Transport: local{c.opts.Views}}, Token: token,
	}
}

// questions sends the requests to members for one page. Each request has half of the page's time for requests to
// members as its timeout. A member that hangs therefore leaves time for the next requests.
type questions struct {
	views  *views.Client
	within time.Duration
	slots  *semaphore.Weighted
}

func (v *visit) questions() *questions {
	return &questions{views: v.user.views, within: v.membersWithin / 2, slots: semaphore.NewWeighted(askedAtOnce)}
}

// each sends requests to members, and returns the clusters that did not answer.
func (q *questions) each(ctx context.Context, clusters []string, ask func(ctx context.Context, cluster string) error) (notAsked []view.ClusterNote) {
	for _, cluster := range clusters[min(len(clusters), maxAskedMembers):] {
		notAsked = append(notAsked, view.ClusterNote{Cluster: cluster, Note: fmt.Sprintf("a page asks at most %d clusters: choose this cluster alone", maxAskedMembers)})
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, cluster := range clusters[:min(len(clusters), maxAskedMembers)] {
		asking.Go(func() {
			if err := q.one(ctx, cluster, ask); err != nil {
				mu.Lock()
				defer mu.Unlock()
				notAsked = append(notAsked, view.ClusterNote{Cluster: cluster, Note: err.Error()})
			}
		})
	}
	asking.Wait()
	slices.SortFunc(notAsked, func(a, b view.ClusterNote) int { return strings.Compare(a.Cluster, b.Cluster) })
	return notAsked
}

var errNoMember = errors.New("the member did not answer in time: reload the page to ask it again")

func (q *questions) one(ctx context.Context, cluster string, ask func(ctx context.Context, cluster string) error) error {
	if q.views == nil {
		return views.ErrNoViews
	}
	if q.slots.Acquire(ctx, 1) != nil {
		return errNoMember
	}
	defer q.slots.Release(1)
	ctx, cancel := context.WithTimeout(ctx, q.within)
	defer cancel()
	err := ask(ctx, cluster)
	if err != nil && ctx.Err() != nil {
		return errNoMember
	}
	return err
}
