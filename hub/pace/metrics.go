package pace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var width = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "hanse_hub_write_width",
	Help: "Writes to the hub's API server that may be in flight: 1 while it is slow or answers 429.",
})

func init() {
	metrics.Registry.MustRegister(width)
	width.Set(widest)
}
