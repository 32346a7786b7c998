package admission_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// causesWrites are the fields by which a policy can cause the hub to write objects of a kind, each with a policy and a
// right on that kind, which its author needs.
var causesWrites = map[string]struct{ policy, right string }{
	"PlacementSpec.ResourceSelectors": {
		`{kind: Placement, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{kind: Secret}], clusters: {names: [eu-1]}}}`, "update secrets shop",
	},
	"PlacementSpec.References": {
		`{kind: Placement, metadata: {namespace: shop, name: new}, spec: {references: [{kind: Secret, path: /spec/a}], clusters: {names: [eu-1]}}}`, "update secrets shop",
	},
	"OverridePolicySpec.ResourceSelectors": {
		`{kind: OverridePolicy, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{kind: Secret}], rules: [{name: a, labels: {a: b}}]}}`, "update secrets shop",
	},
	"BundleSpec.Manifests":        {bundle(inShop, `manifests: [`+webManifest+`]`), "impersonate serviceaccounts shop deployer"},
	"BundleSpec.ConfigMaps":       {bundle(inShop, `configMaps: [{name: a}]`), "impersonate serviceaccounts shop deployer"},
	"FederatedOperatorSpec.Chart": {bundle(`kind: FederatedOperator, metadata: {name: o}`, `chart: {namespace: shop}`), "impersonate serviceaccounts hanse-system deployer"},
}

// causesNoWrites are the other fields, by the reason why they cause no writes of further kinds.
var causesNoWrites = map[string][]string{
	"it sets which objects of the selected kinds, or which clusters": {
		"PlacementSpec.Clusters", "PlacementSpec.Spread", "ClusterPlacementSpec.NamespaceSelector", "ClusterOverridePolicySpec.NamespaceSelector",
	},
	"it decides between several policies for the same objects": {
		"PlacementSpec.Priority", "PlacementSpec.Preemption", "ClusterPlacementSpec.Enforced", "ClusterOverridePolicySpec.Tier",
	},
	"it sets how or when the objects of the selected kinds are written or removed": {
		"PlacementSpec.HubExecution", "PlacementSpec.Replicas", "PlacementSpec.Deletion", "PlacementSpec.RemovalLimit", "PlacementSpec.AllowEmpty", "PlacementSpec.Failover",
		"PlacementSpec.Rollout", "PlacementSpec.Suspend", "OverridePolicySpec.Rules",
		"ApplyPolicy.Mode", "ApplyPolicy.Adoption", "ApplyPolicy.FieldConflict", "ApplyPolicy.UnknownFields", "ApplyPolicy.MemberOwnedFields", "ApplyPolicy.Recreate",
	},
	"the hub writes a status only on the hub": {"PlacementSpec.StatusAggregation"},
	"a namespace on a member has the name and labels of the namespace on the hub, and its member grants this": {"ApplyPolicy.CreateNamespace"},
	"the rights on the objects of a bundle are the rights of this account":                                    {"BundleSpec.ServiceAccountName"},
	"it permits a change or a removal of objects that the bundle has already":                                 {"FederatedOperatorSpec.Acknowledge", "FederatedOperatorSpec.Removal"},
}

// fieldsOf adds the fields of a spec. Embedded structs, and apply, are taken apart; every other struct is one field.
func fieldsOf(of reflect.Type, add func(string)) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous || f.Type == reflect.TypeFor[hubv1.ApplyPolicy]() {
			fieldsOf(f.Type, add)
			continue
		}
		add(of.Name() + "." + f.Name)
	}
}

// TestEachFieldThatCausesWritesNeedsRights fails for a new field of a policy until the field is in one of the tables.
func TestEachFieldThatCausesWritesNeedsRights(t *testing.T) {
	known := map[string]bool{}
	for field := range causesWrites {
		known[field] = true
	}
	for _, field := range slices.Concat(slices.Collect(maps.Values(causesNoWrites))...) {
		known[field] = true
	}
	fields := map[string]bool{}
	for _, of := range []any{hubv1.Placement{}.Spec, hubv1.ClusterPlacement{}.Spec, hubv1.OverridePolicy{}.Spec, hubv1.ClusterOverridePolicy{}.Spec, hubv1.Bundle{}.Spec, hubv1.ClusterBundle{}.Spec, hubv1.FederatedOperator{}.Spec} {
		fieldsOf(reflect.TypeOf(of), func(name string) { fields[name] = true })
	}
	for field := range fields {
		if !known[field] {
			t.Errorf("%s: can it cause the hub to write objects of other kinds? Then writesOf needs a case, and causesWrites a policy; otherwise causesNoWrites needs the field", field)
		}
	}
	for field := range known {
		if !fields[field] {
			t.Errorf("%s: there is no such field", field)
		}
	}
	for field, tt := range causesWrites {
		h := newHub(t)
		h.may = func(right string) bool { return right != tt.right }
		answer := h.review(tt.policy, "")
		if answer.Allowed || !slices.Contains(h.asked, tt.right) || !strings.Contains(fmt.Sprint(answer.Result), "needs the right to") {
			t.Errorf("%s: an author without the right to %s: %+v, asked for %q", field, tt.right, answer.Result, h.asked)
		}
	}
}
