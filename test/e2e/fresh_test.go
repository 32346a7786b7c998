package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAMemberThatGoesAndComesBackDoesNotMakeStatusFlap stops a member for a long time and starts it again. Meanwhile
// one client reads the hub object ten times a second, and another one watches it. The object's status must change from
// known to partlyKnown and back to known, without any other value. The summed replicas must not change.
func TestAMemberThatGoesAndComesBackDoesNotMakeStatusFlap(t *testing.T) {
	meanwhiles := map[string]func(t *testing.T){
		"the hub goes on": func(*testing.T) {},
		"the hub starts anew while it is away": func(t *testing.T) {
			must(t, suite.hub.Kill())
			startHubWithout(t, frankfurt)
		},
	}
	for name, meanwhile := range meanwhiles {
		t.Run(name, func(t *testing.T) {
			ctx, ns := t.Context(), namespace(t)
			w := widget(ns, "watched")
			p := placeWidgets(t, ns)
			must(t, suite.Hub.Create(ctx, w))
			sayAllReady(t, w)
			eventually(t, normal, func() error { return objectSays(ctx, w, known) })
			eventually(t, normal, func() error {
				return regionsSay(ctx, p, "ap-southeast-1 1/1 3/3", "cn-shanghai 1/1 3/3", "eu-central-1 1/1 3/3")
			})

			stories := record(t, w)
			t.Cleanup(func() {
				lab(t, "start", frankfurt)
				mendMember(t, frankfurt)
			})
			lab(t, "kill", frankfurt)
			eventually(t, time.Minute, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionUnknown, hubv1.ReasonUnreachable) })
			eventually(t, normal, func() error { return objectSays(ctx, w, partlyKnown) })
			eventually(t, normal, func() error {
				return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionUnknown, hubv1.ReasonPartiallyUnknown)
			})
			eventually(t, normal, func() error {
				return regionsSay(ctx, p, "ap-southeast-1 1/1 3/3", "cn-shanghai 1/1 3/3", "eu-central-1 0/1 3/3")
			})
			eventually(t, normal, func() error { return asOf(ctx, p, true) })
			meanwhile(t)
			lab(t, "start", frankfurt)
			eventually(t, time.Minute, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
			eventually(t, time.Minute, func() error { return objectSays(ctx, w, known) })
			eventually(t, normal, func() error { return asOf(ctx, p, false) })

			reported := stories()
			want := []string{known, partlyKnown, known}
			for _, who := range []string{"looking ten times a second", "seeing each version"} {
				if diff := cmp.Diff(want, reported[who]); diff != "" {
					t.Errorf("the status of the hub object, %s (-want +got):\n%s", who, diff)
				}
			}
			// The row may have this state for a moment, until the hub's watch has delivered the copy again.
			rows := slices.DeleteFunc(reported["row"], func(s string) bool { return s == "Applied=True Unknown as of then" })
			if diff := cmp.Diff([]string{"Applied=True Healthy live", "Applied=Unknown Unknown as of then", "Applied=True Healthy live"}, rows); diff != "" {
				t.Errorf("the row of %s (-want +got):\n%s", frankfurt, diff)
			}
		})
	}
}

// TestALinkThatIsDownForAMomentChangesNothing breaks the link to a member until the MemberCluster is not ready, and
// mends it at once. The hub must not write the hub object or its binding.
func TestALinkThatIsDownForAMomentChangesNothing(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "calm")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	sayAllReady(t, w)
	eventually(t, normal, func() error { return objectSays(ctx, w, known) })
	eventually(t, normal, func() error { return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })
	before := writtenOf(ctx, t, w)

	breakMember(t, frankfurt, "status", "503")
	eventually(t, time.Minute, func() error {
		return memberCondition(ctx, frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, "")
	})
	mendMember(t, frankfurt)
	// The hub reports a broken link only after its grace period. The test therefore waits until this period is over.
	end := time.Now().Add(15 * time.Second)
	eventually(t, normal, func() error {
		if diff := cmp.Diff(before, writtenOf(ctx, t, w)); diff != "" {
			t.Fatalf("something was written (-before +after):\n%s", diff)
		}
		if time.Now().Before(end) {
			return fmt.Errorf("the time is not over")
		}
		return nil
	})
}

// sayAllReady sets the status of the copy on every member to three ready replicas.
func sayAllReady(t *testing.T, w *unstructured.Unstructured) {
	t.Helper()
	const ready = `{"status":{"replicas":3,"readyReplicas":3,"conditions":[{"type":"Ready","status":"True","reason":"Said","message":"by the test","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	for _, name := range members {
		eventually(t, normal, func() error {
			copied, err := on(t.Context(), name, w)
			if err != nil {
				return err
			}
			return suite.Members[name].Status().Patch(t.Context(), copied, client.RawPatch(types.MergePatchType, []byte(ready)))
		})
	}
}

// These are the only two texts that reported may return for a hub object in these tests.
const (
	known       = "9/9 replicas, Ready=True, hanse.dev/Healthy=True"
	partlyKnown = "9/9 replicas, Ready=Unknown (PartiallyUnknown), hanse.dev/Healthy=Unknown (PartiallyUnknown)"
)

// reported returns the replicas and the conditions Ready and Healthy in the status of a hub object. It leaves out
// times, messages, and the reasons of true conditions.
func reported(o *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	text := fmt.Sprintf("%v/%v replicas", status["readyReplicas"], status["replicas"])
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, kind := range []string{"Ready", hubv1.ConditionObjectHealthy} {
		i := slices.IndexFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == kind })
		if i < 0 {
			text += ", no " + kind
			continue
		}
		c := conditions[i].(map[string]any)
		text += fmt.Sprintf(", %s=%v", kind, c["status"])
		if c["status"] != "True" {
			text += fmt.Sprintf(" (%v)", c["reason"])
		}
	}
	return text
}

func objectSays(ctx context.Context, w *unstructured.Unstructured, want string) error {
	o := w.DeepCopy()
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(w), o); err != nil {
		return err
	}
	if got := reported(o); got != want {
		return fmt.Errorf("%s says %s, want %s", w.GetName(), got, want)
	}
	return nil
}

// rowText returns the Applied status, the health and the age of a cluster's row in a binding, without reasons.
func rowText(b *hubv1.ResourceBinding, cluster string) string {
	row := b.Status.Row(cluster)
	if row == nil {
		return "no row"
	}
	when := "live"
	if row.LastObservedTime != nil {
		when = "as of then"
	}
	return fmt.Sprintf("Applied=%s %s %s", row.Applied, row.Health, when)
}

// record records each value of the object's status and rows from now on, in order and without repetitions. The returned
// function stops the recording and returns the values by the name of their observer.
func record(t *testing.T, w *unstructured.Unstructured) (end func() map[string][]string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var mu sync.Mutex
	stories := map[string][]string{}
	note := func(who, what string) {
		mu.Lock()
		defer mu.Unlock()
		if all := stories[who]; len(all) == 0 || all[len(all)-1] != what {
			stories[who] = append(all, what)
		}
	}
	var watchers sync.WaitGroup
	watchers.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			o := w.DeepCopy()
			if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(w), o); err == nil {
				note("looking ten times a second", reported(o))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	c, err := client.NewWithWatch(suite.Hub.Config, client.Options{Scheme: suite.Hub.Scheme()})
	must(t, err)
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
	for _, list := range []client.ObjectList{objects, &hubv1.ResourceBindingList{}} {
		events, err := c.Watch(ctx, list, client.InNamespace(w.GetNamespace()))
		must(t, err)
		watchers.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				switch o := event.Object.(type) {
				case *unstructured.Unstructured:
					note("seeing each version", reported(o))
				case *hubv1.ResourceBinding:
					note("row", rowText(o, frankfurt))
				}
			}
		})
	}
	return func() map[string][]string {
		cancel()
		watchers.Wait()
		return stories
	}
}

// written has the resourceVersions of a hub object and its binding, which show any write, and the binding's status.
type written struct {
	Object, Binding string // resourceVersions of the object and its binding
	Status          hubv1.BindingStatus
}

func writtenOf(ctx context.Context, t *testing.T, w *unstructured.Unstructured) written {
	t.Helper()
	o := w.DeepCopy()
	must(t, suite.Hub.Get(ctx, client.ObjectKeyFromObject(w), o))
	b, err := bindingOf(ctx, w)
	must(t, err)
	return written{o.GetResourceVersion(), b.GetResourceVersion(), *b.BindingStatus()}
}

// regionsSay returns nil if status.topology of the placement has exactly these texts: each is a region with its healthy
// and desired copies, and its ready and total replicas.
func regionsSay(ctx context.Context, p *hubv1.Placement, want ...string) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	var got []string
	for _, r := range now.Status.Topology {
		text := fmt.Sprintf("%s %d/%d", r.Region, r.Healthy, r.Desired)
		if r.ReadyReplicas != nil && r.Replicas != nil {
			text += fmt.Sprintf(" %d/%d", *r.ReadyReplicas, *r.Replicas)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		raw, _ := json.Marshal(now.Status)
		return fmt.Errorf("placement %s has regions %q, want %q; status %s", p.Name, got, want, raw)
	}
	return nil
}

// asOf checks the placement's oldestObservedTime, which Hanse sets while the status of a cluster is outdated. It
// returns nil if earlier is true and the time is set, or if earlier is false and the time is not set.
func asOf(ctx context.Context, p *hubv1.Placement, earlier bool) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	if at := now.Status.OldestObservedTime; (at != nil) != earlier {
		return fmt.Errorf("placement %s is as of %v, want an earlier time: %v", p.Name, at, earlier)
	}
	return nil
}
