package health

import (
	"slices"
	"strings"
)

// perCluster are names of status fields, in lower case, whose value has a meaning in one cluster only, or is a command
// to this cluster.
var perCluster = []string{
	"selector", "labelselector", // fields of the scale subresource
	"binding", "uid", "resourceversion",
	"ip", "ips", "clusterips", "address", "addresses", "endpoint", "endpoints", "url", "urls", "listeners", "loadbalancer", "ingress",
	"pod", "podname", "podnames", "node", "nodename", "nodenames", "instancename", "instancenames", "currentprimary", "targetprimary",
	"timeline", "timelineid", "hash", "revision", "providerid", "shard", "shards", "port", "ports", "weight", "weights", "history",
	"shardid", "shardstatuses", "pauseconditions", "abort", "promotefull", "uuid",
}

// perClusterEndings are endings of names of status fields whose value is meaningful in one cluster only. An ending must
// be a whole word in camelCase, so that "recip" does not end in "IP".
var perClusterEndings = []string{
	"Ref", "Refs", "Reference", "References", "SecretName", "SecretNames", "Selector", "Binding", "UID", "Uid", "ResourceVersion",
	"IP", "IPs", "Ip", "Address", "Addresses", "Endpoint", "Endpoints", "URL", "URLs", "Url", "Urls", "URI", "Uri", "Listeners", "LoadBalancer", "Ingress",
	"Pod", "PodName", "PodNames", "Node", "NodeName", "NodeNames", "InstanceName", "InstanceNames", "Timeline", "TimelineID",
	"Id", "ID", "UUID", "Hash", "Hashes", "Revision", "Revisions", "RevisionName", "RS", "ProviderID", "Shards", "Port", "Ports", "Weight", "Weights", "History",
}

// PerCluster reports whether the value of a status field of this name has a meaning in one cluster only. Such a field
// is never merged, even if all clusters have the same value.
func PerCluster(name string) bool {
	if IsCount(name) {
		return false // a count such as numServeEndpoints, although its name ends in "Endpoints"
	}
	if slices.Contains(perCluster, strings.ToLower(name)) {
		return true
	}
	return slices.ContainsFunc(perClusterEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// counts are the names of counts in the status of the core workload kinds. Custom resources use the same names.
var counts = []string{
	"replicas", "instances", "active", "succeeded", "failed", "ready", "suspended",
	"currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled",
	"numberReady", "numberAvailable", "numberUnavailable", "numberMisscheduled",
}

// countEndings are endings of the names of counts. countBeginning is a prefix of such names, followed by a capital
// letter, as in numServeEndpoints.
var countEndings = []string{"Replicas", "Instances", "Workloads"}

const countBeginning = "num"

// IsCount reports whether numbers of this name may be summed over clusters: replicas, readyInstances, pendingWorkloads,
// upToDateNodes.
func IsCount(name string) bool {
	if rest, ok := strings.CutPrefix(name, countBeginning); ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
		return true
	}
	return slices.Contains(counts, name) || slices.ContainsFunc(countEndings, func(end string) bool { return strings.HasSuffix(name, end) }) || isRaised(name)
}

// isRaised reports whether a number of this name is a count that a rollout raises, such as readyNodes. Another number
// of the same unit, such as maxNodes, may be a limit.
func isRaised(name string) bool {
	for _, s := range states {
		if unit, ok := strings.CutPrefix(name, s.begin); ok && slices.Contains(units, unit) {
			return true
		}
	}
	return false
}

// amounts are prefixes of the names of quantities that may be summed over clusters, such as desiredCPU and totalMemory.
var amounts = []string{"desired", "total", "used", "requested", "reserved", "allocated", "allocatable", "available", "capacity"}

// IsAmount reports whether quantities of this name may be summed over clusters.
func IsAmount(name string) bool {
	return slices.ContainsFunc(amounts, func(begin string) bool {
		rest, ok := strings.CutPrefix(name, begin)
		return ok && (rest == "" || rest[0] >= 'A' && rest[0] <= 'Z')
	})
}

// IsPhase reports whether a field of this name is the phase, state or health of an object.
func IsPhase(name string) bool { return name == "phase" || name == "state" || name == "health" }

// IsExpiry reports whether a field of this name is the time of an expiry, or of the renewal before an expiry, such as
// notAfter, expirationTimestamp and renewalTime.
func IsExpiry(name string) bool {
	name = strings.ToLower(name)
	return name == "notafter" || name == "renewaltime" || strings.Contains(name, "expir")
}

// IsFailureTime reports whether a field of this name is the time of a failure, such as lastFailureTime.
func IsFailureTime(name string) bool {
	return strings.Contains(strings.ToLower(name), "fail")
}

// keyNames are names of fields, in lower case, that may identify the items of a list.
var keyNames = []string{"name", "type", "id", "key", "kind", "group", "version", "namespace", "zone", "region", "pool", "role", "component"}

// IsKey reports whether a field of this name may identify the items of a list.
func IsKey(name string) bool { return slices.Contains(keyNames, strings.ToLower(name)) }
