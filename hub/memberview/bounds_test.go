package memberview_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/hub/memberview"
)

func TestARequestThatDoesNotArriveIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	// What the server does about connections that say nothing comes later.
	const within = 15 * time.Second
	begin := time.Now()
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(
		t.Context(), "tcp", w.replicas[here].Annotations()[memberview.AddressAnnotation])
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(begin.Add(within)))
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: hub\r\n%s: %s\r\nContent-Length: 100\r\n\r\n{",
		memberview.Path(here, memberview.Copy), memberview.TokenHeader, w.user("reader", getAll, viewAll))
	must(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", response.Status)
	}
}

func TestAUserDoesNotKeepOthersFromAsking(t *testing.T) {
	w := newWorld(t)
	greedy, other := w.user("greedy", getAll, viewAll), w.user("other", getAll, viewAll)
	request := memberview.CopyRequest{Object: w.object("ConfigMap", "settings")}
	var waiting sync.WaitGroup
	for _, cluster := range []string{here, elsewhere} { // the latter is asked by way of the first replica, too
		m := w.members[cluster]
		m.live, m.wait, m.entered = configMap("red"), make(chan struct{}), make(chan struct{})
		for range 4 {
			waiting.Go(func() {
				if err := w.ask(greedy, cluster, memberview.Copy, request, &memberview.CopyAnswer{}); err != nil {
					t.Errorf("one of the first eight: %v", err)
				}
			})
			m.waits(t)
		}
	}
	if err := w.ask(greedy, nowhere, memberview.Copy, request, nil); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "asks 8 questions already") {
		t.Errorf("the ninth: %v", err)
	}
	if err := w.ask(other, nowhere, memberview.Copy, request, nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("somebody else: %v", err)
	}
	for _, m := range w.members {
		close(m.wait)
	}
	waiting.Wait()
	if err := w.ask(greedy, nowhere, memberview.Copy, request, nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("when the first are answered: %v", err)
	}
}

func TestFewLookForChildrenAtATime(t *testing.T) {
	w := newWorld(t)
	w.holds = func(string, string) bool { return true } // both members, so that it is not one of them that is asked too much
	request := memberview.ChildrenRequest{Objects: []memberview.Object{w.object("ConfigMap", "settings")}}
	m := w.members[here]
	m.wait, m.entered = make(chan struct{}), make(chan struct{})
	token := w.user("reader", getAll, viewAll)
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if err := w.ask(token, here, memberview.Children, request, &memberview.ChildrenAnswer{}); err != nil {
				t.Errorf("one of the first four: %v", err)
			}
		})
		m.waits(t)
	}
	if err := w.ask(token, elsewhere, memberview.Children, request, &memberview.ChildrenAnswer{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the fifth: %v", err)
	}
	w.members[elsewhere].live = configMap("red")
	if err := w.ask(token, elsewhere, memberview.Copy, memberview.CopyRequest{Object: request.Objects[0]}, &memberview.CopyAnswer{}); err != nil {
		t.Errorf("who looks at a copy: %v", err)
	}
	close(m.wait)
	waiting.Wait()
}
