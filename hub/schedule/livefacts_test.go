package schedule

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// definitions answers reads of CustomResourceDefinitions, and returns an empty list for every other kind.
type definitions struct {
	client.Reader
	ending string
	lists  int
	answer chan struct{} // lists are answered when it is closed; nil: at once
}

func (d *definitions) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if _, ok := into.(*metav1.PartialObjectMetadata); ok && key.Name == d.ending {
		into.SetDeletionTimestamp(&metav1.Time{Time: now})
	}
	return nil
}

func (d *definitions) List(context.Context, client.ObjectList, ...client.ListOption) error {
	d.lists++
	if d.answer != nil {
		<-d.answer
	}
	return nil
}

func TestLiveFactsFailWhileADefinitionIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for _, plural := range []string{"memberclusters", "placements", "clusterplacements"} {
		name := plural + "." + hubv1.GroupVersion.Group
		facts := newLiveFacts(&definitions{ending: name}, testclock.NewFakePassiveClock(now))
		if _, err := facts.get(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("while %s is being deleted: error %v", name, err)
		}
	}
}

func TestLiveFactsAreReadOnceASecond(t *testing.T) {
	t.Parallel()
	reader, clock := &definitions{}, testclock.NewFakePassiveClock(now)
	facts := newLiveFacts(reader, clock)
	read := func() int {
		if _, err := facts.get(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		return reader.lists
	}
	first := read()
	if again := read(); again != first {
		t.Errorf("a second decision in the same moment made %d more lists", again-first)
	}
	clock.SetTime(now.Add(2 * time.Second))
	if later := read(); later == first {
		t.Error("facts of two seconds ago were used")
	}
}

func TestConcurrentDecisionsShareOneReadOfLiveFacts(t *testing.T) {
	t.Parallel()
	alone := &definitions{}
	if _, err := newLiveFacts(alone, testclock.NewFakePassiveClock(now)).get(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		reader := &definitions{answer: make(chan struct{})}
		facts := newLiveFacts(reader, testclock.NewFakePassiveClock(now))
		for range 10 {
			go func() {
				if _, err := facts.get(t.Context(), "shop"); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait() // wait until all decisions wait for the API server
		close(reader.answer)
		synctest.Wait()
		if reader.lists != alone.lists {
			t.Errorf("10 decisions made %d lists, want the %d of one", reader.lists, alone.lists)
		}
	})
}
