package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// TestAnOperatorGoesAheadOfItsCustomResources installs prometheus-operator on empty clusters by a FederatedOperator. A
// Prometheus waits for the operator. Later another cluster joins. The test has a separate fleet, because other tests
// send the CRDs of prometheus-operator to the clusters of the suite.
//
// The test upgrades the chart from one release of prometheus-operator to the next one. On each cluster, the lab runs
// the program of the release that the pods of the operator name.
func TestAnOperatorGoesAheadOfItsCustomResources(t *testing.T) {
	const lyon = "eu-lyo-1"
	ctx := t.Context()
	fleetWithoutOperators(t)
	const ns = "monitoring"
	must(t, suite.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	o := newOperator(t, ns)
	o.definitionsOnHub(t, olderChart)
	eventually(t, normal, func() error { // kubectl does not retry if a kind is not served yet
		return suite.Hub.List(ctx, &unstructured.UnstructuredList{Object: prometheus().Object})
	})
	for _, m := range []string{shanghai, singapore} {
		o.join(t, m)
	}
	selected := everyCluster()
	web := prometheus()
	web.SetNamespace(ns)
	web.SetName("web")
	must(t, unstructured.SetNestedField(web.Object, int64(1), "spec", "replicas"))
	must(t, unstructured.SetNestedField(web.Object, "warn", "spec", fieldInUse))
	place(t, ns, "metrics", hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}, hubv1.PlacementSpec{Clusters: selected})
	eventually(t, normal, func() error { return suite.Hub.Create(ctx, web.DeepCopy()) })

	fop := o.create(t, "operators")
	t.Run("an account without the right to create roles installs no operator that makes them", func(t *testing.T) {
		eventually(t, joined, func() error {
			return bundleIs(ctx, fop, hubv1.ConditionStored, metav1.ConditionFalse, hubv1.ReasonAccountMayNot, "ServiceAccount hanse-system/operators of the hub needs the right to ")
		})
		for _, right := range []string{"escalate", "clusterroles.rbac.authorization.k8s.io", "deployments.apps in namespace " + ns} {
			if c := meta.FindStatusCondition(fop.Status.Conditions, hubv1.ConditionStored); !strings.Contains(c.Message, right) {
				t.Errorf("the message does not name %q: %s", right, c.Message)
			}
		}
	})
	serviceAccount(t, hubv1.SystemNamespace, "operators", "")
	o.edit(t, fop, func(s *hubv1.FederatedOperatorSpec) {
		s.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"image": "` + operatorImage + `:missing"}`)}
	})
	eventually(t, joined, func() error {
		return bundleIs(ctx, fop, hubv1.ConditionStored, metav1.ConditionTrue, hubv1.ReasonStored, "")
	})
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: fop.Name}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind, Name: fop.Name}}
	p.Spec.Clusters, p.Spec.AllowEmpty, p.Spec.RemovalLimit = selected, true, manyRemovals
	p.Spec.Deletion.WhenDeleted = hubv1.RemovalDelete
	must(t, suite.Hub.Create(ctx, p))

	t.Run("the custom resource waits while the operator cannot start", func(t *testing.T) {
		for _, m := range []string{shanghai, singapore} {
			eventually(t, joined, func() error { return rowIs(ctx, web, m, metav1.ConditionFalse, hubv1.ReasonOperatorNotReady) })
			must(t, goneFrom(ctx, m, web))
		}
		eventually(t, normal, func() error {
			switch err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(fop), fop); {
			case err != nil:
				return err
			case fop.Status.Total != 2 || fop.Status.Ready != 0 || len(fop.Status.NotReady) != 2:
				return fmt.Errorf("the operator has the status %+v", fop.Status)
			case !strings.Contains(fop.Status.NotReady[0].Message, "Deployment.apps "+ns+"/prometheus-operator"):
				return fmt.Errorf("it waits for %s", fop.Status.NotReady[0].Message)
			}
			return nil
		})
	})
	t.Run("the operator becomes ready, the custom resource goes, and its status comes back", func(t *testing.T) {
		o.edit(t, fop, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Values = nil })
		for _, m := range []string{shanghai, singapore} {
			eventually(t, joined, func() error { return rowIs(ctx, web, m, metav1.ConditionTrue, "") })
			o.wasReadyFirst(t, m, web)
		}
		eventually(t, joined, func() error { return availableOnHub(ctx, web, 2) })
		eventually(t, normal, func() error { return o.readyOn(ctx, fop, 2) })
	})
	u := upgrade{testOperator: o, fop: fop, placement: p, resource: web, began: time.Now()}
	t.Run("an upgrade that a cluster cannot run stops in its wave and is rolled back", u.stopsInItsWave)
	t.Run("an upgrade goes to one cluster and then to the other, and each shows its version", u.goesInWaves)
	t.Run("both upgrades delete nothing", u.deletesNothing)
	t.Run("a cluster that grants nothing gets nothing, and the missing rule is named", func(t *testing.T) {
		_, err := suite.Hansectl(ctx, "join", frankfurt, "--member-kubeconfig", suite.Members[frankfurt].ProxyKubeconfig, "--grant", "configmaps")
		must(t, err)
		deployment := o.deployment()
		eventually(t, joined, func() error { return rowIs(ctx, deployment, frankfurt, metav1.ConditionFalse, hubv1.ReasonForbidden) })
		must(t, rowSays(ctx, deployment, frankfurt, "deployments"))
		must(t, goneFrom(ctx, frankfurt, deployment))
	})
	t.Run("after it has granted the rights, it gets the operator, and then the custom resource", func(t *testing.T) {
		o.join(t, frankfurt)
		eventually(t, 2*joined, func() error { return rowIs(ctx, web, frankfurt, metav1.ConditionTrue, "") })
		o.wasReadyFirst(t, frankfurt, web)
	})
	t.Run("a cluster that joins gets the operator, and then the custom resource, without another command", func(t *testing.T) {
		_, err := suite.AddMember(ctx, lyon, "--region", "eu-west-3", "--nodes", "1", "--controllers", "--deployed-operators", "prometheus-operator")
		must(t, err)
		o.join(t, lyon)
		eventually(t, 2*joined, func() error { return rowIs(ctx, web, lyon, metav1.ConditionTrue, "") })
		o.wasReadyFirst(t, lyon, web)
		eventually(t, joined, func() error { return availableOnHub(ctx, web, 4) })
		eventually(t, normal, func() error { return o.readyOn(ctx, fop, 4) })
	})
	t.Run("a definition without a field that a custom resource sets waits for its acknowledgement", func(t *testing.T) {
		o.dropsAFieldInUse(t, fop, []string{shanghai, singapore, frankfurt, lyon})
	})
	t.Run("the operator leaves after its custom resources", func(t *testing.T) {
		must(t, suite.Hub.Delete(ctx, web.DeepCopy()))
		for _, m := range []string{shanghai, singapore, frankfurt, lyon} {
			eventually(t, normal, func() error { return goneFrom(ctx, m, web) })
		}
		eventually(t, normal, func() error {
			if _, err := bindingOf(ctx, web); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the binding of the Prometheus is there: %w", err)
			}
			return nil
		})
		must(t, suite.Hub.Delete(ctx, fop.DeepCopy()))
		for _, m := range []string{shanghai, singapore, frankfurt, lyon} {
			eventually(t, joined, func() error { return goneFrom(ctx, m, o.deployment()) })
		}
		eventually(t, joined, func() error { return storedSecrets(ctx, 0) })
		eventually(t, normal, func() error { return operatorsAre(ctx, shanghai) })
	})
}

// fleetWithoutOperators replaces the suite's fleet until the test ends. The new fleet has the topology of the demo. Its
// clusters have no operator and have not joined.
func fleetWithoutOperators(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	config := suite.Config
	config.Dir, config.Topology = operatorsLab(suite.Dir), "../../lab/topologies/demo.yaml"
	before := suite
	t.Cleanup(func() { suite = before })
	f, err := fleet.Up(ctx, config)
	must(t, err)
	t.Cleanup(func() {
		if suite.hub != before.hub {
			_ = suite.hub.Kill()
		}
		_ = f.Down(context.WithoutCancel(ctx))
	})
	suite.Fleet = f
	must(t, f.InstallHub(ctx, []fleet.Kind{{APIGroups: []string{"monitoring.coreos.com"}, Resources: []string{"prometheuses"}, Status: true}}))
	suite.hub, err = f.StartHub(ctx, "hub-a")
	must(t, err)
}

// operatorsLab returns the folder of the lab for fleetWithoutOperators.
func operatorsLab(suiteDir string) string { return filepath.Join(suiteDir, "operators") }

// operatorImage is the image of prometheus-operator without a tag. The lab has two versions of it.
const operatorImage = "hanse.dev/prometheus-operator"

// The two charts of prometheus-operator in the lab. The names contain the version, and are also the names of the
// ConfigMaps that store the charts.
const (
	olderChart = "prometheus-operator-0.87.1"
	newerChart = "prometheus-operator-0.88.0"
)

// versionOf returns the version of prometheus-operator that a chart installs.
func versionOf(chart string) string { return strings.TrimPrefix(chart, "prometheus-operator-") }

// imageOf returns the default image of a chart.
func imageOf(chart string) string { return operatorImage + ":v" + versionOf(chart) }

// testOperator has two charts of prometheus-operator, of different versions.
type testOperator struct {
	namespace string
	charts    string // folder with both charts
	grant     string // path of the file with the rights for the operator on a member
	began     time.Time
}

func newOperator(t *testing.T, ns string) *testOperator {
	t.Helper()
	ctx := t.Context()
	o := &testOperator{namespace: ns, charts: t.TempDir(), began: time.Now()}
	for _, chart := range []string{olderChart, newerChart} {
		_, err := suite.LabCommand(ctx, "chart", "prometheus-operator", "--out", o.charts, "--version", "v"+versionOf(chart))
		must(t, err)
		content, err := os.ReadFile(o.archive(chart))
		must(t, err)
		storeChart(t, chart, content)
	}
	rights, err := suite.Hansectl(ctx, "operators", "rbac", o.archive(newerChart), "-n", ns)
	must(t, err)
	o.grant = filepath.Join(t.TempDir(), "grant.yaml")
	must(t, os.WriteFile(o.grant, []byte(rights), 0o600))
	return o
}

// storeChart creates the ConfigMap that stores the archive of a chart.
func storeChart(t *testing.T, name string, archive []byte) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, BinaryData: map[string][]byte{"chart.tgz": archive}}
	must(t, suite.Hub.Create(t.Context(), m))
}

func (o *testOperator) archive(chart string) string { return filepath.Join(o.charts, chart+".tgz") }

// definitionsOnHub applies the CRDs of a chart on the hub. Users do this before they upgrade an operator.
func (o *testOperator) definitionsOnHub(t *testing.T, chart string) {
	t.Helper()
	ctx := t.Context()
	crds, err := suite.Hansectl(ctx, "operators", "crds", o.archive(chart))
	must(t, err)
	file := filepath.Join(t.TempDir(), "crds.yaml")
	must(t, os.WriteFile(file, []byte(crds), 0o600))
	_, err = suite.Kubectl(ctx, suite.Hub, "apply", "--server-side", "-f", file)
	must(t, err)
}

// join joins the cluster with the rights that the operator needs. For a joined cluster it only grants the rights.
func (o *testOperator) join(t *testing.T, name string) {
	t.Helper()
	_, err := suite.Hansectl(t.Context(), "join", name, "--member-kubeconfig", suite.Members[name].ProxyKubeconfig,
		"--grant", "monitoring.coreos.com/prometheuses", "--grant-operator", o.grant)
	must(t, err)
}

func (o *testOperator) create(t *testing.T, account string) *hubv1.FederatedOperator {
	t.Helper()
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(suite.Hub.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: account}})))
	fop := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	fop.Spec.ServiceAccountName = account
	fop.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: olderChart}, Namespace: o.namespace}
	must(t, suite.Hub.Create(ctx, fop))
	return fop
}

func (o *testOperator) edit(t *testing.T, fop *hubv1.FederatedOperator, change func(*hubv1.FederatedOperatorSpec)) {
	t.Helper()
	eventually(t, normal, func() error {
		if err := suite.Hub.Get(t.Context(), client.ObjectKeyFromObject(fop), fop); err != nil {
			return err
		}
		change(&fop.Spec)
		return suite.Hub.Update(t.Context(), fop)
	})
}

func (o *testOperator) deployment() *unstructured.Unstructured {
	return deployment(o.namespace, "prometheus-operator")
}

// readyOn returns nil if the operator is placed on exactly this number of clusters and is ready on all of them.
func (o *testOperator) readyOn(ctx context.Context, fop *hubv1.FederatedOperator, clusters int32) error {
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(fop), fop); err != nil {
		return err
	}
	if s := fop.Status; s.Ready != clusters || s.Total != clusters || len(s.NotReady) > 0 {
		return fmt.Errorf("the operator is ready on %d of %d clusters: %+v", s.Ready, s.Total, s.NotReady)
	}
	return nil
}

// wasReadyFirst checks in the audit log that the hub created an object after all pods of the operator had become ready.
// It does not use the condition Available, because a pod may become unready again on a busy machine.
func (o *testOperator) wasReadyFirst(t *testing.T, cluster string, object *unstructured.Unstructured) {
	t.Helper()
	d, err := on(t.Context(), cluster, o.deployment())
	must(t, err)
	var ready time.Time
	conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Progressing" && c["reason"] == "NewReplicaSetAvailable" {
			ready, err = time.Parse(time.RFC3339, fmt.Sprint(c["lastUpdateTime"]))
			must(t, err)
		}
	}
	writes := writeTimes(t, suite.Members[cluster].AuditLog, object.GetName(), o.began)
	if ready.IsZero() || len(writes) == 0 || writes[0].Before(ready) {
		t.Errorf("%s was written on %s at %v, and the operator was ready at %s: %v", object.GetName(), cluster, writes, ready, conditions)
	}
}

// availableOnHub returns nil if the merged status of a Prometheus on the hub has this number of available replicas.
func availableOnHub(ctx context.Context, object *unstructured.Unstructured, want int64) error {
	is := object.DeepCopy()
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(object), is); err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedInt64(is.Object, "status", "availableReplicas"); got != want {
		return fmt.Errorf("the hub counts %d available replicas, want %d", got, want)
	}
	return nil
}
