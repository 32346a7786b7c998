package release

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects, by its API group and resource.
type Kind struct{ Group, Resource string }

// GroupResource returns the kind as a resource.
func (k Kind) GroupResource() schema.GroupResource { return schema.GroupResource(k) }

// Entry is one entry of the value federatedKinds of the chart hanse-hub, or of grantedKinds of the chart hanse-member.
type Entry struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	// Status lets the hub write the status of the hub's objects. Only federatedKinds has it.
	Status bool `json:"status,omitempty"`
	// Namespaces limit the entry to these namespaces. Empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// has reports whether the entry is about a kind in all namespaces.
func (e Entry) has(k Kind) bool {
	return len(e.Namespaces) == 0 && slices.Contains(e.APIGroups, k.Group) && slices.Contains(e.Resources, k.Resource)
}

// ReadEntries reads the value of a release.
func ReadEntries(value any) ([]Entry, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("reading a value of the release: %w", err)
	}
	var out []Entry
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("reading a value of the release: %w", err)
	}
	return out, nil
}

// Wanted is a kind that entries shall have. Status is true if the hub shall also write its status.
type Wanted struct {
	Kind
	Status bool
}

// With returns the entries with further kinds, and the kinds that they did not have. The kinds of one group with the
// same status share a new entry. Existing entries stay as they are.
func With(entries []Entry, kinds []Wanted) (out []Entry, added []Wanted) {
	out = slices.Clone(entries)
	first := len(out)
	for _, w := range kinds {
		if slices.ContainsFunc(out, func(e Entry) bool { return e.has(w.Kind) && (e.Status || !w.Status) }) {
			continue
		}
		added = append(added, w)
		same := func(e Entry) bool { return e.APIGroups[0] == w.Group && e.Status == w.Status }
		if i := slices.IndexFunc(out[first:], same); i >= 0 {
			out[first+i].Resources = append(out[first+i].Resources, w.Resource)
			continue
		}
		out = append(out, Entry{APIGroups: []string{w.Group}, Resources: []string{w.Resource}, Status: w.Status})
	}
	return out, added
}

// Presets are names that stand for several kinds.
var Presets = map[string][]Wanted{
	"workloads": {
		{Kind{"apps", "deployments"}, true}, {Kind{"apps", "statefulsets"}, true}, {Kind{"apps", "daemonsets"}, true},
		{Kind{"batch", "jobs"}, true}, {Kind{"batch", "cronjobs"}, true}, {Kind{"", "services"}, true}, {Kind{"networking.k8s.io", "ingresses"}, true},
		{Kind{"autoscaling", "horizontalpodautoscalers"}, true}, {Kind{"policy", "poddisruptionbudgets"}, true},
	},
	"config": {{Kind{"", "configmaps"}, false}, {Kind{"", "secrets"}, false}},
}
