package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SelectableObject has the data of a hub object that the selectors of policies read.
//
// +kubebuilder:object:generate=false
type SelectableObject struct {
	ObjectIdentity
	Labels map[string]string
	// NamespaceLabels are the labels of the object's namespace.
	NamespaceLabels map[string]string
	// Bundle describes the bundle that contains the object. It is nil if no bundle contains the object.
	Bundle *ObjectBundle
}

// Selectable returns the data of an object that the selectors of policies read.
func Selectable(id ObjectIdentity, o metav1.Object, namespaceLabels map[string]string) SelectableObject {
	return SelectableObject{ObjectIdentity: id, Labels: o.GetLabels(), NamespaceLabels: namespaceLabels, Bundle: BundleOf(o)}
}

// IsOfOperator reports whether the object belongs to a FederatedOperator.
func (o SelectableObject) IsOfOperator() bool {
	return o.Bundle != nil && o.Bundle.Kind == FederatedOperatorKind
}

// Placed returns the object with which a placement's selectors are compared. This is the bundle that contains the
// object. If no bundle contains it, it is the object itself.
func (o SelectableObject) Placed() SelectableObject {
	if o.Bundle == nil {
		return o
	}
	placed := SelectableObject{ObjectIdentity: o.Bundle.Identity(), Labels: o.Bundle.Labels}
	if placed.Namespace != "" {
		placed.NamespaceLabels = o.NamespaceLabels // the objects of a Bundle are in its namespace
	}
	return placed
}

// Specificity tells how narrow the selector is that selects an object. A higher value means a narrower selector.
type Specificity int

// The values of Specificity, from no match to the narrowest match. A selector selects every kind of a group, all
// objects of a kind, objects with certain labels, or one name.
const (
	MatchesNot Specificity = iota
	MatchesGroup
	MatchesKind
	MatchesLabels
	MatchesName
)

// Match returns the Specificity of the narrowest selector that selects the object. If no selector selects the object,
// Match returns MatchesNot. The error about an invalid label selector names the index of the selector.
func Match(selectors []ResourceSelector, o SelectableObject) (Specificity, error) {
	best := MatchesNot
	for i, s := range selectors {
		got, err := s.match(o)
		if err != nil {
			return MatchesNot, fmt.Errorf("resourceSelectors[%d].labelSelector: %w", i, err)
		}
		best = max(best, got)
	}
	return best, nil
}

func (s ResourceSelector) match(o SelectableObject) (Specificity, error) {
	if s.APIGroup != o.Group || (s.Kind != "*" && s.Kind != o.Kind) {
		return MatchesNot, nil
	}
	switch {
	case s.Name != "":
		if s.Name != o.Name {
			return MatchesNot, nil
		}
		return MatchesName, nil
	case s.LabelSelector != nil:
		sel, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return MatchesNot, err
		}
		if !sel.Matches(labels.Set(o.Labels)) {
			return MatchesNot, nil
		}
		if sel.Empty() {
			break
		}
		return MatchesLabels, nil
	}
	if s.Kind == "*" {
		return MatchesGroup, nil
	}
	return MatchesKind, nil
}

// InScope reports whether a policy may select an object, judged by the object's namespace. A namespaced policy may
// select objects of its own namespace, except objects of ClusterBundles. For a cluster-scoped policy, policyNamespace
// is empty, and selected is its namespaceSelector. Such a policy may select cluster-scoped objects, and objects in the
// namespaces that the namespaceSelector selects. A nil selector selects no namespace, and {} selects every namespace
// except kube-* and hanse-system.
func InScope(policyNamespace string, selected *metav1.LabelSelector, o SelectableObject) (bool, error) {
	switch {
	case policyNamespace != "":
		return policyNamespace == o.Namespace && (o.Bundle == nil || o.Bundle.Namespace != ""), nil
	case o.Namespace == "":
		return true, nil
	case selected == nil:
		return false, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(selected)
	if err != nil {
		return false, fmt.Errorf("namespaceSelector: %w", err)
	}
	if sel.Empty() {
		return !IsSystemNamespace(o.Namespace), nil
	}
	return sel.Matches(labels.Set(o.NamespaceLabels)), nil
}

// IsSecret reports whether the kind is Secret. Callers use it to keep the values of Secrets out of statuses, events,
// metrics and logs.
func IsSecret(gk schema.GroupKind) bool { return gk == schema.GroupKind{Kind: "Secret"} }

// IsSystemNamespace reports whether the namespace is kube-* or hanse-system.
func IsSystemNamespace(name string) bool {
	return name == SystemNamespace || strings.HasPrefix(name, "kube-")
}

// SelectableLabels returns the labels with which cluster selectors are compared. These are the labels of the
// MemberCluster, the region of status.topology, and its zone if there is only one. A label of the MemberCluster takes
// precedence.
func (c *MemberCluster) SelectableLabels() map[string]string {
	out := maps.Clone(c.Labels)
	if out == nil {
		out = map[string]string{}
	}
	if _, ok := out[RegionLabel]; !ok && c.Status.Topology.Region != "" {
		out[RegionLabel] = c.Status.Topology.Region
	}
	if _, ok := out[ZoneLabel]; !ok && len(c.Status.Topology.Zones) == 1 {
		out[ZoneLabel] = c.Status.Topology.Zones[0]
	}
	return out
}

// MaySelect reports whether the names and labels of a selection select a cluster. MaySelect ignores the expression,
// because the result of an expression may change. An invalid label selector selects no cluster.
func (s *ClusterSelection) MaySelect(c *MemberCluster) bool {
	if slices.Contains(s.ExcludedNames, c.Name) || len(s.Names) > 0 && !slices.Contains(s.Names, c.Name) {
		return false
	}
	if s.LabelSelector == nil {
		return true
	}
	sel, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err == nil && sel.Matches(labels.Set(c.SelectableLabels()))
}

// SuspendsWrites reports whether the hub must not write to the cluster with this name. c is the MemberCluster, or nil
// if the cluster is not known. If there is a clusterSelector, writes to an unknown cluster are suspended. If the
// clusterSelector is invalid, writes to every cluster are suspended, because a write cannot be undone.
func (s *SuspendPolicy) SuspendsWrites(name string, c *MemberCluster) bool {
	switch {
	case s.Dispatching || slices.Contains(s.Clusters, name):
		return true
	case s.ClusterSelector == nil:
		return false
	}
	sel, err := metav1.LabelSelectorAsSelector(s.ClusterSelector)
	return err != nil || c == nil || sel.Matches(labels.Set(c.SelectableLabels()))
}

// SelectedClusters describes the clusters that the clusterSelector selects, such as "clusters with tier=test". It
// returns "" if there is no clusterSelector.
func (s *SuspendPolicy) SelectedClusters() string {
	if s.ClusterSelector == nil {
		return ""
	}
	switch sel, err := metav1.LabelSelectorAsSelector(s.ClusterSelector); {
	case err != nil:
		return "every cluster, because clusterSelector is invalid"
	case sel.Empty():
		return "every cluster"
	default:
		return "clusters with " + sel.String()
	}
}

// Allows reports whether objects of the hub namespace with this name and these labels may be sent to the cluster.
// Cluster-scoped objects (namespace "") may always be sent.
func (a AllowedNamespaces) Allows(namespace string, namespaceLabels map[string]string) (bool, error) {
	switch {
	case namespace == "" || a.From == NamespacesFromAll:
		return true, nil
	case a.From == NamespacesFromSelector:
		sel, err := metav1.LabelSelectorAsSelector(a.Selector)
		if err != nil {
			return false, fmt.Errorf("allowedNamespaces.selector: %w", err)
		}
		return sel.Matches(labels.Set(namespaceLabels)), nil
	}
	return false, nil
}
