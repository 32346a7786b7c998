package member

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are limits of Facts, the data about a cluster such as its version and nodes. Within these limits, the facts fit
// into the status of a MemberCluster.
const (
	maxVersion  = 64 // size of Kubernetes' version, in bytes
	maxZones    = 64
	maxVersions = 16 // number of versions of a kind
)

// Bounded returns facts that fit into a MemberCluster's status. It removes values that no real cluster has.
func (f Facts) Bounded() Facts {
	if len(f.ClusterID) > maxVersion || !utf8.ValidString(f.ClusterID) {
		f.ClusterID = ""
	}
	f.Kubernetes = Line(f.Kubernetes[:min(len(f.Kubernetes), maxVersion)], maxVersion)
	if !isLabelValue(f.Region) {
		f.Region = ""
	}
	f.Zones = slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, zone := range f.Zones {
			if zone != "" && isLabelValue(zone) && !yield(zone) {
				return
			}
		}
	}))
	f.Zones = f.Zones[:min(len(f.Zones), maxZones)]
	f.Capacity, f.Allocatable = boundedResources(f.Capacity), boundedResources(f.Allocatable)
	if f.Served != nil {
		served := make(map[schema.GroupKind][]string, len(f.Served))
		for gk, versions := range f.Served {
			versions = slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !isVersion(v) })
			served[gk] = versions[:min(len(versions), maxVersions)]
		}
		f.Served = served
	}
	return f
}

// The length is checked first, because the other checks read the whole text.
func isLabelValue(text string) bool {
	return len(text) <= validation.LabelValueMaxLength && len(validation.IsValidLabelValue(text)) == 0
}

func isVersion(text string) bool {
	return len(text) <= validation.DNS1035LabelMaxLength && len(validation.IsDNS1035Label(text)) == 0
}

// IsResourceName reports whether the name is valid for a resource of a node.
func IsResourceName(name corev1.ResourceName) bool {
	return len(name) <= hubv1.MaxNameLength+len("/")+validation.LabelValueMaxLength && len(validation.IsQualifiedName(string(name))) == 0
}

// boundedResources returns the list without invalid entries. The result is nil only if the list is nil.
func boundedResources(list corev1.ResourceList) corev1.ResourceList {
	odd := func(name corev1.ResourceName) bool { return !IsResourceName(name) }
	if len(list) <= hubv1.MaxResources && !slices.ContainsFunc(slices.Collect(maps.Keys(list)), odd) {
		return list
	}
	kept := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if len(kept) < hubv1.MaxResources && !odd(name) {
			kept[name] = list[name]
		}
	}
	return kept
}

// Line converts a text that a member may have written to one line of valid UTF-8 with at most `limit` characters. The
// line is a clone, so that it does not keep a longer text in memory.
func Line(text string, limit int) string {
	return strings.Clone(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, hubv1.CutMessage(text, limit)))
}

// ChangedMessage returns the message of an outcome with the reason ChangedByCluster. changed names the fields. The way
// out comes first, because long messages are cut at the end.
func ChangedMessage(changed string) string {
	return "change the cluster's admission, or list the fields in spec.apply.memberOwnedFields: the cluster stores " + changed
}
