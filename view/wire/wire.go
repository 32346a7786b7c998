// Package wire has the requests that users send to the hub about members, and the hub's answers. The hub serves them in
// package hub/views.
package wire

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
	// Audience is the audience of tokens that are valid only for requests to the hub about members.
	Audience = "hanse-hub"
)

// These are the names of requests about a member, with the types of their bodies and answers. A request is a POST with
// a JSON body. An error in the response is a metav1.Status.
const (
	Copy     = "copy"     // CopyRequest, CopyAnswer
	Diff     = "diff"     // DiffRequest, DiffAnswer
	Children = "children" // ChildrenRequest, ChildrenAnswer
	// Adopt takes an object that Hanse does not manage over as a copy, or returns the changes that this adoption would
	// make.
	Adopt = "adopt" // AdoptRequest, AdoptAnswer
	// Unclaimed lists the copies on a member that no binding claims: the object has no binding, or its binding does not
	// name the member. Prune removes such copies.
	Unclaimed = "unclaimed" // UnclaimedRequest, UnclaimedAnswer
	Prune     = "prune"     // PruneRequest, PruneAnswer
	// List lists the objects of a kind, whether or not they are copies. Events and Logs concern the copy of a hub object,
	// and the objects that controllers made for this copy.
	List   = "list"   // ListRequest, ListAnswer
	Events = "events" // EventsRequest, EventsAnswer
	Logs   = "logs"   // LogsRequest, LogsAnswer
)

// Facts is the name of a request for the clusters and policies that affect the objects of a namespace. Its body is a
// FactsRequest, and its answer a FactsAnswer. To answer it, the hub sends no request to a member.
const Facts = "facts"

// NamespaceParameter is the query parameter with the namespace of all requested objects. A user who may view only one
// namespace must set this parameter.
const NamespaceParameter = "namespace"

// Path returns the path of a request about a member.
func Path(cluster, what string) string { return "/members/" + cluster + "/" + what }

// PathIn returns the path and query of a request about objects of one namespace. namespace is empty if the objects are
// cluster-scoped or in several namespaces. cluster is empty if the request is not about a member.
func PathIn(cluster, what, namespace string) string {
	path := Path(cluster, what)
	if cluster == "" {
		path = "/" + what
	}
	if namespace == "" {
		return path
	}
	return path + "?" + url.Values{NamespaceParameter: {namespace}}.Encode()
}

// FactsRequest asks for the policies and clusters that affect the namespace in the request's query.
type FactsRequest struct{}

// FactsAnswer has the policies and clusters that affect the objects of a namespace. A cluster in the answer has only
// the data that these policies read.
type FactsAnswer struct {
	MemberClusters          []hubv1.MemberCluster         `json:"memberClusters,omitempty"`
	ClusterPlacements       []hubv1.ClusterPlacement      `json:"clusterPlacements,omitempty"`
	ClusterOverridePolicies []hubv1.ClusterOverridePolicy `json:"clusterOverridePolicies,omitempty"`
	OverridePolicies        []hubv1.OverridePolicy        `json:"overridePolicies,omitempty"`
	// Notes say which data is left out although it may affect the objects.
	Notes []string `json:"notes,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ObjectOf returns an object's identity in the form that requests use.
func ObjectOf(id hubv1.ObjectIdentity) Object {
	return Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// Identity returns the identity of the named object.
func (o Object) Identity() hubv1.ObjectIdentity {
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
	// Policies are OverridePolicies and ClusterOverridePolicies to try out. For this request, each replaces the hub's
	// policy of the same name.
	Policies []json.RawMessage `json:"policies,omitempty"`
	// Next asks for the copy that the hub would write if the object's rollout reached the cluster now. There are then no
	// policies.
	Next bool `json:"next,omitempty"`
}

// DiffAnswer has the copy before and after the hub's next write. Both are without status, managedFields, and the hub's
// labels and annotations.
type DiffAnswer struct {
	// Before is the copy as it is on the member. It is absent if the member has no such object, or if the user may not see
	// it. After is the copy as the hub would write it next. It is absent if the hub cannot compute it.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Unadopted is true if the member's object in Before is not managed by Hanse. After is then this object as the hub
	// would write it after adoption. Only users with the verb adopt on the MemberCluster see such an object.
	Unadopted bool `json:"unadopted,omitempty"`
	// Changed names up to three fields of After that have other values than the hub would send, because the member's
	// admission changes them. Of a Secret it has no values.
	Changed string `json:"changed,omitempty"`
	// Refused is the reason why the hub would not write the copy as After shows it, or why After is absent. It is absent
	// if the hub would write the copy.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptRequest asks the hub to take over, as a copy, the member's object with the kind and name of a hub object.
type AdoptRequest struct {
	Object Object `json:"object"`
	// Adoption says when the hub may adopt the object: IfNoDiff (only without differences) or Always.
	Adoption hubv1.Adoption `json:"adoption"`
	// UID is the UID of the object that the user has seen. If it is empty, the hub only simulates the adoption and changes
	// nothing.
	UID types.UID `json:"uid,omitempty"`
}

// AdoptAnswer says who manages the object, and has the changes of the real or simulated adoption.
type AdoptAnswer struct {
	State AdoptState `json:"state"`
	// UID is the UID of the member's object, if Hanse can adopt the object.
	UID types.UID `json:"uid,omitempty"`
	// Changes are the paths of the fields that adoption would change, without their values. They are empty for a Secret.
	Changes []string `json:"changes,omitempty"`
	// Refused is the reason why the hub does not adopt the object. It is absent if the hub does not refuse the adoption.
	Refused *Reason `json:"refused,omitempty"`
}

// AdoptState says whether a member's object can be adopted.
type AdoptState string

// These states say whether a member's object can be adopted.
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

// ChildrenAnswer has an item for each hub object, in the order of the request.
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
	// Refused is the reason why there is no answer for the hub object. It is the same if the user lacks a right, if the
	// object is not sent to the cluster, and if the object does not exist. Therefore it reveals none of these facts.
	Refused *Reason `json:"refused,omitempty"`
}

// UnclaimedRequest asks for the copies on a member that no binding claims: the object has no binding, or its binding
// does not name the member.
type UnclaimedRequest struct{}

// UnclaimedAnswer has the copies in the order of their removal: a copy comes before the copies on which it depends.
type UnclaimedAnswer struct {
	Copies []UnclaimedCopy `json:"copies,omitempty"`
	// Notes name the kinds that are not listed, with the reason.
	Notes []string `json:"notes,omitempty"`
}

// ShownCopy identifies a copy in the version that the user has seen in an UnclaimedAnswer.
type ShownCopy struct {
	Object          Object    `json:"object"`
	Version         string    `json:"version"` // version of the kind, such as v1
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// UnclaimedCopy is a copy on a member that no binding claims.
type UnclaimedCopy struct {
	ShownCopy
	Created metav1.Time `json:"created"`
	// Removal says what a PruneRequest does with the copy. Delete deletes it. Orphan leaves the object without the hub's
	// labels and annotations; it is for CRDs, namespaces and adopted copies.
	Removal hubv1.RemovalPolicy `json:"removal"`
	// Newer is true if the hub wrote the copy after the backup from which the hub was restored. A PruneRequest does not
	// remove such a copy until an administrator accepts the restored state.
	Newer bool `json:"newer,omitempty"`
}

// PruneRequest asks to remove at most 25 copies.
type PruneRequest struct {
	Copies []ShownCopy `json:"copies"`
}

// PruneAnswer says what the hub did with each copy of a PruneRequest, in the order of the request.
type PruneAnswer struct {
	Copies []PrunedCopy `json:"copies"`
}

// PrunedCopy says what the hub did with one copy of a PruneRequest.
type PrunedCopy struct {
	Object  Object       `json:"object"`
	Outcome PruneOutcome `json:"outcome"`
	Message string       `json:"message,omitempty"`
}

// PruneOutcome says in one word what the hub did with one copy of a PruneRequest.
type PruneOutcome string

// These are the possible outcomes of a PruneRequest for one copy.
const (
	PruneRemoved  PruneOutcome = "Removed"
	PruneDeleting PruneOutcome = "Deleting" // the deletion waits, for example for finalizers
	PruneOrphaned PruneOutcome = "Orphaned" // the object stays, without the hub's labels and annotations
	PruneClaimed  PruneOutcome = "Claimed"  // a binding claims the copy now, so that it stays
	PruneNotOurs  PruneOutcome = "NotOurs"  // the object is not this hub's copy, so that it stays
	PruneHeld     PruneOutcome = "Held"     // the copy is newer than the hub's state, so that it stays
	PruneFailed   PruneOutcome = "Failed"
)

// ListRequest asks for the objects of a kind, in the namespace of the request's query or in all namespaces.
type ListRequest struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	// Name selects one object; if it is empty, all objects are listed.
	Name          string `json:"name,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Whole asks for whole objects instead of table rows. The objects are without managedFields and values of Secrets.
	Whole bool `json:"whole,omitempty"`
	// Most is the maximum number of listed objects. Zero means MaxListed.
	Most int `json:"most,omitempty"`
}

// ListAnswer has the listed objects, as table rows or as whole objects.
type ListAnswer struct {
	member.Listed
	// NotServed is true if the member has answered that it does not serve the kind. The list is then empty.
	NotServed bool `json:"notServed,omitempty"`
}

// EventsRequest asks for the events about the copy of an object, and about the objects that controllers made for it.
type EventsRequest struct {
	Object Object `json:"object"`
}

// EventsAnswer has the newest events, in the order from old to new.
type EventsAnswer struct {
	Events []member.Event `json:"events,omitempty"`
	// More is true if the answer is incomplete. Either the member has more events, or controllers made more objects for
	// the copy than the hub reads.
	More bool `json:"more,omitempty"`
	// Notes name the kinds whose objects could not be read.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there are no events, for example that the member has no copy. Otherwise it is absent.
	Refused *Reason `json:"refused,omitempty"`
}

// LogsRequest asks for the logs of the pods that belong to the copy of an object.
type LogsRequest struct {
	Object Object `json:"object"`
	// Container selects one container; if it is empty, all containers are selected.
	Container string `json:"container,omitempty"`
	// Lines is the maximum number of lines of each container's log. Zero means MaxLines.
	Lines int64 `json:"lines,omitempty"`
	// Since names the logs that the user has already read in part, each with the time from which to read.
	Since []LogSince `json:"since,omitempty"`
}

// LogSince has the time from which one container's log is read. The time is in whole seconds.
type LogSince struct {
	Pod       string      `json:"pod"`
	Container string      `json:"container,omitempty"`
	Time      metav1.Time `json:"time"`
}

// LogsAnswer has the last lines of each log.
type LogsAnswer struct {
	Logs []ContainerLog `json:"logs,omitempty"`
	// Notes name the kinds whose objects could not be read, and say which logs are left out.
	Notes []string `json:"notes,omitempty"`
	// Refused is the reason why there are no logs, for example that the member has no copy. Otherwise it is absent.
	Refused *Reason `json:"refused,omitempty"`
}

// ContainerLog has the last lines of one container's log. Each line begins with its time. A line may contain whatever
// the container has written, including control characters.
type ContainerLog struct {
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Text      string `json:"text,omitempty"`
	// Cut is true if the log was longer than the size limit of a log, so that lines are missing.
	Cut bool `json:"cut,omitempty"`
	// Error says why the log could not be read. It is empty if the log was read.
	Error string `json:"error,omitempty"`
}

// Reason says why the hub does not do what a user has requested.
type Reason struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}
