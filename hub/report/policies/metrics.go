package policies

import (
	"context"

	prom "github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	operatorClusters = prom.NewDesc("hanse_operator_clusters",
		"Clusters on which a FederatedOperator is placed, by whether the operator is ready on the cluster: true or false.", []string{"operator", "ready"}, nil)
	operatorInfo = prom.NewDesc("hanse_operator_info",
		"The stored chart of a FederatedOperator; always 1. An operator whose objects are manifests has no series.", []string{"operator", "chart", "version", "app_version"}, nil)
)

// Metrics are the collectors of this package, from which docs/metrics.md is generated. Only the leading replica exports
// them.
var Metrics = []prom.Collector{operatorMetrics{}}

// operatorMetrics reads the statuses of operators at each scrape, so that a deleted operator has no time series.
type operatorMetrics struct{ client.Reader }

// serve exports the metrics until ctx ends. The manager runs it in the leading replica only.
func (m operatorMetrics) serve(ctx context.Context) error {
	// Register fails if the process has a second hub, which happens only in tests. The operators of the second hub are
	// then not exported.
	if err := metrics.Registry.Register(m); err == nil {
		defer metrics.Registry.Unregister(m)
	}
	<-ctx.Done()
	return nil
}

// Describe implements prometheus.Collector.
func (operatorMetrics) Describe(out chan<- *prom.Desc) {
	out <- operatorClusters
	out <- operatorInfo
}

// Collect implements prometheus.Collector.
func (m operatorMetrics) Collect(out chan<- prom.Metric) {
	var operators hubv1.FederatedOperatorList
	if m.List(context.Background(), &operators, client.UnsafeDisableDeepCopy) != nil {
		return // the cache stops because this process ends
	}
	for i := range operators.Items {
		o := &operators.Items[i]
		out <- prom.MustNewConstMetric(operatorClusters, prom.GaugeValue, float64(o.Status.Ready), o.Name, "true")
		out <- prom.MustNewConstMetric(operatorClusters, prom.GaugeValue, float64(o.Status.Total-o.Status.Ready), o.Name, "false")
		if c := o.Status.Chart; c != nil {
			out <- prom.MustNewConstMetric(operatorInfo, prom.GaugeValue, 1, o.Name, c.Name, c.Version, c.AppVersion)
		}
	}
}
