package views

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/view/wire"
)

// namespaceFacts are the policies, clusters and bindings that affect the objects of one namespace. The cache shares
// these objects, so that nobody may change them.
type namespaceFacts struct {
	name       string
	labels     map[string]string
	bindings   []hubv1.BindingObject
	placements []hubv1.PlacementObject
	overrides  []hubv1.OverridePolicyObject
	clusters   []hubv1.MemberCluster
	// readable says for each kind whether the user may get its objects in the namespace.
	readable map[schema.GroupKind]bool
}

// everyKind in a resource selector selects all kinds of the API group.
const everyKind = "*"

// kinds returns the kinds of the namespace's bindings, and the kinds that the resource selectors of the policies name.
func (n *namespaceFacts) kinds() []schema.GroupKind {
	found := map[schema.GroupKind]bool{}
	for _, b := range n.bindings {
		found[hubv1.ObjectOf(b).GroupKind()] = true
	}
	for _, p := range n.placements {
		addKinds(found, p.PlacementSpec().ResourceSelectors)
	}
	for _, p := range n.overrides {
		addKinds(found, p.OverrideSpec().ResourceSelectors)
	}
	return slices.Collect(maps.Keys(found))
}

func addKinds(to map[schema.GroupKind]bool, selectors []hubv1.ResourceSelector) {
	for _, s := range selectors {
		if s.Kind != everyKind {
			to[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}] = true
		}
	}
}

// narrow returns the policies and clusters that the user may see. The following data is left out:
//
//   - cluster-scoped policies that do not select the namespace, or that select no kind which the user may get;
//   - override policies that also select a kind which the user may not get, because their values may be of such
//     objects;
//   - clusters that accept no objects of the namespace and have none of its copies;
//   - from a cluster, every fact that the shown policies do not read, its connection and its messages.
func (n *namespaceFacts) narrow() wire.FactsAnswer {
	var out wire.FactsAnswer
	reads := factReads{}
	var tolerations []corev1.Toleration
	for _, p := range n.placements {
		if !n.inScope(p.GetNamespace(), p.SelectedNamespaces()) {
			continue
		}
		if some, _ := n.reads(p.PlacementSpec().ResourceSelectors); !some {
			continue
		}
		reads.addPlacement(p.PlacementSpec())
		tolerations = append(tolerations, p.PlacementSpec().Clusters.Tolerations...)
		if c, ok := p.(*hubv1.ClusterPlacement); ok {
			shown := hubv1.ClusterPlacement{ObjectMeta: identityOf(c), Spec: *c.Spec.DeepCopy()}
			shown.Spec.NamespaceSelector = n.selector()
			out.ClusterPlacements = append(out.ClusterPlacements, shown)
		}
	}
	hidden := 0
	for _, p := range n.overrides {
		if !n.inScope(p.GetNamespace(), p.SelectedNamespaces()) {
			continue
		}
		some, all := n.reads(p.OverrideSpec().ResourceSelectors)
		switch {
		case !some:
			continue
		case !all:
			hidden++
			continue
		}
		for i := range p.OverrideSpec().Rules {
			reads.add(overrides.Reads(&p.OverrideSpec().Rules[i])...)
		}
		switch p := p.(type) {
		case *hubv1.ClusterOverridePolicy:
			shown := hubv1.ClusterOverridePolicy{ObjectMeta: identityOf(p), Spec: *p.Spec.DeepCopy()}
			shown.Spec.NamespaceSelector = n.selector()
			out.ClusterOverridePolicies = append(out.ClusterOverridePolicies, shown)
		case *hubv1.OverridePolicy:
			out.OverridePolicies = append(out.OverridePolicies, hubv1.OverridePolicy{ObjectMeta: identityOf(p), Spec: *p.Spec.DeepCopy()})
		}
	}
	if hidden > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("override policies that are not considered, since they also select kinds that you may not get: %d", hidden))
	}
	n.addClusters(&out, reads, tolerations)
	return out
}

func (n *namespaceFacts) addClusters(out *wire.FactsAnswer, reads factReads, tolerations []corev1.Toleration) {
	named, groups, hidden := n.namedClusters(), map[string]bool{}, 0 // groups: a policy selects all their kinds
	for _, p := range n.placements {
		if !n.inScope(p.GetNamespace(), p.SelectedNamespaces()) {
			continue
		}
		for _, s := range p.PlacementSpec().ResourceSelectors {
			groups[s.APIGroup] = groups[s.APIGroup] || s.Kind == everyKind
		}
	}
	for i := range n.clusters {
		c := &n.clusters[i]
		allowed, err := c.Spec.AllowedNamespaces.Allows(n.name, n.labels)
		allowed = allowed && err == nil
		if !allowed && !named[c.Name] {
			hidden++
			continue
		}
		shown := reads.of(c, tolerations)
		shown.Spec.AllowedNamespaces.From = hubv1.NamespacesFromNone
		if allowed {
			shown.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
		}
		for _, r := range c.Status.APIResources {
			kind := schema.GroupKind{Group: r.Group, Kind: r.Kind}
			if n.readable[kind] || groups[r.Group] || reads.has("servedKinds", kind.String()) {
				shown.Status.APIResources = append(shown.Status.APIResources, r)
			}
		}
		out.MemberClusters = append(out.MemberClusters, shown)
	}
	if hidden > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("clusters that do not accept objects of namespace %s are hidden: %d", n.name, hidden))
	}
}

// namedClusters returns the clusters that the namespace's bindings name.
func (n *namespaceFacts) namedClusters() map[string]bool {
	out := map[string]bool{}
	for _, b := range n.bindings {
		for _, t := range b.BindingSpec().Clusters {
			out[t.Name] = true
		}
	}
	return out
}

// inScope reports whether a policy may select objects of the namespace n.name. namespace is the policy's own namespace,
// and selected is the policy's namespace selector. For an invalid selector, the result is false.
func (n *namespaceFacts) inScope(namespace string, selected *metav1.LabelSelector) bool {
	somewhere := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Namespace: n.name}, NamespaceLabels: n.labels}
	in, err := hubv1.InScope(namespace, selected, somewhere)
	return in && err == nil
}

// selector returns a namespace selector that selects the namespace n.name and names no other namespace. In the answer,
// it replaces the selector of a policy, which may name other namespaces.
func (n *namespaceFacts) selector() *metav1.LabelSelector {
	if hubv1.IsSystemNamespace(n.name) { // the empty selector excludes system namespaces
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.name}}
	}
	return &metav1.LabelSelector{}
}

// reads compares the kinds that the selectors select with the user's rights. some is true if the user may get the
// objects of at least one selected kind. all is true if the user may get the objects of every selected kind. A selector
// for all kinds of a group counts as readable if the user may get one kind of this group.
func (n *namespaceFacts) reads(selectors []hubv1.ResourceSelector) (some, all bool) {
	all = true
	for _, s := range selectors {
		may := n.readable[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}]
		if s.Kind == everyKind {
			may = false
			for kind, readable := range n.readable {
				may = may || readable && kind.Group == s.APIGroup
			}
		}
		some, all = some || may, all && may
	}
	return some, all
}

// identityOf returns the metadata of an object with only the fields that every user may see.
func identityOf(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// factReads says which data of clusters the policies read. The first key is the name of the data, such as labels. The
// second key is the key within the data, such as the name of a label. The second key "" means that policies read all
// keys.
type factReads map[string]map[string]bool

func (r factReads) add(readings ...cel.Reading) {
	for _, x := range readings {
		if r[x.Variable] == nil {
			r[x.Variable] = map[string]bool{}
		}
		r[x.Variable][x.Key] = true
	}
}

func (r factReads) addPlacement(spec *hubv1.PlacementSpec) {
	r.add(placement.Reads(spec)...)
	r.add(overrides.SelectorReads(spec.Clusters.LabelSelector)...)
	if s := spec.Spread; s != nil {
		for _, p := range s.Preferences {
			r.add(overrides.SelectorReads(p.LabelSelector)...)
		}
		for _, g := range s.AffinityGroups {
			r.add(overrides.SelectorReads(g.LabelSelector)...)
		}
	}
	if !spec.Replicas.Divides() {
		return
	}
	way := spec.Replicas.Way()
	if way.By == hubv1.DivideByCapacity || way.By == hubv1.DivideByPack {
		r.add(cel.Reading{Variable: "allocatable"}, cel.Reading{Variable: "nodes"})
	}
	for _, w := range way.Weights {
		r.add(overrides.ChoiceReads(w.Clusters)...)
	}
	for _, l := range way.Limits {
		r.add(overrides.ChoiceReads(l.Clusters)...)
	}
}

// has reports whether a policy reads the given key of the given data of a cluster, such as one label.
func (r factReads) has(fact, key string) bool { return r[fact][key] || r[fact][""] }

// of returns a cluster with only the data that the user may see. It leaves out data that no policy reads, the
// namespaces that the cluster accepts, and the kinds that the cluster serves.
func (r factReads) of(c *hubv1.MemberCluster, tolerations []corev1.Toleration) hubv1.MemberCluster {
	out := hubv1.MemberCluster{ObjectMeta: identityOf(c)}
	for key, value := range c.SelectableLabels() {
		if key == hubv1.RegionLabel || r.has("labels", key) || key == hubv1.ZoneLabel && len(r["zone"]) > 0 {
			metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
		}
	}
	for key, value := range c.Annotations {
		if r.has("annotations", key) {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, value)
		}
	}
	out.Spec.Unschedulable, out.Spec.Leave.Policy = c.Spec.Unschedulable, c.Spec.Leave.Policy
	if c.Spec.Drain != nil {
		out.Spec.Drain = &hubv1.DrainPolicy{}
	}
	for _, t := range c.Spec.Taints {
		compared := slices.ContainsFunc(tolerations, func(o corev1.Toleration) bool { return o.Key == t.Key && o.Operator != corev1.TolerationOpExists })
		if !compared {
			t.Value = ""
		}
		out.Spec.Taints = append(out.Spec.Taints, t)
	}
	out.Status.Taints = slices.Clone(c.Status.Taints)
	out.Status.LastObservedTime = c.Status.LastObservedTime.DeepCopy()
	if ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady); ready != nil {
		shown := *ready
		shown.Message = "" // the message may have addresses
		out.Status.Conditions = []metav1.Condition{shown}
	}
	if len(r["version"]) > 0 {
		out.Status.Version = c.Status.Version
	}
	for _, o := range c.Status.Operators {
		if r.has("operators", o.Name) {
			out.Status.Operators = append(out.Status.Operators, o)
		}
	}
	if len(r["nodes"]) > 0 {
		out.Status.Nodes = c.Status.Nodes
	}
	out.Status.Capacity, out.Status.Allocatable = r.resources("capacity", c.Status.Capacity), r.resources("allocatable", c.Status.Allocatable)
	return out
}

func (r factReads) resources(fact string, list corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name, quantity := range list {
		if r.has(fact, string(name)) {
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[name] = quantity.DeepCopy()
		}
	}
	return out
}
