package schedule

import (
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func heartbeatsNow(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "hanse_hub_heartbeats_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	t.Fatal("there is no series of heartbeats")
	return 0
}

func TestAHeartbeatNeedsAWorker(t *testing.T) {
	q := priorityqueue.New[key]("heartbeat")
	defer q.ShutDown()
	s := &Scheduler{opts: Options{Clock: clock.RealClock{}}}
	before := heartbeatsNow(t)
	s.beat()
	s.lead.ctx, s.lead.queue = t.Context(), q
	for i := range 100 {
		q.Add(key{Kind: "Widget", Name: string(rune('a' + i))})
	}
	s.beat()
	s.beat()
	if got := heartbeatsNow(t) - before; got != 0 {
		t.Fatalf("%d heartbeats while no worker takes them", got)
	}
	first := make(chan key)
	go func() {
		id, _ := q.Get()
		first <- id
	}()
	select {
	case id := <-first:
		if id != heartbeat {
			t.Fatalf("the worker gets %v first", id)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the queue hands nothing out")
	}
	if _, err := s.Reconcile(t.Context(), heartbeat); err != nil {
		t.Fatal(err)
	}
	if got := heartbeatsNow(t) - before; got != 1 {
		t.Errorf("%d heartbeats, want 1", got)
	}
}
