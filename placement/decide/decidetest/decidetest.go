// Package decidetest creates the objects that tests of decisions use.
package decidetest

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Now is the time of the decisions in all test cases. Object identifies the hub object in all test cases.
var (
	Now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	Object = hubv1.ObjectIdentity{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
)

// Template returns the hub object with this UID.
func Template(uid types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("example.com/v1")
	u.SetKind(Object.Kind)
	u.SetNamespace(Object.Namespace)
	u.SetName(Object.Name)
	u.SetUID(uid)
	u.SetLabels(map[string]string{"app": "web"})
	return u
}

// Cluster returns a ready cluster that accepts objects of all namespaces. Its label `name` has the name of the cluster
// as value.
func Cluster(name string, change ...func(*hubv1.MemberCluster)) *hubv1.MemberCluster {
	c := &hubv1.MemberCluster{}
	c.Name = name
	c.Labels = map[string]string{"name": name}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	ready(c, metav1.ConditionTrue)
	for _, f := range change {
		f(c)
	}
	return c
}

// ready sets the condition Ready.
func ready(c *hubv1.MemberCluster, status metav1.ConditionStatus) {
	c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: hubv1.ReasonUnreachable}}
}

// Unreachable makes a cluster not Ready.
func Unreachable(c *hubv1.MemberCluster) { ready(c, metav1.ConditionFalse) }

// Leaving sets the deletion timestamp of a MemberCluster to one minute ago. policy says what happens to the copies on
// the leaving cluster.
func Leaving(policy hubv1.RemovalPolicy) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.DeletionTimestamp = &metav1.Time{Time: Now.Add(-time.Minute)}
		c.Spec.Leave.Policy = policy
	}
}

// AbandonAfter sets the number of seconds after which the hub gives up the copies on a leaving cluster that does not
// withdraw them.
func AbandonAfter(seconds int32) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Spec.Leave.WhenUnreachable = hubv1.UnreachableAbandon
		c.Spec.Leave.TimeoutSeconds = &seconds
	}
}

// Policy returns a placement that selects the object, and sends it to all clusters.
func Policy(name string, change ...func(*hubv1.Placement)) *hubv1.Placement {
	p := &hubv1.Placement{}
	p.Namespace, p.Name, p.UID, p.Generation = Object.Namespace, name, types.UID(name+"-uid"), 1
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: Object.Group, Kind: Object.Kind}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	for _, f := range change {
		f(p)
	}
	return p
}

// Named makes a placement select clusters by name.
func Named(clusters ...string) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) {
		p.Spec.Clusters = hubv1.ClusterSelection{Names: clusters}
	}
}

// Spreading sets the spread of a placement.
func Spreading(s hubv1.SpreadPolicy) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) { p.Spec.Spread = &s }
}

// Serving makes a cluster serve the object's kind at these versions.
func Serving(versions ...string) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: Object.Group, Kind: Object.Kind, Versions: versions}}
	}
}

// Labelled makes a placement select only objects whose label app has this value.
func Labelled(app string) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) {
		p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

// Absent returns an entry of spec.clusters with the state Absent: the cluster must delete its copy, or keep it as an
// orphan, as policy says.
func Absent(cluster, reason string, policy hubv1.RemovalPolicy) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: "a", Policy: policy}}
}

// Bound returns a binding of generation 3 with these entries of spec.clusters, for the object with UID a and the
// placement web. status.observedGeneration is 3 too.
func Bound(entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Namespace, b.Name, b.Generation = Object.Namespace, Object.BindingName(), 3
	b.Spec = hubv1.BindingSpec{
		ObjectRef:    hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: Object.Kind, Name: Object.Name, UID: "a"},
		PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: Object.Namespace, Name: "web", UID: "web-uid", Generation: 1},
		Clusters:     entries,
	}
	b.Status.ObservedGeneration = 3
	return b
}

// Known gives a binding the UID that an API server sets.
func Known(b *hubv1.ResourceBinding) *hubv1.ResourceBinding {
	b.UID = "binding-1"
	return b
}

// RefusedRow adds the status row of a cluster that refuses to delete its copy.
func RefusedRow(b *hubv1.ResourceBinding, cluster string) *hubv1.ResourceBinding {
	return WithFailedRow(b, cluster, hubv1.ReasonForbidden, "")
}

// WithFailedRow adds the status row of a cluster on which the object is not applied, with this reason and message.
func WithFailedRow(b *hubv1.ResourceBinding, cluster, reason, message string) *hubv1.ResourceBinding {
	b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionFalse, Reason: reason, Message: message})
	return b
}

// WithdrawnRow adds the status row of a cluster that has confirmed the deletion of its copy.
func WithdrawnRow(b *hubv1.ResourceBinding, cluster string) *hubv1.ResourceBinding {
	b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn})
	return b
}

// Lost makes a cluster unreachable. It has had the unreachable taints for the given time.
func Lost(since time.Duration) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		Unreachable(c)
		at := &metav1.Time{Time: Now.Add(-since)}
		c.Status.Taints = []corev1.Taint{
			{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: at},
			{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: at},
		}
	}
}

// Drained makes a cluster drained. The drain moves at most one object at a time to other clusters.
func Drained(c *hubv1.MemberCluster) {
	c.Spec.Drain = &hubv1.DrainPolicy{MaxUnavailable: ptr.To[int32](1)}
}

// Emptied makes a cluster drained. The drain also evicts objects that no other cluster can take.
func Emptied(c *hubv1.MemberCluster) {
	c.Spec.Drain = &hubv1.DrainPolicy{Evict: true}
}

// EvictedBy returns the entry of spec.clusters for the cluster eu with the state Evicting. by lists the clusters that
// replace eu. Each item is "cluster", or "cluster/digest" with the digest of the copy that the cluster had before.
func EvictedBy(reason string, by ...string) hubv1.BindingTarget {
	e := hubv1.BindingTarget{Name: "eu", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: reason}}
	for _, b := range by {
		cluster, digest, _ := strings.Cut(b, "/")
		e.Evicting.Replacements = append(e.Evicting.Replacements, hubv1.Replacement{Cluster: cluster, Digest: digest})
	}
	return e
}

// Having returns the entry e of spec.clusters, with replicas as the cluster's number of replicas.
func Having(e hubv1.BindingTarget, replicas int32) hubv1.BindingTarget {
	e.Replicas = &replicas
	return e
}

// EntriesOf returns each entry of spec.clusters as a text. "eu=3" is a cluster with 3 replicas. "-eu Evicted Delete" is
// an entry with the state Absent. "~eu Evicted by sg/digest" is an entry with the state Evicting: sg replaces eu, and
// had a copy with this digest before.
func EntriesOf(spec *hubv1.BindingSpec) []string {
	var out []string
	for _, e := range spec.Clusters {
		text := e.Name
		if e.Replicas != nil {
			text += fmt.Sprintf("=%d", *e.Replicas)
		}
		switch {
		case e.Absent != nil:
			text = fmt.Sprintf("-%s %s %s", text, e.Absent.Reason, e.Absent.Policy)
		case e.Evicting != nil:
			text = fmt.Sprintf("~%s %s by", text, e.Evicting.Reason)
			for _, r := range e.Evicting.Replacements {
				text += " " + strings.TrimSuffix(r.Cluster+"/"+r.Digest, "/")
			}
		}
		out = append(out, text)
	}
	return out
}

// WithRows adds rows to the status of a binding. The text "eu" adds a row that shows a healthy copy on the cluster eu.
// A second word is the health of the copy, as in "eu Progressing". "eu Unknown" adds a row that does not know whether
// the copy exists. "eu Refused" adds a row for a cluster that refused the copy.
func WithRows(b *hubv1.ResourceBinding, rows ...string) *hubv1.ResourceBinding {
	for _, r := range rows {
		name, state, _ := strings.Cut(r, " ")
		row := hubv1.ClusterRow{Name: name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Digest: "d"}
		switch state {
		case "":
		case "Unknown":
			row.Applied, row.Health, row.Digest = metav1.ConditionUnknown, hubv1.HealthUnknown, ""
		case "Refused":
			row.Applied, row.Health, row.Reason = metav1.ConditionFalse, hubv1.HealthUnknown, hubv1.ReasonManifestRefused
		default:
			row.Health = hubv1.Health(state)
		}
		b.Status.Clusters = append(b.Status.Clusters, row)
	}
	return b
}

// FailingOver returns a placement that selects this number of clusters, or all clusters if number is 0. It evicts
// objects from a cluster that has been unreachable for 300 s.
func FailingOver(number int32, change ...func(*hubv1.Placement)) []hubv1.PlacementObject {
	return Only(Policy("web", append([]func(*hubv1.Placement){func(p *hubv1.Placement) {
		if number > 0 {
			p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: &number}
		}
		p.Spec.Failover.EvictAfterSeconds = ptr.To[int32](300)
	}}, change...)...))
}

// Dividing makes a placement divide the number at /spec/size among the clusters.
func Dividing(by hubv1.DivideBy, change ...func(*hubv1.DividePolicy)) func(*hubv1.Placement) {
	way := &hubv1.DividePolicy{By: by}
	for _, f := range change {
		f(way)
	}
	return func(p *hubv1.Placement) {
		p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/size", Divide: way}
		if by == hubv1.DivideByCapacity || by == hubv1.DivideByPack {
			p.Spec.Replicas.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}
	}
}

// NoMoreThan limits the number of replicas of each cluster to n.
func NoMoreThan(n int32) func(*hubv1.DividePolicy) {
	return func(w *hubv1.DividePolicy) { w.Limits = []hubv1.ReplicaLimit{{MaxReplicas: &n}} }
}

// Cpus sets the allocatable CPUs of a cluster's nodes to n.
func Cpus(n int64) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
		c.Status.Nodes.Total = 1
	}
}

// Share returns the entry of spec.clusters for a cluster with n replicas.
func Share(cluster string, n int32) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent, Replicas: &n}
}

// Divided returns a binding with these entries of spec.clusters. Its spec.division says that the number at /spec/size
// is divided among the clusters.
func Divided(entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := Bound(entries...)
	b.Spec.Division = &hubv1.Division{Path: "/spec/size"}
	return b
}

// Shares returns the entries of spec.clusters as text, such as "eu=5 sg -us": eu has 5 replicas, sg has no share, and
// us is Absent.
func Shares(spec *hubv1.BindingSpec) string {
	if spec == nil {
		return "no binding"
	}
	var out []string
	for _, e := range spec.Clusters {
		text := e.Name
		if e.State == hubv1.TargetAbsent {
			text = "-" + text
		}
		if e.Replicas != nil {
			text = fmt.Sprintf("%s=%d", text, *e.Replicas)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// Only returns the placements as the list that Facts.Placements has.
func Only(ps ...*hubv1.Placement) []hubv1.PlacementObject {
	var out []hubv1.PlacementObject
	for _, p := range ps {
		out = append(out, p)
	}
	return out
}

// Enforced returns an enforced ClusterPlacement for clusters by name.
func Enforced(name string, clusters ...string) *hubv1.ClusterPlacement {
	p := &hubv1.ClusterPlacement{Spec: hubv1.ClusterPlacementSpec{PlacementSpec: Policy(name, Named(clusters...)).Spec, NamespaceSelector: &metav1.LabelSelector{}, Enforced: true}}
	p.Name = name
	return p
}

// Three returns the clusters eu, sg and us.
func Three() []*hubv1.MemberCluster {
	return []*hubv1.MemberCluster{Cluster("eu"), Cluster("sg"), Cluster("us")}
}

// Excluding returns an override policy for the object with one rule that excludes clusters.
func Excluding(clusters *hubv1.RuleClusters, change ...func(*hubv1.OverridePolicy)) *hubv1.OverridePolicy {
	p := &hubv1.OverridePolicy{}
	p.Namespace, p.Name = Object.Namespace, "x"
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: Object.Group, Kind: Object.Kind}}
	p.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Exclude: true, Clusters: clusters}}
	for _, f := range change {
		f(p)
	}
	return p
}

// Naming returns the clusters of an override rule that selects clusters by name.
func Naming(clusters ...string) *hubv1.RuleClusters { return &hubv1.RuleClusters{Names: clusters} }

// These returns the override policies as the list that Facts.Overrides has.
func These(policies ...hubv1.OverridePolicyObject) []hubv1.OverridePolicyObject { return policies }
