package rollup

import (
	"math"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// workload has the names of the counts in the status of a built-in workload kind, such as readyReplicas. Tools compare
// these counts with spec.replicas of the hub object, as if it ran on one cluster. Therefore these counts have their own
// merge rules.
type workload struct {
	total            string // count of all pods, or of a DaemonSet's nodes that should run one
	updated          string // count of pods of the newest template; empty if the kind has none
	ready, available string
	unavailable      string // count of unavailable pods; empty if the kind has none
	others           []string
	// perNode is true for a kind that runs one pod for each node and has no spec.replicas, such as DaemonSet.
	perNode bool
	// zeros are the counts that the status of the kind shows even if they are 0.
	zeros []string
}

var workloads = map[schema.GroupVersionKind]*workload{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: {
		total: "replicas", updated: "updatedReplicas", ready: "readyReplicas", available: "availableReplicas",
		unavailable: "unavailableReplicas",
	},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: {
		total: "replicas", updated: "updatedReplicas", ready: "readyReplicas", available: "availableReplicas",
		others: []string{"currentReplicas"}, zeros: []string{"replicas", "availableReplicas"},
	},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}: {
		total: "replicas", ready: "readyReplicas", available: "availableReplicas",
		others: []string{"fullyLabeledReplicas"}, zeros: []string{"replicas"},
	},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}: {
		total: "desiredNumberScheduled", updated: "updatedNumberScheduled", ready: "numberReady", available: "numberAvailable",
		unavailable: "numberUnavailable", others: []string{"currentNumberScheduled", "numberMisscheduled"}, perNode: true,
		zeros: []string{"desiredNumberScheduled", "numberReady", "currentNumberScheduled", "numberMisscheduled"},
	},
}

// WorkloadSchema returns the schema for the merged status of a built-in workload kind, such as Deployment. ok is false
// for any other kind.
func WorkloadSchema(gvk schema.GroupVersionKind) (s Schema, ok bool) {
	w := workloads[gvk]
	if w == nil {
		return Schema{}, false
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type", "status"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text},
	}
	if gvk.Kind == "Deployment" {
		condition.Properties["lastUpdateTime"] = text
		condition.Required = append(condition.Required, "lastUpdateTime")
	}
	status := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		observedGenerationField: {Type: "integer"},
		conditionsField:         {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
	}}
	for _, name := range w.names() {
		status.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	}
	return Schema{kind: gvk.GroupKind(), status: newNode(&status, maxNesting), workload: w}, true
}

// names returns the names of all counts in the status of the kind.
func (w *workload) names() []string {
	names := append(w.compared(), w.others...)
	if w.unavailable != "" {
		names = append(names, w.unavailable)
	}
	return names
}

// compared returns the names of the counts that all have the same value when a rollout is complete.
func (w *workload) compared() []string {
	names := []string{w.total, w.ready, w.available}
	if w.updated != "" {
		names = append(names, w.updated)
	}
	return names
}

// workloadCount returns the merged value of one count. It leaves out a count of 0, unless the status of the kind shows
// this count even if it is 0.
func (m *merger) workloadCount(name string) (any, outcome) {
	if m.mayLack(name, health.LossOf(name)) {
		return nil, omitted
	}
	n := m.counts[name]
	if n == 0 && !slices.Contains(m.schema.workload.zeros, name) {
		return nil, silent
	}
	return n, merged
}

// workloadCounts merges the counts of all clusters. If each cluster runs spec.replicas, a merged count is the lowest
// count of all clusters. If replicas are divided among clusters, or for a DaemonSet, a merged count is the sum.
//
// While a reachable cluster has not completed its rollout, the method hold makes sure that the merged counts do not
// look complete. Otherwise, additional or terminating pods on other clusters could make up for the missing pods of this
// cluster.
func (m *merger) workloadCounts() map[string]int64 {
	w := m.schema.workload
	sums := w.perNode || slices.ContainsFunc(m.parts, func(p part) bool { return p.share != nil })
	underWay := false
	folded := map[string]int64{}
	for i, p := range m.parts {
		counts, complete := m.countsOf(p)
		underWay = underWay || !complete && p.row.LastObservedTime == nil
		for name, n := range counts {
			switch {
			case sums:
				folded[name] = min(folded[name]+n, math.MaxInt32)
			case i == 0:
				folded[name] = n
			default:
				folded[name] = min(folded[name], n)
			}
		}
	}
	if underWay {
		m.hold(folded)
	}
	if w.unavailable != "" {
		folded[w.unavailable] = max(folded[w.total]-folded[w.available], 0)
	}
	return folded
}

// countsOf returns the counts of one cluster, scaled to the number of replicas that the hub object wants there. An
// override or an autoscaler may let the cluster run another number of replicas. If the cluster has completed its
// rollout, the scaled counts look complete, too.
func (m *merger) countsOf(p part) (counts map[string]int64, complete bool) {
	w := m.schema.workload
	counts = map[string]int64{}
	for _, name := range append(w.compared(), w.others...) {
		n, _ := p.observed[name].(float64)
		counts[name] = int64(min(max(n, 0), math.MaxInt32))
	}
	complete = m.complete(p, counts)
	if w.perNode {
		return counts, complete
	}
	want, total := m.specReplicas(), counts[w.total]
	if p.share != nil {
		want = int64(*p.share)
	}
	for name, n := range counts {
		switch { // limit the counts: the server refuses counts above the total
		case !complete:
			counts[name] = min(n, want, total)
		case total == want:
			counts[name] = min(n, total)
		default:
			counts[name] = want
		}
	}
	counts[w.available] = min(counts[w.available], counts[w.ready])
	return counts, complete
}

// complete reports whether a cluster has completed the rollout of the hub object's current generation. For an
// unreachable cluster, the last known counts decide.
func (m *merger) complete(p part, counts map[string]int64) bool {
	switch {
	case p.row.Generation != m.generation:
		return false
	case p.current():
		return p.row.Health == hubv1.HealthHealthy
	}
	total := counts[m.schema.workload.total]
	return p.row.LastObservedTime != nil &&
		!slices.ContainsFunc(m.schema.workload.compared(), func(name string) bool { return counts[name] != total })
}

// hold changes counts that look like a complete rollout, so that no tool considers the rollout complete. It sets the
// ready and available counts to one less than the wanted number of pods. If no pod is wanted, it sets the total to 1
// instead.
func (m *merger) hold(counts map[string]int64) {
	w := m.schema.workload
	want := m.specReplicas()
	if w.perNode {
		want = counts[w.total]
	}
	updated := w.updated == "" || counts[w.updated]+m.partition() >= want
	switch {
	case !updated, counts[w.total] > want, counts[w.ready] < want, counts[w.available] < want:
	case want > 0:
		counts[w.ready], counts[w.available] = want-1, want-1
	case !w.perNode:
		counts[w.total] = 1
	}
}

// specReplicas returns spec.replicas of the hub object. The default is 1, as on an API server.
func (m *merger) specReplicas() int64 {
	n, ok := generation(m.spec["replicas"])
	if !ok {
		return 1
	}
	return n
}

// partition returns the number of pods of a StatefulSet that keep the older template, from spec.updateStrategy of the
// hub object.
func (m *merger) partition() int64 {
	strategy, _ := m.spec["updateStrategy"].(map[string]any)
	rolling, _ := strategy["rollingUpdate"].(map[string]any)
	n, _ := generation(rolling["partition"])
	return n
}
