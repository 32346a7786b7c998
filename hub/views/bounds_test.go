package views_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestARequestThatDoesNotArriveIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	// The test waits less than the time after which the server would close an idle connection.
	const within = 15 * time.Second
	begin := time.Now()
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(
		t.Context(), "tcp", w.replicas[here].Annotations()[views.AddressAnnotation])
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(begin.Add(within)))
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: hub\r\n%s: %s\r\nContent-Length: 100\r\n\r\n{",
		wire.Path(here, wire.Copy), wire.TokenHeader, w.user("reader", getAll, viewAll))
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
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	var waiting sync.WaitGroup
	for cluster, m := range w.members { // the first replica passes requests about elsewhere on
		m.blocks()
		for range 2 {
			waiting.Go(func() {
				if err := w.ask(greedy, cluster, wire.Copy, request, &wire.CopyAnswer{}); err != nil {
					t.Errorf("one of the first eight: %v", err)
				}
			})
			m.waits(t)
		}
	}
	if err := w.ask(greedy, nowhere, wire.Copy, request, nil); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "already has 8 requests in progress") {
		t.Errorf("the ninth: %v", err)
	}
	if err := w.ask(other, nowhere, wire.Copy, request, nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("somebody else: %v", err)
	}
	for _, m := range w.members {
		close(m.wait)
	}
	waiting.Wait()
	if err := w.ask(greedy, nowhere, wire.Copy, request, nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("when the first are answered: %v", err)
	}
}

func TestTheUsersOfANamespaceLeaveAMemberToOthers(t *testing.T) {
	w := newWorld(t)
	bank := w.inAnotherNamespace()
	teller := bank.user("teller", getAll, viewAll)
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	m := w.members[here]
	m.blocks()
	var waiting sync.WaitGroup
	ask := func(w *world, token string, request wire.CopyRequest) {
		waiting.Go(func() {
			if err := w.ask(token, here, wire.Copy, request, &wire.CopyAnswer{}); err != nil {
				t.Errorf("one of the first of a namespace: %v", err)
			}
		})
		m.waits(t)
	}
	for _, name := range []string{"one", "two", "three"} {
		ask(w, w.user(name, getAll, viewAll), request)
	}
	if err := w.ask(w.user("four", getAll, viewAll), here, wire.Copy, request, nil); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the fourth user of the namespace: %v", err)
	}
	if err := w.ask(w.user("rightless", nil, viewAll), here, wire.Copy, wire.CopyRequest{Object: bank.object("ConfigMap", "settings")}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights on the object takes no slot of its namespace: %v", err)
	}
	ask(bank, teller, wire.CopyRequest{Object: bank.object("ConfigMap", "settings")})
	close(m.wait)
	waiting.Wait()
}

// TestAPeerDoesNotKeepOthersFromAsking sends tokens whose TokenReview does not end, as if the identity provider of the
// API server did not answer.
func TestAPeerDoesNotKeepOthersFromAsking(t *testing.T) {
	w := newWorld(t)
	w.members[here].live = configMap("red")
	reviewed := make(chan struct{}, 64)
	w.reviewing = func(ctx context.Context, token string) error {
		if token != "stranger" {
			return nil
		}
		reviewed <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	body, err := json.Marshal(request)
	must(t, err)
	reader := w.user("reader", getAll, viewAll)
	from := func(address, token string) error {
		transport := views.Transport(w.replicas[here].Annotations()[views.CertificateAnnotation]).(*http.Transport)
		transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
		return w.sendBy(transport, token, here, wire.Copy, body, &wire.CopyAnswer{})
	}
	var waiting sync.WaitGroup
	for range 64 { // 16 of them are being identified; the others wait
		waiting.Go(func() {
			if err := from("127.0.0.1", "stranger"); !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) {
				t.Errorf("a stranger: %v", err)
			}
		})
	}
	begin := time.Now()
	for range 16 {
		select {
		case <-reviewed:
		case <-time.After(20 * time.Second):
			t.Fatal("no review is asked for")
		}
	}
	if err := from("127.0.0.2", reader); err != nil {
		t.Errorf("another peer: %v", err)
	}
	waiting.Wait()
	if took := time.Since(begin); took > 20*time.Second { // answerWithin is 25 s
		t.Errorf("strangers held their slots for %s", took)
	}
	if len(reviewed) > 16 {
		t.Errorf("more than 16 of one peer were reviewed at a time")
	}
	if err := from("127.0.0.1", reader); err != nil {
		t.Errorf("the same peer afterwards: %v", err)
	}
}

func TestFewLookForChildrenAtATime(t *testing.T) {
	w := newWorld(t)
	bank := w.inAnotherNamespace()
	m := w.members[here]
	m.blocks()
	var waiting sync.WaitGroup
	for _, asked := range []*world{w, w, bank, bank} {
		request := wire.ChildrenRequest{Objects: []wire.Object{asked.object("ConfigMap", "settings")}}
		token := asked.user(fmt.Sprintf("reader-%d", rand.Int()), getAll, viewAll)
		waiting.Go(func() {
			if err := asked.ask(token, here, wire.Children, request, &wire.ChildrenAnswer{}); err != nil {
				t.Errorf("one of the first four: %v", err)
			}
		})
		m.waits(t)
	}
	request := wire.ChildrenRequest{Objects: []wire.Object{w.object("ConfigMap", "settings")}}
	token := w.user("reader", getAll, viewAll)
	if err := w.ask(token, hereToo, wire.Children, request, &wire.ChildrenAnswer{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the fifth: %v", err)
	}
	w.members[hereToo].live = configMap("red")
	if err := w.ask(token, hereToo, wire.Copy, wire.CopyRequest{Object: request.Objects[0]}, &wire.CopyAnswer{}); err != nil {
		t.Errorf("who looks at a copy: %v", err)
	}
	close(m.wait)
	waiting.Wait()
}

// TestAnAnswerHoldsItsSlotUntilItIsWritten has two clients that do not read their answers. The answers are larger than
// any buffer, so that their requests still count against the limit of the user. A third request must therefore be
// refused.
func TestAnAnswerHoldsItsSlotUntilItIsWritten(t *testing.T) {
	w := newWorld(t)
	m := w.members[here]
	m.listed.Objects = []map[string]any{{"text": strings.Repeat("x", 15<<20)}}
	m.wait, m.entered = make(chan struct{}), make(chan struct{}, 64)
	close(m.wait)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	body, err := json.Marshal(wire.ListRequest{Kind: "Pod", Whole: true})
	must(t, err)
	for range 2 {
		connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(
			t.Context(), "tcp", w.replicas[here].Annotations()[views.AddressAnnotation])
		must(t, err)
		defer connection.Close()
		_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: hub\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
			wire.Path(here, wire.List), wire.TokenHeader, token, len(body), body)
		must(t, err)
		m.waits(t)
	}
	if err := w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &wire.ListAnswer{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the third: %v", err)
	}
	// After some time, the server closes the connections of the two clients, and a request is answered again.
	deadline := time.Now().Add(40 * time.Second)
	for {
		err := w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &wire.ListAnswer{})
		if err == nil {
			return
		}
		if !apierrors.IsTooManyRequests(err) || time.Now().After(deadline) {
			t.Fatalf("afterwards: %v", err)
		}
	}
}
