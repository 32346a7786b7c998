package schedule

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var heartbeats = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "hanse_hub_heartbeats_total",
	Help: "Rounds of the leader, about every 10 s: the leader checks removals and drains, and a worker takes an entry from the queue of decisions.",
})

// Metrics has the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{heartbeats}

func init() { metrics.Registry.MustRegister(Metrics...) }

// heartbeat is a key of the queue that stands for no object. The keeper queues it, and the worker that takes it
// increments a metric. The metric stops increasing if the keeper or all workers are stuck, even if the process still
// runs.
var heartbeat = key{Group: hubv1.GroupVersion.Group, Kind: "Heartbeat"}

// topPriority is the priority of a heartbeat in the queue. It is higher than the priorities of all objects.
const topPriority = 1000

// beatEvery is the number of rounds of the keeper (one each second) between two heartbeats.
const beatEvery = 10

// beat queues a heartbeat ahead of all objects, so that a long queue does not delay it.
func (s *Scheduler) beat() {
	if _, q := s.leading(); q != nil {
		q.(priorityqueue.PriorityQueue[key]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(topPriority)}, heartbeat)
	}
}
