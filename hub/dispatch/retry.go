package dispatch

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// calm is a long pause, for problems that only a change on the member can solve. It is the first delay of
// member.RetrySlowly, and the minimum time between corrections of a field that another client keeps changing. It is
// also the longest wait for the first list of a kind.
const calm = pace.FirstSlowRetry

// retries computes, from the outcome of the last attempt, the time until a binding is processed again.
type retries struct {
	soon, slowly workqueue.TypedRateLimiter[types.NamespacedName]
}

func newRetries() retries {
	return retries{
		soon:   pace.Retries[types.NamespacedName](),
		slowly: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](calm, pace.MaxSlowRetry),
	}
}

// after returns the time until a binding (named by key) is processed again. The time varies randomly by up to a fifth.
// Otherwise all bindings would be due at once when a member becomes reachable again.
func (r retries) after(key types.NamespacedName, o member.Outcome) reconcile.Result {
	var wait time.Duration
	switch o.Retry {
	case member.RetrySoon:
		r.slowly.Forget(key)
		wait = r.soon.When(key)
	case member.RetrySlowly:
		r.soon.Forget(key)
		wait = r.slowly.When(key)
	case member.RetryAfter:
		wait = max(o.After, pace.FirstRetry)
	default:
		r.forget(key)
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: jitter(wait)}
}

func (r retries) forget(key types.NamespacedName) {
	r.soon.Forget(key)
	r.slowly.Forget(key)
}

func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}
