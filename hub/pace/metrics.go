package pace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Decision is a value of the label reason of the metric Writes. It stands for a write that changes the spec of a
// binding.
const Decision = "decision"

var width = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "hanse_hub_write_width",
	Help: "Limit of concurrent writes to the hub's API server: 1 while the server is slow or answers 429.",
})

// Writes counts the writes to the hub's API server that a Pacer has allowed.
var Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "hanse_hub_writes_total",
	Help: "Writes to the hub's API server, by kind of the object and by content: the decision or the rows of a binding, " +
		"the merged status of a hub object, or the status of a policy or bundle.",
}, []string{"kind", "reason"})

// Metrics has the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{width, Writes}

func init() {
	metrics.Registry.MustRegister(Metrics...)
	width.Set(maxWidth)
	for _, kind := range []string{"ResourceBinding", "ClusterResourceBinding"} {
		Writes.WithLabelValues(kind, Decision)
		Writes.WithLabelValues(kind, "rows")
	}
}
