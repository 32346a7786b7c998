package bundles

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/test/registry"
)

// chartRegistry is a registry that a test can stop.
type chartRegistry struct {
	*world
	server  *httptest.Server
	allowed fetch.Repositories
	time    *testclock.FakePassiveClock
	away    atomic.Bool
	open    atomic.Bool  // whether the registry accepts any password
	listed  atomic.Int32 // number of requests for the tags of a chart
}

// newChartRegistry starts the registry. The hub of the world may fetch charts from the registry.
func newChartRegistry(w *world) *chartRegistry {
	w.Helper()
	r := &chartRegistry{world: w, time: testclock.NewFakePassiveClock(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC))}
	has := registry.Handler()
	r.server = registry.Serve(w.T, http.HandlerFunc(func(answer http.ResponseWriter, asked *http.Request) {
		_, password, _ := asked.BasicAuth()
		// A request without a password is repeated with one, unless the registry is away.
		if asked.URL.Path == "/v2/charts/rotors/tags/list" && (password != "" || r.away.Load()) {
			r.listed.Add(1)
		}
		switch {
		case r.away.Load():
			answer.WriteHeader(http.StatusServiceUnavailable)
		case !r.open.Load() && password != "secret":
			answer.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			answer.WriteHeader(http.StatusUnauthorized)
		default:
			has.ServeHTTP(answer, asked)
		}
	}))
	var err error
	r.allowed, err = fetch.ParseRepositories([]string{"oci://" + registry.Host(r.server) + "/charts"})
	must(w.T, err)
	r.newFetcher()
	return r
}

// newFetcher replaces the fetcher, so that the next leader has no archive in memory.
func (r *chartRegistry) newFetcher() {
	r.charts = fetch.New(fetch.Options{Repositories: r.allowed, Clock: r.time})
}

func (r *chartRegistry) push(t *testing.T, version string, archive []byte) {
	t.Helper()
	r.open.Store(true)
	defer r.open.Store(false)
	registry.Push(t, r.server, "rotors", version, archive)
}

// login stores a Secret with the password of the registry.
func (r *chartRegistry) login(t *testing.T, name string, of corev1.SecretType) {
	t.Helper()
	login := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registry.Host(r.server), base64.StdEncoding.EncodeToString([]byte("hanse:secret")))
	must(t, r.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.system, Name: name}, Type: of, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(login)},
	}))
}

func (r *chartRegistry) replicas(want int64) {
	r.Helper()
	r.eventually("the Deployment has the replicas", func() error {
		if got, _, _ := unstructured.NestedInt64(r.stored()["rotor-operator"].Manifest.Object, "spec", "replicas"); got != want {
			return fmt.Errorf("it has %d, not %d", got, want)
		}
		return nil
	})
}

// test tests an operator whose chart is in the registry. The caller has removed all other operators. stop ends the
// leading process. test returns the function that ends the process that leads after it.
func (r *chartRegistry) test(t *testing.T, stop func()) func() {
	t.Helper()
	host := registry.Host(r.server)
	first := rotorChart(t, "1.0.0", nil)
	r.push(t, "1.0.0", first)
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "fetched"}}
	o.Spec.Chart = &hubv1.OperatorChart{Namespace: "turbines", Repository: &hubv1.ChartRepository{
		URL: "oci://" + host + "/others", Name: "rotors", Version: "1.0.0", CABundle: base64.StdEncoding.EncodeToString([]byte(registry.CA(r.server))), Secret: "pull",
	}}
	r.login(t, "other", corev1.SecretTypeOpaque)
	r.login(t, "pull", corev1.SecretTypeDockerConfigJson)
	must(t, r.admin.Create(t.Context(), o))
	r.operatorSays(o, hubv1.ReasonRepositoryNotAllowed, "fetching chart rotors 1.0.0 from oci://"+host+"/others: the value operators.repositories of the hub's chart does not allow it")

	repository := func(change func(*hubv1.ChartRepository)) {
		t.Helper()
		r.edited(o, func(s *hubv1.FederatedOperatorSpec) { change(s.Chart.Repository) })
	}
	repository(func(s *hubv1.ChartRepository) { s.URL, s.Secret = "oci://"+host+"/charts", "none" })
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "chart.repository.secret names Secret operators-system/none, which does not exist")
	repository(func(s *hubv1.ChartRepository) { s.Secret = "other" })
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "does not have the type kubernetes.io/dockerconfigjson")
	repository(func(s *hubv1.ChartRepository) { s.Secret = "" })
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "the repository asks for a password, and the Secret of chart.repository.secret has none for this host")
	r.stores()
	repository(func(s *hubv1.ChartRepository) { s.Secret = "pull" })
	r.operatorSays(o, hubv1.ReasonStored, "")
	r.stores("rotor-operator", "rotors.example.com")
	is := *o.Status.Chart
	if is.Version != "1.0.0" || is.Repository != "oci://"+host+"/charts/rotors:1.0.0" {
		t.Errorf("the chart is %+v", is)
	}
	stays := func() {
		t.Helper()
		if diff := cmp.Diff(&is, o.Status.Chart); diff != "" {
			t.Errorf("the stored chart is another one (-want +got):\n%s", diff)
		}
		r.stores("rotor-operator", "rotors.example.com")
	}

	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Digest = "sha256:" + strings.Repeat("a", 64) })
	r.operatorSays(o, hubv1.ReasonChartInvalid, "the archive has "+is.Digest+", and chart.digest is sha256:aaaa")
	stays()

	must(t, r.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.system, Name: "values"}, Data: map[string]string{"values.yaml": "replicas: 5"},
	}))
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) {
		s.Chart.Digest = ""
		s.Chart.ValuesFrom = []hubv1.ValuesSource{{ConfigMap: "values"}, {ConfigMap: "more", Optional: true}}
	})
	r.replicas(5)
	r.operatorSays(o, hubv1.ReasonStored, "")
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ValuesFrom[1].Optional = false })
	r.operatorSays(o, hubv1.ReasonConfigMapMissing, "ConfigMap operators-system/more does not exist")
	stays()
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ValuesFrom = s.Chart.ValuesFrom[:1] })

	r.away.Store(true)
	repository(func(s *hubv1.ChartRepository) { s.Version = "2.0.0" })
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "fetching chart rotors 2.0.0 from oci://"+host+"/charts fails since 2001-02-03T04:05:06Z: ")
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "503")
	stays()
	r.away.Store(false)
	r.push(t, "2.0.0", first)
	r.time.SetTime(r.time.Now().Add(time.Minute))
	// The edit makes the hub reconcile the operator at once.
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "wind" })
	r.operatorSays(o, hubv1.ReasonChartInvalid, "has chart rotors 1.0.0, not rotors 2.0.0")
	stays()
	r.push(t, "2.0.1", rotorChart(t, "2.0.1", nil))
	repository(func(s *hubv1.ChartRepository) { s.Version = "2.0.1" })
	r.operatorSays(o, hubv1.ReasonStored, "")
	if is = *o.Status.Chart; is.Version != "2.0.1" {
		t.Errorf("the chart is %+v", is)
	}

	// A new leader has no archive in memory. It fetches the archive whose objects are stored, although the tag points
	// to another archive.
	stop()
	r.away.Store(true)
	r.newFetcher()
	stop = r.lead()
	r.operatorSays(o, hubv1.ReasonChartNotFetched, "503")
	stays()
	r.away.Store(false)
	r.push(t, "2.0.1", rotorChart(t, "2.0.1", map[string]string{"more.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: more}, spec: {}}"}))
	r.time.SetTime(r.time.Now().Add(time.Minute))
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = "" })
	r.operatorSays(o, hubv1.ReasonStored, "")
	stays()
	must(t, r.admin.Delete(t.Context(), o))
	r.stores()
	return stop
}
