package membership

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hanse-dev/hanse/hub/store/clusters"
)

var (
	memberReady = prometheus.NewDesc("hanse_member_ready",
		"1 if the hub reaches a member and its watches deliver events: its MemberCluster is Ready, and a replica has observed it in the last minute; else 0.", []string{"cluster"}, nil)
	credentialsExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_credentials_expiry_timestamp_seconds",
		Help: "When the credentials expire that the hub uses for a member, in seconds since 1970. Absent for credentials that do not expire.",
	}, []string{"cluster"})
	unclaimedCopies = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_unclaimed_copies",
		Help: "Objects on a member that this hub wrote and that no binding names, of the kinds that the hub watches on the member.",
	}, []string{"cluster"})
)

// Metrics are the collectors of this package, from which docs/metrics.md is generated. Only the leading replica exports
// the metric of Readiness.
var Metrics = []prometheus.Collector{credentialsExpiry, unclaimedCopies, Readiness{}}

func init() { metrics.Registry.MustRegister(credentialsExpiry, unclaimedCopies) }

// Readiness is the metric that says whether each member is ready. Each scrape reads the MemberClusters from memory,
// so that a deleted MemberCluster has no time series.
type Readiness struct{ *clusters.Store }

// Lead exports the metric until ctx ends. The manager calls Lead in the leading replica only.
func (r Readiness) Lead(ctx context.Context) error {
	// Register fails if the process has a second hub, which happens only in tests. The members of the second hub are then
	// not exported.
	if err := metrics.Registry.Register(r); err == nil {
		defer metrics.Registry.Unregister(r)
	}
	<-ctx.Done()
	return nil
}

// Describe implements prometheus.Collector.
func (Readiness) Describe(out chan<- *prometheus.Desc) { out <- memberReady }

// Collect implements prometheus.Collector.
func (r Readiness) Collect(out chan<- prometheus.Metric) {
	all, err := r.Current(context.Background())
	if err != nil {
		return // the cache stops because this process ends
	}
	now := time.Now()
	for _, c := range all.Clusters {
		ready := 0.0
		if c.IsObserved(now) {
			ready = 1
		}
		out <- prometheus.MustNewConstMetric(memberReady, prometheus.GaugeValue, ready, c.Name)
	}
}
