package hub

import (
	"context"
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oneDefinition is an API server with one CustomResourceDefinition.
type oneDefinition struct {
	client.Reader
	definition *apiextensionsv1.CustomResourceDefinition
	asked      int
}

func (o *oneDefinition) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.asked++
	if key.Name != o.definition.Name {
		return errors.New("not found")
	}
	o.definition.DeepCopyInto(into.(*apiextensionsv1.CustomResourceDefinition))
	return nil
}

func TestTheScalePathIsThatOfAServedVersion(t *testing.T) {
	scaled := func(path string) *apiextensionsv1.CustomResourceSubresources {
		return &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: path}}
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "prometheuses.monitoring.coreos.com"
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1", Subresources: scaled(".spec.old")}, {Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Subresources: scaled(".spec.shards")},
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "monitoring.coreos.com", Version: "v1"}, {Group: "apps", Version: "v1"}})
	mapper.AddSpecific(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"},
		schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses"},
		schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheus"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, meta.RESTScopeNamespace)
	server := &oneDefinition{definition: definition}
	clock := testclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	paths := &scalePaths{definitions: definitions{reader: server, mapper: mapper}, clock: clock}
	prometheus := schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}
	for kind, want := range map[schema.GroupKind]string{prometheus: ".spec.shards", {Group: "apps", Kind: "StatefulSet"}: "", {Group: "example.com", Kind: "Nothing"}: ""} {
		if got := paths.of(t.Context(), kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	before := server.asked
	if paths.of(t.Context(), prometheus); server.asked != before {
		t.Error("it was asked again at once")
	}
	clock.SetTime(clock.Now().Add(scalePathHolds))
	if paths.of(t.Context(), prometheus); server.asked != before+1 {
		t.Error("it was not asked again after a while")
	}
}
