package member

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Viewer is a connected member as users look at it through the hub. Nothing is changed there. Of single objects only
// copies of the hub object in question are shown, and by Preview an object that is not Hanse's yet. What is returned is
// whole: what must not be seen is the caller's to take out.
type Viewer interface {
	// View reads the copy of a hub object. The refusal says why there is nothing to show.
	View(ctx context.Context, in ViewIntent) (live *unstructured.Unstructured, refusal *Outcome)
	// Preview says what Apply would make of the copy: by a dry run, whatever in.Mode.
	Preview(ctx context.Context, in ApplyIntent) Preview
	// Children finds what was made for copies, by ownerReferences, down to pods.
	Children(ctx context.Context, owners []Owner) Children
}

// ViewIntent names one copy.
type ViewIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// ConfirmedUID is the UID of the copy that was last confirmed; empty if there is none.
	ConfirmedUID types.UID
}

// Preview is one object before and after an apply that did not take place.
type Preview struct {
	// Before is nil if there is no copy yet; After is nil if it cannot be said.
	Before, After *unstructured.Unstructured
	// Unadopted is true if Before is not Hanse's. After then says what taking it over would write.
	Unadopted bool
	// InSync is true if the copy is as it was last confirmed, and the hub would write the same again.
	InSync bool
	// Refused says why the hub would write nothing now, although After says what it would write.
	Refused *Outcome
}

// Owner is an object on the member whose children are asked for.
type Owner struct {
	Kind      schema.GroupKind
	Namespace string
	UID       types.UID
}

// Children are what was found below some owners.
type Children struct {
	// Of has the children of each owner that has any, by UID.
	Of map[types.UID][]Child
	// Notes say what could not be looked at, and why.
	Notes []string
}

// Child is one object with an ownerReference, and those that have one to it.
type Child struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Health is empty for a pod, which has a State alone.
	Health hubv1.Health `json:"health,omitempty"`
	// State is a few words on how it does, such as "Running 2/2".
	State    string  `json:"state,omitempty"`
	Children []Child `json:"children,omitempty"`
}
