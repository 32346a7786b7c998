package dispatch

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_in_flight",
		Help: "Writes to a member cluster that are under way.",
	}, []string{"cluster"})
	inFlightLimit = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_in_flight_limit",
		Help: "Limit of concurrent writes to a member cluster: lower while the cluster is slow or fails, 0 while its writes are held.",
	}, []string{"cluster"})
	circuitOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_circuit",
		Help: "1 while writes to a member cluster are held, because several in a row failed or the cluster answered 429; else 0.",
	}, []string{"cluster"})
	clusterSeconds = applySeconds("cluster", 1.5, 50) // few buckets, because each cluster has its own series
	kindSeconds    = applySeconds("kind", 1.1, 160)
	queueDepth     = prometheus.NewDesc("hanse_member_queue_depth", "Copies of a member cluster that wait for a worker.", []string{"cluster"}, nil)
	gates          = &openGates{of: map[string]*gate{}}
)

// applySeconds returns the histogram of the times from a change on the hub until a cluster has it. It has one series
// for each value of the label. factor and buckets configure a native histogram, see prometheus.HistogramOpts.
func applySeconds(label string, factor float64, buckets uint32) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hanse_" + label + "_apply_duration_seconds",
		Help: "From the time at which the hub saw a change of an object, a policy or a decision, until a cluster had the changed copy, " +
			"by " + label + ". Copies that are suspended or paused, or wait for other objects, are not measured.",
		NativeHistogramBucketFactor: factor, NativeHistogramMaxBucketNumber: buckets, NativeHistogramMinResetDuration: time.Hour,
	}, []string{label})
}

// Metrics has the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{inFlight, inFlightLimit, circuitOpen, clusterSeconds, kindSeconds, gates}

func init() { metrics.Registry.MustRegister(Metrics...) }

// openGates has the gate (the workqueue) of each member to which the hub writes. Each scrape of the metrics reads the
// lengths of these workqueues.
type openGates struct {
	mu sync.Mutex
	of map[string]*gate
}

func (g *openGates) add(cluster string, q *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[cluster] = q
}

func (g *openGates) drop(cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, cluster)
}

// Describe implements prometheus.Collector.
func (*openGates) Describe(out chan<- *prometheus.Desc) { out <- queueDepth }

// Collect implements prometheus.Collector.
func (g *openGates) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	now := maps.Clone(g.of)
	g.mu.Unlock()
	for cluster, q := range now {
		out <- prometheus.MustNewConstMetric(queueDepth, prometheus.GaugeValue, float64(q.Len()), cluster)
	}
}

// beginGauges adds the metrics of a member when its queue starts.
func beginGauges(cluster string, q *gate) {
	inFlight.WithLabelValues(cluster)
	clusterSeconds.WithLabelValues(cluster)
	gates.add(cluster, q)
}

// dropGauges removes the metrics of a member whose queue has ended.
func dropGauges(cluster string) {
	for _, v := range []*prometheus.GaugeVec{inFlight, inFlightLimit, circuitOpen} {
		v.DeleteLabelValues(cluster)
	}
	clusterSeconds.DeleteLabelValues(cluster)
	gates.drop(cluster)
}
