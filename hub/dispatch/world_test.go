package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/openapi"
)

// world is a hub in memory, whose members answer as the test sets. It provides all inputs of a Dispatcher.
type world struct {
	*testing.T
	client.Client
	dispatcher *Dispatcher
	members    map[string]*fakeMember

	mu        sync.Mutex
	bindings  map[types.NamespacedName]*hubv1.ResourceBinding
	outcomes  map[string]map[string]member.Outcome // last outcome, by cluster and binding
	operators []hubv1.FederatedOperator
	deleted   map[string]bool           // hub objects that are being deleted, by name
	fields    map[string]map[string]any // fields of hub objects, by name
	sets      map[types.NamespacedName]*hubv1.SetRollout
}

func newWorld(t *testing.T, members ...*fakeMember) *world {
	t.Helper()
	w := &world{T: t, members: map[string]*fakeMember{}, bindings: map[types.NamespacedName]*hubv1.ResourceBinding{}, outcomes: map[string]map[string]member.Outcome{}}
	w.dispatcher = New(Options{Client: w, APIReader: w, Fleet: fleetOf{w}, Templates: templatesOf{w}, Recorder: w})
	for _, m := range members {
		w.members[m.name] = m
		w.outcomes[m.name] = map[string]member.Outcome{}
	}
	return w
}

// engage starts the members' queues. The end of the test stops the queues and waits for them.
func (w *world) engage() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var queues []*queue
	for name := range w.members {
		if err := w.dispatcher.Engage(ctx, name); err != nil {
			w.Fatal(err)
		}
		queues = append(queues, w.dispatcher.queue(name))
	}
	w.Cleanup(func() {
		cancel()
		for _, q := range queues {
			<-q.ended
		}
	})
}

// add adds to the hub an object and its binding for all members, without an event.
func (w *world) add(gvk schema.GroupVersionKind, name string) *hubv1.ResourceBinding {
	return w.addIn("ns", gvk, name)
}

func (w *world) addIn(namespace string, gvk schema.GroupVersionKind, name string) *hubv1.ResourceBinding {
	id := hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
	b.UID = types.UID("binding-" + name)
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: types.UID(name)}
	for cluster := range w.members {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bindings[id.BindingKey()] = b
	return b
}

// create does the same as add, and sends the event.
func (w *world) create(gvk schema.GroupVersionKind, name string) {
	w.dispatcher.BindingChanged(w.Context(), changes.Binding{After: w.add(gvk, name)})
}

// holds returns the number of objects that were applied to a member.
func (w *world) holds(cluster string) int {
	m := w.members[cluster]
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.copies)
}

// eventually waits until check returns an empty text.
func (w *world) eventually(within time.Duration, check func() string) {
	w.Helper()
	eventually(w.T, within, check)
}

// eventually waits until check returns an empty text.
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %s", within, missing)
		case <-tick.C:
		}
	}
}

// reads waits until the last outcome of an object on a member has the reason, and the text in its message.
func (w *world) reads(cluster, object, reason, message string) {
	w.Helper()
	w.eventually(5*time.Second, func() string {
		if o := w.outcome(cluster, object); o.Reason != reason || !strings.Contains(o.Message, message) {
			return cluster + " has " + o.Reason + ": " + o.Message
		}
		return ""
	})
}

// Get implements client.Client. It returns bindings from the map, and an empty object of every other kind.
func (w *world) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *hubv1.ResourceBinding:
		w.mu.Lock()
		defer w.mu.Unlock()
		b := w.bindings[key]
		if b == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		b.DeepCopyInto(o)
	case *hubv1.MemberCluster:
		o.Name, o.Spec.AllowedNamespaces.From, o.Status.ClusterID = key.Name, hubv1.NamespacesFromAll, "id-"+key.Name
	case *corev1.Namespace:
		o.Name = key.Name
	case *hubv1.SetRollout:
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sets[key] == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		w.sets[key].DeepCopyInto(o)
	}
	return nil
}

// List implements client.Client. It lists bindings and operators; every other list is empty.
func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all, ok := list.(*hubv1.FederatedOperatorList); ok {
		all.Items = slices.Clone(w.operators)
	}
	if all, ok := list.(*hubv1.ResourceBindingList); ok {
		for _, b := range w.bindings {
			all.Items = append(all.Items, *b.DeepCopy())
		}
		slices.SortFunc(all.Items, func(a, b hubv1.ResourceBinding) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	}
	return nil
}

// Record implements Recorder.
func (w *world) Record(binding hubv1.BindingObject, cluster string, o member.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[cluster][binding.BindingSpec().ObjectRef.Name] = o
}

func (w *world) outcome(cluster, object string) member.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcomes[cluster][object]
}

// fleetOf and templatesOf implement the interfaces whose Get has another signature than the Get of world.
type fleetOf struct{ *world }

// Get implements member.Fleet.
func (f fleetOf) Get(cluster string) (member.Cluster, error) { return f.members[cluster], nil }

type templatesOf struct{ *world }

// Get implements Templates.
func (t templatesOf) Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.bindings[id.BindingKey()]
	if b == nil {
		return nil, false
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(b.Spec.ObjectRef.GroupVersionKind())
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	u.SetUID(b.Spec.ObjectRef.UID)
	u.SetGeneration(1)
	u.SetLabels(map[string]string{hubv1.VersionLabel: "1.2.3"})
	for field, value := range t.fields[id.Name] {
		u.Object[field] = runtime.DeepCopyJSONValue(value)
	}
	if t.deleted[id.Name] {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	return u, true
}

// StoredOf implements Templates. It returns the objects whose binding names the bundle.
func (t templatesOf) StoredOf(bundle hubv1.BundleReference) (out []hubv1.ObjectIdentity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bindings {
		if of := b.Spec.ObjectRef.Bundle; of != nil && *of == bundle {
			out = append(out, hubv1.ObjectOf(b))
		}
	}
	return out
}

// Content implements Templates.
func (templatesOf) Content(hubv1.ObjectIdentity) uint64 { return 1 }

// Live implements Templates.
func (t templatesOf) Live(_ context.Context, id hubv1.ObjectIdentity, _ time.Time) (*unstructured.Unstructured, bool, error) {
	o, found := t.Get(id)
	return o, !found, nil
}

// fakeMember accepts every call, unless answer returns another outcome.
type fakeMember struct {
	member.Cluster
	name   string
	answer func(ctx context.Context, object string) member.Outcome // nil: every write succeeds at once
	// ahead, if set, gets each written copy before the answer is sent.
	ahead func(member.Observation)

	mu                          sync.Mutex
	copies                      map[string]member.Observation
	manifests                   map[string]*unstructured.Unstructured // last written manifests
	order                       []string                              // names of copies, in the order in which writes ended
	atOnce, maxInFlight, served int
}

func takes(name string) *fakeMember { return &fakeMember{name: name} }

// IsHub implements member.Cluster.
func (m *fakeMember) IsHub() bool { return false }

// Fit implements member.Cluster.
func (m *fakeMember) Fit(_ context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	return manifest, nil
}

// Misfits implements member.Cluster.
func (*fakeMember) Schema(context.Context, schema.GroupVersionKind) *openapi.Schema { return nil }

func (m *fakeMember) Misfits(context.Context, *unstructured.Unstructured) []member.Misfit { return nil }

// Observe implements member.Cluster.
func (m *fakeMember) Observe(schema.GroupVersionKind, types.NamespacedName) {}

// Forget implements member.Cluster.
func (m *fakeMember) Forget(schema.GroupVersionKind, types.NamespacedName) {}

// Observation implements member.Cluster.
func (m *fakeMember) Observation(_ schema.GroupVersionKind, key types.NamespacedName) (o member.Observation, found, synced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, found = m.copies[key.Name]
	return o, found, true
}

// Apply implements member.Cluster.
func (m *fakeMember) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	m.mu.Lock()
	m.served++
	m.atOnce++
	m.maxInFlight = max(m.maxInFlight, m.atOnce)
	m.mu.Unlock()
	o := member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	if m.answer != nil {
		o = m.answer(ctx, in.Manifest.GetName())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atOnce--
	if o.Applied != metav1.ConditionTrue {
		return o
	}
	name := in.Manifest.GetName()
	o.UID, o.ResourceVersion, o.Hash, o.Digest = types.UID(name), fmt.Sprint(m.served), "h", in.Digest
	if m.copies == nil {
		m.copies, m.manifests = map[string]member.Observation{}, map[string]*unstructured.Unstructured{}
	}
	m.manifests[name] = in.Manifest
	m.copies[name] = member.Observation{Owner: in.Owner, OwnerUID: in.OwnerUID, CopyState: member.CopyState{UID: o.UID, ResourceVersion: o.ResourceVersion, Hash: "h", Digest: in.Digest}}
	m.order = append(m.order, name)
	if m.ahead != nil {
		m.ahead(m.copies[name])
	}
	return o
}

// written returns the names of the written objects, in the order in which the writes ended.
func (m *fakeMember) written() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.order)
}
