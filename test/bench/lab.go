package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// setting is a lab with a hub and members, on which the kind and the charts are installed. No hub process runs at the
// beginning.
type setting struct {
	*run
	*fleet.Fleet
	names   []string            // names of the members
	clients []dynamic.Interface // clients of the members, in the order of names
	hub     dynamic.Interface
	cancel  context.CancelCauseFunc // aborts the measurement, with the reason
	process *fleet.HubProcess       // the last started hub process
	meter   *meter
}

// onLab starts a lab with this number of members and creates the namespaces on all clusters. It calls do, and always
// stops the lab afterwards.
func (r *run) onLab(ctx context.Context, members int, namespaces []string, do func(context.Context, *setting) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	config := r.config
	config.Dir = filepath.Join(r.dir, "lab")
	if config.Topology, err = topology(r.dir, members); err != nil {
		return err
	}
	r.say("starting a hub and %d bare members", members)
	f, err := fleet.Up(ctx, config)
	defer func() {
		r.say("taking the lab down")
		cancel(nil) // end the watches before the clusters stop
		down := &fleet.Fleet{Config: config}
		err = errors.Join(err, down.Down(context.WithoutCancel(ctx)))
	}()
	if err != nil {
		return err
	}
	s := &setting{run: r, Fleet: f, cancel: cancel, meter: &meter{Fleet: f}}
	if err := s.install(ctx, namespaces); err != nil {
		return err
	}
	if err := s.versions(ctx); err != nil {
		return err
	}
	defer func() {
		if s.process == nil {
			return
		}
		if err != nil {
			s.say("end of the hub's log:\n%s", s.process.LogTail())
		}
		_ = s.process.Kill()
	}()
	err = do(ctx, s)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err) // the other error is only a consequence of the cancellation
	}
	return err
}

// install creates the clients, and installs the kind, the charts and the namespaces.
func (s *setting) install(ctx context.Context, namespaces []string) error {
	s.names = slices.Sorted(maps.Keys(s.Fleet.Members))
	kinds := []fleet.Kind{{APIGroups: []string{widgets.Group}, Resources: []string{widgets.Resource}, Status: true}}
	s.say("installing the kind and the charts")
	if err := s.InstallHub(ctx, kinds); err != nil {
		return err
	}
	var err error
	if s.hub, err = prepare(ctx, s.Hub, namespaces); err != nil {
		return err
	}
	for _, name := range s.names {
		member := s.Fleet.Members[name]
		if err := s.InstallMember(ctx, member, kinds); err != nil {
			return err
		}
		c, err := prepare(ctx, member, namespaces)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	return nil
}

// prepare installs the widget kind and the namespaces on a cluster, and returns a client without a rate limit.
func prepare(ctx context.Context, c *fleet.Cluster, namespaces []string) (dynamic.Interface, error) {
	if err := c.ApplyCRD(ctx, widgetCRD, fieldManager); err != nil {
		return nil, err
	}
	for _, name := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, fmt.Errorf("creating namespace %s on %s: %w", name, c.Name, err)
		}
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	return client, nil
}

// join joins all members to the hub, directly or through the lab's fault proxies.
func (s *setting) join(ctx context.Context, proxied bool) error {
	for _, name := range s.names {
		m := *s.Fleet.Members[name]
		if !proxied {
			m.ProxyServer = ""
		}
		if err := s.Join(ctx, &m, nil); err != nil {
			return err
		}
	}
	return nil
}

// running joins all members, starts the hub, and creates the warm-up objects. It returns a watcher of the members.
func (s *setting) running(ctx context.Context, proxied bool) (*watcher, error) {
	w, err := watch(ctx, s.clients, s.cancel)
	if err != nil {
		return nil, err
	}
	if err := s.join(ctx, proxied); err != nil {
		return nil, err
	}
	if err := s.startHub(ctx); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, s.names); err != nil {
		return nil, err
	}
	return w, s.warmUp(ctx, w)
}

// startHub starts a hub process, and makes the meter measure it.
func (s *setting) startHub(ctx context.Context) error {
	process, err := s.StartHub(ctx, "hub")
	if process != nil {
		s.process, s.meter.pid, s.meter.page = process, process.PID, process.Metrics
	}
	return err
}

// stopHub stops the hub process. The meter then has no process to measure.
func (s *setting) stopHub() error {
	err := s.process.Stop()
	s.process, s.meter.pid, s.meter.page = nil, 0, ""
	return err
}

// awaitReady waits until the hub reports these members as ready.
func (s *setting) awaitReady(ctx context.Context, members []string) error {
	for _, name := range members {
		mcl := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.poll(ctx, mcl, func() bool { return meta.IsStatusConditionTrue(mcl.Status.Conditions, hubv1.ConditionReady) }); err != nil {
			return fmt.Errorf("waiting for member %s: %w", name, err)
		}
	}
	return nil
}

// place creates a placement that sends all widgets of a namespace to every member.
func (s *setting) place(ctx context.Context, namespace string) error {
	return s.placeOn(ctx, namespace, hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}})
}

func (s *setting) placeOn(ctx context.Context, namespace string, clusters hubv1.ClusterSelection) error {
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}},
			Clusters:          clusters,
		},
	}
	if err := s.Hub.Create(ctx, p); err != nil {
		return fmt.Errorf("creating the placement of %s: %w", namespace, err)
	}
	return s.poll(ctx, p, func() bool { return p.Status.ObservedGeneration == p.Generation })
}

// poll reads an object of the hub until ok returns true.
func (s *setting) poll(ctx context.Context, obj client.Object, ok func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return ok(), s.Hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	})
}

// warmUp creates a few objects that are copied to every member and stay there. The warm objects open the hub's
// connections and start its watches, as on a hub that has been in use.
func (s *setting) warmUp(ctx context.Context, w *watcher) error {
	if err := s.place(ctx, warmNamespace); err != nil {
		return err
	}
	if err := s.followed(ctx, w.expect(warmNamespace, 0, warm, len(s.names), first.arrived), w, applying(first)); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}

// collectGarbage makes every API server run a garbage collection. A server with 100 MB of heap needs 0.1 s of CPU time
// for a collection, which starts at an arbitrary time. Ten members under equal load would collect at the same time,
// which can take a third of a phase.
func (s *setting) collectGarbage(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range append(slices.Collect(maps.Values(s.Fleet.Members)), s.Hub) {
		group.Go(func() error {
			api, err := discovery.NewDiscoveryClientForConfig(c.Config)
			if err != nil {
				return err
			}
			// The handler in net/http/pprof runs a garbage collection before it writes a heap profile if gc=1 is set.
			if _, err := api.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
				return fmt.Errorf("asking the API server of %s for a garbage collection: %w", c.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// userWorkers returns the number of concurrent writes of the user to the hub. It is equal to the number of concurrent
// requests of the raw loop to all members.
func (s *setting) userWorkers() int { return perMember * len(s.names) }

// followed does an operation on all objects of an expectation, and waits until the expectation is fulfilled.
func (s *setting) followed(ctx context.Context, x *expectation, w *watcher, do operation) error {
	if _, err := s.write(ctx, x.namespace, len(x.seen), do); err != nil {
		return err
	}
	return w.await(ctx, x, s.say)
}

// write does an operation on all objects of a namespace on the hub. It returns the time at which each request was sent.
func (s *setting) write(ctx context.Context, namespace string, objects int, do operation) ([]time.Time, error) {
	sent := make([]time.Time, objects)
	return sent, each(ctx, objects, s.userWorkers(), func(ctx context.Context, i int) error {
		sent[i] = time.Now()
		return do(ctx, s.hub, namespace, i)
	})
}
