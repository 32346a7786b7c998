package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	decisionKeyLabel   = "multicluster.x-k8s.io/decision-key"
	decisionIndexLabel = "multicluster.x-k8s.io/decision-index"
	// PlacementAnnotation has the kind, namespace and name of the placement of a PlacementDecision.
	PlacementAnnotation = hubv1.Prefix + "placement"
	namespaceLabel      = hubv1.Prefix + "placement-namespace"
	nameLabel           = hubv1.Prefix + "placement-name"

	maxDecisions  = 100 // of one PlacementDecision
	maxLabel      = 63
	maxObjectName = 253
)

// DecisionKind is the kind of decisions of placements.
var DecisionKind = schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "PlacementDecision"}

// A Placement names a Placement, or a ClusterPlacement without a namespace.
type Placement struct{ Kind, Namespace, Name string }

func (p Placement) String() string {
	return strings.Join(slices.DeleteFunc([]string{p.Kind, p.Namespace, p.Name}, func(s string) bool { return s == "" }), "/")
}

// Decisions returns the PlacementDecisions of a fleet by name. A placement has those clusters to which the hub decided
// to send at least one of its objects. The decision on an object stays when its placement is deleted.
func Decisions(namespace string, placements []Placement, bindings []hubv1.BindingObject) map[string]*unstructured.Unstructured {
	clusters := map[Placement]map[string]struct{}{}
	for _, p := range placements {
		clusters[p] = map[string]struct{}{}
	}
	for _, b := range bindings {
		ref := b.BindingSpec().PlacementRef
		if ref == nil {
			continue
		}
		p := Placement{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		if clusters[p] == nil {
			clusters[p] = map[string]struct{}{}
		}
		for _, target := range b.BindingSpec().Clusters {
			if target.State == hubv1.TargetPresent {
				clusters[p][target.Name] = struct{}{}
			}
		}
	}
	out := map[string]*unstructured.Unstructured{}
	for p, chosen := range clusters {
		for i, part := range parts(slices.Sorted(maps.Keys(chosen))) {
			o := p.decision(namespace, i, part)
			out[o.GetName()] = o
		}
	}
	return out
}

// parts divides the clusters among PlacementDecisions. There is one for no clusters, too.
func parts(clusters []string) [][]string {
	if len(clusters) == 0 {
		return [][]string{nil}
	}
	return slices.Collect(slices.Chunk(clusters, maxDecisions))
}

func (p Placement) decision(namespace string, i int, clusters []string) *unstructured.Unstructured {
	decisions := make([]any, 0, len(clusters))
	for _, name := range clusters {
		decisions = append(decisions, map[string]any{"clusterProfileRef": map[string]any{"name": name, "namespace": namespace}})
	}
	o := &unstructured.Unstructured{Object: map[string]any{"schedulerName": Manager, "decisions": decisions}}
	o.SetGroupVersionKind(DecisionKind)
	o.SetNamespace(namespace)
	o.SetName(p.objectName(i))
	o.SetAnnotations(map[string]string{PlacementAnnotation: p.String()})
	labels := map[string]string{ManagerLabel: Manager, decisionKeyLabel: p.key(), decisionIndexLabel: strconv.Itoa(i)}
	if p.Namespace != "" {
		labels[namespaceLabel] = p.Namespace
	}
	if len(p.Name) <= maxLabel {
		labels[nameLabel] = p.Name
	}
	o.SetLabels(labels)
	return o
}

// key identifies a placement in a label, whose value is shorter than names may be.
func (p Placement) key() string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:16])
}

// objectName returns the name of a PlacementDecision. The key keeps apart the placements whose names are the same but
// for dots, or too long.
func (p Placement) objectName(i int) string {
	end := fmt.Sprintf("-%s-%d", p.key()[:10], i)
	begin := p.Name
	if p.Namespace != "" {
		begin = p.Namespace + "." + p.Name
	}
	return strings.TrimRight(begin[:min(len(begin), maxObjectName-len(end))], ".-") + end
}

// SameDecision reports whether a stored PlacementDecision equals the one that the hub would write.
func SameDecision(stored, wanted *unstructured.Unstructured) bool {
	for key, value := range wanted.GetLabels() {
		if stored.GetLabels()[key] != value {
			return false
		}
	}
	return stored.GetAnnotations()[PlacementAnnotation] == wanted.GetAnnotations()[PlacementAnnotation] &&
		fmt.Sprint(stored.Object["decisions"]) == fmt.Sprint(wanted.Object["decisions"]) && stored.Object["schedulerName"] == wanted.Object["schedulerName"]
}
