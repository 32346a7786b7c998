package member

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Viewer lets users view objects of a connected member through the hub. It changes nothing. It returns only the copy of
// the given hub object, and from Preview also an unmanaged object. Objects are complete: the caller removes the parts
// that the user must not see.
type Viewer interface {
	// View reads the copy of a hub object. refusal is the reason why there is no copy to show.
	View(ctx context.Context, in ViewIntent) (live *unstructured.Unstructured, refusal *Outcome)
	// Preview returns the result of Apply by a dry run, whatever in.Mode is.
	Preview(ctx context.Context, in ApplyIntent) Preview
	// Children finds the objects that controllers created for copies, by ownerReferences, down to pods.
	Children(ctx context.Context, owners []Owner) Children
}

// ViewIntent names one copy.
type ViewIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// ConfirmedUID is the UID of the last confirmed copy; empty if there is none.
	ConfirmedUID types.UID
}

// Preview is one object before and after the dry run of an apply.
type Preview struct {
	// Before is nil if there is no copy yet. After is nil if no dry run was possible.
	Before, After *unstructured.Unstructured
	// Unadopted is true if Hanse does not manage Before. Then After is the object as adopted.
	Unadopted bool
	// InSync is true if the copy equals the last confirmed one, and the hub would write the same manifest again.
	InSync bool
	// Refused is the reason why the hub would not write After now.
	Refused *Outcome
}

// Owner is an object on the member whose children are requested.
type Owner struct {
	Kind      schema.GroupKind
	Namespace string
	UID       types.UID
}

// Children are the objects found below some owners.
type Children struct {
	// Of has the children of each owner that has any, by UID.
	Of map[types.UID][]Child
	// Notes name the kinds that could not be read, with the reason.
	Notes []string
}

// Child is one object with an ownerReference, and the objects that it owns.
type Child struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Health is empty for a pod, which has only a State.
	Health hubv1.Health `json:"health,omitempty"`
	// State of a pod or workload as a short text, such as "Running 2/2".
	State    string  `json:"state,omitempty"`
	Children []Child `json:"children,omitempty"`
	// Containers of a pod, by name. They are not part of an answer to a user.
	Containers []string `json:"-"`
}
