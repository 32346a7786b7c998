package pace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Decision is the value of the label reason in the metric Writes for a write that changes the spec of a binding.
const Decision = "decision"

var width = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "hanse_hub_write_width",
	Help: "Writes to the hub's API server that may be in flight: 1 while it is slow or answers 429.",
})

// Writes counts the writes to the hub's API server for which a Pacer gave the turn.
var Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "hanse_hub_writes_total",
	Help: "Writes to the hub's API server, by kind of the object and by content: the decision or the rows of a binding, " +
		"the merged status of a hub object, or the status of a policy or bundle.",
}, []string{"kind", "reason"})

// Metrics of this package, for docs/metrics.md.
var Metrics = []prometheus.Collector{width, Writes}

func init() {
	metrics.Registry.MustRegister(Metrics...)
	width.Set(widest)
	for _, kind := range []string{"ResourceBinding", "ClusterResourceBinding"} {
		Writes.WithLabelValues(kind, Decision)
		Writes.WithLabelValues(kind, "rows")
	}
}
