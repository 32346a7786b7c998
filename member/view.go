package member

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Viewer lets users view objects of a connected member through the hub. It writes nothing. View returns only the copy
// of the given hub object. Preview may also return an object that the hub does not manage. The returned objects are
// complete: the caller removes the parts that the user has no right to see.
type Viewer interface {
	// View reads the copy of a hub object. refusal is not nil if there is no copy to show, and has the reason.
	View(ctx context.Context, in ViewIntent) (live *unstructured.Unstructured, refusal *Outcome)
	// Preview makes the request of the method Apply as a dry run, whatever in.Mode is, and returns the object before and
	// after it.
	Preview(ctx context.Context, in ApplyIntent) Preview
	// Children returns the objects that controllers have created for copies, down to pods. It finds them by their
	// ownerReferences.
	Children(ctx context.Context, owners []Owner) Children
}

// ViewIntent names one copy.
type ViewIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// ConfirmedUID is the UID of the copy in the row of the binding. It is empty if the row records none.
	ConfirmedUID types.UID
}

// Preview is one object before and after the dry run of an apply.
type Preview struct {
	// Before is the object on the member. It is nil if the object is missing, could not be read, or is the copy of another
	// hub or of another hub object. After is the object that the dry run would write. It is nil if no dry run was
	// possible.
	Before, After *unstructured.Unstructured
	// Unadopted is true if no hub manages the object in Before. In this case After is the object as an adoption would
	// change it.
	Unadopted bool
	// InSync is true if the content of the copy has the hash that the binding records, and the hub would send the same
	// manifest again.
	InSync bool
	// Changed names the fields that the member would store with other values than the hub sends, see Outcome.Changed.
	Changed string
	// Refused is the reason why the hub would not make the previewed write now. It is nil if the hub would make the write.
	Refused *Outcome
}

// Owner is an object on the member whose children are requested.
type Owner struct {
	Kind      schema.GroupKind
	Namespace string
	UID       types.UID
}

// Children has the objects that were found below the given owners.
type Children struct {
	// Of has the children of each owner, by the UID of the owner. An owner is an object on the member whose children were
	// requested. An owner without children has no entry.
	Of map[types.UID][]Child
	// Notes name the kinds whose objects could not be searched for children, with the reason.
	Notes []string
}

// Child is an object with an ownerReference, and its own children.
type Child struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Health is the health of the child. It is empty for a pod, for which only State is set.
	Health hubv1.Health `json:"health,omitempty"`
	// State describes a pod or a workload in a short text, such as "Running 2/2".
	State    string  `json:"state,omitempty"`
	Children []Child `json:"children,omitempty"`
	// UID is the UID of the child, and Containers are the names of a pod's containers. They are not sent to users.
	UID        types.UID `json:"-"`
	Containers []string  `json:"-"`
}
