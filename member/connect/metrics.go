package connect

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var reconnects = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "hanse_member_reconnects_total",
	Help: "How often the link to a member was ready again after it was lost.",
}, []string{"cluster"})

// Metrics has the metrics of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{reconnects}

func init() { metrics.Registry.MustRegister(Metrics...) }
