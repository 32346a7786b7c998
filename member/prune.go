package member

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/source"
)

// Pruner lets users remove unclaimed copies from a connected member.
type Pruner interface {
	// Copies lists the copies for which keep returns true, of every kind that the hub may write there, at most most. An
	// error of keep is returned. If ctx ends, Copies returns the copies found so far, with a note.
	Copies(ctx context.Context, most int, keep func(Copy) (bool, error)) (Copies, error)
	// Prune removes one copy, as Withdraw does. The caller has checked that no binding claims it.
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
	Adopted         bool // whether it was adopted
}

// Copies that were found.
type Copies struct {
	Copies []Copy
	// Notes name the omitted kinds and objects, with the reason.
	Notes []string
}

// PruneIntent is one copy to remove that no binding claims.
type PruneIntent struct {
	GVK   schema.GroupVersionKind
	Owner hubv1.ObjectIdentity
	// OwnerUID is the UID of the hub object of that name; empty if there is none.
	OwnerUID types.UID
	// UID and ResourceVersion identify the copy that the user has seen. Another object, or a changed copy, is not
	// touched.
	UID             types.UID
	ResourceVersion string
	// Source is the state of the hub. A copy from a later state is not touched: the outcome is HubIsOlder.
	Source source.State
	// Policy decides whether the copy is deleted or orphaned. An adopted copy is always orphaned.
	Policy hubv1.RemovalPolicy
}
