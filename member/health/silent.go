package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// silent has, for each API group, the kinds with a status subresource that no controller writes by default. Objects of
// these kinds hold configuration. Such an object is Healthy as soon as it exists.
var silent = map[string][]string{ // a nil list means all kinds of the group
	"networking.istio.io":   nil,
	"security.istio.io":     nil,
	"telemetry.istio.io":    nil,
	"extensions.istio.io":   nil,
	"metallb.io":            nil,
	"monitoring.coreos.com": {"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig"},
	"cilium.io":             {"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"},
	"tekton.dev":            {"Pipeline", "Task"},
	"keda.sh":               {"TriggerAuthentication", "ClusterTriggerAuthentication"},
	"argoproj.io":           {"AppProject", "WorkflowTemplate", "ClusterWorkflowTemplate", "AnalysisTemplate", "ClusterAnalysisTemplate"},
}

func isSilent(gk schema.GroupKind) bool {
	kinds, ok := silent[gk.Group]
	return ok && (kinds == nil || slices.Contains(kinds, gk.Kind))
}

// builtInGroups are the API groups of Kubernetes itself. For some of their kinds, such as Ingress and ResourceQuota,
// kstatus has no rule. An object of such a kind is Healthy as soon as it exists, unless its status reports a problem.
var builtInGroups = []string{
	"", "apps", "autoscaling", "batch", "extensions", "policy",
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
}

func isBuiltInGroup(group string) bool { return slices.Contains(builtInGroups, group) }
