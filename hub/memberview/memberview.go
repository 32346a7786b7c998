// Package memberview lets users look at copies on members, take over objects that are there already, and remove copies
// that no binding claims, through the hub, which alone has credentials for members. Every replica serves it over HTTPS.
//
//   - Nothing is changed anywhere but by Adopt and Prune. Other questions are reads of a member, and dry runs of what
//     the hub itself would apply.
//   - Adopt brings one object to one member as a placement with apply.adoption would, for this once. It needs the verb
//     adopt on the MemberCluster and update on the hub object, see adopt.go.
//   - Prune removes copies that it is told of one by one, as they were shown. It needs the verb prune on the
//     MemberCluster, see prune.go.
//   - Who asks is whom the hub's API server takes the bearer token for (TokenReview), or who made a
//     CertificateSigningRequest whose key they have, see proof.go. They need the verb view on the MemberCluster, and
//     get on the very hub object whose copy they ask for (SubjectAccessReview); to see what other policies would make
//     of it, the rights to make such policies and to change the object, see try.go. With the verb view on
//     ResourceBindings of a namespace, users look at the objects of that namespace on every member.
//   - Users who may view a namespace are told the facts that decide on its objects: clusters, cluster-scoped policies
//     and override policies, without all that concerns others, see narrow.go.
//   - Of single objects only copies are shown, of a binding that exists; below them names and states of children. An
//     object that is not Hanse's yet is shown to users with the verb adopt on the MemberCluster. Of copies without a
//     binding only names and marks are shown, of kinds that the user may list. Values of Secrets are taken out, see
//     redact.go.
//   - A member is asked by the replica that works on it. Another one passes the request on, once, and that one checks
//     everything anew: replicas do not trust each other. Which certificate a replica has is in its Lease, see
//     Transport.
//   - A member is asked few questions at a time, each with a time-out, so that one that hangs holds up those who look
//     at it and nobody else. The circuit of hub/dispatch is for writes: to look is most wanted while they fail.
//   - No user and no namespace can block the others: each has a part of all slots and of a member's slots. Until the
//     user and its rights are known, a request takes a slot of another kind for a short time, of which each peer has a
//     part.
//
// Not decided here: what the hub would apply (hub/dispatch), whose an object is and how a member is asked (behind
// package member), who works on which member (hub/shard).
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
	// Here is true if that is this replica.
	Here bool
	// Address, host:port, and Certificate are the replica's annotations, see Annotations. Empty if no replica works on the
	// member now, or if that replica serves no views.
	Address, Certificate string
}

// Member is a member as users look at it and clean it up.
type Member interface {
	member.Viewer
	member.Pruner
}

// MembersOf returns the members of a fleet as users look at them.
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
	// HubObject tells at which versions clusters may get an object; template is nil if the object is not known.
	HubObject func(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
	// Mapper knows the kinds of the hub.
	Mapper meta.RESTMapper
	// Members gives the members that this replica works on, or member.ErrNotConnected.
	Members func(cluster string) (Member, error)
	// Intent returns the write that the hub would make, see dispatch.Dispatcher.
	Intent func(ctx context.Context, cluster string, object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error)
	// Adopt takes an object of a member over, see dispatch.Dispatcher.
	Adopt func(
		ctx context.Context, cluster string, object hubv1.ObjectIdentity, adoption hubv1.Adoption, uid types.UID,
	) (member.Outcome, error)
	Holder func(cluster string) Holder
	Epochs Epochs
	// Rank is how early a kind goes to members. It leaves them in the opposite order.
	Rank   func(schema.GroupKind) int
	Logger logr.Logger
}

// View answers requests.
type View struct {
	opts    Options
	unknown *slots.Slots // of requests whose user is not known yet
	all     *slots.Slots
	trees   *slots.Slots
	users   *heldByUser
	members *slotsByName
	forward func(Holder) http.RoundTripper
}

const (
	// mostRequests are answered at a time, mostPerMember of them about one member, and mostTrees of them look for children
	// or list copies, which takes many requests. The others wait for up to waitForSlot.
	mostRequests  = 64
	mostPerMember = 4
	mostTrees     = 4
	waitForSlot   = 3 * time.Second
	// accountsOfNamespace is how many of mostRequests the ServiceAccounts of one namespace may have, because a user who
	// may create one may create many.
	accountsOfNamespace = 16
	// ofUser and ofNamespace are the parts of one user, and of one namespace by accounts and by objects, of mostPerMember
	// and of mostTrees.
	ofUser      = 2
	ofNamespace = 3
	// mostUnknown requests are examined at a time, ofPeer of them from one address, each for up to knownWithin. All users
	// may come from the address of the hub's API server.
	mostUnknown = 64
	ofPeer      = 16
	knownWithin = 5 * time.Second
	// mostPerUser of them are one user's. More are refused.
	mostPerUser = 8
	// readWithin bounds how long a request may take to arrive once its sender is known.
	readWithin = 3 * time.Second
	// answerWithin bounds a whole request, the reviews included.
	answerWithin = 25 * time.Second
	// largestRequest and mostObjects bound one request.
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
	mux.HandleFunc("POST "+PathIn("", Facts, ""), v.answer(Facts, v.facts))
	mux.ServeHTTP(w, r)
}

// Transport connects only to replicas with one of these certificates, which are given by digest. Names, dates and
// authorities do not count: a replica makes its certificate when it starts, and has its digest in its Lease, which only
// the hub may write.
func Transport(certificates ...string) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DisableKeepAlives = true // it is for few requests
	t.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // what is verified instead is below
		VerifyConnection:   func(state tls.ConnectionState) error { return isOneOf(state, certificates) },
	}
	return t
}
