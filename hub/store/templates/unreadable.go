package templates

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

// logEvery is the minimum pause between two log lines about one kind, so that a kind whose watch fails with each retry
// does not fill the log.
const logEvery = time.Hour

// unreadable has the time of the last log line about each kind whose objects the hub cannot read.
type unreadable struct {
	mu     sync.Mutex
	logged map[schema.GroupKind]time.Time
}

// quietReasons are not logged for each kind: a placement may name a kind before its CustomResourceDefinition is
// installed, and all kinds fail together while the API server is away.
var quietReasons = map[string]bool{"": true, hubv1.ReasonKindNotServed: true, hubv1.ReasonUnreachable: true}

func (u *unreadable) log(ctx context.Context, gk schema.GroupKind, state informer.State) {
	if quietReasons[state.Reason] || !u.isNew(gk, time.Now()) {
		return
	}
	ctrl.LoggerFrom(ctx).Info("The hub cannot read the objects of a kind on its own API server: new objects get no copies, and changes are not sent",
		"kind", gk.String(), "reason", state.Reason, "message", state.Message)
}

// isNew reports whether the failure of a kind is to be logged now.
func (u *unreadable) isNew(gk schema.GroupKind, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, found := u.logged[gk]; found && now.Sub(last) < logEvery {
		return false
	}
	if u.logged == nil {
		u.logged = map[schema.GroupKind]time.Time{}
	}
	u.logged[gk] = now
	return true
}
