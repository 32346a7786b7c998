package member

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/source"
)

// Pruner is a connected member as users clean it up through the hub.
type Pruner interface {
	// Copies lists the copies on the member that keep wants, of every kind that the hub may write there, and at most the
	// given number. An error of keep is returned. If ctx ends, what was found until then is returned, with a note.
	Copies(ctx context.Context, most int, keep func(Copy) (bool, error)) (Copies, error)
	// Prune removes one copy that no binding claims, as Withdraw does. It does not ask whether one claims it.
	Prune(ctx context.Context, in PruneIntent) Outcome
}

// Copy is an object on a member that this hub applied for the hub object of the same kind and name.
type Copy struct {
	GVK             schema.GroupVersionKind
	Object          hubv1.ObjectIdentity
	UID             types.UID
	ResourceVersion string
	Created         time.Time
	Source          source.Mark
	Adopted         bool // it was on the member before the hub took it over
}

// Copies are those that were found.
type Copies struct {
	Copies []Copy
	// Notes say what was not looked at, and why.
	Notes []string
}

// PruneIntent is one copy that is to go although no binding says so.
type PruneIntent struct {
	GVK   schema.GroupVersionKind
	Owner hubv1.ObjectIdentity
	// OwnerUID is the UID of the hub object of that name; empty if there is none.
	OwnerUID types.UID
	// UID and ResourceVersion are those of the copy as it was shown. Another or a changed object is left alone.
	UID             types.UID
	ResourceVersion string
	// Source is the state of the hub. A copy that a later state wrote is left as it is: the outcome is HubIsOlder.
	Source source.State
	// Policy says what becomes of the copy. One that was adopted is orphaned, whatever it says.
	Policy hubv1.RemovalPolicy
}
