package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

// upgrade is an upgrade of the operator on two clusters. Shanghai is the first wave, Singapore the second one.
type upgrade struct {
	*testOperator
	fop       *hubv1.FederatedOperator
	placement *hubv1.ClusterPlacement
	resource  *unstructured.Unstructured // a custom resource of the operator on both clusters
	began     time.Time
}

// stopsInItsWave upgrades to the newer chart with an image that no cluster can pull. The rollout must stop in the first
// wave.
func (u upgrade) stopsInItsWave(t *testing.T) {
	const waves = `{"spec":{"rollout":{"settleSeconds":0,"onFailure":"Rollback","healthGate":{"timeoutSeconds":30,"minObservedSeconds":0},
		"waves":[{"name":"first","clusters":{"names":["` + shanghai + `"]}},{"name":"rest","approval":"Manual"}]}}}`
	ctx, d := t.Context(), u.deployment()
	must(t, suite.Hub.Patch(ctx, u.placement, client.RawPatch(types.MergePatchType, []byte(waves))))
	eventually(t, joined, func() error { return setIs(ctx, u.fop, hubv1.RolloutComplete, "") })
	resources, behind := u.writes(t), writesBehind(t, d, []string{singapore})

	u.definitionsOnHub(t, newerChart)
	u.edit(t, u.fop, func(s *hubv1.FederatedOperatorSpec) {
		s.Chart.Archive.ConfigMap = newerChart
		s.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"image": "` + operatorImage + `:missing"}`)}
	})
	eventually(t, joined, func() error { return imageOn(ctx, shanghai, d, operatorImage+":missing") })
	eventually(t, joined, func() error { return setIs(ctx, u.fop, hubv1.RolloutRolledBack, "") })
	eventually(t, joined, func() error { return imageOn(ctx, shanghai, d, imageOf(olderChart)) })
	if diff := cmp.Diff(behind, writesBehind(t, d, []string{singapore})); diff != "" {
		t.Errorf("writes of the operator behind the first wave (-before +after):\n%s", diff)
	}
	must(t, definitionsAre(ctx, singapore, olderChart))
	eventually(t, normal, func() error { return u.readyOn(ctx, u.fop, 2) })
	eventually(t, normal, func() error { return u.versionsAre(ctx, olderChart, olderChart) })
	if diff := cmp.Diff(resources, u.writes(t)); diff != "" {
		t.Errorf("writes of the custom resource (-before +after):\n%s", diff)
	}
}

// goesInWaves upgrades to the newer chart. The second wave must wait for an approval.
func (u upgrade) goesInWaves(t *testing.T) {
	ctx, d := t.Context(), u.deployment()
	resources := u.writes(t)
	// A good upgrade of a whole operator may take longer than the time after which the bad one failed.
	must(t, suite.Hub.Patch(ctx, u.placement, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"healthGate":{"timeoutSeconds":600}}}}`))))
	u.edit(t, u.fop, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Values = nil })
	eventually(t, joined, func() error { return setIs(ctx, u.fop, hubv1.RolloutWaitingForApproval, "rest") })
	must(t, imageOn(ctx, shanghai, d, imageOf(newerChart)))
	must(t, imageOn(ctx, singapore, d, imageOf(olderChart)))
	eventually(t, normal, func() error { return u.versionsAre(ctx, newerChart, olderChart) })

	_, err := suite.Hansectl(ctx, "rollout", "approve", "clusterplacement/"+u.placement.Name, "rest")
	must(t, err)
	eventually(t, joined, func() error { return setIs(ctx, u.fop, hubv1.RolloutComplete, "") })
	for _, name := range []string{shanghai, singapore} {
		must(t, imageOn(ctx, name, d, imageOf(newerChart)))
		eventually(t, normal, func() error { return definitionsAre(ctx, name, newerChart) })
	}
	eventually(t, normal, func() error { return u.readyOn(ctx, u.fop, 2) })
	eventually(t, normal, func() error { return u.versionsAre(ctx, newerChart, newerChart) })
	if diff := cmp.Diff(resources, u.writes(t)); diff != "" {
		t.Errorf("writes of the custom resource (-before +after):\n%s", diff)
	}
	must(t, suite.Hub.Patch(ctx, u.placement, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":null}}`))))
}

// deletesNothing fails the test if the audit log of a cluster has a deletion by the hub.
func (u upgrade) deletesNothing(t *testing.T) {
	for _, name := range []string{shanghai, singapore} {
		for _, e := range auditedWrites(t, suite.Members[name].AuditLog, func(e auditEvent) bool {
			return e.Verb == "delete" && e.StageTimestamp.After(u.began)
		}) {
			t.Errorf("the hub deleted %s %s on %s", e.ObjectRef.Resource, e.ObjectRef.Name, name)
		}
	}
}

// writes returns the number of the hub's writes to the custom resource on each cluster.
func (u upgrade) writes(t *testing.T) map[string]int {
	t.Helper()
	return writesBehind(t, u.resource, []string{shanghai, singapore})
}

// versionsAre returns nil if hansectl and the MemberClusters show the operator versions of these charts on the two
// clusters.
func (u upgrade) versionsAre(ctx context.Context, inShanghai, inSingapore string) error {
	out, err := suite.Hansectl(ctx, "operators", u.fop.Name, "-o", "json")
	if err != nil {
		return err
	}
	var shown struct {
		OnClusters []struct{ Cluster, Version string }
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		return err
	}
	got := map[string]string{}
	for _, c := range shown.OnClusters {
		got[c.Cluster] = c.Version
	}
	want := map[string]string{shanghai: versionOf(inShanghai), singapore: versionOf(inSingapore)}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("versions by cluster (-want +got):\n%s", diff)
	}
	for cluster, version := range want {
		if err := operatorsAre(ctx, cluster, hubv1.OperatorFact{Name: u.fop.Name, Version: version, Installed: true}); err != nil {
			return err
		}
	}
	return nil
}

// operatorsAre returns nil if the MemberCluster lists exactly these operators.
func operatorsAre(ctx context.Context, cluster string, want ...hubv1.OperatorFact) error {
	var c hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, client.ObjectKey{Name: cluster}, &c); err != nil {
		return err
	}
	if !slices.Equal(want, c.Status.Operators) {
		return fmt.Errorf("MemberCluster %s lists the operators %v, want %v", cluster, c.Status.Operators, want)
	}
	return nil
}

// definitionsAre returns nil if the member has all CRDs of a chart.
func definitionsAre(ctx context.Context, member, chart string) error {
	const annotation = "operator.prometheus.io/version"
	var crds unstructured.UnstructuredList
	crds.SetAPIVersion("apiextensions.k8s.io/v1")
	crds.SetKind("CustomResourceDefinitionList")
	if err := suite.Members[member].List(ctx, &crds); err != nil {
		return err
	}
	found := 0
	for _, crd := range crds.Items {
		switch version, ok := crd.GetAnnotations()[annotation]; {
		case !ok: // this CRD does not belong to the operator
		case version != versionOf(chart):
			return fmt.Errorf("%s has version %s of %s, want %s", member, version, crd.GetName(), chart)
		default:
			found++
		}
	}
	if found != 10 {
		return fmt.Errorf("%s has %d definitions of the operator, want 10", member, found)
	}
	return nil
}

// fieldInUse is a field in the spec of Prometheus that the test's custom resource sets.
const fieldInUse = "logLevel"

const nameOfPrometheus = "prometheuses.monitoring.coreos.com"

// dropsAFieldInUse upgrades to a chart whose Prometheus CRD lacks a field that the custom resource sets.
func (o *testOperator) dropsAFieldInUse(t *testing.T, fop *hubv1.FederatedOperator, clusters []string) {
	ctx := t.Context()
	storeChart(t, "without-field", withoutFieldInUse(t, o.archive(newerChart)))
	before := time.Now()
	o.edit(t, fop, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Archive.ConfigMap = "without-field" })
	const message = "1 change breaks objects in use: crd " + nameOfPrometheus + ", version v1, rule existingFieldRemoval, path /spec/" + fieldInUse +
		": Prometheus.monitoring.coreos.com monitoring/web on clusters ap-se-1, cn-sha-1, eu-fra-1 and 1 more: "
	eventually(t, joined, func() error {
		return bundleIs(ctx, fop, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonUpgradeBlocked, message)
	})
	for _, name := range clusters {
		written := auditedWrites(t, suite.Members[name].AuditLog, func(e auditEvent) bool {
			return e.StageTimestamp.After(before) && slices.Contains([]string{"customresourcedefinitions", "deployments", "prometheuses"}, e.ObjectRef.Resource)
		})
		if len(written) > 0 {
			t.Errorf("the hub wrote to %s while the upgrade was blocked: %+v", name, written)
		}
		must(t, fieldIsDeclared(ctx, name, true))
	}

	o.edit(t, fop, func(s *hubv1.FederatedOperatorSpec) {
		s.Acknowledge = []hubv1.AcknowledgedChange{{CRD: nameOfPrometheus, Rule: "existingFieldRemoval", Path: "/spec/" + fieldInUse}}
	})
	eventually(t, joined, func() error {
		return bundleIs(ctx, fop, hubv1.ConditionStored, metav1.ConditionTrue, hubv1.ReasonStored, "")
	})
	for _, name := range clusters {
		eventually(t, joined, func() error { return fieldIsDeclared(ctx, name, false) })
	}
}

// fieldIsDeclared checks whether the member's Prometheus CRD has the field fieldInUse. It returns nil if want is true
// and the CRD has the field, or if want is false and the CRD lacks the field.
func fieldIsDeclared(ctx context.Context, member string, want bool) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	if err := suite.Members[member].Get(ctx, types.NamespacedName{Name: nameOfPrometheus}, crd); err != nil {
		return err
	}
	fields, err := fieldsOfSpec(crd.Object)
	if err != nil {
		return err
	}
	if _, ok := fields[fieldInUse]; ok != want {
		return fmt.Errorf("the definition on %s has the field %s: %t, want %t", member, fieldInUse, ok, want)
	}
	return nil
}

// fieldsOfSpec returns the schemas of the fields of spec in the only version of a CRD. A change of the result changes
// crd.
func fieldsOfSpec(crd map[string]any) (map[string]any, error) {
	versions, _, _ := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	list, _ := versions.([]any)
	if len(list) != 1 {
		return nil, fmt.Errorf("the definition has %d versions, want 1", len(list))
	}
	version, _ := list[0].(map[string]any)
	found, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	fields, _ := found.(map[string]any)
	return fields, err
}

// withoutFieldInUse returns a chart whose Prometheus CRD lacks fieldInUse.
func withoutFieldInUse(t *testing.T, archive string) []byte {
	t.Helper()
	file, err := os.Open(archive)
	must(t, err)
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	must(t, err)
	files := map[string]string{}
	for entries := tar.NewReader(unzipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return charttest.Archive("prometheus-operator", files)
		}
		must(t, err)
		content, err := io.ReadAll(entries)
		must(t, err)
		if strings.HasSuffix(header.Name, "_prometheuses.yaml") {
			var crd map[string]any
			must(t, yaml.Unmarshal(content, &crd))
			fields, err := fieldsOfSpec(crd)
			must(t, err)
			delete(fields, fieldInUse)
			content, err = yaml.Marshal(crd)
			must(t, err)
		}
		files[strings.TrimPrefix(header.Name, "prometheus-operator/")] = string(content)
	}
}
