package v1alpha1_test

import (
	"context"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const typeStays = "connection.type cannot be changed: delete the MemberCluster (its objects stay) and join again"

// updates has test cases of validation rules that compare an object with its earlier state. says is the message of the
// API server. It is empty if the update is accepted.
var updates = map[string]struct {
	kind, before, after, says string
}{
	"a connection keeps its type": {
		kind: "MemberCluster", before: memberSpec, after: "connection: {type: Direct, direct: {kubeconfigSecretRef: {name: other}}}\n" + everywhere,
	},
	"a binding keeps its object's kind": {
		kind: "ResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v1, kind: Other, name: a, uid: u}",
		says: "spec.objectRef: Invalid value: kind and name of objectRef are immutable",
	},
	"a binding keeps its object's name": {
		kind: "ClusterResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v1, kind: Thing, name: b, uid: u}",
		says: "spec.objectRef: Invalid value: kind and name of objectRef are immutable",
	},
	"a binding takes another version and uid of its object": {
		kind: "ResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v2, kind: Thing, name: a, uid: other}",
	},
}

func TestUpdating(t *testing.T) {
	c := connect(t)
	for name, tc := range updates {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, "updated", tc.before)
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
					t.Error(err)
				}
			})
			changed := object(t, tc.kind, "updated", tc.after)
			changed.SetResourceVersion(obj.GetResourceVersion())
			err := c.Update(t.Context(), changed, client.DryRunAll)
			switch {
			case tc.says != "":
				wantRefusal(t, err, tc.says)
			case err != nil:
				t.Fatal(err)
			}
		})
	}
}

// There is only one type of connection now, so the schema refuses another type before the validation rules run. The
// test therefore uses a copy of the CRD that accepts a second type.
func TestTheRulesOfAConnectionHoldForAnotherType(t *testing.T) {
	c := connect(t)
	crd := readCRD(t, filepath.Join(crdFolder, "hanse.dev_memberclusters.yaml"))
	crd.Spec.Group, crd.Name = "later.hanse.dev", "memberclusters.later.hanse.dev"
	crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"}
	connection := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["connection"]
	kind := connection.Properties["type"]
	kind.Enum = append(kind.Enum, apiextensionsv1.JSON{Raw: []byte(`"Tunnel"`)})
	connection.Properties["type"] = kind
	if _, err := envtest.InstallCRDs(hubConfig, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}); err != nil {
		t.Fatal(err)
	}
	later := func(spec string) *unstructured.Unstructured {
		obj := object(t, "MemberCluster", "x", spec)
		obj.SetAPIVersion("later.hanse.dev/v1alpha1")
		return obj
	}
	obj := later(memberSpec)
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	changed := later(everywhere + "connection: {type: Tunnel}")
	changed.SetResourceVersion(obj.GetResourceVersion())
	wantRefusal(t, c.Update(t.Context(), changed), typeStays)
	both := later(everywhere + "connection: {type: Tunnel, direct: {kubeconfigSecretRef: {name: s}}}")
	both.SetName("y")
	wantRefusal(t, c.Create(t.Context(), both, client.DryRunAll), "set direct if and only if type is Direct")
}
