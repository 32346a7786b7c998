package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// imagePolicy returns a policy that sets spec.image of all widgets to the value that the user's objects already have.
func imagePolicy() *hubv1.OverridePolicy {
	return &hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: "image"},
		Spec: hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}},
			Rules:             []hubv1.OverrideRule{{Name: "everywhere", Patches: []hubv1.PatchOperation{replaceImage(second)}}},
		},
	}
}

// override measures one edit of an OverridePolicy that changes every copy.
func (s *setting) override(ctx context.Context, w *watcher) (Phase, error) {
	policy := imagePolicy()
	if err := s.Hub.Create(ctx, policy); err != nil {
		return Phase{}, fmt.Errorf("creating the override policy: %w", err)
	}
	if err := s.poll(ctx, policy, func() bool { return policy.Status.ObservedGeneration == policy.Generation }); err != nil {
		return Phase{}, fmt.Errorf("waiting for the override policy: %w", err)
	}
	if _, err := s.meter.settle(ctx); err != nil {
		return Phase{}, err
	}
	return s.phase(ctx, override, units{objects: s.objects, members: s.members}, func(ctx context.Context) (done, error) {
		x := w.expect("bench", 0, s.objects, s.members, overridden.arrived)
		before := policy.DeepCopy()
		policy.Spec.Rules[0].Patches[0] = replaceImage(overridden)
		d := done{begin: time.Now()}
		if err := s.Hub.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
			return d, fmt.Errorf("editing the override policy: %w", err)
		}
		d.user = time.Now()
		if err := w.await(ctx, x, s.say); err != nil {
			return d, err
		}
		sent := make([]time.Time, s.objects)
		for i := range sent {
			sent[i] = d.begin
		}
		d.Timing = timing(d.begin, sent, x.last(), s.members)
		return d, nil
	})
}

func replaceImage(s shape) hubv1.PatchOperation {
	return hubv1.PatchOperation{Op: hubv1.PatchReplace, Path: "/spec/image", Value: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", s.image)}}
}

// status changes the status of every copy as fast as the members accept the writes. It waits until each hub object's
// status contains the changes of all members. The latency of an object starts when the last of its statuses is sent to
// a member.
func (s *setting) status(ctx context.Context, _ *watcher) (Phase, error) {
	onHub, stop, err := s.watchHub(ctx)
	if err != nil {
		return Phase{}, err
	}
	defer stop()
	return s.phase(ctx, status, units{objects: s.objects, members: s.members}, func(ctx context.Context) (done, error) {
		x := onHub.expect("bench", 0, s.objects, 1, readyIs(allReady*int64(s.members)))
		d := done{begin: time.Now()}
		sent, err := s.report(ctx, "bench", s.objects, reporting(specsSeen, allReady))
		if err != nil {
			return d, err
		}
		d.user = time.Now()
		if err := onHub.await(ctx, x, s.say); err != nil {
			return d, err
		}
		d.Timing = timing(d.begin, sent, x.last(), s.members)
		return d, nil
	})
}

// watchHub watches the widgets on the hub until stop is called.
func (s *setting) watchHub(ctx context.Context) (w *watcher, stop func(), err error) {
	ctx, stop = context.WithCancel(ctx)
	w, err = watch(ctx, []dynamic.Interface{s.hub}, s.cancel)
	if err != nil {
		stop()
	}
	return w, stop, err
}

// report writes the status of every object on all members. It returns, for each object, the time at which the last of
// its writes was sent.
func (s *setting) report(ctx context.Context, namespace string, objects int, do operation) ([]time.Time, error) {
	var mu sync.Mutex
	sent := make([]time.Time, objects)
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range s.clients {
		group.Go(func() error {
			return each(ctx, objects, perMember, func(ctx context.Context, i int) error {
				now := time.Now()
				mu.Lock()
				if now.After(sent[i]) {
					sent[i] = now
				}
				mu.Unlock()
				return do(ctx, c, namespace, i)
			})
		})
	}
	return sent, group.Wait()
}
