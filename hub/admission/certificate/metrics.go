package certificate

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// expiry is a gauge vector without labels. Before the first certificate, a vector has no series, while a plain gauge
// would show 0.
var expiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "hanse_hub_certificate_expiry_timestamp_seconds",
	Help: "When the certificate of the webhook and the metrics expires, in seconds since 1970. Absent while the hub serves none.",
}, nil)

// Metrics of this package, for docs/metrics.md.
var Metrics = []prometheus.Collector{expiry}

func init() { metrics.Registry.MustRegister(Metrics...) }
