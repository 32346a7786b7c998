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
	// TokenHeader has the user's bearer token. The header Authorization cannot be used, because API servers do not pass
	// it on to a Service.
	TokenHeader = "Hanse-Token"
	// Audience for tokens that are valid for this service only.
	Audience = "hanse-hub"
	// passedOn marks a request that comes from another replica.
	passedOn = "Hanse-Passed-On"
)

// The requests about a member: POST with a JSON body. An error is returned as a metav1.Status.
const (
	Copy     = "copy"     // CopyRequest, CopyAnswer
	Diff     = "diff"     // DiffRequest, DiffAnswer
	Children = "children" // ChildrenRequest, ChildrenAnswer
	// Adopt adopts an object that is not Hanse's, or returns the changes that it would make.
	Adopt = "adopt" // AdoptRequest, AdoptAnswer
	// Unclaimed lists the copies that no binding claims, and Prune removes such copies.
	Unclaimed = "unclaimed" // UnclaimedRequest, UnclaimedAnswer
	Prune     = "prune"     // PruneRequest, PruneAnswer
	// List lists objects of a kind, whether or not they are copies. Events and Logs are about the copy of a hub object and
	// the objects that controllers made for it.
	List   = "list"   // ListRequest, ListAnswer
	Events = "events" // EventsRequest, EventsAnswer
	Logs   = "logs"   // LogsRequest, LogsAnswer
)

// Facts returns the policies and clusters outside a namespace that affect its objects: FactsRequest, FactsAnswer. No
// member is involved.
const Facts = "facts"

// namespaceParameter is the query parameter with the namespace of all requested objects. Users who may view only that
// namespace must set it.
const namespaceParameter = "namespace"

// Path returns the path of a request about a member.
func Path(cluster, what string) string { return "/members/" + cluster + "/" + what }

// PathIn returns the path and query of a request about objects of a namespace; empty for objects of several namespaces,
// or without one. A request about no member has no cluster.
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

// FactsRequest requests the facts for the namespace in the path.
type FactsRequest struct{}

// FactsAnswer has the facts about the fleet for an author of the namespace. A cluster has only the facts that the shown
// policies read.
type FactsAnswer struct {
	MemberClusters          []hubv1.MemberCluster         `json:"memberClusters,omitempty"`
	ClusterPlacements       []hubv1.ClusterPlacement      `json:"clusterPlacements,omitempty"`
	ClusterOverridePolicies []hubv1.ClusterOverridePolicy `json:"clusterOverridePolicies,omitempty"`
	OverridePolicies        []hubv1.OverridePolicy        `json:"overridePolicies,omitempty"`
	// Notes name omitted data that may affect the objects, too.
	Notes []string `json:"notes,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ObjectOf converts the identity of an object for a request.
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

// CopyAnswer has the current copy on the member, with its managedFields, without values of Secrets.
type CopyAnswer struct {
	Object  map[string]any `json:"object,omitempty"`
	Refused *Reason        `json:"refused,omitempty"` // why there is no copy
}

// DiffRequest asks for the changes that the hub would make to the copy of an object.
type DiffRequest struct {
	Object Object `json:"object"`
	// Policies are OverridePolicies and ClusterOverridePolicies that replace those of the same names on the hub.
	Policies []json.RawMessage `json:"policies,omitempty"`
}

// DiffAnswer has both states without status, managedFields, and the hub's labels and annotations.
type DiffAnswer struct {
	// Before is absent if there is no copy; After is absent if it cannot be computed.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Unadopted is true if Hanse does not manage Before. Then After is the object as adopted. It is shown only to users
	// with the verb adopt on the MemberCluster.
	Unadopted bool `json:"unadopted,omitempty"`
	// Refused is the reason why the hub would not write After now.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptRequest requests the adoption of the member's object with the kind and name of a hub object.
type AdoptRequest struct {
	Object Object `json:"object"`
	// Adoption policy: IfNoDiff or Always.
	Adoption hubv1.Adoption `json:"adoption"`
	// UID of the object that was shown. If empty, nothing is changed, and the answer has the simulated changes.
	UID types.UID `json:"uid,omitempty"`
}

// AdoptAnswer has the owner of the object, and the real or simulated result.
type AdoptAnswer struct {
	State AdoptState `json:"state"`
	// UID of the object, if it can be adopted.
	UID types.UID `json:"uid,omitempty"`
	// Changes are the paths that adoption would change, without values. They are empty for a Secret.
	Changes []string `json:"changes,omitempty"`
	// Refused is the reason why the object is not adopted.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptState is the state of a member's object for adoption.
type AdoptState string

// The states for adoption.
const (
	AdoptCopy     AdoptState = "Copy"      // it already is the copy of the hub object
	AdoptMissing  AdoptState = "Missing"   // there is no object
	AdoptPossible AdoptState = "Adoptable" // Hanse does not manage it, and can adopt it
	AdoptDiffers  AdoptState = "Differs"   // Hanse does not manage it, and the Adoption policy forbids adoption
	AdoptAdopted  AdoptState = "Adopted"   // it has just been adopted
	AdoptRefused  AdoptState = "Refused"   // Refused has the reason
)

// ChildrenRequest asks for the objects that controllers on the member made for copies of at most 50 objects.
type ChildrenRequest struct {
	Objects []Object `json:"objects"`
}

// ChildrenAnswer has the objects in the order of the request.
type ChildrenAnswer struct {
	Objects []ObjectChildren `json:"objects"`
	// Notes name the kinds that could not be read.
	Notes []string `json:"notes,omitempty"`
}

// ObjectChildren are the children of one copy.
type ObjectChildren struct {
	Object   Object         `json:"object"`
	UID      types.UID      `json:"uid,omitempty"` // UID of the copy; empty if none is known
	Children []member.Child `json:"children,omitempty"`
	// Refused is the reason why there is no answer for this object. A missing right and an object that is not sent to
	// the cluster have the same text.
	Refused *Reason `json:"refused,omitempty"`
}

// UnclaimedRequest asks for the copies on a member that no binding claims.
type UnclaimedRequest struct{}

// UnclaimedAnswer has the copies in the order of their removal: objects on which others depend come last.
type UnclaimedAnswer struct {
	Copies []UnclaimedCopy `json:"copies,omitempty"`
	// Notes name the kinds that are not listed, with the reason.
	Notes []string `json:"notes,omitempty"`
}

// ShownCopy is one copy as listed before.
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
	// Removal is the action of Prune on the copy: Delete, or Orphan for definitions, namespaces and adopted copies.
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
	PruneDeleting PruneOutcome = "Deleting" // the delete was accepted, and the object waits, for example for finalizers
	PruneOrphaned PruneOutcome = "Orphaned" // the object stays, without the hub's labels and annotations
	PruneClaimed  PruneOutcome = "Claimed"  // a binding claims the copy now: it stays
	PruneNotOurs  PruneOutcome = "NotOurs"  // the object is not this hub's copy: it stays
	PruneHeld     PruneOutcome = "Held"     // the copy is newer than the hub: it stays
	PruneFailed   PruneOutcome = "Failed"
)

// ListRequest asks for the objects of a kind in the namespace of the path, or in all.
type ListRequest struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	// Name is empty for all objects.
	Name          string `json:"name,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Whole asks for objects, without managedFields and without values of Secrets, instead of rows of a table.
	Whole bool `json:"whole,omitempty"`
	// Most is the maximum number of objects: MostListed if it is zero.
	Most int `json:"most,omitempty"`
}

// ListAnswer has the rows or the objects.
type ListAnswer struct {
	member.Listed
	// NotServed is true if the member does not serve the kind at this version.
	NotServed bool `json:"notServed,omitempty"`
}

// EventsRequest asks for the events about the copy of an object, and about the objects that controllers made for it.
type EventsRequest struct {
	Object Object `json:"object"`
}

// EventsAnswer has the newest events, the oldest first.
type EventsAnswer struct {
	Events []member.Event `json:"events,omitempty"`
	// More is true if the member has more events, or more objects.
	More bool `json:"more,omitempty"`
	// Notes name the kinds that could not be read.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there is no answer.
	Refused *Reason `json:"refused,omitempty"`
}

// LogsRequest asks for the logs of the pods that belong to the copy of an object.
type LogsRequest struct {
	Object Object `json:"object"`
	// Container is empty for all containers.
	Container string `json:"container,omitempty"`
	// Lines is the maximum number of lines of each container.
	Lines int64 `json:"lines,omitempty"`
	// Since has the logs of which the user has lines already. Only their newer lines are read.
	Since []LogSince `json:"since,omitempty"`
}

// LogSince is the time since when lines of a log are read, in full seconds.
type LogSince struct {
	Pod       string      `json:"pod"`
	Container string      `json:"container,omitempty"`
	Time      metav1.Time `json:"time"`
}

// LogsAnswer has the end of each log.
type LogsAnswer struct {
	Logs []ContainerLog `json:"logs,omitempty"`
	// Notes name the kinds that could not be read, and omitted pods.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there is no answer.
	Refused *Reason `json:"refused,omitempty"`
}

// ContainerLog is the end of the log of one container. Each line begins with its time. The text is the container's own.
type ContainerLog struct {
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Text      string `json:"text,omitempty"`
	// Cut is true if the log has more than the hub returns.
	Cut bool `json:"cut,omitempty"`
	// Error is the reason why the log could not be read.
	Error string `json:"error,omitempty"`
}

// Reason is the reason why an action is not done.
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
