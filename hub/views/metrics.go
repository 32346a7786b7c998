package views

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "hanse_view_requests_total",
	Help: "Requests of users about members, by the kind of the request and the HTTP status of the response.",
}, []string{"what", "code"})

// Metrics are the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{requests}

func init() { metrics.Registry.MustRegister(Metrics...) }
