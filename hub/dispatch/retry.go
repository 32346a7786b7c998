package dispatch

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// calm is a long pause, for problems that only a change on the member can solve. It is the first delay of
// member.RetrySlowly, and the minimum time between corrections of a field that another client keeps changing. It is
// also the longest wait for the first list of a kind.
const calm = pace.FirstSlowRetry

// retries counts the failed attempts to write a copy, by the way in which they are repeated. An attempt that is
// repeated in the other way, or not at all, ends the count.
type retries struct{ soon, slowly int }

// retryAfter returns, from the outcome of the last attempt, the time until a binding is processed again. The time
// varies randomly by up to a fifth. Otherwise all bindings would be due at once when a member becomes reachable again.
func (c *copies) retryAfter(key types.NamespacedName, o member.Outcome) reconcile.Result {
	var wait time.Duration
	c.update(key, func(x extra) extra {
		switch o.Retry {
		case member.RetrySoon:
			wait = pace.Doubled(pace.FirstRetry, pace.MaxRetry, x.retries.soon)
			x.retries = retries{soon: x.retries.soon + 1}
		case member.RetrySlowly:
			wait = pace.Doubled(calm, pace.MaxSlowRetry, x.retries.slowly)
			x.retries = retries{slowly: x.retries.slowly + 1}
		case member.RetryAfter:
			wait = max(o.After, pace.FirstRetry)
		default:
			x.retries = retries{}
		}
		return x
	})
	if wait == 0 {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: jitter(wait)}
}

func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}
