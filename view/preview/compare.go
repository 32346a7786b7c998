package preview

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// edit has what the change edits: the override policies that it adds, changes or removes, and the clusters that it adds
// or changes.
type edit struct {
	overrides []hubv1.OverridePolicyObject // override policies before and after the change
	clusters  map[string]bool
}

// editOf finds the override policies and clusters that differ between two fleets. A fleet has all objects, policies and
// clusters at one time: here, before the change and after it. editOf compares pointers: an unchanged policy or cluster
// has the same pointer in both fleets.
func editOf(before, after decide.Fleet) edit {
	e := edit{clusters: map[string]bool{}}
	for _, p := range before.Overrides {
		if !slices.Contains(after.Overrides, p) {
			e.overrides = append(e.overrides, p)
		}
	}
	for _, p := range after.Overrides {
		if !slices.Contains(before.Overrides, p) {
			e.overrides = append(e.overrides, p)
		}
	}
	for _, c := range after.Clusters {
		e.clusters[c.Name] = !slices.Contains(before.Clusters, c)
	}
	return e
}

// concerns reports whether the change may affect the manifests of an object's copies, or gives the object to a new
// cluster.
func (m *maker) concerns(p pair) bool {
	if p.Old == nil || p.Old.Object != p.New.Object || len(p.Gained) > 0 || p.Before.Binding == nil || p.After.Binding == nil {
		return true
	}
	if !equality.Semantic.DeepEqual(p.Before.Binding.BindingSpec().Division, p.After.Binding.BindingSpec().Division) {
		return true
	}
	if slices.ContainsFunc(p.Stayed, func(name string) bool {
		return m.edit.clusters[name] || shareOf(p.HeldBefore[name]) != shareOf(p.Held[name])
	}) {
		return true
	}
	before, after := m.before.NamespaceLabels[p.Object.Namespace], m.after.NamespaceLabels[p.Object.Namespace]
	if !equality.Semantic.DeepEqual(before, after) {
		return true
	}
	matching, err := overrides.Matching(m.edit.overrides, selectable(p.New, after))
	return len(matching) > 0 || err != nil
}

func selectable(o *decide.FleetObject, namespaceLabels map[string]string) hubv1.SelectableObject {
	return hubv1.Selectable(o.Identity(), o.Object, namespaceLabels)
}

// compare adds to the plan how the copies of an object differ on clusters that keep them, and why copies could not be
// written.
func (m *maker) compare(p pair, shares []Share) {
	if !m.concerns(p) {
		return
	}
	before, after := map[string]Rendering{}, map[string]Rendering{}
	if p.Old != nil && !m.options.MetadataOnly {
		before = m.render(m.before, *p.Old, p.Before.Binding, p.Stayed)
	}
	if !m.options.MetadataOnly {
		after = m.render(m.after, *p.New, p.After.Binding, slices.Sorted(slices.Values(slices.Concat(p.Stayed, p.Gained))))
	}
	fields := map[string][]Field{}
	for _, cluster := range p.Stayed {
		was, is := before[cluster], after[cluster]
		if was.Manifest == nil || is.Manifest == nil {
			continue
		}
		all := FieldsOf(&unstructured.Unstructured{Object: was.Manifest}, &unstructured.Unstructured{Object: is.Manifest})
		all = slices.DeleteFunc(all, func(f Field) bool { return isShare(was, f.Path) && isShare(is, f.Path) })
		if len(all) > 0 {
			fields[cluster] = all
		}
	}
	if len(shares) > 0 || len(fields) > 0 {
		groups := Grouped(fields, func(cluster string) (map[string]any, map[string]any) {
			return before[cluster].Manifest, after[cluster].Manifest
		})
		m.plan.Changes = append(m.plan.Changes, Change{
			Object: p.Object, Shares: shares, Groups: groups, Waves: m.waves(p, fields), Restarts: m.restarts(p, fields),
		})
		for _, s := range shares {
			if _, counted := fields[s.Cluster]; !counted {
				m.plan.Summary.Changed++
			}
		}
		m.plan.Summary.Changed += len(fields)
	}
	if len(fields) > 0 {
		m.noteTemplate(p)
	}
	m.unwritten(p, before, after)
}

// isShare reports whether the division of replicas sets the field at path.
func isShare(r Rendering, path string) bool {
	return slices.ContainsFunc(r.Divided, func(d DividedNumber) bool { return d.Path == path })
}

// render returns the manifests of an object by cluster.
func (m *maker) render(f decide.Fleet, o decide.FleetObject, b hubv1.BindingObject, clusters []string) map[string]Rendering {
	in := RenderInput{
		Object: o.Object, OtherVersions: o.OtherVersions, NamespaceLabels: f.NamespaceLabels[o.Object.GetNamespace()],
		DeniedMetadataPrefixes: m.options.DeniedMetadataPrefixes,
	}
	if b != nil {
		in.Binding = b.BindingSpec()
	}
	for _, p := range f.Overrides {
		if ns := p.GetNamespace(); ns == "" || ns == o.Object.GetNamespace() {
			in.Policies = append(in.Policies, p)
		}
	}
	for _, c := range f.Clusters {
		if _, ok := slices.BinarySearch(clusters, c.Name); ok {
			in.Clusters = append(in.Clusters, c)
		}
	}
	out := map[string]Rendering{}
	for _, r := range Render(in) {
		out[r.Cluster] = r
	}
	return out
}

// unwritten adds to the plan the copies that could not be written after the change. It leaves out a copy that could not
// be written for the same reason before the change.
func (m *maker) unwritten(p pair, before, after map[string]Rendering) {
	clusters := map[string][]string{} // clusters by reason and message
	var order []Problem
	ofOperator := hubv1.IsOfOperator(p.New.Object)
	for _, cluster := range slices.Concat(p.Stayed, p.Gained) {
		fault := m.fault(ofOperator, after[cluster], m.after.NamespaceLabels[p.Object.Namespace])
		if fault.Message == "" || fault == m.fault(ofOperator, before[cluster], m.before.NamespaceLabels[p.Object.Namespace]) {
			continue
		}
		key := fault.Reason + "\x00" + fault.Message
		if clusters[key] == nil {
			order = append(order, Problem{Object: p.Object, Reason: fault.Reason, Message: fault.Message})
		}
		clusters[key] = append(clusters[key], cluster)
	}
	for _, problem := range order {
		problem.Clusters = slices.Sorted(slices.Values(clusters[problem.Reason+"\x00"+problem.Message]))
		m.problem(problem)
	}
}

// fault returns why the hub would not write a manifest, or why the member would refuse it. The result is empty if
// neither is the case.
func (m *maker) fault(ofOperator bool, r Rendering, namespaceLabels map[string]string) tenancy.Refusal {
	switch {
	case r.Error != "":
		return tenancy.Refusal{Message: r.Error}
	case r.Manifest == nil:
		return tenancy.Refusal{}
	}
	manifest := &unstructured.Unstructured{Object: r.Manifest}
	if refused := tenancy.Of(manifest, namespaceLabels, ofOperator); refused != nil {
		return *refused
	}
	if m.options.Fits == nil || hubv1.IsSecret(manifest.GroupVersionKind().GroupKind()) {
		return tenancy.Refusal{}
	}
	if err := m.options.Fits(manifest); err != nil {
		return tenancy.Refusal{Message: "the manifest does not fit the definition of its kind: " + oneLine(err)}
	}
	return tenancy.Refusal{}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Grouped groups the clusters whose fields differ in the same way, the largest group first. states returns the states
// of the copy on a cluster, before and after the change.
func Grouped(fields map[string][]Field, states func(cluster string) (before, after map[string]any)) []Group {
	groups := map[string]*Group{}
	for cluster, all := range fields {
		key, err := json.Marshal(all)
		if err != nil { // a manifest contains only JSON values
			key = []byte(cluster)
		}
		if groups[string(key)] == nil {
			groups[string(key)] = &Group{Fields: all}
		}
		groups[string(key)].Clusters = append(groups[string(key)].Clusters, cluster)
	}
	out := make([]Group, 0, len(groups))
	for _, g := range groups {
		slices.Sort(g.Clusters)
		g.Before, g.After = states(g.Clusters[0])
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		if len(a.Clusters) != len(b.Clusters) {
			return len(b.Clusters) - len(a.Clusters)
		}
		return strings.Compare(a.Clusters[0], b.Clusters[0])
	})
	return out
}
