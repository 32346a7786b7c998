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
	// TokenHeader has the user's bearer token. The header Authorization does not work, because API servers remove it
	// before they pass a request on to a Service.
	TokenHeader = "Hanse-Token"
	// Audience is the audience of tokens that are valid for this service only.
	Audience = "hanse-hub"
	// passedOn marks a request that another replica passed on.
	passedOn = "Hanse-Passed-On"
)

// Names of requests about a member. A request is a POST with a JSON body. An error is returned as a metav1.Status.
const (
	Copy     = "copy"     // CopyRequest, CopyAnswer
	Diff     = "diff"     // DiffRequest, DiffAnswer
	Children = "children" // ChildrenRequest, ChildrenAnswer
	// Adopt adopts an object that Hanse does not manage, or returns the changes that adoption would make.
	Adopt = "adopt" // AdoptRequest, AdoptAnswer
	// Unclaimed lists the copies on a member that no binding claims. Prune removes such copies.
	Unclaimed = "unclaimed" // UnclaimedRequest, UnclaimedAnswer
	Prune     = "prune"     // PruneRequest, PruneAnswer
	// List lists objects of a kind, whether or not they are copies. Events and Logs are about the copy of a hub object and
	// the objects that controllers made for it.
	List   = "list"   // ListRequest, ListAnswer
	Events = "events" // EventsRequest, EventsAnswer
	Logs   = "logs"   // LogsRequest, LogsAnswer
)

// Facts is the name of a request for the clusters and cluster-scoped policies that affect the objects of a namespace:
// FactsRequest, FactsAnswer. The hub sends no request to a member for it.
const Facts = "facts"

// namespaceParameter is the query parameter with the namespace of all requested objects. A user who may view only that
// namespace must set it.
const namespaceParameter = "namespace"

// Path returns the path of a request about a member.
func Path(cluster, what string) string { return "/members/" + cluster + "/" + what }

// PathIn returns the path and query of a request about objects of one namespace. The namespace is empty if the objects
// are cluster-scoped or in several namespaces. cluster is empty if the request is not about a member.
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

// FactsRequest requests the policies and clusters that affect the namespace in the path.
type FactsRequest struct{}

// FactsAnswer has the policies and clusters that affect the objects of a namespace. A cluster does not have facts that
// these policies do not read.
type FactsAnswer struct {
	MemberClusters          []hubv1.MemberCluster         `json:"memberClusters,omitempty"`
	ClusterPlacements       []hubv1.ClusterPlacement      `json:"clusterPlacements,omitempty"`
	ClusterOverridePolicies []hubv1.ClusterOverridePolicy `json:"clusterOverridePolicies,omitempty"`
	OverridePolicies        []hubv1.OverridePolicy        `json:"overridePolicies,omitempty"`
	// Notes tell which data is left out although it may affect the objects.
	Notes []string `json:"notes,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ObjectOf converts an object's identity to the form of a request.
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

// CopyAnswer has the current copy on the member, with managedFields, but without values of Secrets.
type CopyAnswer struct {
	Object  map[string]any `json:"object,omitempty"`
	Refused *Reason        `json:"refused,omitempty"` // why there is no copy
}

// DiffRequest asks for the changes that the hub would make to the copy of an object.
type DiffRequest struct {
	Object Object `json:"object"`
	// Policies are OverridePolicies and ClusterOverridePolicies. Each replaces the hub's policy of the same name for
	// this request.
	Policies []json.RawMessage `json:"policies,omitempty"`
}

// DiffAnswer has the copy before and after the hub's next write. Both are without status, managedFields, and the hub's
// labels and annotations.
type DiffAnswer struct {
	// Before is absent if there is no copy. After is absent if the hub cannot compute it.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Unadopted is true if Hanse does not manage the object Before. After is then the object as adoption would leave it.
	// Only users with the verb adopt on the MemberCluster see such an object.
	Unadopted bool `json:"unadopted,omitempty"`
	// Refused is the reason why the hub would not write After now.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptRequest asks to adopt the member's object that has the kind and name of a hub object.
type AdoptRequest struct {
	Object Object `json:"object"`
	// Adoption is the policy for the adoption: IfNoDiff or Always.
	Adoption hubv1.Adoption `json:"adoption"`
	// UID is the UID of the object that the user has seen. If it is empty, the adoption is only simulated, and nothing
	// changes.
	UID types.UID `json:"uid,omitempty"`
}

// AdoptAnswer tells who manages the object, and has the changes of the real or simulated adoption.
type AdoptAnswer struct {
	State AdoptState `json:"state"`
	// UID is the UID of the object if it can be adopted.
	UID types.UID `json:"uid,omitempty"`
	// Changes are the paths that adoption would change, without values. They are empty for a Secret.
	Changes []string `json:"changes,omitempty"`
	// Refused is the reason why the object is not adopted.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptState says whether a member's object can be adopted.
type AdoptState string

// The states of a member's object.
const (
	AdoptCopy     AdoptState = "Copy"      // the object already is the copy of the hub object
	AdoptMissing  AdoptState = "Missing"   // the member has no such object
	AdoptPossible AdoptState = "Adoptable" // Hanse does not manage the object, and can adopt it
	AdoptDiffers  AdoptState = "Differs"   // Hanse does not manage the object, and the Adoption policy forbids adoption
	AdoptAdopted  AdoptState = "Adopted"   // this request has adopted the object
	AdoptRefused  AdoptState = "Refused"   // the hub does not adopt the object; Refused has the reason
)

// ChildrenRequest asks for the objects that controllers on the member made for the copies of at most 50 hub objects.
type ChildrenRequest struct {
	Objects []Object `json:"objects"`
}

// ChildrenAnswer has an entry for each hub object, in the order of the request.
type ChildrenAnswer struct {
	Objects []ObjectChildren `json:"objects"`
	// Notes name the kinds that could not be read.
	Notes []string `json:"notes,omitempty"`
}

// ObjectChildren are the objects that controllers have made for one copy.
type ObjectChildren struct {
	Object   Object         `json:"object"`
	UID      types.UID      `json:"uid,omitempty"` // UID of the copy; empty if the hub does not know of a copy
	Children []member.Child `json:"children,omitempty"`
	// Refused is the reason why there is no answer for the object. It is the same for a missing right and for an object
	// that is not sent to the cluster, so that it reveals neither.
	Refused *Reason `json:"refused,omitempty"`
}

// UnclaimedRequest asks for the copies on a member that no binding claims.
type UnclaimedRequest struct{}

// UnclaimedAnswer has the copies in the order of their removal: a copy comes before the copies on which it depends.
type UnclaimedAnswer struct {
	Copies []UnclaimedCopy `json:"copies,omitempty"`
	// Notes name the kinds that are not listed, with the reason.
	Notes []string `json:"notes,omitempty"`
}

// ShownCopy identifies a copy and the version of it that an UnclaimedAnswer listed.
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
	// Removal says what Prune does with the copy: Delete, or Orphan for definitions, namespaces and adopted copies.
	Removal hubv1.RemovalPolicy `json:"removal"`
	// Newer is true if the copy was written after the backup from which the hub was restored. Prune does not remove such a
	// copy until an admin has accepted the restore.
	Newer bool `json:"newer,omitempty"`
}

// PruneRequest asks to remove at most 25 copies.
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
	PruneDeleting PruneOutcome = "Deleting" // the member accepted the deletion, but the object waits, for example for finalizers
	PruneOrphaned PruneOutcome = "Orphaned" // the object stays, without the hub's labels and annotations
	PruneClaimed  PruneOutcome = "Claimed"  // a binding claims the copy now, so that it stays
	PruneNotOurs  PruneOutcome = "NotOurs"  // the object is not this hub's copy, so that it stays
	PruneHeld     PruneOutcome = "Held"     // the copy is newer than the hub's state, so that it stays
	PruneFailed   PruneOutcome = "Failed"
)

// ListRequest asks for the objects of a kind, in the namespace of the path or in all namespaces.
type ListRequest struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	// Name selects one object; if it is empty, all objects are listed.
	Name          string `json:"name,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Whole asks for whole objects instead of table rows. The objects are without managedFields and values of Secrets.
	Whole bool `json:"whole,omitempty"`
	// Most limits the listed objects. The default, for zero, is MostListed.
	Most int `json:"most,omitempty"`
}

// ListAnswer has table rows or objects.
type ListAnswer struct {
	member.Listed
	// NotServed is true if the member does not serve the kind at this version.
	NotServed bool `json:"notServed,omitempty"`
}

// EventsRequest asks for the events about the copy of an object, and about the objects that controllers made for it.
type EventsRequest struct {
	Object Object `json:"object"`
}

// EventsAnswer has the newest events, in the order from old to new.
type EventsAnswer struct {
	Events []member.Event `json:"events,omitempty"`
	// More is true if the member has more events than the answer, or more objects below the copy than were read.
	More bool `json:"more,omitempty"`
	// Notes name the kinds that could not be read.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there are no events.
	Refused *Reason `json:"refused,omitempty"`
}

// LogsRequest asks for the logs of the pods that belong to the copy of an object.
type LogsRequest struct {
	Object Object `json:"object"`
	// Container selects one container; if it is empty, all containers are selected.
	Container string `json:"container,omitempty"`
	// Lines limits the lines of each container's log.
	Lines int64 `json:"lines,omitempty"`
	// Since names the logs of which the user already has lines. Only newer lines of these logs are read.
	Since []LogSince `json:"since,omitempty"`
}

// LogSince is the time from which the lines of a log are read, in whole seconds.
type LogSince struct {
	Pod       string      `json:"pod"`
	Container string      `json:"container,omitempty"`
	Time      metav1.Time `json:"time"`
}

// LogsAnswer has the last lines of each log.
type LogsAnswer struct {
	Logs []ContainerLog `json:"logs,omitempty"`
	// Notes name the kinds that could not be read, and the omitted pods.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there are no logs.
	Refused *Reason `json:"refused,omitempty"`
}

// ContainerLog has the last lines of one container's log. Each line begins with its time. The lines may contain
// anything that the container has written, such as control characters.
type ContainerLog struct {
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Text      string `json:"text,omitempty"`
	// Cut is true if lines are missing, because the log exceeds the limit of an answer.
	Cut bool `json:"cut,omitempty"`
	// Error is why the log could not be read.
	Error string `json:"error,omitempty"`
}

// Reason says why the hub does not do what a request asks for.
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
