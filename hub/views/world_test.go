package views_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/view/wire"
)

var (
	hubConfig *rest.Config
	hub       client.Client // client with the rights of an administrator
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	here      = "cn-sha-1" // the cluster in the shard of the first replica
	hereToo   = "cn-sha-2"
	hereAlso  = "cn-sha-3"
	elsewhere = "eu-fra-1" // the cluster in the shard of the second replica
	nowhere   = "us-east-1"
)

// world has what a test of this package needs: a namespace on the hub, two replicas, and users. The namespace has a
// ConfigMap and a Secret with bindings that name all clusters.
type world struct {
	*testing.T
	ns      string
	members map[string]*fakeMember
	// replicas maps one cluster of each replica to the server of the replica.
	replicas map[string]*views.Server
	// intent returns the write that the hub would make to the copy of an object.
	intent func(object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error)
	// adopts is the outcome of an adoption, and adopted has the adopted objects.
	adopts  member.Outcome
	adopted []string
	// holds reports whether a replica serves a cluster. The replica is named by its first cluster.
	holds func(replica, cluster string) bool
	// kinds is the RESTMapper of all replicas.
	kinds *kinds
	// reviewing is called before each TokenReview, unless it is nil.
	reviewing func(ctx context.Context, token string) error
	// uncached reads the hub without a cache, and epochs has the lists of the hub's epochs that a test sets. For the
	// meaning of an epoch, see package epochs.
	uncached *reader
	epochs   *fakeEpochs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	var err error
	hub, err = client.New(hubConfig, client.Options{Scheme: scheme})
	must(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	must(t, hub.Create(t.Context(), ns))
	w := &world{T: t, ns: ns.Name, members: map[string]*fakeMember{here: {}, hereToo: {}, hereAlso: {}, elsewhere: {}}, replicas: map[string]*views.Server{}}
	w.holds = func(replica, cluster string) bool {
		return replica == cluster || replica == here && (cluster == hereToo || cluster == hereAlso)
	}
	w.kinds = &kinds{RESTMapper: hub.RESTMapper()}
	w.uncached, w.epochs = &reader{Reader: hub}, &fakeEpochs{}
	w.place("ConfigMap", "settings", here, hereToo, hereAlso, elsewhere, nowhere)
	w.place("ConfigMap", "far", elsewhere)
	w.place("Secret", "password", here)
	for _, cluster := range []string{here, elsewhere} {
		server, err := views.Listen("127.0.0.1:0", "")
		must(t, err)
		w.replicas[cluster] = server
	}
	for cluster, server := range w.replicas {
		server.Handler = views.New(views.Options{
			Client: reviews{hub, w}, APIReader: w.uncached, Mapper: w.kinds, Logger: logr.Discard(), Epochs: w.epochs, Rank: rank,
			HubObject: func(_ context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured) (hubv1.HubObject, error) {
				return hubv1.HubObjectOf(ref, template), nil
			},
			Members: func(name string) (views.Member, error) {
				if !w.holds(cluster, name) {
					t.Errorf("the replica of %s was asked for %s", cluster, name)
				}
				return w.members[name], nil
			},
			Intent: func(_ context.Context, _ string, object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
				return w.intent(object, policies)
			},
			NextIntent: func(context.Context, string, hubv1.ObjectIdentity) (member.ApplyIntent, *member.Outcome, error) {
				return member.ApplyIntent{Manifest: configMap("next")}, nil, nil
			},
			Adopt: func(
				_ context.Context, name string, object hubv1.ObjectIdentity, adoption hubv1.Adoption, uid types.UID,
			) (member.Outcome, error) {
				w.adopted = append(w.adopted, fmt.Sprintf("%s on %s: %s of %s", object.Name, name, adoption, uid))
				return w.adopts, nil
			},
			Holder: func(name string) views.Holder {
				if w.holds(cluster, name) {
					return views.Holder{Here: true}
				}
				return views.HolderOf(w.replicas[name].Annotations())
			},
		})
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- server.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

func (w *world) id(kind, name string) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Kind: kind, Namespace: w.ns, Name: name}
}

func (w *world) object(kind, name string) wire.Object {
	return wire.ObjectOf(w.id(kind, name))
}

// place creates the binding of an object with these clusters.
func (w *world) place(kind, name string, clusters ...string) *hubv1.ResourceBinding {
	w.Helper()
	id, apiVersion := w.id(kind, name), "v1"
	if kind == "Role" {
		id.Group, apiVersion = rbacv1.GroupName, rbacv1.SchemeGroupVersion.String()
	}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: id.BindingName()}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name)}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: c, State: hubv1.TargetPresent})
	}
	must(w.T, hub.Create(w.Context(), b))
	for _, c := range clusters {
		b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{
			Name: c, UID: types.UID("copy-" + name), Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, LastTransitionTime: ptr.To(metav1.Now()),
		})
	}
	must(w.T, hub.Status().Update(w.Context(), b))
	return b
}

// user creates a ServiceAccount with rights in the namespace and on MemberClusters, and returns a token for it.
func (w *world) user(name string, rights []rbacv1.PolicyRule, onMembers []rbacv1.PolicyRule, audiences ...string) string {
	w.Helper()
	ctx := w.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: name}}
	must(w.T, hub.Create(ctx, account))
	must(w.T, hub.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Rules: rights}))
	must(w.T, hub.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}))
	everywhere := w.ns + "-" + name
	must(w.T, hub.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: everywhere}, Rules: onMembers}))
	must(w.T, hub.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: everywhere}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere},
	}))
	user := serviceaccount.MakeUsername(w.ns, name)
	apiserver.AwaitRights(w.T, hubConfig, user, w.ns, rights...)
	apiserver.AwaitRights(w.T, hubConfig, user, "", onMembers...)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	must(w.T, hub.SubResource("token").Create(ctx, account, request))
	return request.Status.Token
}

// Rights of users.
var (
	// mayOverride are the rights to change ConfigMaps by policies.
	mayOverride = []rbacv1.PolicyRule{
		{APIGroups: []string{"hanse.dev"}, Resources: []string{"overridepolicies"}, Verbs: []string{"create"}},
		{APIGroups: []string{"hanse.dev"}, Resources: []string{"placements"}, Verbs: []string{"override"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"update"}},
	}

	getAll    = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get"}}}
	getOne    = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"settings"}, Verbs: []string{"get"}}}
	viewAll   = []rbacv1.PolicyRule{{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"view"}}}
	adoptHere = []rbacv1.PolicyRule{{
		APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, ResourceNames: []string{here}, Verbs: []string{"adopt"},
	}}
	viewHere = []rbacv1.PolicyRule{{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, ResourceNames: []string{here}, Verbs: []string{"view"}}}
)

// ask sends a request, as hansectl does, to the first replica, which serves the cluster here.
func (w *world) ask(token, cluster, what string, in, out any) error {
	w.Helper()
	body, err := json.Marshal(in)
	must(w.T, err)
	return w.send(w.replicas[here].Annotations()[views.CertificateAnnotation], token, cluster, what, body, out)
}

// askIn sends a request about objects of one namespace to the first replica.
func (w *world) askIn(token, cluster, what, namespace string, in, out any) error {
	w.Helper()
	body, err := json.Marshal(in)
	must(w.T, err)
	transport := views.Transport(w.replicas[here].Annotations()[views.CertificateAnnotation])
	return w.sendTo(transport, token, wire.PathIn(cluster, what, namespace), body, out)
}

func (w *world) send(certificate, token, cluster, what string, body []byte, out any) error {
	w.Helper()
	return w.sendBy(views.Transport(certificate), token, cluster, what, body, out)
}

func (w *world) sendBy(transport http.RoundTripper, token, cluster, what string, body []byte, out any) error {
	w.Helper()
	return w.sendTo(transport, token, wire.Path(cluster, what), body, out)
}

func (w *world) sendTo(transport http.RoundTripper, token, path string, body []byte, out any) error {
	w.Helper()
	url := "https://" + w.replicas[here].Annotations()[views.AddressAnnotation] + path
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, url, bytes.NewReader(body))
	must(w.T, err)
	if token != "" {
		request.Header.Set(wire.TokenHeader, token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(w.T, err)
	if response.StatusCode == http.StatusOK {
		must(w.T, json.Unmarshal(answer, out))
		return nil
	}
	status := metav1.Status{}
	must(w.T, json.Unmarshal(answer, &status))
	return &apierrors.StatusError{ErrStatus: status}
}

// reviews calls reviewing before it creates a TokenReview.
type reviews struct {
	client.Client
	w *world
}

// Create implements client.Client.
func (r reviews) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if review, ok := o.(*authenticationv1.TokenReview); ok && r.w.reviewing != nil {
		if err := r.w.reviewing(ctx, review.Spec.Token); err != nil {
			return err
		}
	}
	return r.Client.Create(ctx, o, opts...)
}

// inAnotherNamespace returns the world with another, new namespace. This namespace also has the ConfigMap.
func (w *world) inAnotherNamespace() *world {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bank-"}}
	must(w.T, hub.Create(w.Context(), ns))
	other := *w
	other.ns = ns.Name
	other.place("ConfigMap", "settings", here, elsewhere)
	return &other
}

// kinds is the hub's RESTMapper; err, if set, is the error of each call.
type kinds struct {
	meta.RESTMapper
	err error
}

// RESTMapping implements meta.RESTMapper.
func (k *kinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if k.err != nil {
		return nil, k.err
	}
	return k.RESTMapper.RESTMapping(kind, versions...)
}

// rank puts Namespaces before all other kinds.
func rank(kind schema.GroupKind) int {
	if kind.Kind == "Namespace" {
		return 1
	}
	return 0
}

// reader reads the hub; err, if set, is the error of each read.
type reader struct {
	client.Reader
	err error
}

// Get implements client.Reader.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	return r.Reader.Get(ctx, key, o, options...)
}

// fakeEpochs are the epochs in the cache and those of an uncached read.
type fakeEpochs struct{ current, fresh epoch.Epochs }

// Current implements views.Epochs.
func (e *fakeEpochs) Current() epoch.Epochs { return e.current }

// Confirm implements views.Epochs.
func (e *fakeEpochs) Confirm(context.Context, epoch.Epoch) (epoch.Epochs, error) {
	return e.fresh, nil
}

// fakeMember is a member with the answers that a test sets.
type fakeMember struct {
	copies member.Copies
	fails  error // error of List, Unclaimed or Events
	pruned []member.PruneIntent
	prunes func(member.PruneIntent) member.Outcome

	lists  []member.ListIntent
	listed member.Listed
	events member.Events
	about  []member.Involved // objects of the last request for events; the namespace comes first
	logs   []member.LogIntent
	log    func(member.LogIntent) (member.Log, error)

	asked   []member.ViewIntent
	live    *unstructured.Unstructured
	refusal *member.Outcome
	preview member.Preview
	// previewed is the intent of the last preview.
	previewed member.ApplyIntent
	children  member.Children
	owners    []member.Owner
	entered   chan struct{} // if set, View and Children send on it when they begin to wait
	wait      chan struct{} // if set, View and Children wait until it is closed
}

// pause waits until the channel wait is closed. It returns false at once if the test has not set this channel.
func (m *fakeMember) pause(ctx context.Context) bool {
	if m.wait == nil {
		return false
	}
	if m.entered != nil {
		m.entered <- struct{}{}
	}
	select {
	case <-m.wait:
	case <-ctx.Done():
	}
	return true
}

// blocks makes View and Children wait until the channel wait is closed.
func (m *fakeMember) blocks() {
	m.live, m.wait, m.entered = configMap("red"), make(chan struct{}), make(chan struct{})
}

// waits blocks until a request has begun to wait for the member.
func (m *fakeMember) waits(t *testing.T) {
	t.Helper()
	select {
	case <-m.entered:
	case <-time.After(20 * time.Second):
		t.Fatal("the member is not asked")
	}
}

// View implements member.Viewer.
func (m *fakeMember) View(ctx context.Context, in member.ViewIntent) (*unstructured.Unstructured, *member.Outcome) {
	if m.pause(ctx) {
		return nil, m.refusal
	}
	m.asked = append(m.asked, in)
	return m.live.DeepCopy(), m.refusal
}

// Preview implements member.Viewer.
func (m *fakeMember) Preview(_ context.Context, in member.ApplyIntent) member.Preview {
	m.previewed = in
	return m.preview
}

// Children implements member.Viewer.
func (m *fakeMember) Children(ctx context.Context, owners []member.Owner) member.Children {
	if m.pause(ctx) {
		return m.children
	}
	m.owners = owners
	return m.children
}

// Copies implements member.Pruner.
func (m *fakeMember) Copies(_ context.Context, _ int, keep func(member.Copy) (bool, error)) (member.Copies, error) {
	out := member.Copies{Notes: m.copies.Notes}
	for _, c := range m.copies.Copies {
		wanted, err := keep(c)
		if err != nil {
			return out, err
		}
		if wanted {
			out.Copies = append(out.Copies, c)
		}
	}
	return out, m.fails
}

// Prune implements member.Pruner.
func (m *fakeMember) Prune(_ context.Context, in member.PruneIntent) member.Outcome {
	m.pruned = append(m.pruned, in)
	return m.prunes(in)
}

// List implements member.Reader.
func (m *fakeMember) List(ctx context.Context, in member.ListIntent) (member.Listed, error) {
	if m.pause(ctx) {
		return m.listed, ctx.Err()
	}
	m.lists = append(m.lists, in)
	return m.listed, m.fails
}

// Events implements member.Reader.
func (m *fakeMember) Events(_ context.Context, namespace string, about []member.Involved) (member.Events, error) {
	m.about = append([]member.Involved{{Kind: "Namespace", Name: namespace}}, about...)
	return m.events, m.fails
}

// Log implements member.Reader.
func (m *fakeMember) Log(_ context.Context, in member.LogIntent) (member.Log, error) {
	m.logs = append(m.logs, in)
	return m.log(in)
}
