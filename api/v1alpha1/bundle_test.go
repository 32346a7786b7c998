package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	bundleSpec = "manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n"
	emptySays  = "manifests or configMaps is required"
)

var bundleCases = map[string]ruleCase{
	"manifests":                           {spec: bundleSpec},
	"configMaps":                          {spec: "configMaps: [{name: a}, {name: b}]"},
	"everything that can be said":         {spec: bundleSpec + "configMaps: [{name: a}]\nserviceAccountName: deployer"},
	"a manifest with fields of its kind":  {spec: "manifests: [{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {size: 3, parts: [a, {b: null}]}}]"},
	"nothing":                             {spec: "{}", says: "spec: Invalid value: " + emptySays},
	"only an account":                     {spec: "serviceAccountName: deployer", says: emptySays},
	"a manifest that is text":             {spec: `manifests: ["kind: Thing"]`, says: `spec.manifests[0]: Invalid value: "string"`},
	"a manifest that is a list":           {spec: "manifests: [[]]", says: `spec.manifests[0]: Invalid value: "array"`},
	"1000 manifests":                      {spec: "manifests: " + many(1000, "{apiVersion: v1, kind: A, metadata: {name: a%d}}")},
	"1001 manifests":                      {spec: "manifests: " + many(1001, "{apiVersion: v1, kind: A, metadata: {name: a%d}}"), says: "spec.manifests: Too many: 1001"},
	"16 configMaps":                       {spec: "configMaps: " + many(16, "{name: a%d}")},
	"17 configMaps":                       {spec: "configMaps: " + many(17, "{name: a%d}"), says: "spec.configMaps: Too many: 17"},
	"a configMap twice":                   {spec: "configMaps: [{name: a}, {name: a}]", says: "spec.configMaps[1]: Duplicate value"},
	"a configMap without a name":          {spec: "configMaps: [{}]", says: "spec.configMaps[0].name: Required value"},
	"a configMap with an empty name":      {spec: `configMaps: [{name: ""}]`, says: "spec.configMaps[0].name in body should be at least 1 chars long"},
	"a configMap with a long name":        {spec: "configMaps: [{name: " + strings.Repeat("a", 254) + "}]", says: "spec.configMaps[0].name: Too long"},
	"an account with an empty name":       {spec: bundleSpec + `serviceAccountName: ""`, says: "spec.serviceAccountName in body should be at least 1 chars long"},
	"an account with a long name":         {spec: bundleSpec + "serviceAccountName: " + strings.Repeat("a", 254), says: "spec.serviceAccountName: Too long"},
	"an account that is null is default":  {spec: bundleSpec + "serviceAccountName: null"},
	"an account that is no name is text":  {spec: bundleSpec + "serviceAccountName: [a]", says: "spec.serviceAccountName: Invalid value"},
	"manifests that are null are nothing": {spec: "manifests: null", says: emptySays},
}

func TestBundleOf(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        *hubv1.ObjectBundle
	}{
		"an object without annotations is the hub's":    {},
		"an object with other annotations is the hub's": {annotations: map[string]string{"team": "a"}},
		"an empty value names no bundle":                {annotations: map[string]string{hubv1.BundleAnnotation: ""}},
		"text names no bundle":                          {annotations: map[string]string{hubv1.BundleAnnotation: "web"}},
		"a list names no bundle":                        {annotations: map[string]string{hubv1.BundleAnnotation: `["web"]`}},
		"a null names no bundle":                        {annotations: map[string]string{hubv1.BundleAnnotation: "null"}},
		"an object without a name names no bundle":      {annotations: map[string]string{hubv1.BundleAnnotation: `{"namespace":"shop"}`}},
		"a name of another type names no bundle":        {annotations: map[string]string{hubv1.BundleAnnotation: `{"name":1}`}},
		"a value that is cut off names no bundle":       {annotations: map[string]string{hubv1.BundleAnnotation: `{"name":"web"`}},
		"a reference without a kind names no bundle":    {annotations: map[string]string{hubv1.BundleAnnotation: `{"name":"web"}`}},
		"a kind and a name are a ClusterBundle":         {annotations: map[string]string{hubv1.BundleAnnotation: `{"kind":"ClusterBundle","name":"web"}`}, want: &hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}}},
		"a namespace and labels are a Bundle": {
			annotations: map[string]string{hubv1.BundleAnnotation: `{"kind":"Bundle","namespace":"shop","name":"web","labels":{"team":"a"}}`},
			want:        &hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}, Labels: map[string]string{"team": "a"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hubv1.BundleOf(&metav1.ObjectMeta{Annotations: tc.annotations})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheNamesOfABundle(t *testing.T) {
	tests := map[string]struct {
		bundle   hubv1.ObjectBundle
		identity hubv1.ObjectIdentity
		text     string
	}{
		"a Bundle": {
			hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}, Labels: map[string]string{"a": "<b>"}},
			hubv1.ObjectIdentity{Group: "hanse.dev", Kind: "Bundle", Namespace: "shop", Name: "web"}, "Bundle shop/web",
		},
		"a ClusterBundle": {hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}}, hubv1.ObjectIdentity{Group: "hanse.dev", Kind: "ClusterBundle", Name: "web"}, "ClusterBundle web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.bundle.Identity(); got != tc.identity {
				t.Errorf("the identity is %s", got)
			}
			if got := tc.bundle.String(); got != tc.text {
				t.Errorf("the text is %q", got)
			}
			if got := tc.bundle.New(); got.GetName() != tc.bundle.Name || got.GetNamespace() != tc.bundle.Namespace {
				t.Errorf("the empty bundle is %s/%s", got.GetNamespace(), got.GetName())
			}
			annotated := &metav1.ObjectMeta{Annotations: map[string]string{hubv1.BundleAnnotation: tc.bundle.Annotation()}}
			if diff := cmp.Diff(&tc.bundle, hubv1.BundleOf(annotated)); diff != "" {
				t.Errorf("the bundle of its annotation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegarding(t *testing.T) {
	ref := hubv1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u"}
	tests := map[string]struct {
		bundle *hubv1.BundleReference
		want   corev1.ObjectReference
	}{
		"events on an object of the hub are on the object": {
			want: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u"},
		},
		"events on an object of a Bundle are on the Bundle": {
			bundle: &hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "all"},
			want:   corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "Bundle", Namespace: "shop", Name: "all", UID: "u"},
		},
		"events on an object of a ClusterBundle are on it, in no namespace": {
			bundle: &hubv1.BundleReference{Kind: "ClusterBundle", Name: "all"},
			want:   corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "ClusterBundle", Name: "all", UID: "u"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ref := ref
			ref.Bundle = tc.bundle
			if diff := cmp.Diff(&tc.want, ref.Regarding("shop")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// bundled returns the SelectableObject of a bundle's object. The selectors of policies are compared with it.
func bundled(namespace string, of hubv1.ObjectBundle) hubv1.SelectableObject {
	return hubv1.Selectable(
		hubv1.ObjectIdentity{Group: "example.com", Kind: "Thing", Namespace: namespace, Name: "x"},
		&metav1.ObjectMeta{Labels: map[string]string{"of": "object"}, Annotations: map[string]string{hubv1.BundleAnnotation: of.Annotation()}},
		map[string]string{"of": "namespace"},
	)
}

func TestPlaced(t *testing.T) {
	teamA := map[string]string{"team": "a"}
	own := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "x"}, Labels: teamA, NamespaceLabels: teamA}
	tests := map[string]struct {
		object, want hubv1.SelectableObject
	}{
		"placements select an object of the hub itself": {own, own},
		"placements select the Bundle, with its namespace": {bundled("shop", hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}, Labels: teamA}), hubv1.SelectableObject{
			ObjectIdentity: hubv1.ObjectIdentity{Group: "hanse.dev", Kind: "Bundle", Namespace: "shop", Name: "web"}, Labels: teamA,
			NamespaceLabels: map[string]string{"of": "namespace"},
		}},
		"placements select the ClusterBundle, without the namespace of its object": {bundled("shop", hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}, Labels: teamA}), hubv1.SelectableObject{
			ObjectIdentity: hubv1.ObjectIdentity{Group: "hanse.dev", Kind: "ClusterBundle", Name: "web"}, Labels: teamA,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.object.Placed()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPoliciesAndTheObjectsOfBundles(t *testing.T) {
	teamA := map[string]string{"team": "a"}
	shop := bundled("shop", hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}, Labels: teamA})
	everywhere := bundled("shop", hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}, Labels: teamA})
	tests := map[string]struct {
		object    hubv1.SelectableObject
		namespace string // namespace of the policy
		selected  string // namespaceSelector, unset if empty
		selectors string
		inScope   bool
		want      hubv1.Specificity
	}{
		"a Placement selects a Bundle of its namespace by the kind": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle}]`, inScope: true, want: hubv1.MatchesKind,
		},
		"a Placement selects a Bundle by its name": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle, name: web}]`, inScope: true, want: hubv1.MatchesName,
		},
		"a Placement does not select a Bundle by the name of an object": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle, name: x}]`, inScope: true,
		},
		"a Placement selects a Bundle by its labels": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle, labelSelector: {matchLabels: {team: a}}}]`, inScope: true, want: hubv1.MatchesLabels,
		},
		"a Placement does not select a Bundle by the labels of an object": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle, labelSelector: {matchLabels: {of: object}}}]`, inScope: true,
		},
		"a Placement does not select an object of a Bundle by its own kind": {
			object: shop.Placed(), namespace: "shop", selectors: `[{apiGroup: example.com, kind: Thing}]`, inScope: true,
		},
		"a Placement of another namespace has no power over a Bundle": {
			object: shop.Placed(), namespace: "other", selectors: `[{apiGroup: hanse.dev, kind: Bundle}]`, want: hubv1.MatchesKind,
		},
		"a Placement has no power over a ClusterBundle, whose object is in its namespace": {
			object: everywhere.Placed(), namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: ClusterBundle}]`, want: hubv1.MatchesKind,
		},
		"a ClusterPlacement selects a ClusterBundle without a namespaceSelector": {
			object: everywhere.Placed(), selectors: `[{apiGroup: hanse.dev, kind: ClusterBundle, name: web}]`, inScope: true, want: hubv1.MatchesName,
		},
		"a ClusterPlacement selects both kinds of bundles, in the namespaces that it selects": {
			object: shop.Placed(), selected: `{matchLabels: {of: namespace}}`, selectors: `[{apiGroup: hanse.dev, kind: "*"}]`, inScope: true, want: hubv1.MatchesGroup,
		},
		"a ClusterPlacement without a namespaceSelector selects no Bundle": {
			object: shop.Placed(), selectors: `[{apiGroup: hanse.dev, kind: "*"}]`, want: hubv1.MatchesGroup,
		},
		"an OverridePolicy selects an object of a Bundle by its own kind": {
			object: shop, namespace: "shop", selectors: `[{apiGroup: example.com, kind: Thing}]`, inScope: true, want: hubv1.MatchesKind,
		},
		"an OverridePolicy selects an object of a Bundle by its own labels": {
			object: shop, namespace: "shop", selectors: `[{apiGroup: example.com, kind: Thing, labelSelector: {matchLabels: {of: object}}}]`, inScope: true, want: hubv1.MatchesLabels,
		},
		"an OverridePolicy does not select an object by its bundle": {
			object: shop, namespace: "shop", selectors: `[{apiGroup: hanse.dev, kind: Bundle}]`, inScope: true,
		},
		"an OverridePolicy has no power over an object of a ClusterBundle in its namespace": {
			object: everywhere, namespace: "shop", selectors: `[{apiGroup: example.com, kind: Thing}]`, want: hubv1.MatchesKind,
		},
		"a ClusterOverridePolicy selects an object of a ClusterBundle in a namespace that it selects": {
			object: everywhere, selected: `{matchLabels: {of: namespace}}`, selectors: `[{apiGroup: example.com, kind: Thing}]`, inScope: true, want: hubv1.MatchesKind,
		},
		"a ClusterOverridePolicy selects an object of a ClusterBundle that has no namespace": {
			object: bundled("", hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}}), selectors: `[{apiGroup: example.com, kind: Thing}]`, inScope: true, want: hubv1.MatchesKind,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var selected *metav1.LabelSelector
			if tc.selected != "" {
				selected = parse[*metav1.LabelSelector](t, tc.selected)
			}
			inScope, err := hubv1.InScope(tc.namespace, selected, tc.object)
			if err != nil || inScope != tc.inScope {
				t.Errorf("in scope: got %t, %v", inScope, err)
			}
			got, err := hubv1.Match(parse[[]hubv1.ResourceSelector](t, tc.selectors), tc.object)
			if err != nil || got != tc.want {
				t.Errorf("match: got %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}
