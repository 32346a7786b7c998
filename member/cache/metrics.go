package cache

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var memberWatches = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "hanse_member_watches",
	Help: "Number of kinds that the hub watches on a member. A kind counts until half a minute after the hub needs it no longer.",
}, []string{"cluster"})

// Metrics has the metrics of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{memberWatches}

func init() { metrics.Registry.MustRegister(Metrics...) }

// watches has the number of watched kinds of each cluster. While a new link replaces an old one, the kinds of both are
// added up. A cluster without watches has no series.
var watches = struct {
	mu       sync.Mutex
	clusters map[string]int
}{clusters: map[string]int{}}

func countWatches(cluster string, more int) {
	watches.mu.Lock()
	defer watches.mu.Unlock()
	n := watches.clusters[cluster] + more
	if watches.clusters[cluster] = n; n == 0 {
		delete(watches.clusters, cluster)
		memberWatches.DeleteLabelValues(cluster)
		return
	}
	memberWatches.WithLabelValues(cluster).Set(float64(n))
}
