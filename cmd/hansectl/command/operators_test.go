package command

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
	"github.com/hanse-dev/hanse/view"
)

const rotorDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rotors.example.com}, spec: {
  group: example.com, scope: Namespaced, names: {plural: rotors, singular: rotor, kind: Rotor, listKind: RotorList},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

const rotorDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: rotor-operator}, spec: {replicas: {{ .Values.replicas }},
  selector: {matchLabels: {app: rotors}}, template: {metadata: {labels: {app: rotors}},
  spec: {containers: [{name: operator, image: "example.com/rotors:{{ .Chart.AppVersion }}"}]}}}}`

// rotorChart returns the archive of a chart with a Deployment and further templates.
func rotorChart(t *testing.T, version string, templates map[string]string) []byte {
	t.Helper()
	files := map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: rotors\nversion: " + version + "\nappVersion: v" + version + "\n",
		"values.yaml":           "replicas: 1\n",
		"crds/rotors.yaml":      rotorDefinition,
		"templates/deploy.yaml": rotorDeployment,
	}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	return charttest.Archive("rotors", files)
}

const (
	account      = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: rotor-operator}}`
	plainAccount = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"plain-operator","namespace":"turbines"}}`
)

var (
	deploymentID = hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotor-operator"}
	definitionID = hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	plainID      = hubv1.ObjectIdentity{Kind: "ServiceAccount", Namespace: "turbines", Name: "plain-operator"}
)

// bindTo stores a binding of an object, with a healthy row for each cluster. A row in rows replaces the row of its
// cluster. of is nil for an object of the hub.
func bindTo(t *testing.T, id hubv1.ObjectIdentity, of hubv1.BundleObject, rows ...hubv1.ClusterRow) {
	t.Helper()
	b := hubv1.NewBinding(id.BindingKey())
	spec := b.BindingSpec()
	spec.ObjectRef = hubv1.ObjectReference{APIVersion: strings.TrimPrefix(id.Group+"/v1", "/"), Kind: id.Kind, Name: id.Name, UID: "u"}
	spec.PlacementRef = &hubv1.PlacementReference{Kind: "ClusterPlacement", Name: "operators", UID: "p", Generation: 1}
	if of != nil {
		ref := hubv1.ReferenceTo(of)
		spec.ObjectRef.UID, spec.ObjectRef.Bundle = of.GetUID(), &ref
	}
	for _, row := range rows {
		spec.Clusters = append(spec.Clusters, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	apply(t, onHub, b)
	status := b.BindingStatus()
	status.Clusters = rows
	for _, row := range rows {
		status.Summary.Desired++
		if row.Applied == metav1.ConditionTrue {
			status.Summary.Applied++
		}
	}
	must(t, onHub.Status().Update(t.Context(), b))
}

func healthyOn(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
}

// storedOperator acts as the hub: it writes the status of an operator.
func storedOperator(t *testing.T, o *hubv1.FederatedOperator, status hubv1.FederatedOperatorStatus) {
	t.Helper()
	status.ObservedGeneration = o.Generation
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: hubv1.ConditionStored, Status: metav1.ConditionTrue, Reason: hubv1.ReasonStored, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Now(),
	})
	o.Status = status
	must(t, onHub.Status().Update(t.Context(), o))
}

// operatorsOnHub creates the operator rotors with a chart, which is ready on one of two clusters, and the operator
// plain with manifests on one cluster. The hub places two objects of the kind Rotor, and one object of the kind Widget.
func operatorsOnHub(t *testing.T) (rotors, plain *hubv1.FederatedOperator) {
	t.Helper()
	fresh(t)
	aHubRan(t, time.Now())
	for _, name := range []string{"turbines", "shop"} {
		must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	memberOf(t, "ap-se-1", nil)
	memberOf(t, "cn-sha-1", nil)
	apply(t, onHub, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "rotors-chart"},
		BinaryData: map[string][]byte{"rotors.tgz": rotorChart(t, "1.0.0", map[string]string{"account.yaml": account})},
	})
	rotors = &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	rotors.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, Namespace: "turbines"}
	apply(t, onHub, rotors)
	waits := metav1.Condition{Type: hubv1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: hubv1.ReasonDegradedOnSome, Message: "1 of 2", LastTransitionTime: metav1.Now()}
	storedOperator(t, rotors, hubv1.FederatedOperatorStatus{
		BundleStatus: hubv1.BundleStatus{Objects: 3, Placed: 2, Conditions: []metav1.Condition{waits}},
		Chart:        &hubv1.RenderedChart{Name: "rotors", Version: "1.0.0", AppVersion: "v1.0.0", Digest: "sha256:0"}, Provides: []string{"Rotor.example.com"}, Total: 2, Ready: 1,
	})
	plain = &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	plain.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(plainAccount)}}
	apply(t, onHub, plain)
	storedOperator(t, plain, hubv1.FederatedOperatorStatus{BundleStatus: hubv1.BundleStatus{Objects: 1, Placed: 1}})
	placement := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "operators"}}
	placement.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind}}
	placement.Spec.Clusters.Names = []string{"ap-se-1", "cn-sha-1"}
	apply(t, onHub, placement)
	bindTo(t, definitionID, rotors, healthyOn("ap-se-1"), healthyOn("cn-sha-1"))
	newer := healthyOn("ap-se-1")
	newer.Version = "v1.0.0"
	bindTo(t, deploymentID, rotors, newer, hubv1.ClusterRow{
		Name: "cn-sha-1", Version: "v0.9.0", Generation: 1, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable, Message: "no answer",
	})
	bindTo(t, plainID, plain, healthyOn("ap-se-1"))
	bindTo(t, hubv1.ObjectIdentity{Group: "example.com", Kind: "Rotor", Namespace: "shop", Name: "a"}, nil, healthyOn("ap-se-1"), healthyOn("cn-sha-1"))
	bindTo(t, hubv1.ObjectIdentity{Group: "example.com", Kind: "Rotor", Namespace: "shop", Name: "b"}, nil, healthyOn("ap-se-1"), healthyOn("eu-fra-1"))
	bindTo(t, hubv1.ObjectIdentity{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "c"}, nil, healthyOn("ap-se-1"))
	return rotors, plain
}

func TestOperatorsAreListedWithTheirClusters(t *testing.T) {
	rotors, plain := operatorsOnHub(t)
	for name, c := range map[string]struct {
		args  string
		words []string
	}{
		"all operators": {"operators", []string{
			"NAME     CHART          VERSION   CLUSTERS   STORED   KINDS   AGE", "plain    manifests      -         0/0        True     0       ", "rotors   rotors-1.0.0   v1.0.0    1/2        True     1       ",
			"Note:      kinds in use without a FederatedOperator: Widget.example.com (1 object)\n",
		}},
		"all operators with the names of the kinds": {"operators -o wide", []string{"rotors   rotors-1.0.0   v1.0.0    1/2        True     Rotor (example.com)   "}},
		"all operators with their versions by cluster": {"operators -o wide", []string{
			"\nCLUSTER    plain   rotors\nap-se-1    -       v1.0.0\ncn-sha-1   -       v0.9.0 not ready\n",
		}},
		"kinds on clusters without their operator": {"operators", []string{"Note:      kinds in use on clusters that their operator is not placed on: Rotor.example.com on eu-fra-1\n"}},
		"one operator with its clusters": {"operators rotors", []string{
			"rotors   chart rotors-1.0.0   version v1.0.0   ready 1/2   1 kind   age ", "Healthy=False (DegradedOnSome: 1 of 2)\n", "CLUSTER    VERSION   READY   OBJECTS   RESOURCES   WAITS FOR",
			"ap-se-1    v1.0.0    True    2/2       2           -\n", "cn-sha-1   v0.9.0    False   1/2       1           Deployment.apps turbines/rotor-operator is Unknown: no answer\n",
		}},
		"one operator with the names of its kinds": {"operators rotors -o wide", []string{"kinds Rotor (example.com)"}},
		"an operator without workloads":            {"operators plain", []string{"plain   chart manifests   version -   ready 0/0   0 kinds", "No cluster: no ClusterPlacement has placed a workload"}},
		"a JSONPath":                               {"operators -o jsonpath={.kindsWithoutOperator[*].kind}", []string{"Widget.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := hansectl(t, strings.Fields(c.args)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wants(t, out, c.words...)
		})
	}
	t.Run("as JSON, with the clusters", func(t *testing.T) {
		out, err := hansectl(t, "operators", "rotors", "-o", "json")
		must(t, err)
		var found view.OperatorOnClusters
		must(t, json.Unmarshal([]byte(out), &found))
		want := []view.OperatorOnCluster{
			{Cluster: "ap-se-1", Version: "v1.0.0", Ready: true, Objects: 2, Applied: 2, Resources: 2},
			{Cluster: "cn-sha-1", Version: "v0.9.0", Objects: 2, Applied: 1, Resources: 1, WaitsFor: "Deployment.apps turbines/rotor-operator is Unknown: no answer"},
		}
		if diff := cmp.Diff(want, found.OnClusters); diff != "" || found.Name != "rotors" || found.Stored != metav1.ConditionTrue {
			t.Errorf("%s %s (-want +got):\n%s", found.Name, found.Stored, diff)
		}
	})
	t.Run("names are completed, after the commands", func(t *testing.T) {
		const commands = "crds\tPrint the CustomResourceDefinitions of a chart\nrbac\tPrint the rights that the hub needs on a member to install a chart\n" +
			"regenerate\tReplace the passwords and certificates that the chart of an operator generated\n"
		for typed, want := range map[string]string{"ro": "rotors\n:4\n", "": commands + "plain\nrotors\n:4\n", "x": ":4\n"} {

			out, err := run(t, "__complete", "operators", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir(), typed)
			must(t, err)
			if !strings.HasPrefix(out, want) {
				t.Errorf("%q is completed by:\n%s", typed, out)
			}
		}
	})
	t.Run("states of a cluster that is away are the last known ones", func(t *testing.T) {
		must(t, report(t.Context(), "ap-se-1", metav1.ConditionUnknown, hubv1.ReasonUnreachable, "id-ap-se-1"))
		out, err := hansectl(t, "operators", "-o", "wide")
		must(t, err)
		wants(t, out, "ap-se-1    -       v1.0.0?\ncn-sha-1   -       v0.9.0 not ready\n")
		out, err = hansectl(t, "operators", "rotors")
		must(t, err)
		wants(t, out, "ap-se-1    v1.0.0    True?   2/2", "cn-sha-1   v0.9.0    False   1/2")
		out, err = hansectl(t, "operators", "rotors", "-o", "jsonpath={.onClusters[?(@.away)].cluster}")
		must(t, err)
		if out != "ap-se-1" {
			t.Errorf("got %q", out)
		}
		must(t, report(t.Context(), "ap-se-1", metav1.ConditionTrue, hubv1.ReasonConnected, "id-ap-se-1"))
	})
	t.Run("a newer version of the chart, and clusters that are behind, are named", func(t *testing.T) {
		was := rotors.DeepCopy()
		rotors.Status.Newest = &hubv1.NewestChart{Repository: "oci://registry.example.com/rotors", Version: "1.2.0", Since: metav1.Now()}
		must(t, onHub.Status().Patch(t.Context(), rotors, client.MergeFrom(was)))
		b := hubv1.NewBinding(deploymentID.BindingKey())
		must(t, onHub.Get(t.Context(), deploymentID.BindingKey(), b))
		b.BindingStatus().Row("ap-se-1").Generation = 2
		must(t, onHub.Status().Update(t.Context(), b))
		for args, words := range map[string][]string{
			"operators":         {"rotors   rotors-1.0.0 (1.2.0 is available)   v1.0.0 ", "Note:      rotors is behind on 1 cluster: cn-sha-1\n"},
			"operators -o wide": {"\nap-se-1    -       v1.0.0\ncn-sha-1   -       v0.9.0 (behind) not ready\n"},
			"operators rotors":  {"chart rotors-1.0.0 (1.2.0 is available) ", "ap-se-1    v1.0.0            True ", "cn-sha-1   v0.9.0 (behind)   False "},
			"operators -o jsonpath={.operators[?(@.name=='rotors')].available}":                 {"1.2.0"},
			"operators rotors -o jsonpath={.newest.version}:{.onClusters[?(@.behind)].cluster}": {"1.2.0:cn-sha-1"},
		} {
			out, err := hansectl(t, strings.Fields(args)...)
			must(t, err)
			wants(t, out, words...)
		}
		b.BindingStatus().Row("ap-se-1").Generation = 1
		must(t, onHub.Status().Update(t.Context(), b))
		was, rotors.Status.Newest = rotors.DeepCopy(), nil
		must(t, onHub.Status().Patch(t.Context(), rotors, client.MergeFrom(was)))
	})
	t.Run("an operator that does not exist is refused", func(t *testing.T) {
		_, err := hansectl(t, "operators", "none")
		refused(t, err, "the hub has no FederatedOperator none")
		exits(t, err, 1)
	})
	t.Run("without the right to list bindings, a warning says what is missing", func(t *testing.T) {
		kubeconfig := reader(t, "operators-reader", allowed(hubv1.GroupVersion.Group, "list", "federatedoperators"), allowed(hubv1.GroupVersion.Group, "get", "federatedoperators"))
		out, err := run(t, "operators", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())
		must(t, err)
		wants(t, out, "warning: kinds in use without a FederatedOperator are not known", "rotors   rotors-1.0.0")
		out, err = run(t, "operators", "rotors", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())
		must(t, err)
		wants(t, out, "warning: clusters are missing", "ready 1/2")
	})
	t.Run("a chart that the hub refuses is said", func(t *testing.T) {
		rotors.Spec.Chart.ReleaseName = "wind"
		must(t, onHub.Update(t.Context(), rotors))
		out, err := hansectl(t, "operators")
		must(t, err)
		wants(t, out, "rotors   rotors-1.0.0   v1.0.0    1/2        Unknown   1 ")
		rotors.Status.Conditions = []metav1.Condition{{
			Type: hubv1.ConditionStored, Status: metav1.ConditionFalse, Reason: hubv1.ReasonChartInvalid, Message: "no chart", ObservedGeneration: rotors.Generation, LastTransitionTime: metav1.Now(),
		}}
		must(t, onHub.Status().Update(t.Context(), rotors))
		out, err = hansectl(t, "operators", "rotors")
		must(t, err)
		wants(t, out, "Stored=False (ChartInvalid: no chart)\n", "cn-sha-1   v0.9.0    False ")
		out, err = hansectl(t, "problems")
		must(t, err)
		wants(t, out, "FederatedOperator rotors", "ChartInvalid: no chart")
	})
	t.Run("kept values are replaced on request, once", func(t *testing.T) {
		out, err := hansectl(t, "operators", "regenerate", "rotors", "--yes")
		must(t, err)
		wants(t, out, "federatedoperator/rotors", "has no kept values")
		rotors.Status.GeneratedValues = &hubv1.GeneratedValuesStatus{ID: "first", Values: 3}
		rotors.Status.Conditions = append(rotors.Status.Conditions, metav1.Condition{
			Type: hubv1.ConditionCertificateExpiresSoon, Status: metav1.ConditionTrue, Reason: hubv1.ReasonCertificateExpires, Message: "the certificate ends", LastTransitionTime: metav1.Now(),
		})
		must(t, onHub.Status().Update(t.Context(), rotors))
		out, err = hansectl(t, "problems")
		must(t, err)
		wants(t, out, "FederatedOperator rotors", "CertificateExpires: the certificate ends")
		_, err = hansectl(t, "operators", "regenerate", "rotors")
		refused(t, err, "not a terminal: pass --yes")
		out, err = hansectl(t, "operators", "regenerate", "rotors", "--yes")
		must(t, err)
		wants(t, out, "requested new values: the hub replaces 3 values")
		must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(rotors), rotors))
		if is := rotors.Annotations[hubv1.RegenerateValuesAnnotation]; is != "first" {
			t.Errorf("the annotation is %q", is)
		}
		out, err = hansectl(t, "operators", "regenerate", "rotors", "--yes")
		must(t, err)
		wants(t, out, "new values are requested already")
		_, err = hansectl(t, "operators", "regenerate", "nowhere")
		refused(t, err, "FederatedOperator nowhere")
	})
	remove(t, onHub, rotors)
	remove(t, onHub, plain)
	t.Run("without an operator, the kinds in use are still named", func(t *testing.T) {
		out, err := hansectl(t, "operators")
		must(t, err)
		wants(t, out, "No FederatedOperator\nNote:      kinds in use without a FederatedOperator: Rotor.example.com (2 objects), Widget.example.com (1 object)\n")
	})
}

func TestObjectsOfAnOperatorAreFoundByTheirBindings(t *testing.T) {
	operatorsOnHub(t)
	for name, c := range map[string]struct {
		args  string
		words []string
	}{
		"the status of an object":               {"status deployment rotor-operator -n turbines", []string{"Deployment turbines/rotor-operator   in FederatedOperator rotors   generation 1   ClusterPlacement/operators", "no answer"}},
		"the status of the namespace":           {"status -n turbines", []string{"Deployment.apps turbines/rotor-operator (FederatedOperator rotors)", "ServiceAccount turbines/plain-operator (FederatedOperator plain)"}},
		"the status of an operator":             {"status federatedoperator rotors", []string{"FederatedOperator rotors   generation 1   objects 3   placed 2", "Stored=True (Stored)", "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com", "ServiceAccount turbines/rotor-operator"}},
		"the status of an operator, short":      {"status fop/plain", []string{"FederatedOperator plain", "ServiceAccount turbines/plain-operator"}},
		"the tree of an operator":               {"tree federatedoperator/rotors", []string{"FederatedOperator rotors\n", "Deployment turbines/rotor-operator\n", "ServiceAccount turbines/rotor-operator\n", "no placement selects it"}},
		"the tree of an operator of manifests":  {"tree federatedoperator plain", []string{"FederatedOperator plain\n", "ServiceAccount turbines/plain-operator\n"}},
		"an object of a chart":                  {"render deployment rotor-operator -n turbines --cluster ap-se-1", []string{"kind: Deployment", "image: example.com/rotors:v1.0.0"}},
		"an object of manifests":                {"render serviceaccount plain-operator -n turbines", []string{"kind: ServiceAccount"}},
		"the decision for an object of a chart": {"explain deployment rotor-operator -n turbines", []string{"Deployment turbines/rotor-operator in FederatedOperator rotors: 2 clusters selected by ClusterPlacement operators"}},
		"the clusters of an object":             {"problems -n turbines", []string{"Deployment.apps turbines/rotor-operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := hansectl(t, strings.Fields(c.args)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wants(t, out, c.words...)
		})
	}
	t.Run("an object without a placement is refused, and its operator is named", func(t *testing.T) {
		_, err := hansectl(t, "status", "serviceaccount", "rotor-operator", "-n", "turbines")
		refused(t, err, "the hub has no ServiceAccount turbines/rotor-operator: FederatedOperator rotors contains the object, but no placement selects it")
	})
}

func TestPlanShowsTheObjectsOfOperators(t *testing.T) {
	operatorsOnHub(t)
	archive := func(version string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: rotors-chart, namespace: hanse-system}, binaryData: {rotors.tgz: %s}}",
			base64.StdEncoding.EncodeToString(rotorChart(t, version, nil)))
	}
	for name, c := range map[string]struct {
		file  string
		words []string // nil: the plan is refused
	}{
		"a new operator with manifests": {
			"{apiVersion: hanse.dev/v1alpha1, kind: FederatedOperator, metadata: {name: more}, spec: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: turbines}}]}}",
			[]string{"CREATED: 2 copies\n  ConfigMap turbines/extra", "FederatedOperator more"},
		},
		"other values of a chart on the hub": {
			"{apiVersion: hanse.dev/v1alpha1, kind: FederatedOperator, metadata: {name: rotors}, spec: {chart: {archive: {configMap: rotors-chart}, namespace: turbines, values: {replicas: 3}}}}",
			[]string{"CHANGED: 2 copies\n  Deployment turbines/rotor-operator", "/spec/replicas: 1 -> 3", "hansectl does not check whether ServiceAccount hanse-system/default may write"},
		},
		"a new archive of an operator on the hub": {
			archive("2.0.0"), []string{"REMOVED: 2 copies\n  ServiceAccount turbines/rotor-operator", "CHANGED: 2 copies\n  Deployment turbines/rotor-operator", "example.com/rotors:v2.0.0"},
		},
		"a new operator with the definition of another one": {
			strings.ReplaceAll(archive("1.0.0"), "rotors-chart", "more-chart") + `
---
{apiVersion: hanse.dev/v1alpha1, kind: FederatedOperator, metadata: {name: more}, spec: {chart: {archive: {configMap: more-chart}, namespace: shop, values: {replicas: 2}}}}`,
			nil,
		},
		"other manifests": {
			"{apiVersion: hanse.dev/v1alpha1, kind: FederatedOperator, metadata: {name: plain}, spec: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: turbines}}]}}",
			[]string{"REMOVED: 2 copies\n  ServiceAccount turbines/plain-operator", "CREATED: 2 copies\n  ConfigMap turbines/extra"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := hansectl(t, "plan", "-f", planFile(t, c.file))
			if c.words == nil {
				refused(t, err, "FederatedOperator more cannot have CustomResourceDefinition.apiextensions.k8s.io rotors.example.com: FederatedOperator rotors has it already")
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wants(t, out, c.words...)
		})
	}
}
