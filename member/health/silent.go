package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// silent are kinds that have a status subresource although nobody writes a status by default: what they hold is configuration, which
// its readers take without a word. An object of such a kind is Healthy when it exists.
var silent = map[string][]string{ // by group; no kinds means all of them
	"networking.istio.io":          nil,
	"security.istio.io":            nil,
	"telemetry.istio.io":           nil,
	"extensions.istio.io":          nil,
	"metallb.io":                   nil,
	"monitoring.coreos.com":        {"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig"},
	"traefik.io":                   nil,
	"projectcontour.io":            {"TLSCertificateDelegation"},
	"cilium.io":                    {"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"},
	"crd.projectcalico.org":        nil,
	"tekton.dev":                   {"Pipeline", "Task"},
	"argoproj.io":                  {"AppProject", "AnalysisTemplate", "ClusterAnalysisTemplate", "WorkflowTemplate", "ClusterWorkflowTemplate"},
	"operator.victoriametrics.com": {"VMStaticScrape", "VMScrapeConfig"},
	"keda.sh":                      {"TriggerAuthentication", "ClusterTriggerAuthentication"},
}

func isSilent(gk schema.GroupKind) bool {
	kinds, ok := silent[gk.Group]
	if !ok {
		return false
	}
	if kinds == nil {
		return true
	}
	for _, kind := range kinds {
		if kind == gk.Kind {
			return true
		}
	}
	return false
}
