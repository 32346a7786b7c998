package views

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// passedOn is the header of a request that another replica passed on.
const passedOn = "Hanse-Passed-On"

// question is one request, whose user is identified.
type question struct {
	who     who
	cluster string // empty if the request is not about a member
	path    string // the path and query of the request, as PathIn returns them
	// namespace is the namespace of the requested objects. If it is empty, the request may be about every object that
	// the user may get.
	namespace string
	// bounded is true if the user may view only objects of the namespace in the field namespace.
	bounded bool
	body    []byte
	passed  bool
	held    []func()
}

// hold makes the handler call free after it has written the answer. free gives back a slot (the permission for one
// request) or memory.
func (q *question) hold(free func()) { q.held = append(q.held, free) }

// keep returns a context for requests to the member. Until the user's answer is written, the member's responses count
// against the memory limit.
func (q *question) keep(ctx context.Context) context.Context {
	ctx, done := answer.Keep(ctx)
	q.hold(done)
	return ctx
}

func (q *question) release() {
	for _, free := range slices.Backward(q.held) {
		free()
	}
}

// answer returns the handler of a request. The handler identifies the user, calls f for the answer, and logs the
// request. `what` is the name of the request.
func (v *View) answer(what string, f func(context.Context, *question) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		q := &question{cluster: r.PathValue("cluster"), namespace: r.URL.Query().Get(wire.NamespaceParameter), passed: r.Header.Get(passedOn) != ""}
		q.path = wire.PathIn(q.cluster, what, q.namespace)
		defer q.release()
		result, err := v.ask(ctx, w, r, q, f)
		code := http.StatusOK
		if err != nil {
			status := statusOf(ctx, err)
			code, result = int(status.Code), status
		}
		requests.WithLabelValues(what, strconv.Itoa(code)).Inc()
		if q.who.name != "" { // requests of unidentified senders are not logged, because they could fill the log
			v.opts.Logger.Info("Looked at a member", "user", q.who.name, "cluster", q.cluster, "namespace", q.namespace, "what", what, "objects", q.who.asked, "code", code)
		}
		write(w, code, result)
	}
}

// ask returns the answer to a request. If another replica serves the member, ask passes the request on to this replica.
func (v *View) ask(ctx context.Context, w http.ResponseWriter, r *http.Request, q *question, f func(context.Context, *question) (any, error)) (any, error) {
	token := r.Header.Get(wire.TokenHeader)
	if token == "" {
		return nil, apierrors.NewUnauthorized("the header " + wire.TokenHeader + " has no bearer token")
	}
	if q.cluster != "" && len(validation.IsDNS1123Subdomain(q.cluster)) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cluster %.64q is not valid: no MemberCluster can have this name", q.cluster))
	}
	if err := checkNamespace(q.namespace); err != nil {
		return nil, err
	}
	if err := v.know(ctx, r, q, token); err != nil {
		return nil, err
	}
	free, err := takeSlot(ctx, v.all, accounts(q.who)...)
	if err != nil {
		return nil, err
	}
	q.hold(free)
	if q.body, err = body(w, r); err != nil {
		return nil, err
	}
	if q.who.signed != "" && q.who.signed != digest(q.body) {
		return nil, apierrors.NewUnauthorized("the hub could not verify your identity: the proof is for another request body")
	}
	if q.cluster == "" {
		return f(ctx, q)
	}
	holder := v.opts.Holder(q.cluster)
	switch {
	case holder.Here:
		return f(ctx, q)
	case holder.Address == "" || q.passed:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no replica of the hub works on cluster %q now: try again in some seconds", q.cluster))
	}
	return v.passOn(ctx, holder, q, token)
}

// know identifies the user, and checks the right to view the member or the namespace. Every request begins with this
// check.
func (v *View) know(ctx context.Context, r *http.Request, q *question, token string) error {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	known, err := takeSlot(ctx, v.unknown, access.Party{Name: access.Address(r), Max: ofPeer})
	if err != nil {
		return err
	}
	defer known()
	if q.who, err = v.identify(ctx, q, token); err != nil {
		return err
	}
	free, err := v.users.take(q.who.name)
	if err != nil {
		return err
	}
	q.hold(free)
	return v.mayLook(ctx, q)
}

// accounts returns the limit of concurrent requests (a access.Party) that all ServiceAccounts of one namespace share.
// The result is nil if the user is not a ServiceAccount.
func accounts(w who) []access.Party {
	namespace, ok := access.AccountNamespace(w.name)
	if !ok {
		return nil
	}
	return []access.Party{{Name: namespace, Max: accountsOfNamespace}}
}

// memberSlot waits until a request about the given objects may be sent to the member. The number of concurrent requests
// is limited for the user, for the namespace of the user's ServiceAccount, and for each namespace of the objects.
func (v *View) memberSlot(ctx context.Context, of *access.Slots, q *question, objects ...placed) error {
	var namespaces []string
	if own, ok := access.AccountNamespace(q.who.name); ok {
		namespaces = append(namespaces, own)
	}
	for _, o := range objects {
		if o.id.Namespace != "" {
			namespaces = append(namespaces, o.id.Namespace)
		}
	}
	slices.Sort(namespaces)
	parties := []access.Party{{Name: "user/" + q.who.name, Max: ofUser}}
	for _, n := range slices.Compact(namespaces) {
		parties = append(parties, access.Party{Name: "namespace/" + n, Max: ofNamespace})
	}
	free, err := takeSlot(ctx, of, parties...)
	if err != nil {
		return err
	}
	q.hold(free)
	return nil
}

// member returns the member, after it has waited until a request about the given objects may be sent. The number of
// concurrent requests is limited. slow is true for a request that sends many requests to the member. Such a request
// also counts against a second limit. A request counts until its answer is written.
func (v *View) member(ctx context.Context, q *question, slow bool, objects ...placed) (Member, error) {
	if err := v.memberSlot(ctx, v.members.get(q.cluster), q, objects...); err != nil {
		return nil, err
	}
	if slow {
		if err := v.memberSlot(ctx, v.trees, q, objects...); err != nil {
			return nil, err
		}
	}
	return v.opts.Members(q.cluster)
}

// body reads the body of a request within a short timeout, because the request already counts against the limit of
// concurrent requests.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Now().Add(readWithin)); err != nil {
		return nil, fmt.Errorf("setting the read timeout of a request: %w", err)
	}
	got, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the request has more than %d bytes", maxRequestBytes))
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request did not arrive completely within %s", readWithin))
	}
	// The body is complete, so that the timeout ends here. After the body, the server reads only to detect that the sender
	// has closed the connection.
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("removing the read timeout of a request: %w", err)
	}
	return got, nil
}

// maxAnswerBytes is the maximum size of an answer.
const maxAnswerBytes = 16 << 20

// passOn sends the request to the replica that serves the member. That replica checks the token again.
func (v *View) passOn(ctx context.Context, to Holder, q *question, token string) (any, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+to.Address+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("passing on to the replica that works on cluster %q: %w", q.cluster, err)
	}
	request.Header.Set(wire.TokenHeader, token)
	request.Header.Set(passedOn, "true")
	response, err := v.forward(to).RoundTrip(request)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the replica of the hub that works on cluster %q does not answer", q.cluster))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the replica of the hub that works on cluster %q ended its answer early", q.cluster))
	}
	if response.StatusCode == http.StatusOK {
		return json.RawMessage(body), nil
	}
	status := metav1.Status{}
	if json.Unmarshal(body, &status) != nil || status.Code == 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the replica of the hub that works on cluster %q answered with HTTP status %d", q.cluster, response.StatusCode))
	}
	return nil, &apierrors.StatusError{ErrStatus: status}
}

// statusOf returns the metav1.Status for an error. It hides the text of an internal error.
func statusOf(ctx context.Context, err error) metav1.Status {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return s
	case errors.Is(err, member.ErrNotConnected):
		return statusOf(ctx, apierrors.NewServiceUnavailable("the cluster is not connected: see hansectl clusters"))
	case ctx.Err() != nil:
		return statusOf(ctx, apierrors.NewTimeoutError("the member or the hub's API server did not answer in time", 5))
	}
	return statusOf(ctx, apierrors.NewInternalError(errors.New("the hub could not answer: see the log of hanse-hub")))
}

func write(w http.ResponseWriter, code int, result any) {
	body, err := json.Marshal(result)
	switch {
	case err != nil:
		code, body = http.StatusInternalServerError, nil
	case len(body) > maxAnswerBytes:
		code = http.StatusBadGateway
		body, _ = json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
			Reason: metav1.StatusReasonRequestEntityTooLarge, Message: fmt.Sprintf("the answer is larger than %d MiB: narrow the request", maxAnswerBytes>>20),
		})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// Until the client has read the answer, the request counts against the limits of concurrent requests. Therefore this
	// timeout is shorter than the server's timeout for writes.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may have closed the connection
}

// read decodes the body of a request.
func (q *question) read(into any) error {
	decoder := json.NewDecoder(bytes.NewReader(q.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return apierrors.NewBadRequest("the body of the request is invalid: " + err.Error())
	}
	return nil
}

// takeSlot waits up to waitForSlot until all parties (such as a user and a namespace) are below their limits of
// concurrent requests. The caller calls free after the request.
func takeSlot(ctx context.Context, of *access.Slots, parties ...access.Party) (free func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForSlot)
	defer cancel()
	free, ok := of.Take(ctx, parties...)
	if !ok {
		return nil, apierrors.NewTooManyRequests("too many requests at the same time: try again in some seconds", 5)
	}
	return free, nil
}

// heldByUser counts the concurrent requests of each user.
type heldByUser struct {
	mu   sync.Mutex
	held map[string]int // number of requests by user name
}

// take counts one more request of the user. Above the user's limit, it returns an error at once, because a waiting
// request would count against other limits.
func (s *heldByUser) take(user string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[user] >= maxPerUser {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("user %q already has %d requests in progress, which is the maximum: try again when one has ended", user, maxPerUser), 5)
	}
	s.held[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[user]--; s.held[user] == 0 {
			delete(s.held, user)
		}
	}, nil
}

// slotsByName has the limits of concurrent requests for each member. A member is added only if this replica serves the
// member, and if the user of the request may view it. Therefore users cannot fill the map with invented names.
type slotsByName struct {
	mu sync.Mutex
	of map[string]*access.Slots
}

func (s *slotsByName) get(name string) *access.Slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[name] == nil {
		s.of[name] = access.New(maxPerMember)
	}
	return s.of[name]
}
