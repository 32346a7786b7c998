package admission_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	webManifest = `{apiVersion: test.hanse.dev/v1, kind: Widget, metadata: {name: web}}`
	inShop      = `kind: Bundle, metadata: {namespace: shop, name: web}`
	everywhere  = `kind: ClusterBundle, metadata: {name: web}`
)

func bundle(meta, spec string) string {
	return `{` + meta + `, spec: {serviceAccountName: deployer, ` + spec + `}}`
}

func TestTheAuthorOfABundleMayImpersonateItsAccount(t *testing.T) {
	manifests := `manifests: [` + webManifest + `]`
	ofCluster := `manifests: [{apiVersion: test.hanse.dev/v1, kind: Widget, metadata: {namespace: shop, name: web}}]`
	tests := map[string]struct {
		bundle, before string
		want           []string // rights that are checked
		says           string
	}{
		"a Bundle has an account of its namespace": {
			bundle: bundle(inShop, manifests), want: []string{"impersonate serviceaccounts shop deployer"},
			says: "alice needs the right to impersonate serviceaccounts deployer in namespace shop: the hub stores the objects of the bundle with the rights of this ServiceAccount",
		},
		"a ClusterBundle has an account of hanse-system": {
			bundle: bundle(everywhere, ofCluster), want: []string{"impersonate serviceaccounts hanse-system deployer"},
			says: "alice needs the right to impersonate serviceaccounts deployer in namespace hanse-system: ",
		},
		"a bundle with ConfigMaps alone": {
			bundle: bundle(inShop, `configMaps: [{name: a}]`), want: []string{"impersonate serviceaccounts shop deployer"},
			says: "impersonate serviceaccounts deployer in namespace shop",
		},
		"a change of the manifests": {
			bundle: bundle(inShop, manifests), before: bundle(inShop, `configMaps: [{name: a}]`), want: []string{"impersonate serviceaccounts shop deployer"},
			says: "impersonate serviceaccounts deployer in namespace shop",
		},
		"a change of the account": {
			bundle: bundle(inShop, manifests), before: strings.ReplaceAll(bundle(inShop, manifests), "deployer", "default"),
			want: []string{"impersonate serviceaccounts shop deployer"}, says: "impersonate serviceaccounts deployer in namespace shop",
		},
		"a change of labels alone is not reviewed": {
			bundle: bundle(inShop, manifests), before: bundle(strings.Replace(inShop, "name: web", "name: web, labels: {a: b}", 1), manifests),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if answer := h.review(tt.bundle, tt.before); !answer.Allowed {
				t.Fatalf("refused although everything is allowed: %+v", answer.Result)
			}
			if diff := cmp.Diff(tt.want, slices.Sorted(slices.Values(h.asked))); diff != "" {
				t.Errorf("rights asked for (-want +got):\n%s", diff)
			}
			h = newHub(t)
			h.may = func(string) bool { return false }
			answer := h.review(tt.bundle, tt.before)
			if answer.Allowed != (tt.says == "") {
				t.Fatalf("allowed is %t", answer.Allowed)
			}
			if tt.says != "" && (answer.Result.Code != http.StatusForbidden || !strings.Contains(answer.Result.Message, tt.says)) {
				t.Errorf("%d %q, want 403 and %q", answer.Result.Code, answer.Result.Message, tt.says)
			}
		})
	}
}

func TestABundleWithAnInvalidManifestIsRefused(t *testing.T) {
	tests := map[string]struct{ bundle, says string }{
		"a manifest without a name":              {bundle(inShop, `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {}}]`), "it has no metadata.name"},
		"an object of another namespace":         {bundle(inShop, `manifests: [{apiVersion: test.hanse.dev/v1, kind: Widget, metadata: {namespace: other, name: web}}]`), "other"},
		"an object that is twice in the bundle":  {bundle(inShop, `manifests: [`+webManifest+`, `+webManifest+`]`), "Widget.test.hanse.dev shop/web is also in "},
		"an object of the cluster in a Bundle":   {bundle(inShop, `manifests: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web}}]`), "ClusterRole"},
		"a Secret":                               {bundle(inShop, `manifests: [{apiVersion: v1, kind: Secret, metadata: {name: web}}]`), "it is a Secret"},
		"a kind of Hanse":                        {bundle(inShop, `manifests: [{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: web}}]`), "is a kind of Hanse"},
		"an annotation of Hanse":                 {bundle(inShop, `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web, annotations: {hanse.dev/bundle: "{}"}}}]`), "hanse.dev/bundle"},
		"no manifests":                           {bundle(inShop, `manifests: []`), "the bundle has no objects"},
		"an invalid manifest beside a ConfigMap": {bundle(inShop, `configMaps: [{name: a}], manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {}}]`), "it has no metadata.name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			answer := newHub(t).review(tt.bundle, "")
			if answer.Allowed || answer.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Result.Message, tt.says) {
				t.Errorf("allowed is %t: %+v, want 422 and %q", answer.Allowed, answer.Result, tt.says)
			}
		})
	}
}

func TestAChangeOfABundleWarnsOfTheObjectsThatLeave(t *testing.T) {
	tests := map[string]struct {
		bundle string
		want   []string
	}{
		"all objects stay": {bundle(inShop, `manifests: [`+webManifest+`, {apiVersion: test.hanse.dev/v1, kind: Widget, metadata: {name: shop}}]`), nil},
		"an object leaves": {
			bundle(inShop, `manifests: [`+webManifest+`]`),
			[]string{"the change removes these objects from the bundle, and their copies from all clusters; a removal of many or of last copies waits for a confirmation: Widget.test.hanse.dev shop/shop"},
		},
		"ConfigMaps are not read": {bundle(inShop, `configMaps: [{name: a}], manifests: [`+webManifest+`]`), nil},
		"objects of another bundle": {
			bundle(`kind: Bundle, metadata: {namespace: shop, name: other}`, `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]`), nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			for _, object := range []string{"web", "shop"} {
				h.place(object, `{}`, "eu-1")
			}
			for _, o := range h.templates {
				o.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}}.Annotation()})
			}
			answer := h.review(tt.bundle, bundle(`kind: Bundle, metadata: {namespace: shop, name: web}`, `manifests: []`))
			if !answer.Allowed {
				t.Fatalf("refused: %+v", answer.Result)
			}
			if diff := cmp.Diff(tt.want, answer.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
