package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// silent are kinds that have a status subresource although nobody writes a status by default: what they hold is configuration, which
// its readers take without a word. An object of such a kind is Healthy when it exists.
var silent = map[string][]string{ // by group; no kinds means all of them
	"networking.istio.io":   nil,
	"security.istio.io":     nil,
	"telemetry.istio.io":    nil,
	"extensions.istio.io":   nil,
	"metallb.io":            nil,
	"monitoring.coreos.com": {"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig"},
	"cilium.io":             {"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"},
	"tekton.dev":            {"Pipeline", "Task"},
	"keda.sh":               {"TriggerAuthentication", "ClusterTriggerAuthentication"},
}

func isSilent(gk schema.GroupKind) bool {
	kinds, ok := silent[gk.Group]
	return ok && (kinds == nil || slices.Contains(kinds, gk.Kind))
}
