package health

import (
	"slices"
	"strings"
)

// perCluster are names of status fields, in lower case, whose value belongs to one cluster or is a command to it.
var perCluster = []string{
	"selector", "labelselector", // of the scale subresource
	"binding", "uid", "resourceversion",
	"ip", "ips", "clusterips", "address", "addresses", "endpoint", "endpoints", "url", "urls", "listeners", "loadbalancer", "ingress",
	"pod", "podname", "podnames", "node", "nodename", "nodenames", "instancename", "instancenames", "currentprimary", "targetprimary",
	"timeline", "timelineid", "hash", "revision", "providerid", "shard", "shards", "port", "ports", "weight", "weights", "history",
	"shardid", "shardstatuses", "pauseconditions", "abort", "promotefull", "uuid",
}

// perClusterEndings are endings of such names: a word of camelCase each, so that "recip" is no IP.
var perClusterEndings = []string{
	"Ref", "Refs", "Reference", "References", "SecretName", "SecretNames", "Selector", "Binding", "UID", "Uid", "ResourceVersion",
	"IP", "IPs", "Ip", "Address", "Addresses", "Endpoint", "Endpoints", "URL", "URLs", "Url", "Urls", "URI", "Uri", "Listeners", "LoadBalancer", "Ingress",
	"Pod", "PodName", "PodNames", "Node", "NodeName", "NodeNames", "InstanceName", "InstanceNames", "Timeline", "TimelineID",
	"Id", "ID", "UUID", "Hash", "Hashes", "Revision", "Revisions", "RevisionName", "RS", "ProviderID", "Shards", "Port", "Ports", "Weight", "Weights", "History",
}

// PerCluster says whether a status field of this name belongs to one cluster alone: it is never shown for another one,
// even if all clusters have the same value.
func PerCluster(name string) bool {
	if IsCount(name) {
		return false // numServeEndpoints
	}
	if slices.Contains(perCluster, strings.ToLower(name)) {
		return true
	}
	return slices.ContainsFunc(perClusterEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// counts are counters of the core workload kinds that custom resources imitate.
var counts = []string{
	"replicas", "instances", "active", "succeeded", "failed", "ready", "suspended",
	"currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled",
	"numberReady", "numberAvailable", "numberUnavailable", "numberMisscheduled",
}

// countEndings are endings of names of counts, countBeginning is a beginning before a capital letter:
// numServeEndpoints.
var countEndings = []string{"Replicas", "Instances", "Workloads"}

const countBeginning = "num"

// IsCount is true for names of numbers whose sum over clusters means what they mean: replicas, readyInstances,
// pendingWorkloads.
func IsCount(name string) bool {
	if rest, ok := strings.CutPrefix(name, countBeginning); ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
		return true
	}
	return slices.Contains(counts, name) || slices.ContainsFunc(countEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// amounts are beginnings of names of quantities whose sum over clusters means what they mean: desiredCPU, totalMemory.
var amounts = []string{"desired", "total", "used", "requested", "reserved", "allocated", "allocatable", "available", "capacity"}

// IsAmount is true for names of quantities whose sum over clusters means what they mean.
func IsAmount(name string) bool {
	return slices.ContainsFunc(amounts, func(begin string) bool {
		rest, ok := strings.CutPrefix(name, begin)
		return ok && (rest == "" || rest[0] >= 'A' && rest[0] <= 'Z')
	})
}

// IsPhase is true for names of words that say how far an object has come.
func IsPhase(name string) bool { return name == "phase" || name == "state" || name == "health" }

// IsExpiry is true for names of times at which something ends: notAfter, expirationTimestamp.
func IsExpiry(name string) bool {
	name = strings.ToLower(name)
	return name == "notafter" || strings.Contains(name, "expir")
}

// IsFailureTime is true for names of times at which something failed: lastFailureTime.
func IsFailureTime(name string) bool {
	return strings.Contains(strings.ToLower(name), "fail")
}

// keyNames are names of fields by which the entries of a list are told apart, in lower case.
var keyNames = []string{"name", "type", "id", "key", "kind", "group", "version", "namespace", "zone", "region", "pool", "role", "component"}

// IsKey is true for names of fields that may tell the entries of a list apart.
func IsKey(name string) bool { return slices.Contains(keyNames, strings.ToLower(name)) }
