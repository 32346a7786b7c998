package bundles

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/registry"
)

// newestIs waits until status.newest of an operator has this version, and an error with this part, since this time. An
// empty part means no error.
func (r *chartRegistry) newestIs(o *hubv1.FederatedOperator, version, part string, since time.Time) {
	r.Helper()
	r.eventually(fmt.Sprintf("the newest version is %q, with the error %q", version, part), func() error {
		must(r.T, r.admin.Get(r.Context(), client.ObjectKeyFromObject(o), o))
		is := o.Status.Newest
		if is == nil || is.Version != version || (is.Error == "") != (part == "") || !strings.Contains(is.Error, part) || !is.Since.Time.Equal(since) {
			return fmt.Errorf("status.newest is %+v", is)
		}
		return nil
	})
}

// chartOf returns an operator whose chart is in the registry.
func (r *chartRegistry) chartOf(name, chart string) *hubv1.FederatedOperator {
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.Chart = &hubv1.OperatorChart{Namespace: "turbines", Repository: &hubv1.ChartRepository{
		URL: "oci://" + registry.Host(r.server) + "/charts", Name: chart, Version: "1.0.0", CABundle: base64.StdEncoding.EncodeToString([]byte(registry.CA(r.server))), Secret: "pull",
	}}
	return o
}

// passes edits the operator, and waits until the hub has considered a check after the edit: the hub checks one operator
// after the other, and so asks for the chart of a second, new operator only then. The registry must then have been
// asked so often for the versions of the first operator's chart.
func (r *chartRegistry) passes(o *hubv1.FederatedOperator, asked int32) {
	r.Helper()
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName += "x" })
	probe := r.chartOf("probe", "none")
	must(r.T, r.admin.Create(r.Context(), probe))
	r.eventually("the hub has checked a second operator", func() error {
		must(r.T, r.admin.Get(r.Context(), client.ObjectKeyFromObject(probe), probe))
		if probe.Status.Newest == nil {
			return errors.New("status.newest is unset")
		}
		return nil
	})
	must(r.T, r.admin.Delete(r.Context(), probe))
	if got := r.listed.Load(); got != asked {
		r.Fatalf("the registry was asked %d times for versions, not %d times", got, asked)
	}
}

// testNewest tests the checks for new versions. The caller has removed all other operators. stop ends the leading
// process, which does not check.
func (r *chartRegistry) testNewest(t *testing.T, stop func()) {
	t.Helper()
	o := r.chartOf("newest", "rotors")
	r.push(t, "1.0.0", rotorChart(t, "1.0.0", nil))
	r.push(t, "latest", rotorChart(t, "9.0.0", nil))
	must(t, r.admin.Create(t.Context(), o))
	r.operatorSays(o, hubv1.ReasonStored, "")
	if got := r.listed.Load(); got != 0 || o.Status.Newest != nil {
		t.Errorf("although no hub may ask, the registry was asked %d times for versions, and status.newest is %+v", got, o.Status.Newest)
	}
	stop()

	r.checks, r.clock = true, r.time
	start := r.time.Now()
	later := func(d time.Duration) time.Time {
		r.time.SetTime(r.time.Now().Add(d))
		return r.time.Now()
	}
	stop = r.lead()
	// The registry has version 2.0.1, too, which an earlier test has pushed.
	r.newestIs(o, "2.0.1", "", start)
	if want := o.Spec.Chart.Repository.URL + "/rotors"; o.Status.Newest.Repository != want {
		t.Errorf("the repository is %s, not %s", o.Status.Newest.Repository, want)
	}
	r.push(t, "2.1.0", rotorChart(t, "2.1.0", nil))
	later(checkEvery - time.Second)
	r.passes(o, 1)
	r.newestIs(o, "2.0.1", "", start)

	found := later(checkEvery / 5)
	r.passes(o, 2)
	r.newestIs(o, "2.1.0", "", found)

	later(2 * checkEvery)
	r.passes(o, 3)
	r.newestIs(o, "2.1.0", "", found) // the same result changes nothing

	r.away.Store(true)
	failed := later(2 * checkEvery)
	r.passes(o, 4)
	r.newestIs(o, "2.1.0", "/v2/charts/rotors/tags/list answers 503 Service Unavailable", failed)
	later(checkEvery / 2)
	r.passes(o, 4) // a failed check is repeated after an hour, too
	later(checkEvery)
	r.passes(o, 5)
	r.newestIs(o, "2.1.0", "503", failed)

	stop()
	r.newFetcher()
	stop = r.lead()
	r.passes(o, 5) // a new leader waits for an hour, because the leader before may just have asked
	r.newestIs(o, "2.1.0", "503", failed)
	r.away.Store(false)
	mended := later(2 * checkEvery)
	r.passes(o, 6)
	r.newestIs(o, "2.1.0", "", mended)

	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.Repository.Secret = "none" })
	locked := later(2 * checkEvery)
	r.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName += "x" })
	r.newestIs(o, "2.1.0", "Secret operators-system/none, which does not exist", locked)

	stop()
	r.checks = false
	stop = r.lead()
	r.eventually("a hub that does not check any more removes the result", func() error {
		must(t, r.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if o.Status.Newest != nil {
			return fmt.Errorf("status.newest is %+v", o.Status.Newest)
		}
		return nil
	})
	must(t, r.admin.Delete(t.Context(), o))
	r.stores()
	stop()
}
