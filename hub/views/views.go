// Package views lets users view copies on members, adopt existing objects there, and remove copies without a
// binding. Requests go through the hub, because only the hub has credentials for members. Every replica serves them
// over HTTPS.
//
//   - Only Adopt and Prune change objects. All other requests read from a member, or send the hub's own writes as dry
//     runs.
//   - Adopt adopts one object on one member, once, as a placement with apply.adoption would. It needs the verb adopt on
//     the MemberCluster, and update on the hub object; see adopt.go.
//   - Prune removes copies that the request lists by name. It needs the verb prune on the MemberCluster; see prune.go.
//   - The user is identified by the bearer token (TokenReview), or by the key of a CertificateSigningRequest that the
//     user has created; see proof.go. The user needs the verb view on the MemberCluster, and get on the hub object of
//     the copy (SubjectAccessReview). Rendering with changed policies needs the rights to write such policies and to
//     change the object; see try.go. With the verb view on ResourceBindings of a namespace, users may view the objects
//     of that namespace on every member.
//   - Users who may view a namespace may read the clusters, cluster-scoped policies and override policies that affect
//     its objects, without data of other tenants; see narrow.go.
//   - List shows objects of a member, whether or not they are copies. It needs the verb read on the MemberCluster, or
//     on ResourceBindings of the namespace, and list on the kind on the hub; see list.go.
//   - Events and Logs are about the copy of a hub object and the objects below it. They need list on events and get on
//     pods/log on the hub; see belongings.go.
//   - All other requests show a single object only if it is a copy with a binding. Of the copy's children, they show
//     only names and states. An object that Hanse does not manage is shown only to users with the verb adopt on the
//     MemberCluster. Of copies without a binding, Unclaimed shows only names, labels and annotations of the hub, for
//     kinds that the user may list. Values of Secrets are removed; see redact.go.
//   - The replica whose shard has the member sends the requests to it. Another replica passes the request on, once. The
//     receiving replica repeats all checks, because replicas do not trust each other. A replica's Lease has its
//     certificate, see Transport.
//   - A member gets few requests at a time, each with a timeout, so that a hanging member delays only the users who
//     view it. The circuit breaker of hub/dispatch does not stop views, because users need them most while writes fail.
//   - No user and no namespace can block the others: each has a share of all slots and of a member's slots. Until the
//     user is identified and authorized, a request takes another kind of slot for a short time, and each source address
//     has a share of these slots.
//
// The package hub/dispatch decides what the hub would apply. The package member determines the owner of an object and
// connects to members. The package hub/membership/shard decides which replica serves which member.
package views

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/view/wire"
)

// Holder is the replica that serves a member.
type Holder struct {
	// Here is true if this process is the replica that serves the member.
	Here bool
	// Address, as host:port, and Certificate come from the annotations of the replica's Lease, see Annotations. They are
	// empty if no replica serves the member now, or if that replica answers no requests about members.
	Address, Certificate string
}

// Member has the methods of a member for viewing, reading, adopting and pruning.
type Member interface {
	member.Viewer
	member.Reader
	member.Pruner
}

// MembersOf returns a function that finds a member of a fleet by name.
func MembersOf(fleet member.Fleet) func(cluster string) (Member, error) {
	return func(cluster string) (Member, error) {
		c, err := fleet.Get(cluster)
		if err != nil {
			return nil, err
		}
		m, ok := c.(Member)
		if !ok {
			return nil, fmt.Errorf("cluster %q cannot be looked at: it is a %T", cluster, c)
		}
		return m, nil
	}
}

// Epochs returns the hub's epochs. An epoch is a period of the hub's writes to members. Each copy names the epoch of
// its last write. After the hub was restored from a backup, the list of epochs shows which copies are newer than the
// backup.
type Epochs interface {
	// Current returns the hub's epochs as this process has last read them.
	Current() epoch.Epochs
	// Confirm returns the hub's epochs from an uncached read. If an earlier uncached read already found that e is not an
	// epoch of this hub, Confirm may return the epochs from that read.
	Confirm(ctx context.Context, e epoch.Epoch) (epoch.Epochs, error)
}

// Options of a View. All fields are required.
type Options struct {
	// Client reads bindings from the cache, and creates reviews. APIReader reads without a cache.
	Client    client.Client
	APIReader client.Reader
	// HubObject returns the hub object of a binding, with the versions in which clusters may get it. The last argument is
	// the object, or nil if the caller has not read it.
	HubObject func(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
	// Mapper maps each kind that the hub serves to its resource.
	Mapper meta.RESTMapper
	// Members returns a member that this replica serves. The error is member.ErrNotConnected if the hub is not connected
	// to the member.
	Members func(cluster string) (Member, error)
	// Intent returns the write that the hub would make to a copy, see dispatch.Dispatcher. The given policies replace the
	// hub's policies of the same name.
	Intent func(ctx context.Context, cluster string, object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error)
	// NextIntent returns the same if the object's rollout reached the cluster now.
	NextIntent func(ctx context.Context, cluster string, object hubv1.ObjectIdentity) (member.ApplyIntent, *member.Outcome, error)
	// Adopt takes an object of a member over as a copy, see dispatch.Dispatcher.
	Adopt func(
		ctx context.Context, cluster string, object hubv1.ObjectIdentity, adoption hubv1.Adoption, uid types.UID,
	) (member.Outcome, error)
	Holder func(cluster string) Holder
	Epochs Epochs
	// Rank returns the position of a kind in the order in which objects are removed from members. This order is the
	// reverse of the order in which objects are written.
	Rank   func(schema.GroupKind) int
	Logger logr.Logger
}

// View answers the requests of users.
type View struct {
	opts    Options
	unknown *access.Slots // slots of requests whose user is not identified yet
	all     *access.Slots
	trees   *access.Slots
	users   *heldByUser
	members *slotsByName
	forward func(Holder) http.RoundTripper
}

const (
	// maxRequests is the maximum number of concurrent requests, and maxPerMember the maximum about one member. maxTrees
	// is the maximum number of requests that list copies, or search the objects that controllers made for copies. Each of
	// these requests sends many requests to the member. A request above a limit waits for up to waitForSlot.
	maxRequests  = 64
	maxPerMember = 4
	maxTrees     = 4
	waitForSlot  = 3 * time.Second
	// accountsOfNamespace is how many of the maxRequests requests may come from the ServiceAccounts of one namespace.
	// Without this limit, a user could create many accounts to send many requests.
	accountsOfNamespace = 16
	// ofUser is how many of the maxPerMember requests, and of the maxTrees requests, may come from one user. ofNamespace
	// is how many may come from the ServiceAccounts of one namespace, or be about objects of one namespace.
	ofUser      = 2
	ofNamespace = 3
	// maxUnknown is the maximum number of requests whose user is being identified, and ofPeer the maximum of these from
	// one address. ofPeer is not small, because all users may come from the address of the hub's API server. A request is
	// refused if its user is not identified within knownWithin.
	maxUnknown  = 64
	ofPeer      = 16
	knownWithin = 5 * time.Second
	// maxPerUser is the maximum number of concurrent requests of one user. A request above this limit is refused.
	maxPerUser = 8
	// readWithin is the maximum time to receive a request's body, after the user is identified.
	readWithin = 3 * time.Second
	// answerWithin is the maximum time for a whole request, including the access reviews of the user.
	answerWithin = 25 * time.Second
	// writeWithin is the maximum time to send an answer, because the answer uses memory and counts against limits until it
	// is sent.
	writeWithin = 15 * time.Second
	// maxRequestBytes is the maximum size of a request in bytes, and maxObjects the maximum number of objects in it.
	maxRequestBytes = 512 << 10
	maxObjects      = 50
)

// New returns a View.
func New(o Options) *View {
	return &View{
		opts: o, unknown: access.New(maxUnknown), all: access.New(maxRequests), trees: access.New(maxTrees),
		users: &heldByUser{held: map[string]int{}}, members: &slotsByName{of: map[string]*access.Slots{}},
		forward: func(h Holder) http.RoundTripper { return Transport(h.Certificate) },
	}
}

// ServeHTTP implements http.Handler.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Copy), v.answer(wire.Copy, v.copy))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Diff), v.answer(wire.Diff, v.diff))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Adopt), v.answer(wire.Adopt, v.adopt))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Children), v.answer(wire.Children, v.children))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Unclaimed), v.answer(wire.Unclaimed, v.unclaimed))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Prune), v.answer(wire.Prune, v.prune))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.List), v.answer(wire.List, v.list))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Events), v.answer(wire.Events, v.events))
	mux.HandleFunc("POST "+wire.Path("{cluster}", wire.Logs), v.answer(wire.Logs, v.logs))
	mux.HandleFunc("POST "+wire.PathIn("", wire.Facts, ""), v.answer(wire.Facts, v.facts))
	mux.ServeHTTP(w, r)
}

// Transport connects only to replicas whose certificate has one of the given digests. It does not check the
// certificate's name, dates and issuer. A replica creates its certificate when it starts, and publishes the digest in
// its Lease, which only the hub may write.
func Transport(certificates ...string) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DisableKeepAlives = true // only few requests use it
	t.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection below checks the certificate instead
		VerifyConnection:   func(state tls.ConnectionState) error { return isOneOf(state, certificates) },
	}
	return t
}
