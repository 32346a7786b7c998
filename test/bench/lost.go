package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rowsGrace is how long a MemberCluster is not Ready before the hub changes the rows of this member.
const rowsGrace = 10 * time.Second

// Lost is the result of the loss of a member: how fast the hub reports it in all bindings, and the latency of single
// creates on the other members meanwhile.
type Lost struct {
	// RowsSeconds is the time from the end of rowsGrace to the last changed row. rowsGrace begins when the
	// MemberCluster is no longer Ready.
	RowsSeconds float64 `json:"rowsSeconds"`
	// Before and Meanwhile are latencies from the user's write to the last copy on the remaining members. Before is
	// measured with all members, Meanwhile while the hub writes the rows.
	Before    Latency `json:"before"`
	Meanwhile Latency `json:"meanwhile"`
	// P50Ratio is the median of Meanwhile divided by the median of Before.
	P50Ratio float64 `json:"p50Ratio"`
}

// lost creates objects on all members and makes the last member drop all packets. It then creates single objects until
// the hub has written all rows of that member.
func (r *run) lost(ctx context.Context) error {
	return r.onLab(ctx, r.members, []string{warmNamespace, inPlaceNamespace}, func(ctx context.Context, s *setting) error {
		w, err := s.running(ctx, true)
		if err != nil {
			return err
		}
		if err := s.putInPlace(ctx, w, s.objects); err != nil {
			return err
		}
		if _, err := s.meter.settle(ctx); err != nil {
			return err
		}
		if err := s.collectGarbage(ctx); err != nil {
			return err
		}
		return s.lose(ctx, w)
	})
}

func (s *setting) lose(ctx context.Context, w *watcher) error {
	left := len(s.names) - 1
	next := warm
	createNext := func() (time.Duration, error) {
		if err := rest(ctx, interval); err != nil {
			return 0, err
		}
		next++
		return s.createOne(ctx, w, left, next-1)
	}
	var before, meanwhile []time.Duration
	for range 2 * singles {
		took, err := createNext()
		if err != nil {
			return err
		}
		before = append(before, took)
	}
	if _, err := s.meter.settle(ctx); err != nil {
		return err
	}
	gone := s.names[left]
	rows, err := s.watchRows(ctx, gone)
	if err != nil {
		return err
	}
	if err := s.Fault(ctx, gone, "blackhole"); err != nil {
		return err
	}
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: gone}}
	if err := s.poll(ctx, c, func() bool { return meta.IsStatusConditionFalse(c.Status.Conditions, hubv1.ConditionReady) }); err != nil {
		return fmt.Errorf("waiting until the hub knows that %s is lost: %w", gone, err)
	}
	due := time.Now().Add(rowsGrace)
	s.say("%s is lost: its rows are due in %s", gone, rowsGrace)
	if err := rest(ctx, rowsGrace); err != nil {
		return err
	}
	for rows.Load() < int64(s.objects) {
		if time.Since(due) > maxPhase {
			return fmt.Errorf("only %d of %d rows of %s are written %s after the grace", rows.Load(), s.objects, gone, maxPhase)
		}
		took, err := createNext()
		if err != nil {
			return err
		}
		meanwhile = append(meanwhile, took)
	}
	out := Lost{RowsSeconds: round(time.Since(due).Seconds()), Before: latency(before), Meanwhile: latency(meanwhile)}
	if out.Before.P50 > 0 {
		out.P50Ratio = round(out.Meanwhile.P50 / out.Before.P50)
	}
	s.result.Lost = &out
	s.say("all rows %.1f s after the grace; single creates before: %s, meanwhile: %s", out.RowsSeconds, quantiles(out.Before), quantiles(out.Meanwhile))
	return s.Fault(ctx, gone, "none")
}

// watchRows counts the bindings of the existing objects in which the row of a cluster has become Unknown.
func (s *setting) watchRows(ctx context.Context, cluster string) (*atomic.Int64, error) {
	bindings := s.hub.Resource(hubv1.GroupVersion.WithResource("resourcebindings")).Namespace(inPlaceNamespace)
	list, err := bindings.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("reading bindings: %w", err)
	}
	stream, err := bindings.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("watching bindings: %w", err)
	}
	count := &atomic.Int64{}
	go func() {
		defer stream.Stop()
		seen := map[string]bool{}
		for e := range stream.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type != apiwatch.Modified || seen[u.GetName()] {
				continue
			}
			var b hubv1.ResourceBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b); err != nil {
				s.cancel(fmt.Errorf("reading binding %s: %w", u.GetName(), err))
				return
			}
			if row := b.Status.Row(cluster); row != nil && row.Applied == metav1.ConditionUnknown {
				seen[u.GetName()] = true
				count.Add(1)
			}
		}
		if ctx.Err() == nil && int(count.Load()) < s.objects {
			s.cancel(fmt.Errorf("the watch of bindings ended after %d rows", count.Load()))
		}
	}()
	return count, nil
}
