package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/hanse-dev/hanse/member/health"
)

func TestConventionsAreReadOnceForAllMembers(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "machines.example.com"
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Status", JSONPath: ".status.mode"}},
	}}
	machine := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Machine"}
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{machine.GroupVersion()})
	mapper.Add(machine, meta.RESTScopeNamespace)
	mapper.Add(other, meta.RESTScopeNamespace)
	server := &oneDefinition{definition: definition}
	clock := testclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := &conventions{definitions: definitions{reader: server, mapper: mapper}, clock: clock}

	if diff := cmp.Diff(health.Conventions{}, c.of(machine)); diff != "" || server.asked != 0 {
		t.Errorf("what nobody has learned is known, or was asked for from memory: %s", diff)
	}
	want := health.Conventions{Columns: []health.Column{{Name: "Status", Path: []string{"status", "mode"}}}}
	for range 3 {
		if diff := cmp.Diff(want, c.learn(t.Context(), machine)); diff != "" {
			t.Errorf("conventions (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, c.of(machine)); diff != "" || server.asked != 1 {
		t.Errorf("asked %d times; conventions (-want +got):\n%s", server.asked, diff)
	}
	if diff := cmp.Diff(health.Conventions{}, c.learn(t.Context(), other)); diff != "" {
		t.Errorf("of a definition that cannot be read (-want +got):\n%s", diff)
	}
	clock.SetTime(clock.Now().Add(conventionsHold))
	definition.Name = "gone" // so that it cannot be read any more
	if diff := cmp.Diff(want, c.learn(t.Context(), machine)); diff != "" || server.asked != 3 {
		t.Errorf("asked %d times; what was known (-want +got):\n%s", server.asked, diff)
	}
}
