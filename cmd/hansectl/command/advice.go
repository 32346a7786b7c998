package command

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// missingRight matches the message of an API server about a request that RBAC has refused.
var missingRight = regexp.MustCompile(
	`cannot (\S+) resource "([^"]+)" in API group "([^"]*)" (?:in the namespace "([^"]+)"|at the cluster scope)`)

// Advice names the role that the user needs if the hub's API server refused a request because of a missing right. It
// returns an empty text for any other error, and for an error that already names a role.
func Advice(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		return ""
	}
	found := missingRight.FindStringSubmatch(status.Status().Message)
	if found == nil {
		return ""
	}
	verb, resource, group, namespace := found[1], found[2], found[3], found[4]
	reads := slices.Contains([]string{"get", "list", "watch"}, verb)
	ours, full := group == hubv1.GroupVersion.Group, resource
	if group != "" {
		full += "." + group
	}
	role := ""
	if ours {
		role = roleFor(resource, reads)
	}
	switch {
	case role != "":
	case resource == "services/proxy", ours && reads:
		return "" // the error already names the role
	case resource == "leases" && namespace == hubv1.SystemNamespace:
		return "ask for the Role hanse-view in namespace " + namespace
	case !ours && reads && namespace != "":
		return fmt.Sprintf("ask for the ClusterRole view in namespace %s, or for one with the right to %s %s",
			namespace, verb, full)
	default:
		return fmt.Sprintf("ask for a ClusterRole with the right to %s %s", verb, full)
	}
	if namespace == "" {
		return fmt.Sprintf("pass your namespace with -n, or ask for the ClusterRole %s in all namespaces", role)
	}
	return fmt.Sprintf("ask for the ClusterRole %s in namespace %s", role, namespace)
}

// roleFor returns the ClusterRole of the chart that lets a user of a namespace read, or write, a resource of Hanse. It
// is empty if there is none.
func roleFor(resource string, reads bool) string {
	switch {
	case reads && slices.Contains([]string{"placements", "resourcebindings"}, resource):
		return "hanse-view"
	case resource == "placements", reads && resource == "overridepolicies":
		return "hanse-edit"
	case resource == "overridepolicies":
		return "hanse-override"
	}
	return ""
}
