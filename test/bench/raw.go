package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// perMember is the number of concurrent requests of the raw loop to each member. The hub's dispatch uses the same
// number.
const perMember = 8

// fieldManager is the field manager of the benchmark's own writes.
const fieldManager = "bench"

// operation writes object i of a namespace through one client.
type operation func(ctx context.Context, c dynamic.Interface, namespace string, i int) error

// applying returns an operation that applies widgets of a shape.
func applying(s shape) operation {
	return func(ctx context.Context, c dynamic.Interface, namespace string, i int) error {
		_, err := c.Resource(widgets).Namespace(namespace).Apply(ctx, widgetName(i), widget(namespace, i, s),
			metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	}
}

// reporting returns an operation that writes the status of a copy, as an operator would that has seen the given
// generation.
func reporting(generation, ready int64) operation {
	available := "True"
	if ready < allReady {
		available = "False"
	}
	return func(ctx context.Context, c dynamic.Interface, namespace string, i int) error {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{
			"observedGeneration": generation, "replicas": allReady, "readyReplicas": ready,
			"conditions": []any{map[string]any{
				"type": "Available", "status": available, "observedGeneration": generation, "reason": "Counted",
				"message": fmt.Sprintf("%d of %d replicas are ready.", ready, allReady), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}},
		}})
		if err != nil {
			return err
		}
		_, err = c.Resource(widgets).Namespace(namespace).Patch(ctx, widgetName(i), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: "widget-operator"}, "status")
		return err
	}
}

func remove(ctx context.Context, c dynamic.Interface, namespace string, i int) error {
	return c.Resource(widgets).Namespace(namespace).Delete(ctx, widgetName(i), metav1.DeleteOptions{})
}

// direct does an operation on all objects of each cluster. It uses all clusters at the same time, each with this number
// of workers, and measures every request.
func direct(ctx context.Context, clusters []dynamic.Interface, namespace string, objects, workers int, do operation) (Timing, error) {
	var mu sync.Mutex
	all := make([]time.Duration, 0, objects*len(clusters))
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range clusters {
		group.Go(func() error {
			return each(ctx, objects, workers, func(ctx context.Context, i int) error {
				sent := time.Now()
				err := do(ctx, c, namespace, i)
				took := time.Since(sent)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, took)
				return err
			})
		})
	}
	err := group.Wait()
	seconds := time.Since(begin).Seconds()
	return Timing{Seconds: round(seconds), Rate: round(float64(len(all)) / seconds), Latency: latency(all)}, err
}

// each calls do with the numbers from 0 to n-1, with this number of workers. It stops at the first error.
func each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			for i := range next {
				if err := do(ctx, i); err != nil {
					return fmt.Errorf("object %s: %w", widgetName(i), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// raw measures the loop with which Hanse is compared: the same writes, directly to the members, with the hub's
// ServiceAccount. A ServiceAccount is used because API servers authorize, audit and queue its requests, unlike those of
// an administrator. The benchmark also writes the statuses that operators would write, as it does for Hanse.
func (s *setting) raw(ctx context.Context) error {
	var members []dynamic.Interface
	for _, name := range s.names {
		config, err := s.Fleet.Members[name].AsServiceAccount(ctx, "hanse")
		if err != nil {
			return err
		}
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", name, err)
		}
		members = append(members, c)
	}
	return s.directly(ctx, systemRaw, "raw", perMember, func(p step) (operation, []dynamic.Interface) {
		if p.name == status {
			return p.raw, s.clients
		}
		return p.raw, members
	})
}

// hubAlone measures the user's writes to the hub while no hub process runs.
func (s *setting) hubAlone(ctx context.Context) error {
	return s.directly(ctx, systemHub, "alone", s.userWorkers(), func(p step) (operation, []dynamic.Interface) {
		return p.user, []dynamic.Interface{s.hub}
	})
}

// directly measures the steps of the benchmark that can be done directly on clusters, without Hanse. Before the
// measurement, it writes a few objects to warm up connections and schemas.
func (s *setting) directly(ctx context.Context, system, namespace string, workers int, of func(step) (operation, []dynamic.Interface)) error {
	for _, step := range steps {
		if do, clusters := of(step); do != nil {
			if _, err := direct(ctx, clusters, namespace+"-warm", warm, 1, do); err != nil {
				return fmt.Errorf("warming up: %w", err)
			}
		}
	}
	for _, step := range steps {
		do, clusters := of(step)
		if do == nil {
			continue
		}
		if err := s.collectGarbage(ctx); err != nil {
			return err
		}
		before, err := s.meter.read(ctx)
		if err != nil {
			return err
		}
		timing, err := direct(ctx, clusters, namespace, s.objects, workers, do)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", system, step.name, err)
		}
		after, err := s.meter.read(ctx)
		if err != nil {
			return err
		}
		p := Phase{System: system, Name: step.name, Timing: timing, CPU: use(before, after, s.objects*len(clusters))}
		if system == systemHub {
			c := cost(before, after, units{objects: s.objects, members: s.members, own: 1})
			p.Cost = &c
		}
		s.add(p)
	}
	return nil
}
