package hub

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var leads = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "hanse_hub_leader",
	Help: "1 if this process leads, else 0. Only the leader has the metrics of copies, placements, rollouts, operators and the readiness of members.",
})

// Metrics of this package, for docs/metrics.md.
var Metrics = []prometheus.Collector{leads}

func init() { metrics.Registry.MustRegister(Metrics...) }

// lead sets the metric hanse_hub_leader to 1 until ctx ends.
func lead(ctx context.Context) error {
	leads.Set(1)
	defer leads.Set(0)
	<-ctx.Done()
	return nil
}

// countCopies exports the metrics of copies while this process leads, after all bindings and placements are counted.
func (p *parts) countCopies(ctx context.Context) error {
	if !p.knowledge.changes.Bindings.Await(ctx) || !p.knowledge.changes.Placements.Await(ctx) {
		return nil
	}
	return p.controllers.copies.Lead(ctx)
}
