package bundles

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/test/apiserver"
)

const rotorDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rotors.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: rotors, singular: rotor, kind: Rotor, listKind: RotorList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

const rotorDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: rotor-operator}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: rotors}}
  template:
    metadata: {labels: {app: rotors}}
    spec: {containers: [{name: operator, image: "example.com/rotors:{{ .Chart.AppVersion }}"}]}
`

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

// archive stores the archive of a chart in a ConfigMap of the hub.
func (w *world) archive(content []byte) {
	w.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: "rotors-chart"}, BinaryData: map[string][]byte{"rotors.tgz": content}}
	if err := w.admin.Create(w.Context(), m); client.IgnoreAlreadyExists(err) != nil {
		w.Fatal(err)
	} else if err != nil {
		must(w.T, w.admin.Update(w.Context(), m))
	}
}

// edited changes the spec of an operator. The hub then reads the operator's ConfigMap at once.
func (w *world) edited(o *hubv1.FederatedOperator, change func(*hubv1.FederatedOperatorSpec)) {
	w.Helper()
	w.eventually("the operator is edited", func() error {
		must(w.T, w.admin.Get(w.Context(), client.ObjectKeyFromObject(o), o))
		change(&o.Spec)
		return w.admin.Update(w.Context(), o)
	})
}

// operatorSays waits until the condition Stored of an operator has this reason at the newest generation, and a message
// with this part.
func (w *world) operatorSays(o *hubv1.FederatedOperator, reason, part string) {
	w.Helper()
	w.eventually(fmt.Sprintf("the operator says %s", reason), func() error {
		must(w.T, w.admin.Get(w.Context(), client.ObjectKeyFromObject(o), o))
		c := meta.FindStatusCondition(o.Status.Conditions, hubv1.ConditionStored)
		if c == nil || c.ObservedGeneration != o.Generation || c.Reason != reason || !strings.Contains(c.Message, part) {
			return fmt.Errorf("generation %d has %+v", o.Generation, c)
		}
		return nil
	})
}

// storesVersions creates the binding of an operator's CRD. By status.storedVersions of the copies, cluster eu-1 has
// stored objects at v1 and at the version other, and us-1 only at v1.
func (w *world) storesVersions(o *hubv1.FederatedOperator, name, other string) *hubv1.ClusterResourceBinding {
	w.Helper()
	id, of := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}, hubv1.ReferenceTo(o)
	b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ClusterResourceBinding)
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: id.Kind, Name: id.Name, UID: o.UID, Bundle: &of}
	must(w.T, w.admin.Create(w.Context(), b))
	for cluster, versions := range map[string]string{"eu-1": `["` + other + `","v1"]`, "us-1": `["v1"]`} {
		b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{
			Name: cluster, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Observed: &runtime.RawExtension{Raw: []byte(`{"/storedVersions":` + versions + `}`)},
		})
	}
	must(w.T, w.admin.Status().Update(w.Context(), b))
	w.eventually("the cache has the rows of the definition", func() error {
		cached := &hubv1.ClusterResourceBinding{}
		if err := w.control.opts.Client.Get(w.Context(), client.ObjectKeyFromObject(b), cached); err != nil || len(cached.Status.Clusters) == 0 {
			return fmt.Errorf("the binding has %d rows: %w", len(cached.Status.Clusters), err)
		}
		return nil
	})
	return b
}

// newOperators starts an API server on which the account default of the hub may install the operator of rotorChart. The
// account has further rights.
func newOperators(t *testing.T, name string, further ...rbacv1.PolicyRule) *world {
	t.Helper()
	apiserver.Needed(t)
	server := apiserver.Hub()
	started, err := server.Start()
	must(t, err)
	started.QPS = -1
	t.Cleanup(func() { _ = server.Stop() })
	w := newWorld(t, name, started)
	rules := append([]rbacv1.PolicyRule{writing("apiextensions.k8s.io", "customresourcedefinitions"), writing("apps", "deployments")}, further...)
	must(t, w.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operators"}, Rules: rules}))
	must(t, w.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operators"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operators"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.system, Name: "default"}},
	}))
	apiserver.AwaitRights(t, w.config, "system:serviceaccount:"+w.system+":default", "", rules...)
	return w
}

func TestTheChartOfAnOperatorIsStored(t *testing.T) {
	t.Parallel()
	w := newOperators(t, "operators", writing("example.com", "gears"))
	account := "system:serviceaccount:" + w.system + ":default"
	registry := newChartRegistry(w)
	stop := w.lead()

	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	o.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, Namespace: "turbines"}
	must(t, w.admin.Create(t.Context(), o))
	w.operatorSays(o, hubv1.ReasonConfigMapMissing, "ConfigMap operators-system/rotors-chart does not exist")

	w.archive([]byte("no archive"))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
		s.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"replicas": 2}`)}
	})
	w.operatorSays(o, hubv1.ReasonChartInvalid, "reading the archive")

	w.archive(rotorChart(t, "1.0.0", map[string]string{"secret.yaml": `{{ if .Values.random }}{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ randAlphaNum 20 | lower }}"}}{{ end }}`}))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Values.Raw = []byte(`{"replicas": 2, "random": true}`) })
	w.operatorSays(o, hubv1.ReasonNonDeterministicChart, "rotors/templates/secret.yaml")

	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Values.Raw = []byte(`{"replicas": 2}`) })
	w.operatorSays(o, hubv1.ReasonHubNamespaceMissing, "create the namespace on the hub")
	must(t, w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "turbines"}}))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "wind" })
	w.operatorSays(o, hubv1.ReasonStored, "")
	w.stores("rotor-operator", "rotors.example.com")
	if got := w.stored()["rotor-operator"]; got.Manifest.GetNamespace() != "turbines" || got.Bundle.Kind != hubv1.FederatedOperatorKind {
		t.Errorf("the Deployment is in namespace %s of %s", got.Manifest.GetNamespace(), got.Bundle)
	}
	if diff := cmp.Diff([]string{"Rotor.example.com"}, o.Status.Provides); diff != "" {
		t.Errorf("provided kinds (-want +got):\n%s", diff)
	}
	first := o.Status.Chart
	if first == nil || first.Name != "rotors" || first.Version != "1.0.0" || first.AppVersion != "v1.0.0" {
		t.Errorf("the chart is %+v", first)
	}

	w.archive(rotorChart(t, "1.1.0", map[string]string{"webhook.yaml": `{apiVersion: v1, kind: Secret, metadata: {name: webhook}, data: {ca.crt: Yg==, tls.key: ""}}`}))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "" })
	w.operatorSays(o, hubv1.ReasonAccountMayNot, "create, delete, get, update secrets in namespace turbines")
	w.stores("rotor-operator", "rotors.example.com")
	secrets := writing("", "secrets")
	must(t, w.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}, Rules: []rbacv1.PolicyRule{secrets}}))
	must(t, w.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "secrets"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "secrets"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.system, Name: "default"}},
	}))
	apiserver.AwaitRights(t, w.config, account, "", secrets)
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "wind" })
	w.operatorSays(o, hubv1.ReasonStored, "")
	w.stores("rotor-operator", "rotors.example.com", "webhook")
	if data := w.stored()["webhook"].Manifest.Object["data"]; !cmp.Equal(data, any(map[string]any{"ca.crt": "Yg=="})) {
		t.Errorf("the stored Secret has other keys than the one with a value: %v", data)
	}
	w.archive(rotorChart(t, "1.0.0", map[string]string{"secret.yaml": `{{ if .Values.random }}{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ randAlphaNum 20 | lower }}"}}{{ end }}`}))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.KubernetesVersion = "v1.36.1" })
	w.stores("rotor-operator", "rotors.example.com")

	hook := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: before, annotations: {"helm.sh/hook": pre-install}}, spec: {}}`
	w.archive(rotorChart(t, "2.0.0", map[string]string{"hook.yaml": hook}))
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "" })
	w.operatorSays(o, hubv1.ReasonChartInvalid, "chart rotors has the hook Deployment.apps turbines/before (pre-install), which Hanse does not run: set chart.hooks to Skip")
	if diff := cmp.Diff(first, o.Status.Chart); diff != "" {
		t.Errorf("after a refused chart, the stored chart is another one (-want +got):\n%s", diff)
	}
	w.stores("rotor-operator", "rotors.example.com")

	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Hooks = hubv1.ChartHooksSkip })
	w.operatorSays(o, hubv1.ReasonStored, "")
	if o.Status.Chart.Version != "2.0.0" {
		t.Errorf("the chart is %+v", o.Status.Chart)
	}
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Digest = first.Digest })
	w.operatorSays(o, hubv1.ReasonChartInvalid, "the archive has the digest "+o.Status.Chart.Digest+", not "+first.Digest)

	t.Run("an operator elects its leader in kube-system, and has nothing else there", func(t *testing.T) {
		w.Helper()
		object := func(kind, name, content string) runtime.RawExtension {
			return runtime.RawExtension{Raw: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind + `","metadata":{"name":"` + name + `","namespace":"kube-system"},` + content + `}`)}
		}
		binding := func(name, kind, to string) runtime.RawExtension {
			return object("RoleBinding", name, `"subjects":[{"kind":"ServiceAccount","name":"issuer","namespace":"turbines"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"`+kind+`","name":"`+to+`"}`)
		}
		good := []runtime.RawExtension{
			object("Role", "issuer-leader", `"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["issuer"],"verbs":["get","update"]}]`),
			binding("issuer-leader", "Role", "issuer-leader"), binding("issuer-reader", "Role", "extension-apiserver-authentication-reader"),
		}
		o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "issuer"}, Spec: hubv1.FederatedOperatorSpec{BundleSpec: hubv1.BundleSpec{Manifests: good[:2]}}}
		must(t, w.admin.Create(t.Context(), o))
		w.operatorSays(o, hubv1.ReasonAccountMayNot, "bind, create, delete, escalate, get, update roles.rbac.authorization.k8s.io in namespace kube-system")
		w.stores("rotor-operator", "rotors.example.com")
		roles := writing(rbacv1.GroupName, "roles", "rolebindings", "clusterroles")
		roles.Verbs = append(roles.Verbs, "escalate", "bind")
		must(t, w.admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "operators"}, Rules: []rbacv1.PolicyRule{roles}}))
		must(t, w.admin.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "operators"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operators"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.system, Name: "default"}},
		}))
		apiserver.AwaitRights(t, w.config, account, "kube-system", roles)
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Manifests = good })
		w.operatorSays(o, hubv1.ReasonStored, "")
		all := []string{"issuer-leader", "issuer-reader", "rotor-operator", "rotors.example.com"}
		w.stores(all...)
		for _, beyond := range []struct {
			manifest runtime.RawExtension
			says     string
		}{
			{runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"kube-system"}}`)}, "Hanse writes nothing in kube-*"},
			{object("Role", "more", `"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]`), "rules[0] is about secrets"},
			{binding("more", "ClusterRole", "cluster-admin"), "roleRef names the ClusterRole cluster-admin"},
			{binding("more", "Role", "operators"), "roleRef names the Role operators, which the operator does not have in kube-system"},
		} {
			w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
				s.Manifests = append([]runtime.RawExtension{beyond.manifest}, good...)
			})
			w.operatorSays(o, hubv1.ReasonManifestInvalid, beyond.says)
			w.stores(all...)
		}
		b := &hubv1.ClusterBundle{ObjectMeta: metav1.ObjectMeta{Name: "issuer"}, Spec: hubv1.BundleSpec{Manifests: good[:1]}}
		must(t, w.admin.Create(t.Context(), b))
		w.eventually("the ClusterBundle is refused", func() error {
			must(w.T, w.admin.Get(w.Context(), client.ObjectKeyFromObject(b), b))
			if c := meta.FindStatusCondition(b.Status.Conditions, hubv1.ConditionStored); c == nil || c.Reason != hubv1.ReasonManifestInvalid || !strings.Contains(c.Message, "the namespace is kube-system") {
				return fmt.Errorf("it says %+v", c)
			}
			return nil
		})
		must(t, errors.Join(w.admin.Delete(t.Context(), o), w.admin.Delete(t.Context(), b)))
		w.stores("rotor-operator", "rotors.example.com")
	})

	t.Run("a definition that drops a field in use is kept, until the change is acknowledged", func(t *testing.T) {
		w.Helper()
		sized := strings.Replace(rotorDefinition, "{type: object}", "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}", 1)
		o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "sized"}}
		// The manifests define the kind Gear, because the chart defines the kind Rotor.
		manifests := func(text string) []runtime.RawExtension {
			text = strings.NewReplacer("rotors", "gears", "rotor", "gear", "Rotor", "Gear").Replace(text)
			raw, err := yaml.YAMLToJSON([]byte(text))
			must(t, err)
			gear := `{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"namespace":"turbines","name":"big"},"spec":{"size":3}}`
			return []runtime.RawExtension{{Raw: raw}, {Raw: []byte(gear)}}
		}
		o.Spec.Manifests = manifests(sized)
		must(t, w.admin.Create(t.Context(), o))
		w.operatorSays(o, hubv1.ReasonStored, "")
		id := hubv1.ObjectIdentity{Group: "example.com", Kind: "Gear", Namespace: "turbines", Name: "big"}
		binding := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
		reference := hubv1.ReferenceTo(o)
		binding.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: "Gear", Name: "big", UID: o.UID, Bundle: &reference}
		binding.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu-1", State: hubv1.TargetPresent}}
		must(t, w.admin.Create(t.Context(), binding))
		w.eventually("the cache has the binding", func() error {
			return w.control.opts.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), &hubv1.ResourceBinding{})
		})

		w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
			s.Manifests = manifests(strings.Replace(sized, ", color: {type: string}", "", 1))
		})
		w.operatorSays(o, hubv1.ReasonStored, "") // accepted, because no object has the field color
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
			s.Manifests = manifests(strings.Replace(sized, "size: {type: integer}, ", "", 1))
		})
		w.operatorSays(o, hubv1.ReasonUpgradeBlocked, "/spec/size")
		c := meta.FindStatusCondition(o.Status.Conditions, hubv1.ConditionStored)
		for _, part := range []string{"gears.example.com", "Gear.example.com turbines/big", "eu-1", "existingFieldRemoval"} {
			if !strings.Contains(c.Message, part) {
				t.Errorf("the message does not name %q: %s", part, c.Message)
			}
		}
		if text := string(canonical.Bytes(w.stored()["gears.example.com"].Manifest.Object)); !strings.Contains(text, "size") {
			t.Errorf("the stored definition is %s", text)
		}
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
			s.Acknowledge = []hubv1.AcknowledgedChange{{CRD: "gears.example.com", Rule: "existingFieldRemoval", Path: "/spec/size"}}
		})
		w.operatorSays(o, hubv1.ReasonStored, "")

		// A cluster says that it stores objects at a version that no stored revision had.
		invented := "v" + strings.ToLower(rand.Text())
		described := w.storesVersions(o, "gears.example.com", invented)
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Manifests = manifests(sized) })
		w.operatorSays(o, hubv1.ReasonStored, "")
		warned := ""
		for !strings.Contains(warned, hubv1.ReasonStoredVersionKept) {
			select {
			case warned = <-w.events:
			default:
				t.Fatal("no event warns of the invented version")
			}
		}
		if !strings.Contains(warned, invented) || !strings.Contains(warned, "eu-1") || strings.Contains(warned, "us-1") {
			t.Errorf("the event is %s", warned)
		}
		must(t, w.admin.Delete(t.Context(), described))
		must(t, w.admin.Delete(t.Context(), binding))
		must(t, w.admin.Delete(t.Context(), o))
	})
	t.Run("an older chart whose definition lacks a version that a cluster stores is refused", func(t *testing.T) {
		w.archive(charttest.Archive("rotors", map[string]string{
			"Chart.yaml":            "apiVersion: v2\nname: rotors\nversion: 3.0.0\n",
			"values.yaml":           "replicas: 1\n",
			"templates/deploy.yaml": rotorDeployment,
			"crds/rotors.yaml":      strings.Replace(rotorDefinition, "versions: [", "versions: [{name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}, ", 1),
		}))
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Digest = "" })
		w.operatorSays(o, hubv1.ReasonStored, "")
		described := w.storesVersions(o, "rotors.example.com", "v2")
		w.archive(rotorChart(t, "2.0.0", nil))
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Values.Raw = []byte(`{"replicas": 3}`) })
		w.operatorSays(o, hubv1.ReasonUndoBlocked, "chart rotors 2.0.0 is older than the stored 3.0.0: 1 change breaks objects in use: "+
			"crd rotors.example.com, version v2, rule storedVersionRemoval, path /spec/versions/v2: on cluster eu-1: ")
		if o.Status.Chart.Version != "3.0.0" {
			t.Errorf("after the refusal, the stored chart is %+v", o.Status.Chart)
		}
		must(t, w.admin.Delete(t.Context(), described))
	})
	must(t, w.admin.Delete(t.Context(), o))
	w.stores()
	stop = generates{w, &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}}.test(t, stop)
	t.Run("a chart of a registry is stored, and stays while the registry is away", func(t *testing.T) { stop = registry.test(t, stop) })
	t.Run("the newest version of a chart is known, if the hub may ask for it", func(t *testing.T) { registry.testNewest(t, stop) })
}
