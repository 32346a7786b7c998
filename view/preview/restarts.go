package preview

import (
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// restarts returns the objects whose pods restart because a ConfigMap or Secret changes on their clusters. p is the
// ConfigMap or Secret, and fields are its changed fields by cluster. A placement determines which pods restart, see
// hubv1.ReferenceRule.Restart.
func (m *maker) restarts(p pair, fields map[string][]Field) []Object {
	id := p.Object.Identity()
	if id.Group != "" || id.Kind != "ConfigMap" && id.Kind != "Secret" {
		return nil
	}
	var out []Object
	for i, o := range m.after.Objects {
		binding := m.is.Outcomes[i].Binding
		if binding == nil || o.Object.GetNamespace() != id.Namespace {
			continue
		}
		read, err := decide.ReadByPods(o.Object, m.restartPaths(binding))
		if err != nil || !slices.Contains(read, id) {
			continue
		}
		reader := m.pair(i)
		if slices.ContainsFunc(reader.Stayed, func(cluster string) bool { return slices.ContainsFunc(fields[cluster], isContent) }) {
			out = append(out, reader.Object)
		}
	}
	slices.SortFunc(out, compareObjects)
	return out
}

// isContent reports whether a field of a ConfigMap or Secret is content that pods read.
func isContent(f Field) bool {
	return strings.HasPrefix(f.Path, "/data") || strings.HasPrefix(f.Path, "/binaryData") || strings.HasPrefix(f.Path, "/stringData")
}

// restartPaths returns the paths of the pod templates whose pods restart when a ConfigMap or Secret changes. It reads
// the paths from the placement that the binding follows. If that placement is missing, it returns the paths that the
// binding has recorded.
func (m *maker) restartPaths(b hubv1.BindingObject) []string {
	if placement := (decide.Facts{Placements: m.after.Placements}).Placement(b.BindingSpec().PlacementRef); placement != nil {
		return placement.PlacementSpec().RestartPaths()
	}
	settings := hubv1.LastSettings(b)
	return settings.RestartPaths()
}
