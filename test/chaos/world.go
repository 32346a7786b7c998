package chaos

import (
	"encoding/base64"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// The namespaces of the run. Each but the last has one Placement, named like the namespace.
const (
	everywhere = "everywhere" // every cluster, with an OverridePolicy by region
	selected   = "selected"   // clusters with the label tier=prod
	referring  = "referring"  // every cluster; Widgets name ConfigMaps, which follow them
	bundled    = "bundled"    // every cluster; the objects of one Bundle
	staged     = "staged"     // every cluster, in three waves; the second wave needs an approval
	guarded    = "guarded"    // clusters with the label ring=a; removals of a whole cluster are held
	kept       = "kept"       // every cluster; no edit ever removes an object
	operated   = "operated"   // every cluster, by a ClusterPlacement; the objects of a FederatedOperator
)

// Namespaces are all namespaces of the run.
var Namespaces = []string{everywhere, selected, referring, bundled, staged, guarded, kept, operated}

// Members are the members in lab/topologies/bench.yaml.
var Members = []string{"member-1", "member-2", "member-3"}

// liarMember is the member whose requests go through a proxy that can lie.
const liarMember = "member-3"

// The labels of MemberClusters that placements select.
const (
	tierLabel   = "tier"
	ringLabel   = "ring"
	regionLabel = "topology.kubernetes.io/region"
)

// wave is the name of the wave that needs an approval.
const manualWave = "second"

// objectsIn is the number of objects that users write in each namespace. They are named o-0, o-1 and so on.
var objectsIn = map[string]int{everywhere: 20, selected: 10, referring: 6, staged: 6, guarded: 12, kept: 6}

const (
	configs       = 4 // ConfigMaps in the namespace referring, named config-0 and so on, which Widgets name
	bundleObjects = 6 // objects that the Bundle may have, named b-0 and so on
)

// The kinds of the copies. WidgetKind is in testdata/widget.yaml.
var (
	WidgetKind = schema.GroupVersionKind{Group: "chaos.hanse.dev", Version: "v1", Kind: "Widget"}
	Kinds      = map[string]schema.GroupVersionKind{
		"ConfigMap": corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		"Secret":    corev1.SchemeGroupVersion.WithKind("Secret"),
		"Widget":    WidgetKind,
	}
	kindOfResource = map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "widgets": "Widget"}
)

// Key names an object of the hub and its copies.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// objectKey returns the key of object i of a namespace. The kind depends on the number.
func objectKey(namespace string, i int) Key {
	kind := [...]string{"ConfigMap", "Widget", "ConfigMap", "Widget", "Secret"}[i%5]
	switch namespace {
	case referring:
		kind = "Widget"
	case staged, guarded, kept: // no Secrets, which change in the same way as ConfigMaps
		kind = [...]string{"ConfigMap", "Widget"}[i%2]
	}
	return Key{Kind: kind, Namespace: namespace, Name: "o-" + strconv.Itoa(i)}
}

func configKey(i int) Key {
	return Key{Kind: "ConfigMap", Namespace: referring, Name: "config-" + strconv.Itoa(i)}
}

func bundleKey(i int) Key {
	return Key{Kind: [...]string{"ConfigMap", "Widget"}[i%2], Namespace: bundled, Name: "b-" + strconv.Itoa(i)}
}

// everyKey returns the keys of all objects that the hub or a Bundle may have.
func everyKey() []Key {
	out := []Key{settingsKey}
	for _, ns := range Namespaces {
		for i := range objectsIn[ns] {
			out = append(out, objectKey(ns, i))
		}
	}
	for i := range configs {
		out = append(out, configKey(i))
	}
	for i := range bundleObjects {
		out = append(out, bundleKey(i))
	}
	return out
}

// settingsKey is the ConfigMap that the FederatedOperator has beside its CustomResourceDefinition.
var settingsKey = Key{Kind: "ConfigMap", Namespace: operated, Name: "settings"}

// object returns the object with a key whose content is a number. config is the name of a ConfigMap, for Widgets alone.
func object(k Key, value int64, config string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(Kinds[k.Kind])
	o.SetNamespace(k.Namespace)
	o.SetName(k.Name)
	text := strconv.FormatInt(value, 10)
	switch k.Kind {
	case "Widget":
		spec := map[string]any{"value": value, "replicas": int64(1)}
		if config != "" {
			spec["config"] = config
		}
		o.Object["spec"] = spec
	case "Secret":
		o.Object["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString([]byte(text))}
	default:
		o.Object["data"] = map[string]any{"value": text}
	}
	if k.Namespace != referring || k.Kind == "Widget" {
		o.SetLabels(map[string]string{"chaos": "placed"})
	}
	return o
}

// placements returns the Placement of each namespace.
func placements() []*hubv1.Placement {
	everyCluster := hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	labelled := func(key, value string) hubv1.ClusterSelection {
		return hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	}
	placed := &metav1.LabelSelector{MatchLabels: map[string]string{"chaos": "placed"}}
	var out []*hubv1.Placement
	for _, ns := range Namespaces {
		if ns == operated {
			continue
		}
		p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: ns}, Spec: hubv1.PlacementSpec{
			Clusters: everyCluster, AllowEmpty: true, RemovalLimit: &hubv1.RemovalLimit{Copies: ptr.To[int32](1000)},
			ResourceSelectors: []hubv1.ResourceSelector{
				{Kind: "ConfigMap", LabelSelector: placed}, {Kind: "Secret", LabelSelector: placed},
				{APIGroup: WidgetKind.Group, Kind: WidgetKind.Kind, LabelSelector: placed},
			},
		}}
		switch ns {
		case selected:
			p.Spec.Clusters = labelled(tierLabel, "prod")
		case guarded:
			p.Spec.Clusters = labelled(ringLabel, "a")
			p.Spec.RemovalLimit = &hubv1.RemovalLimit{Copies: ptr.To[int32](5), Percent: ptr.To[int32](20)}
		case referring:
			p.Spec.References = []hubv1.ReferenceRule{{Kind: "ConfigMap", Path: "/spec/config"}}
		case bundled:
			p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}}
		case staged:
			p.Spec.StatusAggregation.HealthExpression = "true" // nothing on the members writes a status
			p.Spec.Rollout = &hubv1.RolloutPolicy{
				Waves: []hubv1.RolloutWave{
					{Name: "first", Clusters: &hubv1.RuleClusters{Names: []string{Members[0]}}},
					{Name: manualWave, Clusters: &hubv1.RuleClusters{Names: []string{Members[1]}}, Approval: hubv1.ApprovalManual},
					{Name: "rest"},
				},
				SettleSeconds: ptr.To[int32](0),
				HealthGate:    hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)},
			}
		}
		out = append(out, p)
	}
	return out
}

// regionOf returns the region of a member in the topology.
func regionOf(member string) string { return "region-" + member[len("member-"):] }

// policyPatch returns the merge patch for one region in the OverridePolicy of the namespace everywhere.
func policyPatch(value int64) string { return fmt.Sprintf(`{"spec":{"replicas":%d}}`, value) }
