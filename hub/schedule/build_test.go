package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// What the cases are made of.

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	object = hubv1.ObjectIdentity{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
)

func template(uid types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("example.com/v1")
	u.SetKind(object.Kind)
	u.SetNamespace(object.Namespace)
	u.SetName(object.Name)
	u.SetUID(uid)
	u.SetLabels(map[string]string{"app": "web"})
	return u
}

func cluster(name string, change ...func(*hubv1.MemberCluster)) *hubv1.MemberCluster {
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

func ready(c *hubv1.MemberCluster, status metav1.ConditionStatus) {
	c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: hubv1.ReasonUnreachable}}
}

func unreachable(c *hubv1.MemberCluster) { ready(c, metav1.ConditionFalse) }

// leaving since a minute.
func leaving(policy hubv1.RemovalPolicy) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
		c.Spec.Leave.Policy = policy
	}
}

func abandonAfter(seconds int32) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Spec.Leave.WhenUnreachable = hubv1.UnreachableAbandon
		c.Spec.Leave.TimeoutSeconds = &seconds
	}
}

func policy(name string, change ...func(*hubv1.Placement)) *hubv1.Placement {
	p := &hubv1.Placement{}
	p.Namespace, p.Name, p.UID, p.Generation = object.Namespace, name, types.UID(name+"-uid"), 1
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: object.Group, Kind: object.Kind}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	for _, f := range change {
		f(p)
	}
	return p
}

func named(clusters ...string) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) {
		p.Spec.Clusters = hubv1.ClusterSelection{Names: clusters}
	}
}

func spreading(s hubv1.SpreadPolicy) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) { p.Spec.Spread = &s }
}

// serving the object's kind at these versions.
func serving(versions ...string) func(*hubv1.MemberCluster) {
	return func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: object.Group, Kind: object.Kind, Versions: versions}}
	}
}

func labelled(app string) func(*hubv1.Placement) {
	return func(p *hubv1.Placement) {
		p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

func absent(cluster, reason string, policy hubv1.RemovalPolicy) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: "a", Policy: policy}}
}

// bound is a binding of generation 3 whose rows are up to date, following the placement "web", for the object with uid "a".
func bound(entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Namespace, b.Name, b.Generation = object.Namespace, object.BindingName(), 3
	b.Spec = hubv1.BindingSpec{
		ObjectRef:    hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: object.Kind, Name: object.Name, UID: "a"},
		PlacementRef: refTo(policy("web")),
		Clusters:     entries,
	}
	b.Status.ObservedGeneration = 3
	return b
}

// known is a binding as the API server has it.
func known(b *hubv1.ResourceBinding) *hubv1.ResourceBinding {
	b.UID = "binding-1"
	return b
}

func refusedRow(b *hubv1.ResourceBinding, cluster string) *hubv1.ResourceBinding {
	return rowSays(b, cluster, hubv1.ReasonForbidden, "")
}

func rowSays(b *hubv1.ResourceBinding, cluster, reason, message string) *hubv1.ResourceBinding {
	b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionFalse, Reason: reason, Message: message})
	return b
}

func withdrawnRow(b *hubv1.ResourceBinding, cluster string) *hubv1.ResourceBinding {
	b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn})
	return b
}
