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
	"timeline", "timelineid", "hash", "revision", "shard", "shards", "port", "ports", "weight", "weights", "history",
	"pauseconditions", "abort", "promotefull",
}

// perClusterEndings are endings of such names: a word of camelCase each, so that "recip" is no IP.
var perClusterEndings = []string{
	"Ref", "Refs", "Reference", "References", "SecretName", "SecretNames", "Selector", "Binding", "UID", "Uid", "ResourceVersion",
	"IP", "IPs", "Ip", "Address", "Addresses", "Endpoint", "Endpoints", "URL", "URLs", "Url", "Urls", "Listeners", "LoadBalancer", "Ingress",
	"Pod", "PodName", "PodNames", "Node", "NodeName", "NodeNames", "InstanceName", "InstanceNames", "Timeline", "TimelineID",
	"Hash", "Hashes", "Revision", "Revisions", "Shards", "Port", "Ports", "Weight", "Weights", "History",
}

// PerCluster says whether a status field of this name belongs to one cluster alone: it is never shown for another one, even if
// all clusters have the same value.
func PerCluster(name string) bool {
	if slices.Contains(perCluster, strings.ToLower(name)) {
		return true
	}
	return slices.ContainsFunc(perClusterEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}
