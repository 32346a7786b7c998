package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

var (
	windowSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "hanse_report_window_seconds",
		Help:    "How long the changes of a binding waited, so that one write has them all.",
		Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1, 2, 5, 10},
	})
	bindingClusters = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hanse_binding_clusters",
		Help: "Rows of all bindings by state: Healthy, Leaving, Progressing, Unknown, Degraded, NotApplied, or HubIsOlder. Only the row decides the state, not whether the hub observes the cluster.",
	}, []string{"state"})
	driftCorrected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hanse_drift_corrected_total",
		Help: "Copies on members that the hub restored after another client had changed them, by kind.",
	}, []string{"kind"})
	statusSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hanse_kind_status_duration_seconds",
		Help: "From the time at which the hub saw a change of an object or its decision, until the status says that every copy has it, " +
			"by kind. Objects with a rollout, and changes that a suspension, a pause or other objects hold, are not measured.",
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, []string{"kind"})
)

// Metrics are the collectors of this package, from which docs/metrics.md is generated. The metrics of Copies are
// separate, because only the leader exports them.
var Metrics = []prometheus.Collector{windowSeconds, bindingClusters, driftCorrected, statusSeconds}

func init() {
	metrics.Registry.MustRegister(Metrics...)
	bindingClusters.WithLabelValues(hubv1.ReasonHubIsOlder)
	for _, state := range rollup.CopyStates() {
		bindingClusters.WithLabelValues(state.String())
	}
}

// beginMetrics creates the series of a kind with the value 0, so that the first change is visible as an increase.
func beginMetrics(kind string) {
	driftCorrected.WithLabelValues(kind)
	statusSeconds.WithLabelValues(kind)
}

// These are the values of a metric label. They tell whether the rows of a binding or the status of a hub object were
// written.
const (
	writeRows   = "rows"
	writeStatus = "status"
)

// count returns the number of rows in each state. A copy that is newer than the hub object, because the hub was
// restored from a backup, counts as a state of its own.
func count(rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) map[string]int {
	wanted := make(map[string]hubv1.TargetState, len(targets))
	for i := range targets {
		wanted[targets[i].Name] = targets[i].State
	}
	out := map[string]int{}
	for i := range rows {
		row := &rows[i]
		state := rollup.StateOf(wanted[row.Name], row, true).String()
		if row.Reason == hubv1.ReasonHubIsOlder {
			state = hubv1.ReasonHubIsOlder
		}
		out[state]++
	}
	return out
}

// recount subtracts the earlier counts of one binding from the gauge, and adds the new ones.
func recount(before, after map[string]int) {
	for state, n := range before {
		bindingClusters.WithLabelValues(state).Sub(float64(n))
	}
	for state, n := range after {
		bindingClusters.WithLabelValues(state).Add(float64(n))
	}
}
