package member

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/epoch"
)

// Pruner removes, for users, the copies on a connected member that no binding claims.
type Pruner interface {
	// Copies lists copies of every kind that the hub may write on the member. It returns the copies for which keep returns
	// true. The argument limit is the maximum number of returned copies. If keep returns an error, Copies returns this
	// error. If ctx ends, Copies returns the copies that it has found so far, with a note.
	Copies(ctx context.Context, limit int, keep func(Copy) (bool, error)) (Copies, error)
	// Prune deletes or orphans one copy, in the same way as Withdraw. The caller has checked that no binding claims it.
	Prune(ctx context.Context, in PruneIntent) Outcome
}

// Copy is an object on a member that this hub applied for the hub object of the same kind and name.
type Copy struct {
	GVK             schema.GroupVersionKind
	Object          hubv1.ObjectIdentity
	UID             types.UID
	ResourceVersion string
	Created         time.Time
	Source          epoch.Mark
	Adopted         bool // the hub had adopted the object
}

// Copies is the result of Pruner.Copies.
type Copies struct {
	Copies []Copy
	// Notes name the kinds and objects that could not be listed and are therefore missing in the result, with the reason.
	Notes []string
}

// PruneIntent is the request to remove one copy that no binding claims.
type PruneIntent struct {
	GVK   schema.GroupVersionKind
	Owner hubv1.ObjectIdentity
	// OwnerUID is the UID of the hub object of the same kind and name. It is empty if there is no such hub object.
	OwnerUID types.UID
	// UID and ResourceVersion identify the copy that the user has seen. Prune does not change an object with another
	// UID or version.
	UID             types.UID
	ResourceVersion string
	// Source is the current state of the hub. Prune does not change a copy that is newer, and the outcome has the reason
	// HubIsOlder.
	Source epoch.State
	// Policy decides whether the copy is deleted, or orphaned (left without the hub's labels and annotations). An adopted
	// copy is always orphaned.
	Policy hubv1.RemovalPolicy
}
