// Package memberview lets users view copies on members, adopt existing objects there, and remove copies without a
// binding. Requests go through the hub, because only the hub has credentials for members. Every replica serves them
// over HTTPS.
//
//   - Only Adopt and Prune change objects. Other requests are reads of a member, and dry runs of the hub's own writes.
//   - Adopt adopts one object on one member, once, as a placement with apply.adoption would. It needs the verb adopt on
//     the MemberCluster and update on the hub object, see adopt.go.
//   - Prune removes individually listed copies. It needs the verb prune on the MemberCluster, see prune.go.
//   - The user is identified by the bearer token (TokenReview), or by the key of a CertificateSigningRequest that the
//     user has created, see proof.go. The user needs the verb view on the MemberCluster, and get on the hub object of
//     the copy (SubjectAccessReview). Rendering with other policies needs the rights to write such policies and to
//     change the object, see try.go. With the verb view on ResourceBindings of a namespace, users may view the objects
//     of that namespace on every member.
//   - Users who may view a namespace get the facts that affect its objects: clusters, cluster-scoped policies and
//     override policies, without data of other tenants, see narrow.go.
//   - List shows objects that need not be copies. It needs the verb read on the MemberCluster, or on ResourceBindings
//     of the namespace, and list on the kind on the hub, see list.go.
//   - Events and Logs are about the copy of a hub object and the objects below it. They need list on events and get on
//     pods/log on the hub, see belongings.go.
//   - Otherwise, a single object is shown only if it is a copy with a binding; of its children only names and states
//     are shown. An unmanaged object is shown to users with the verb adopt on the MemberCluster. Of copies without a
//     binding only names, labels and annotations of the hub are shown, for kinds that the user may list. Values of
//     Secrets are removed, see redact.go.
//   - The replica that works on a member sends the requests to it. Another replica passes the request on, once. The
//     receiving replica repeats all checks, because replicas do not trust each other. A replica's Lease has its
//     certificate, see Transport.
//   - A member gets few requests at a time, each with a timeout. So a hanging member delays only the users who view it.
//     The circuit of hub/dispatch does not apply: it is for writes, and users need the view most while writes fail.
//   - No user and no namespace can block the others: each has a share of all slots and of a member's slots. Until the
//     user and its rights are known, a request takes a slot of another kind for a short time, of which each peer has a
//     share.
//
// hub/dispatch decides what the hub would apply. Package member knows the owner of an object and how to reach a member.
// hub/shard decides which replica works on which member.
package memberview

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
	"github.com/hanse-dev/hanse/hub/slots"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/source"
)

// Holder is the replica that works on a member.
type Holder struct {
	// Here is true for this replica.
	Here bool
	// Address, host:port, and Certificate are the replica's annotations, see Annotations. They are empty if no replica
	// works on the member now, or if that replica serves no views.
	Address, Certificate string
}

// Member is the part of a member for viewing, reading, adopting and pruning.
type Member interface {
	member.Viewer
	member.Reader
	member.Pruner
}

// MembersOf returns a function that finds members of a fleet.
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

// Epochs of the hub, see package epochs.
type Epochs interface {
	// Current returns the known epochs.
	Current() source.Epochs
	// Confirm returns the epochs by an uncached read. It may reuse an earlier read that found the given epoch foreign.
	Confirm(ctx context.Context, e source.Epoch) (source.Epochs, error)
}

// Options of a View. All are required.
type Options struct {
	// Client reads bindings from the cache and creates reviews. APIReader reads uncached.
	Client    client.Client
	APIReader client.Reader
	// HubObject returns the versions at which clusters may get an object; template is nil if the object is not known.
	HubObject func(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
	// Mapper has the kinds of the hub.
	Mapper meta.RESTMapper
	// Members returns a member in this replica's shard, or member.ErrNotConnected.
	Members func(cluster string) (Member, error)
	// Intent returns the write that the hub would make, see dispatch.Dispatcher.
	Intent func(ctx context.Context, cluster string, object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error)
	// Adopt adopts an object of a member, see dispatch.Dispatcher.
	Adopt func(
		ctx context.Context, cluster string, object hubv1.ObjectIdentity, adoption hubv1.Adoption, uid types.UID,
	) (member.Outcome, error)
	Holder func(cluster string) Holder
	Epochs Epochs
	// Rank is the order in which kinds are sent to members. They are removed in the opposite order.
	Rank   func(schema.GroupKind) int
	Logger logr.Logger
}

// View answers requests.
type View struct {
	opts    Options
	unknown *slots.Slots // slots of requests whose user is not known yet
	all     *slots.Slots
	trees   *slots.Slots
	users   *heldByUser
	members *slotsByName
	forward func(Holder) http.RoundTripper
}

const (
	// mostRequests is the maximum number of concurrent requests, mostPerMember of them about one member. mostTrees of
	// them may look for children or list copies, which takes many requests. Other requests wait for up to waitForSlot.
	mostRequests  = 64
	mostPerMember = 4
	mostTrees     = 4
	waitForSlot   = 3 * time.Second
	// accountsOfNamespace is the share of mostRequests for the ServiceAccounts of one namespace. A user who may create
	// one account may create many.
	accountsOfNamespace = 16
	// ofUser and ofNamespace are the shares of one user, and of one namespace by accounts and by objects, in
	// mostPerMember and mostTrees.
	ofUser      = 2
	ofNamespace = 3
	// mostUnknown is the maximum number of requests being identified, ofPeer of them from one address, each for up to
	// knownWithin. All users may come from the address of the hub's API server.
	mostUnknown = 64
	ofPeer      = 16
	knownWithin = 5 * time.Second
	// mostPerUser is the maximum number of one user's requests. Further ones are refused.
	mostPerUser = 8
	// readWithin limits the time to receive a request after its sender is known.
	readWithin = 3 * time.Second
	// answerWithin limits a whole request, including the reviews.
	answerWithin = 25 * time.Second
	// writeWithin limits the time to send an answer. Its slots and its memory are held until then.
	writeWithin = 15 * time.Second
	// largestRequest and mostObjects limit one request.
	largestRequest = 512 << 10
	mostObjects    = 50
)

// New returns a View.
func New(o Options) *View {
	return &View{
		opts: o, unknown: slots.New(mostUnknown), all: slots.New(mostRequests), trees: slots.New(mostTrees),
		users: &heldByUser{held: map[string]int{}}, members: &slotsByName{of: map[string]*slots.Slots{}},
		forward: func(h Holder) http.RoundTripper { return Transport(h.Certificate) },
	}
}

// ServeHTTP implements http.Handler.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path("{cluster}", Copy), v.answer(Copy, v.copy))
	mux.HandleFunc("POST "+Path("{cluster}", Diff), v.answer(Diff, v.diff))
	mux.HandleFunc("POST "+Path("{cluster}", Adopt), v.answer(Adopt, v.adopt))
	mux.HandleFunc("POST "+Path("{cluster}", Children), v.answer(Children, v.children))
	mux.HandleFunc("POST "+Path("{cluster}", Unclaimed), v.answer(Unclaimed, v.unclaimed))
	mux.HandleFunc("POST "+Path("{cluster}", Prune), v.answer(Prune, v.prune))
	mux.HandleFunc("POST "+Path("{cluster}", List), v.answer(List, v.list))
	mux.HandleFunc("POST "+Path("{cluster}", Events), v.answer(Events, v.events))
	mux.HandleFunc("POST "+Path("{cluster}", Logs), v.answer(Logs, v.logs))
	mux.HandleFunc("POST "+PathIn("", Facts, ""), v.answer(Facts, v.facts))
	mux.ServeHTTP(w, r)
}

// Transport connects only to replicas with one of these certificates, given by digest. It does not check names, dates
// and authorities. A replica creates its certificate at its start and publishes the digest in its Lease, which only the
// hub may write.
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
