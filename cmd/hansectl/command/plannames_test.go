package command

import (
	"strings"
	"testing"
)

func TestAPlanNotesNamesThatNoClusterHas(t *testing.T) {
	file := planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: new, namespace: shop}, spec: {resourceSelectors: [{kind: Secret}], clusters: {names: [eu-fra-11]}}}`)
	out, _, err := plannedFrom(t, "-f", file)
	must(t, err)
	wants(t, strings.Join(strings.Fields(out), " "), "NOTES", "Placement shop/new: no cluster is named eu-fra-11: there are ap-se-1, ")
	file = planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: new, namespace: shop}, spec: {resourceSelectors: [{kind: Secret}], rules: [
		{name: one, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu-centrall-1}}}, mergePatch: {type: Opaque}}]}}`)
	out, _, err = plannedFrom(t, "-f", file)
	must(t, err)
	wants(t, strings.Join(strings.Fields(out), " "), "OverridePolicy shop/new: rule one: no cluster has topology.kubernetes.io/region=eu-centrall-1: there are ap-southeast-1, ")
}

func TestANoteOnTheNamespaceSaysWhichRightsTheRestNeeds(t *testing.T) {
	for file, lacks := range map[string]string{
		`{apiVersion: hanse.dev/v1alpha1, kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{kind: Secret}], clusters: {labelSelector: {}}}}`: "shop",
		operatorWith("size: {type: integer}", "[]"): "shop, and the definitions that an operator changes,",
	} {
		out, _, err := plannedFrom(t, "-f", planFile(t, file), "-n", "shop")
		must(t, err)
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "objects of other namespaces than "+lacks+" are not considered: to consider them, leave out -n, which needs rights in all namespaces") {
			t.Errorf("the plan is\n%s", out)
		}
	}
}
