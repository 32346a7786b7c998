package provider

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"
)

// The tests of this file are the faults of ADR 1, each with a cluster of controller-runtime, as the providers of
// multicluster-runtime make them, and with a cluster of this package. If a test fails because the first one does not
// show the fault any more, upstream has mended it: change ADR 1.

// blocked is how long the tests wait for something that must not come.
const blocked = 1500 * time.Millisecond

// plain returns a cluster as the providers of multicluster-runtime make it.
func plain(t *testing.T, f *server) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(&rest.Config{Host: f.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: []byte(f.ca())}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cl.Start(t.Context()) }()
	return cl
}

// ours returns a cluster of this package.
func ours(t *testing.T, f *server) cluster.Cluster {
	t.Helper()
	p, _ := newProvider(t)
	m := newMember(t.Context(), p, f.uid, f.want("token"))
	t.Cleanup(m.end)
	if fault := m.connect(m.current()); fault != nil {
		t.Fatal(fault)
	}
	cl, err := m.makeCluster()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cl.Start(m.ctx) }()
	return cl
}

// newController returns a controller of multicluster-runtime that watches a kind and remembers its requests.
func newController(t *testing.T, of client.Object, syncTimeout time.Duration) (mccontroller.Controller, chan multicluster.ClusterName) {
	t.Helper()
	requests := make(chan multicluster.ClusterName, 100)
	skip := true
	options := mccontroller.Options{CacheSyncTimeout: syncTimeout, SkipNameValidation: &skip}
	options.Reconciler = mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrlreconcile.Result, error) {
		requests <- req.ClusterName
		return ctrlreconcile.Result{}, nil
	})
	c, err := mccontroller.NewUnmanaged("test", nil, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MultiClusterWatch(mcsource.Kind[client.Object](of, mchandler.EnqueueRequestForObject)); err != nil {
		t.Fatal(err)
	}
	return c, requests
}

func engageLater(t *testing.T, c mccontroller.Controller, name multicluster.ClusterName, cl cluster.Cluster) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Engage(t.Context(), name, cl) }()
	return done
}

func returns[T any](from chan T, within time.Duration) (T, bool) {
	select {
	case got := <-from:
		return got, true
	case <-time.After(within):
		var none T
		return none, false
	}
}

func hanging(t *testing.T, uid string) *server {
	t.Helper()
	f := newServer(t, uid)
	f.set(func() { f.hung = make(chan struct{}) })
	return f
}

func TestAMemberThatHangsOnListsBlocksTheEngagementOfAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(*testing.T, *server) cluster.Cluster
		blocked bool
	}{"upstream": {plain, true}, "here": {ours, false}} {
		t.Run(name, func(t *testing.T) {
			c, requests := newController(t, &corev1.ConfigMap{}, time.Minute)
			go func() { _ = c.Start(t.Context()) }()
			sick := hanging(t, "sick")
			engageLater(t, c, "sick", tc.make(t, sick))
			await(t, "the list that hangs", func() bool { return sick.count("GET /api/v1/configmaps") > 0 })
			well := engageLater(t, c, "well", tc.make(t, newServer(t, "well")))
			wait := 20 * time.Second
			if tc.blocked {
				wait = blocked
			}
			if _, ok := returns(well, wait); ok == tc.blocked {
				t.Fatalf("the healthy member was engaged: %v", ok)
			}
			if tc.blocked {
				return
			}
			if got, ok := returns(requests, wait); !ok || got != "well" {
				t.Errorf("the healthy member was not reconciled, but %q", got)
			}
			close(sick.hung)
			if got, ok := returns(requests, wait); !ok || got != "sick" {
				t.Errorf("the member was not reconciled after it answered, but %q", got)
			}
		})
	}
}

func TestAMemberThatHangsBeforeTheStartEndsTheController(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(*testing.T, *server) cluster.Cluster
		ends bool
	}{"upstream": {plain, true}, "here": {ours, false}} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, &corev1.ConfigMap{}, blocked/5)
			if err := c.Engage(t.Context(), "sick", tc.make(t, hanging(t, "sick"))); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Start(t.Context()) }()
			if err, ok := returns(ended, blocked); ok != tc.ends {
				t.Errorf("the controller ended: %v, %v", ok, err)
			}
		})
	}
}

func TestAMissingKindRefusesTheWholeMember(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(*testing.T, *server) cluster.Cluster
		refused bool
	}{"upstream": {plain, true}, "here": {ours, false}} {
		t.Run(name, func(t *testing.T) {
			c, requests := newController(t, &corev1.Pod{}, time.Minute)
			go func() { _ = c.Start(t.Context()) }()
			server := newServer(t, "eu")
			ready := engageLater(t, c, "early", plain(t, withPods(newServer(t, "early")))) // the controller has started
			if err, ok := returns(ready, 20*time.Second); !ok || err != nil {
				t.Fatal(err)
			}
			<-requests
			err, ok := returns(engageLater(t, c, "eu", tc.make(t, server)), 20*time.Second)
			if !ok || (err != nil) != tc.refused {
				t.Fatalf("engaged: %v, %v", ok, err)
			}
			if tc.refused {
				return
			}
			await(t, "the discovery without the kind", func() bool { return server.count("GET /api/v1") > 0 })
			withPods(server) // the kind comes later
			if got, ok := returns(requests, 20*time.Second); !ok || got != "eu" {
				t.Errorf("the kind was not watched when it came: %q", got)
			}
		})
	}
}

func withPods(f *server) *server { f.set(func() { f.pods = true }); return f }

func TestAChangedCredentialThatDoesNotWorkReplacesTheOneThatDoes(t *testing.T) {
	known := clusters.New[cluster.Cluster]()
	good, dead := newServer(t, "eu"), newServer(t, "dead")
	if err := known.Add(t.Context(), "eu", plain(t, good), nil); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	next, err := cluster.New(&rest.Config{Host: dead.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(dead.ca())}})
	if err != nil {
		t.Fatal(err)
	}
	if err := known.AddOrReplace(t.Context(), "eu", next, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := known.Get(t.Context(), "eu"); err != nil || got != next {
		t.Errorf("upstream keeps the cluster that works: %v", err)
	}

	p, e := newProvider(t) // here, the one that works stays
	p.begin(t.Context(), "eu", good.want("token"))
	p.awaitReason(t, ReasonServed)
	p.members["eu"].update(want{uid: "mcl", clusterID: "eu", to: connection{server: dead.URL, ca: dead.ca(), token: "token"}})
	p.awaitReason(t, ReasonUnreachable)
	if err := e.engaged["eu"].GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}); err != nil {
		t.Errorf("got %v", err)
	}
}
