package dispatch

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_in_flight",
		Help: "Writes to a member cluster that are under way.",
	}, []string{"cluster"})
	inFlightLimit = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_in_flight_limit",
		Help: "How many objects of a member cluster may be at work at once: fewer while the cluster is slow or fails, 0 while its writes are held.",
	}, []string{"cluster"})
	circuitOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_member_circuit",
		Help: "1 while writes to a member cluster are held, because several in a row failed or the cluster answered 429; else 0.",
	}, []string{"cluster"})
)

func init() { metrics.Registry.MustRegister(inFlight, inFlightLimit, circuitOpen) }

// dropGauges removes the metrics of a member whose queue has ended.
func dropGauges(cluster string) {
	for _, v := range []*prometheus.GaugeVec{inFlight, inFlightLimit, circuitOpen} {
		v.DeleteLabelValues(cluster)
	}
}
