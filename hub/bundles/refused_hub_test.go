package bundles

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/test/registry"
)

// repositoryWith serves an HTTPS repository with version 1.0.0 of the chart rotors. The archive can be replaced.
func (w *world) repositoryWith(archive *atomic.Pointer[[]byte]) *hubv1.ChartRepository {
	w.Helper()
	server := registry.Serve(w.T, http.HandlerFunc(func(answer http.ResponseWriter, asked *http.Request) {
		if asked.URL.Path == "/index.yaml" {
			fmt.Fprint(answer, "apiVersion: v1\nentries: {rotors: [{version: 1.0.0, urls: [rotors.tgz]}]}\n")
			return
		}
		_, _ = answer.Write(*archive.Load())
	}))
	allowed, err := fetch.ParseRepositories([]string{server.URL})
	must(w.T, err)
	w.charts = fetch.New(fetch.Options{Repositories: allowed})
	return &hubv1.ChartRepository{URL: server.URL, Name: "rotors", Version: "1.0.0", CABundle: base64.StdEncoding.EncodeToString([]byte(registry.CA(server)))}
}

// TestARefusedChartChangesNothing gives an operator bad charts. The condition Stored must say what is wrong and where,
// and the stored objects, of which the members have copies, must stay.
func TestARefusedChartChangesNothing(t *testing.T) {
	t.Parallel()
	w := newOperators(t, "refused", writing("", "secrets", "configmaps"))
	must(t, w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "turbines"}}))

	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: rotor-ca}, data: {ca.crt: Yg==}}"
	good := rotorChart(t, "1.0.0", map[string]string{"secret.yaml": secret})
	var archive atomic.Pointer[[]byte]
	archive.Store(&good)
	fetched := w.repositoryWith(&archive)
	stop := w.lead()
	w.archive(good)
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	o.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, Namespace: "turbines"}
	must(t, w.admin.Create(t.Context(), o))
	w.operatorSays(o, hubv1.ReasonStored, "")
	is, before := *o.Status.Chart, w.stored()
	w.stores("rotor-operator", "rotors.example.com", "rotor-ca")
	stays := func(o *hubv1.FederatedOperator) {
		t.Helper()
		if diff := cmp.Diff(&is, o.Status.Chart); diff != "" {
			t.Errorf("the stored chart is another one (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, w.stored()); diff != "" {
			t.Errorf("the stored objects changed (-want +got):\n%s", diff)
		}
	}

	const password = "c2VjcmV0"
	for _, c := range []struct{ name, file, template, reason, says string }{
		{
			"a Secret of 1 MiB", "secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: rotor-ca}, data: {ca.crt: {{ repeat 131072 \"c2VjcmV0\" }}}}", hubv1.ReasonChartInvalid,
			"reading the objects of chart rotors: rotors/templates/secret.yaml, document 1, Secret rotor-ca: the object has 1048663 bytes as JSON, and at most 921600 are allowed",
		},
		{
			"a random value outside of Secrets", "random.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: noise}, data: {seed: {{ randAlphaNum 20 }}}}", hubv1.ReasonNonDeterministicChart,
			"rotors/templates/random.yaml, ConfigMap noise, field .data.seed: two renderings differ",
		},
		{"an object that is no object", "broken.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {}}", hubv1.ReasonChartInvalid, "rotors/templates/broken.yaml, document 1: it has no metadata.name"},
		{"a template that fails", "fails.yaml", `{{ required "set zone" .Values.zone }}`, hubv1.ReasonChartInvalid, "rendering chart rotors: execution error at (rotors/templates/fails.yaml:1:3): set zone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.archive(rotorChart(t, "1.1.0", map[string]string{"secret.yaml": secret, c.file: c.template}))
			w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
				s.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"case": "` + c.name + `"}`)}
			})
			w.operatorSays(o, c.reason, c.says)
			message := meta.FindStatusCondition(o.Status.Conditions, hubv1.ConditionStored).Message
			if strings.Contains(message, password) || !strings.HasSuffix(message, "; the stored objects stay") {
				t.Errorf("the message is %s", message)
			}
			stays(o)
		})
	}

	t.Run("a chart for another Kubernetes", func(t *testing.T) {
		w.archive(charttest.Archive("rotors", map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: rotors\nversion: 1.2.0\nkubeVersion: '>=1.40.0-0'\n", "values.yaml": "replicas: 1\n",
			"crds/rotors.yaml": rotorDefinition, "templates/deploy.yaml": rotorDeployment, "templates/secret.yaml": secret,
			"templates/looks.yaml": `{{ if lookup "v1" "Secret" .Release.Namespace "rotor-ca" }}{{ fail "it is there" }}{{ end }}`,
		}))
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.KubernetesVersion = "v1.39.2-gke.1443001" })
		w.operatorSays(o, hubv1.ReasonChartInvalid, `chart rotors is for Kubernetes ">=1.40.0-0", not for v1.39.2-gke.1443001; the stored objects stay`)
		stays(o)
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.KubernetesVersion = "v1.40.1-gke.1443001" })
		w.operatorSays(o, hubv1.ReasonStored, "")
		is, before = *o.Status.Chart, w.stored()
		if is.Version != "1.2.0" || !cmp.Equal(is.Lookups, []string{"rotors/templates/looks.yaml"}) {
			t.Errorf("the chart is %+v", is)
		}
	})

	t.Run("a Secret that another operator has", func(t *testing.T) {
		other := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "gears"}}
		other.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "gears-chart"}, Namespace: "turbines"}
		gears := charttest.Archive("gears", map[string]string{"Chart.yaml": "apiVersion: v2\nname: gears\nversion: 1.0.0\n", "templates/secret.yaml": secret})
		must(t, w.admin.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: "gears-chart"}, BinaryData: map[string][]byte{"gears.tgz": gears},
		}))
		must(t, w.admin.Create(t.Context(), other))
		w.operatorSays(other, hubv1.ReasonIdentityTaken, "Secret turbines/rotor-ca: FederatedOperator rotors has this object: remove it from one of the two; the stored objects stay")
		stays(o)
		must(t, w.admin.Delete(t.Context(), other))
	})

	must(t, w.admin.Delete(t.Context(), o))
	w.stores()
	t.Run("another archive of the same version", func(t *testing.T) {
		o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "fetched"}}
		o.Spec.Chart = &hubv1.OperatorChart{Repository: fetched, Namespace: "turbines"}
		must(t, w.admin.Create(t.Context(), o))
		w.operatorSays(o, hubv1.ReasonStored, "")
		is, before = *o.Status.Chart, w.stored()
		// A new leader has no archive in memory, and must fetch it again.
		stop()
		w.charts = fetch.New(w.charts.Options)
		published := rotorChart(t, "1.0.0", map[string]string{"more.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}"})
		archive.Store(&published)
		w.lead()
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "wind" })
		w.operatorSays(o, hubv1.ReasonChartInvalid, "version 1.0.0 was published again and has sha256:")
		w.operatorSays(o, hubv1.ReasonChartInvalid, "but the stored objects are from "+is.Digest+": set chart.digest to accept it; the stored objects stay")
		stays(o)
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
			s.Chart.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(published))
		})
		w.operatorSays(o, hubv1.ReasonStored, "")
		w.stores("rotor-operator", "rotors.example.com", "more")
		must(t, w.admin.Delete(t.Context(), o))
		w.stores()
	})
}
