package report

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	hubWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hanse_hub_writes_total",
		Help: "Writes to the hub's API server, by kind of the object and by content: rows of a binding, or the merged status of a hub object.",
	}, []string{"kind", "reason"})
	windowSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "hanse_report_window_seconds",
		Help:    "How long the changes of a binding waited to be written together.",
		Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1, 2, 5, 10},
	})
	bindingClusters = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_binding_clusters",
		Help: "Rows of all bindings by state: Healthy, Progressing, Degraded, Unknown, NotApplied, or HubIsOlder.",
	}, []string{"state"})
	driftCorrected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hanse_drift_corrected_total",
		Help: "Copies on members that the hub restored after another client had changed them, by kind.",
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(hubWrites, windowSeconds, bindingClusters, driftCorrected)
}

// The values of the label for the written object.
const (
	writeRows   = "rows"
	writeStatus = "status"
)

const stateNotApplied = "NotApplied"

// count counts rows by state.
func count(rows []hubv1.ClusterRow) map[string]int {
	out := map[string]int{}
	for _, row := range rows {
		switch {
		case row.Reason == hubv1.ReasonHubIsOlder:
			out[hubv1.ReasonHubIsOlder]++
		case row.Applied == metav1.ConditionFalse:
			out[stateNotApplied]++
		case row.Applied == metav1.ConditionUnknown || row.Health == "":
			out[string(hubv1.HealthUnknown)]++
		default:
			out[string(row.Health)]++
		}
	}
	return out
}

// recount updates the gauge from one count to another.
func recount(before, after map[string]int) {
	for state, n := range before {
		bindingClusters.WithLabelValues(state).Sub(float64(n))
	}
	for state, n := range after {
		bindingClusters.WithLabelValues(state).Add(float64(n))
	}
}
