package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
)

var errNoAnswer = errors.New("no answer")

// streaks has the numbers of consecutive failures of a kind, one number for each type of failure.
type streaks struct {
	failures int // attempts that delivered no list and no event
	expired  int // watches whose resourceVersion had expired
	broken   int // error events in a watch
}

// isExpired reports whether the error says that the server cannot continue at the requested resourceVersion. The
// version may be too old, or too new after a restore of the server from a backup.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// isNotServed reports whether the error says that the server does not serve the kind. The error comes from the
// RESTMapper, or is the 404 with which the server answers a list or watch of a missing kind.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
}

// classify returns State.Reason and State.Message for an error. It is not called for an expired resourceVersion.
func classify(err error) (reason, message string) {
	var status apierrors.APIStatus
	var objectErr *ObjectError
	switch {
	case answer.IsTooLarge(err):
		reason = hubv1.ReasonAnswerTooLarge
	case errors.As(err, &objectErr):
		reason = hubv1.ReasonServerError
	case isNotServed(err):
		reason = hubv1.ReasonKindNotServed
	case apierrors.IsForbidden(err):
		reason = hubv1.ReasonForbidden
	case apierrors.IsUnauthorized(err):
		reason = hubv1.ReasonUnauthorized
	case apierrors.IsTooManyRequests(err):
		reason = hubv1.ReasonThrottled
	// A status error with the cause ClientWatchDecoding is not from the server: client-go makes it from a broken stream.
	case errors.As(err, &status) && !apierrors.HasStatusCause(err, "ClientWatchDecoding"):
		reason = hubv1.ReasonServerError
	default:
		reason = hubv1.ReasonUnreachable
	}
	text := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil { // leave out the local port, which differs each time
		text = op.Op + ": " + op.Err.Error()
	}
	return reason, fmt.Sprintf("%.256s", text)
}

// retryAfter returns the pause after a number of consecutive failures. The pause begins at 0.2 s, or at 5 s for a kind
// that is not served. It doubles with each failure, up to 60 s. It is never shorter than the delay that the server
// requests. If the hub lacks a right, the pause is at most 30 s: only an administrator can end this failure, and
// nothing tells the hub about it. Jitter prevents that many kinds and clusters retry at the same time.
func retryAfter(failures int, err error) time.Duration {
	maxPause := 60 * time.Second
	if apierrors.IsForbidden(err) {
		maxPause = 30 * time.Second
	}
	first := 200 * time.Millisecond
	if isNotServed(err) {
		first = 5 * time.Second
	}
	pause := min(first<<min(failures, 10), maxPause)
	if pause < maxPause {
		pause = min(pause+rand.N(pause/2), maxPause)
	} else {
		pause -= rand.N(pause / 4)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, min(time.Duration(seconds)*time.Second, answer.MaxPause))
	}
	return pause
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
