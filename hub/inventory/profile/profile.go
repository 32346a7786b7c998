// Package profile renders a MemberCluster as a ClusterProfile of SIG Multicluster, and decisions of placements as
// PlacementDecisions (cluster-inventory-api v0.1.2). It decides what is published, and when it is worth a write.
// Package inventory writes it.
//
// Profiles are unstructured. The module has little more than types, and it requires other versions of libraries that
// the hub shares with its API server.
package profile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// Manager is the name of the cluster manager in the profiles of Hanse.
	Manager = "hanse"
	// ManagerLabel has the name of the cluster manager.
	ManagerLabel = "x-k8s.io/cluster-manager"

	conditionHealthy  = "ControlPlaneHealthy"
	conditionComplete = "PropertiesComplete"

	clusterIDProperty = "cluster.clusterset.k8s.io" // of KEP-2149
	zonesProperty     = "hanse.dev/zones"
	nodesProperty     = "nodes.hanse.dev/"
	capacityProperty  = "capacity.hanse.dev/"
	operatorProperty  = "operators.hanse.dev/"

	maxName  = 253
	maxValue = 1024
	// refresh is how old the times of properties may become before they alone are worth a write.
	refresh = 5 * time.Minute
)

// Kind is the kind that is written.
var Kind = schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"}

// Property is one property of a cluster, with the time at which the hub observed it.
type Property struct {
	Name             string       `json:"name"`
	Value            string       `json:"value"`
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// Profile is what Hanse publishes of a cluster.
type Profile struct {
	Name       string
	Labels     map[string]string
	Version    string
	Conditions []metav1.Condition
	Properties []Property
}

// Of renders a MemberCluster.
func Of(c *hubv1.MemberCluster) Profile {
	p := Profile{Name: c.Name, Labels: map[string]string{}, Version: c.Status.Version.Kubernetes}
	for key, value := range c.Labels {
		if !strings.HasPrefix(key, hubv1.Prefix) && key != hubv1.ManagedByLabel {
			p.Labels[key] = value
		}
	}
	p.Labels[ManagerLabel] = Manager
	omitted := p.addProperties(c)
	p.Conditions = []metav1.Condition{healthy(c), complete(omitted, c.CreationTimestamp)}
	return p
}

// healthy says what the hub knows of the control plane. A hub that does not reach a cluster does not know that it is
// unhealthy.
func healthy(c *hubv1.MemberCluster) metav1.Condition {
	out := metav1.Condition{
		Type: conditionHealthy, Status: metav1.ConditionUnknown, Reason: "NotObserved", Message: "the hub has not reached the cluster yet",
		LastTransitionTime: c.CreationTimestamp,
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady); ready != nil {
		out.Reason, out.Message, out.LastTransitionTime = ready.Reason, ready.Message, ready.LastTransitionTime
		if ready.Status == metav1.ConditionTrue {
			out.Status = metav1.ConditionTrue
		}
	}
	return out
}

// complete says which properties are beyond the limits of a ClusterProfile.
func complete(omitted []string, since metav1.Time) metav1.Condition {
	out := metav1.Condition{Type: conditionComplete, Status: metav1.ConditionTrue, Reason: "Complete", LastTransitionTime: since}
	if len(omitted) > 0 {
		out.Status, out.Reason = metav1.ConditionFalse, "OverTheLimits"
		out.Message = fmt.Sprintf("%d properties are left out or shortened, such as %.64s: a name has at most %d characters, a value %d",
			len(omitted), omitted[0], maxName, maxValue)
	}
	return out
}

// addProperties adds all properties, sorted by name. It returns the names of the properties that do not fit.
func (p *Profile) addProperties(c *hubv1.MemberCluster) (omitted []string) {
	s := c.Status
	values := map[string]string{clusterIDProperty: s.ClusterID, corev1.LabelTopologyRegion: s.Topology.Region}
	zones := slices.Clone(s.Topology.Zones)
	for len(strings.Join(zones, ",")) > maxValue {
		zones = zones[:len(zones)-1]
	}
	if len(zones) < len(s.Topology.Zones) {
		omitted = append(omitted, zonesProperty)
	}
	values[zonesProperty] = strings.Join(zones, ",")
	if s.LastObservedTime != nil {
		values[nodesProperty+"total"], values[nodesProperty+"ready"] = strconv.Itoa(int(s.Nodes.Total)), strconv.Itoa(int(s.Nodes.Ready))
	}
	for resource, amount := range s.Capacity {
		values[capacityProperty+strings.ReplaceAll(string(resource), "/", "_")] = amount.String()
	}
	for _, o := range s.Operators {
		version := o.Version
		if version == "" {
			version = "unknown"
		}
		if !o.Installed {
			version = "installing"
		}
		values[operatorProperty+o.Name] = version
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name]; {
		case value == "":
		case len(name) > maxName || len(value) > maxValue:
			omitted = append(omitted, name)
		default:
			p.Properties = append(p.Properties, Property{Name: name, Value: value, LastObservedTime: s.LastObservedTime})
		}
	}
	return omitted
}

// owned reports whether Hanse writes a property. Others may add their own.
func owned(name string) bool {
	for _, prefix := range []string{nodesProperty, capacityProperty, operatorProperty} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{clusterIDProperty, corev1.LabelTopologyRegion, zonesProperty}, name)
}

// Due reports whether a profile is worth a write after the one before. Times alone are, when they are old.
func Due(before, after Profile) bool {
	if before.at().IsZero() != after.at().IsZero() || after.at().Sub(before.at()) >= refresh {
		return true
	}
	return !equality.Semantic.DeepEqual(before.withoutTimes(), after.withoutTimes())
}

func (p Profile) at() time.Time {
	if len(p.Properties) == 0 || p.Properties[0].LastObservedTime == nil {
		return time.Time{}
	}
	return p.Properties[0].LastObservedTime.Time
}

func (p Profile) withoutTimes() Profile {
	p.Properties = slices.Clone(p.Properties)
	for i := range p.Properties {
		p.Properties[i].LastObservedTime = nil
	}
	return p
}

// New returns the object that is created for the profile. Its status is written later.
func (p Profile) New(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"displayName": p.Name, "clusterManager": map[string]any{"name": Manager}},
	}}
	o.SetGroupVersionKind(Kind)
	o.SetNamespace(namespace)
	o.SetName(p.Name)
	o.SetLabels(p.Labels)
	return o
}

// IsOurs reports whether Hanse manages a ClusterProfile. The field cannot be changed.
func IsOurs(o *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "clusterManager", "name")
	return name == Manager
}

// On returns an object with the profile. Labels, conditions and properties of others stay, and so do fields that Hanse
// does not know.
func (p Profile) On(existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := existing.DeepCopy()
	labels := out.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.Labels)
	out.SetLabels(labels)
	var known struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
			Properties []Property         `json:"properties"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, &known); err != nil {
		return nil, fmt.Errorf("reading the status of ClusterProfile %s: %w", p.Name, err)
	}
	for _, c := range p.Conditions {
		meta.SetStatusCondition(&known.Status.Conditions, c)
	}
	properties := slices.DeleteFunc(known.Status.Properties, func(at Property) bool { return owned(at.Name) })
	known.Status.Properties = append(properties, p.Properties...)
	merged, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&known)
	if err != nil {
		return nil, fmt.Errorf("rendering the status of ClusterProfile %s: %w", p.Name, err)
	}
	status, _, err := unstructured.NestedMap(out.Object, "status")
	if err != nil {
		return nil, fmt.Errorf("reading the status of ClusterProfile %s: %w", p.Name, err)
	}
	if status == nil {
		status = map[string]any{}
	}
	maps.Copy(status, merged["status"].(map[string]any))
	status["version"] = map[string]any{"kubernetes": p.Version}
	out.Object["status"] = status
	return out, nil
}
