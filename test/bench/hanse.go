package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// phaseAtMost is how long a phase may take before the run gives up.
const phaseAtMost = 10 * time.Minute

// reached says for each step when a copy on a member is as the user wants it.
var reached = map[string]func(copied *unstructured.Unstructured, gone bool) bool{
	create:   func(copied *unstructured.Unstructured, gone bool) bool { return !gone && revisionOf(copied) == 1 },
	update:   func(copied *unstructured.Unstructured, gone bool) bool { return !gone && revisionOf(copied) == 2 },
	withdraw: func(_ *unstructured.Unstructured, gone bool) bool { return gone },
}

// startHub joins the members straight, without the lab's fault proxies, and runs the hub until each is ready.
func (b *bench) startHub(ctx context.Context) (*fleet.HubProcess, error) {
	for _, name := range b.names {
		m := *b.fleet.Members[name]
		m.ProxyServer = ""
		if err := b.fleet.Join(ctx, &m, nil); err != nil {
			return nil, err
		}
	}
	hub, err := b.fleet.StartHub(ctx, "hub")
	if err != nil {
		return hub, err
	}
	for _, name := range b.names {
		mcl := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := b.poll(ctx, mcl, func() bool { return meta.IsStatusConditionTrue(mcl.Status.Conditions, hubv1.ConditionReady) }); err != nil {
			return hub, fmt.Errorf("waiting for member %s: %w", name, err)
		}
	}
	return hub, nil
}

// place sends all widgets of a namespace to every member.
func (b *bench) place(ctx context.Context, namespace string) error {
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "everywhere"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}},
			Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
		},
	}
	if err := b.fleet.Hub.Create(ctx, p); err != nil {
		return fmt.Errorf("creating the placement of %s: %w", namespace, err)
	}
	return b.poll(ctx, p, func() bool { return p.Status.ObservedGeneration == p.Generation })
}

// poll reads an object of the hub until it is as wanted.
func (b *bench) poll(ctx context.Context, obj client.Object, ok func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return ok(), b.fleet.Hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	})
}

// hanse measures all steps by way of the hub. A few objects in a namespace of their own go before, and stay: they open
// the hub's connections and start the members' informers, which a hub in use has.
func (b *bench) hanse(ctx context.Context, w *watcher) error {
	if err := b.place(ctx, "bench-warm"); err != nil {
		return err
	}
	warmed := w.expect("bench-warm", warm, b.members, reached[create])
	if _, err := b.write(ctx, "bench-warm", warm, applyRevision(1)); err != nil {
		return err
	}
	if err := w.await(ctx, warmed, phaseAtMost, b.say); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if err := b.place(ctx, "bench"); err != nil {
		return err
	}
	for _, step := range steps {
		if _, err := b.meter.settle(ctx); err != nil {
			return err
		}
		phase, err := b.throughHub(ctx, w, step.name, step.do)
		if err != nil {
			return fmt.Errorf("hanse, %s: %w", step.name, err)
		}
		b.add(phase)
	}
	return nil
}

// throughHub does one thing to every object on the hub and waits until all copies followed and the hub's etcd is quiet.
func (b *bench) throughHub(ctx context.Context, w *watcher, name string, do operation) (Phase, error) {
	p := Phase{System: systemHanse, Name: name}
	if err := resetPeak(b.meter.pid); err != nil {
		return p, err
	}
	before, err := b.meter.read(ctx)
	if err != nil {
		return p, err
	}
	x := w.expect("bench", b.objects, b.members, reached[name])
	begin := time.Now()
	sent, err := b.write(ctx, "bench", b.objects, do)
	if err != nil {
		return p, err
	}
	p.UserSeconds = round(time.Since(begin).Seconds())
	if err := w.await(ctx, x, phaseAtMost, b.say); err != nil {
		return p, err
	}
	p.Timing = timing(begin, sent, x.last(), b.members)
	settled, err := b.meter.settle(ctx)
	if err != nil {
		return p, err
	}
	p.SettledSeconds = round(settled.Sub(begin).Seconds())
	after, err := b.meter.read(ctx)
	if err != nil {
		return p, err
	}
	c := cost(before, after, b.objects, b.members)
	if c.PeakRSSMiB, c.SettledRSSMiB, err = memory(b.meter.pid); err != nil {
		return p, err
	}
	p.Cost, p.CPU = &c, use(before, after, b.objects*b.members)
	return p, b.verify(ctx, name)
}

// write does an operation to all objects of a namespace on the hub, and returns when each was sent.
func (b *bench) write(ctx context.Context, namespace string, objects int, do operation) ([]time.Time, error) {
	sent := make([]time.Time, objects)
	return sent, each(ctx, objects, b.userWorkers(), func(ctx context.Context, i int) error {
		sent[i] = time.Now()
		return do(ctx, b.hub, namespace, i)
	})
}

// timing is the rate of object-clusters from the first write to the last copy, and the latency of each object, from
// the moment that its write was sent to the last of its copies.
func timing(begin time.Time, sent, arrived []time.Time, members int) Timing {
	all := make([]time.Duration, len(sent))
	end := begin
	for i := range sent {
		all[i] = arrived[i].Sub(sent[i])
		if arrived[i].After(end) {
			end = arrived[i]
		}
	}
	seconds := end.Sub(begin).Seconds()
	return Timing{Seconds: round(seconds), Rate: round(float64(len(sent)*members) / seconds), Latency: latency(all)}
}

// verify reads all copies back: each member has exactly the objects that the user wrote, as they were written.
func (b *bench) verify(ctx context.Context, step string) error {
	revision := map[string]int64{create: 1, update: 2}[step]
	for m, c := range b.clients {
		list, err := c.Resource(widgets).Namespace("bench").List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("reading the copies on %s: %w", b.names[m], err)
		}
		want := b.objects
		if step == withdraw {
			want = 0
		}
		if len(list.Items) != want {
			return fmt.Errorf("%s has %d widgets, want %d", b.names[m], len(list.Items), want)
		}
		for _, copied := range list.Items {
			i, ok := widgetIndex(copied.GetName())
			if !ok {
				return errors.New("nobody wrote widget " + copied.GetName())
			}
			if diff := cmp.Diff(widget("bench", i, revision).Object["spec"], copied.Object["spec"]); diff != "" {
				return fmt.Errorf("%s on %s is not what the user wrote (-want +got):\n%s", copied.GetName(), b.names[m], diff)
			}
		}
	}
	return nil
}
