package memberview

import (
	"encoding/json"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const (
	// TokenHeader has the user's bearer token. It is not Authorization, which API servers do not pass on to a Service.
	TokenHeader = "Hanse-Token"
	// Audience for tokens that are valid for this service only.
	Audience = "hanse-hub"
	// passedOn marks a request that comes from another replica.
	passedOn = "Hanse-Passed-On"
)

// What can be asked of a member, by POST with a JSON body. An error is answered as a metav1.Status.
const (
	Copy     = "copy"     // CopyRequest, CopyAnswer
	Diff     = "diff"     // DiffRequest, DiffAnswer
	Children = "children" // ChildrenRequest, ChildrenAnswer
	// Adopt adopts an object that is not Hanse's, or returns the changes that it would make.
	Adopt = "adopt" // AdoptRequest, AdoptAnswer
	// Unclaimed lists the copies that no binding claims, and Prune removes such copies.
	Unclaimed = "unclaimed" // UnclaimedRequest, UnclaimedAnswer
	Prune     = "prune"     // PruneRequest, PruneAnswer
)

// Facts returns the policies and clusters outside of a namespace that decide on its objects: FactsRequest, FactsAnswer.
// No member is asked.
const Facts = "facts"

// namespaceParameter of a query names the namespace of all objects that are asked about. Users who may look into that
// namespace alone must name it.
const namespaceParameter = "namespace"

// Path of a question about a member.
func Path(cluster, what string) string { return "/members/" + cluster + "/" + what }

// PathIn is the path, with its query, of a question about objects of a namespace; empty for objects of several, or
// without one. A question about no member has no cluster.
func PathIn(cluster, what, namespace string) string {
	path := Path(cluster, what)
	if cluster == "" {
		path = "/" + what
	}
	if namespace == "" {
		return path
	}
	return path + "?" + url.Values{namespaceParameter: {namespace}}.Encode()
}

// FactsRequest asks about the namespace of the path.
type FactsRequest struct{}

// FactsAnswer has what an author of the namespace has to know of the fleet. Of clusters it has only what the policies
// read that are shown.
type FactsAnswer struct {
	MemberClusters          []hubv1.MemberCluster         `json:"memberClusters,omitempty"`
	ClusterPlacements       []hubv1.ClusterPlacement      `json:"clusterPlacements,omitempty"`
	ClusterOverridePolicies []hubv1.ClusterOverridePolicy `json:"clusterOverridePolicies,omitempty"`
	OverridePolicies        []hubv1.OverridePolicy        `json:"overridePolicies,omitempty"`
	// Notes say what is left out that may decide, too.
	Notes []string `json:"notes,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ObjectOf is the name of an object on the wire.
func ObjectOf(id hubv1.ObjectIdentity) Object {
	return Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

func (o Object) identity() hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// CopyRequest asks for the copy of an object.
type CopyRequest struct {
	Object Object `json:"object"`
}

// CopyAnswer has the copy as it is on the member, with its managedFields, without values of Secrets.
type CopyAnswer struct {
	Object  map[string]any `json:"object,omitempty"`
	Refused *Reason        `json:"refused,omitempty"` // why there is none
}

// DiffRequest asks for the changes that the hub would make to the copy of an object.
type DiffRequest struct {
	Object Object `json:"object"`
	// Policies are OverridePolicies and ClusterOverridePolicies that replace those of the same names on the hub.
	Policies []json.RawMessage `json:"policies,omitempty"`
}

// DiffAnswer has both states without status, managedFields and marks of the hub.
type DiffAnswer struct {
	// Before is absent if there is no copy; After if it cannot be said.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Unadopted is true if Before is not Hanse's. Then After is the object as adopted. It is shown to users with the verb
	// adopt on the MemberCluster.
	Unadopted bool `json:"unadopted,omitempty"`
	// Refused says why the hub would not write After now.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptRequest asks to take over the object of a member that has the kind and name of a hub object.
type AdoptRequest struct {
	Object Object `json:"object"`
	// Adoption is how: IfNoDiff or Always.
	Adoption hubv1.Adoption `json:"adoption"`
	// UID of the object that was shown. Empty: nothing is changed, and the answer has the changes that would be made.
	UID types.UID `json:"uid,omitempty"`
}

// AdoptAnswer says to whom the object belongs, and what was or would be done.
type AdoptAnswer struct {
	State AdoptState `json:"state"`
	// UID is that of the object, if it can be taken over.
	UID types.UID `json:"uid,omitempty"`
	// Changes are the paths at which taking it over would change the object, without values. Of a Secret there are none.
	Changes []string `json:"changes,omitempty"`
	// Refused says why the object is not taken over.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptState says whose an object of a member is.
type AdoptState string

// The states of objects that may be taken over.
const (
	AdoptCopy     AdoptState = "Copy"      // it is the copy of the hub object already
	AdoptMissing  AdoptState = "Missing"   // there is none
	AdoptPossible AdoptState = "Adoptable" // it is not Hanse's, and can be taken over
	AdoptDiffers  AdoptState = "Differs"   // it is not Hanse's, and Adoption does not take it over
	AdoptAdopted  AdoptState = "Adopted"   // it was taken over now
	AdoptRefused  AdoptState = "Refused"   // Refused says why
)

// ChildrenRequest asks for the objects that controllers on the member made for copies of at most 50 objects.
type ChildrenRequest struct {
	Objects []Object `json:"objects"`
}

// ChildrenAnswer has the objects in the order in which they were asked for.
type ChildrenAnswer struct {
	Objects []ObjectChildren `json:"objects"`
	// Notes say which kinds could not be read.
	Notes []string `json:"notes,omitempty"`
}

// ObjectChildren are the children of one copy.
type ObjectChildren struct {
	Object   Object         `json:"object"`
	UID      types.UID      `json:"uid,omitempty"` // of the copy; empty if none is known
	Children []member.Child `json:"children,omitempty"`
	// Refused says why there is no answer for this object: the user may not get it, or the hub does not send it to the
	// cluster. Both have the same text.
	Refused *Reason `json:"refused,omitempty"`
}

// UnclaimedRequest asks for the copies on a member that no binding claims.
type UnclaimedRequest struct{}

// UnclaimedAnswer has them in the order in which they may be removed: objects that others need come last.
type UnclaimedAnswer struct {
	Copies []UnclaimedCopy `json:"copies,omitempty"`
	// Notes say which kinds are not listed, and why.
	Notes []string `json:"notes,omitempty"`
}

// ShownCopy is one copy as it was listed.
type ShownCopy struct {
	Object          Object    `json:"object"`
	Version         string    `json:"version"` // of the kind, such as v1
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// UnclaimedCopy is a copy that no binding claims.
type UnclaimedCopy struct {
	ShownCopy
	Created metav1.Time `json:"created"`
	// Removal is what Prune does with the copy: Delete, or Orphan for definitions, namespaces and copies that were
	// adopted.
	Removal hubv1.RemovalPolicy `json:"removal"`
	// Newer is true if a later state of the hub wrote the copy. Prune holds it until the restore of the hub is accepted.
	Newer bool `json:"newer,omitempty"`
}

// PruneRequest names at most 25 copies.
type PruneRequest struct {
	Copies []ShownCopy `json:"copies"`
}

// PruneAnswer has the outcomes in the order of the request.
type PruneAnswer struct {
	Copies []PrunedCopy `json:"copies"`
}

// PrunedCopy is the outcome of one copy.
type PrunedCopy struct {
	Object  Object       `json:"object"`
	Outcome PruneOutcome `json:"outcome"`
	Message string       `json:"message,omitempty"`
}

// PruneOutcome is the result for one copy.
type PruneOutcome string

// The outcomes of copies.
const (
	PruneRemoved  PruneOutcome = "Removed"
	PruneDeleting PruneOutcome = "Deleting" // the delete was accepted and the object waits, for finalizers for example
	PruneOrphaned PruneOutcome = "Orphaned" // the object stays, without marks of the hub
	PruneClaimed  PruneOutcome = "Claimed"  // a binding claims the copy by now: it stays
	PruneNotOurs  PruneOutcome = "NotOurs"  // the object is not this hub's copy: it stays
	PruneHeld     PruneOutcome = "Held"     // the copy is newer than the hub: it stays
	PruneFailed   PruneOutcome = "Failed"
)

// Reason says why something is not done.
type Reason struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

func reasonOf(o *member.Outcome) *Reason {
	if o == nil {
		return nil
	}
	return &Reason{Reason: o.Reason, Message: o.Message}
}
