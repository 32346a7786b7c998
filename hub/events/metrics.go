package events

import (
	prom "github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var notifications = prom.NewCounterVec(prom.CounterOpts{
	Name: "hanse_notifications_total",
	Help: "Attempts to deliver notifications, by NotificationSink and result: delivered, failed (the attempt is repeated), refused (the receiver will never accept the notification), dropped (the notification was too old, or the queue was full).",
}, []string{"sink", "result"})

// Metrics are the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prom.Collector{notifications}

func init() { metrics.Registry.MustRegister(Metrics...) }
