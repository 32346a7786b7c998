package docs

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/hub/admission/certificate"
	"github.com/hanse-dev/hanse/hub/console"
	"github.com/hanse-dev/hanse/hub/dispatch"
	"github.com/hanse-dev/hanse/hub/events"
	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/report"
	"github.com/hanse-dev/hanse/hub/report/policies"
	"github.com/hanse-dev/hanse/hub/schedule"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/hub/store/templates"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/member/connect"
)

// collectors returns the collectors of all metrics of the hub.
func collectors() []prom.Collector {
	return append(slices.Concat(
		hub.Metrics, certificate.Metrics, console.Metrics, dispatch.Metrics, membership.Metrics, views.Metrics, events.Metrics, pace.Metrics, policies.Metrics,
		report.Metrics, schedule.Metrics, templates.Metrics, connect.Metrics, cache.Metrics,
	), report.NewCopies(clusters.New(fleet{})))
}

// fleet is a reader that returns the MemberClusters of a fleet.
type fleet struct{ client.Reader }

func (fleet) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	clusters := list.(*hubv1.MemberClusterList)
	for i := range fleetMembers {
		clusters.Items = append(clusters.Items, hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i)}})
	}
	return nil
}

// metric is one row of the table in docs/metrics.md.
type metric struct {
	name, kind, help string
	labels           []string
	collector        prom.Collector
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// read returns the name, the labels and the help text of a metric's description.
func read(t *testing.T, d *prom.Desc) metric {
	t.Helper()
	m := described.FindStringSubmatch(d.String())
	if m == nil {
		t.Fatalf("cannot read %s", d)
	}
	return metric{name: m[1], help: strings.ReplaceAll(m[2], `\"`, `"`), labels: strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })}
}

func describe(t *testing.T, c prom.Collector) (all []metric) {
	t.Helper()
	descs := make(chan *prom.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		if !strings.HasPrefix(d.String(), `Desc{fqName: "hanse_`) {
			continue // a metric of the Go runtime or of controller-runtime
		}
		m := read(t, d)
		m.collector, m.kind = c, "gauge" // a collector that reads a state has no counters
		switch c.(type) {
		case prom.Histogram, *prom.HistogramVec:
			m.kind = "histogram"
		case prom.Gauge, *prom.GaugeVec:
		case prom.Counter, *prom.CounterVec:
			m.kind = "counter"
		case *report.Copies:
			if strings.HasSuffix(m.name, "_duration_seconds") {
				m.kind = "summary"
			}
		}
		all = append(all, m)
	}
	return all
}

func metricsOfHub(t *testing.T) (all []metric) {
	t.Helper()
	for _, c := range collectors() {
		all = append(all, describe(t, c)...)
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return all
}

func TestThePageOfMetricsHasThoseOfTheRegistry(t *testing.T) {
	t.Parallel()
	all := metricsOfHub(t)
	known := map[string]bool{}
	var rows strings.Builder
	for _, m := range all {
		known[m.name] = true
		labels := "-"
		if len(m.labels) > 0 {
			labels = strings.Join(m.labels, ", ")
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
	}
	for _, m := range describe(t, ctrlmetrics.Registry.(*prom.Registry)) {
		if !known[m.name] {
			t.Errorf("metric %s is registered, and no package lists it in its Metrics", m.name)
		}
	}
	isGenerated(t, "metrics.md", "| metric | type | labels | meaning |\n|---|---|---|---|\n", rows.String())
}

// fleetMembers and fleetKinds are the largest numbers of members and kinds for which the number of series is limited.
const (
	fleetMembers = 1000
	fleetKinds   = 20
)

// maxSeries has the largest number of series of each metric, unless cluster or kind is the metric's only label.
var maxSeries = map[string]int{
	"hanse_binding_clusters":    7,
	"hanse_view_requests_total": 100,    // requests and codes
	"hanse_console_pages_total": 40 * 5, // pages and classes of HTTP status codes
	"hanse_hub_writes_total":    3 * fleetKinds,
	"hanse_templates_bytes":     2,
	"hanse_templates":           fleetKinds,
	"hanse_unreadable_kinds":    fleetKinds,
	"hanse_operator_clusters":   2 * fleetKinds, // one operator for each kind
	"hanse_operator_info":       fleetKinds,
	"hanse_notifications_total": 4 * 20, // the results for 20 sinks
}

func TestAThousandMembersOfTwentyKindsHaveFewSeries(t *testing.T) {
	registry := prom.NewPedanticRegistry()
	total := 0
	for _, c := range collectors() {
		switch c := c.(type) {
		case *prom.GaugeVec:
			fill(t, c, func(labels ...string) { c.WithLabelValues(labels...).Set(1) })
			t.Cleanup(c.Reset)
		case *prom.CounterVec:
			fill(t, c, func(labels ...string) { c.WithLabelValues(labels...).Inc() })
			t.Cleanup(c.Reset)
		case *prom.HistogramVec:
			fill(t, c, func(labels ...string) { c.WithLabelValues(labels...).Observe(1) })
			t.Cleanup(c.Reset)
		case *report.Copies:
			placeEverywhere(t, c)
		case prom.Gauge, prom.Counter, prom.Histogram:
		default: // the collector reads a state that this test does not have
			for _, m := range describe(t, c) {
				same := prom.NewGaugeVec(prom.GaugeOpts{Name: m.name, Help: m.help}, m.labels)
				fill(t, same, func(labels ...string) { same.WithLabelValues(labels...).Set(1) })
				registry.MustRegister(same)
			}
			continue
		}
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n := len(f.GetMetric())
		if f.GetType().String() == "HISTOGRAM" {
			n = 0
			for _, m := range f.GetMetric() {
				// A server without native histograms also has a series each for the last bucket, the sum and the count.
				n += len(m.GetHistogram().GetBucket()) + 3
			}
		}
		if f.GetType().String() == "SUMMARY" {
			n *= 2 // sum and count of a summary
		}
		total += n
		f.Metric = f.Metric[:1] // promlint compares each series with all others
		t.Logf("%s: %d", f.GetName(), n)
	}
	if total >= 100_000 || total < 4*fleetMembers*fleetKinds {
		t.Errorf("%d series, want fewer than 100,000, and those of copies at least", total)
	}
	t.Logf("%d series", total)
	t.Run("and follow the conventions of Prometheus", func(t *testing.T) {
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		if len(families) < 35 {
			t.Errorf("%d metrics were checked", len(families))
		}
	})
}

// maxSeriesOf returns the largest possible number of series of a metric.
func maxSeriesOf(t *testing.T, m metric) int {
	t.Helper()
	switch n, known := maxSeries[m.name]; {
	case known:
		return n
	case len(m.labels) == 0:
		return 1
	case slices.Equal(m.labels, []string{"cluster"}):
		return fleetMembers
	case slices.Equal(m.labels, []string{"kind"}):
		return fleetKinds
	}
	t.Errorf("metric %s has labels %v, whose number of values is not bounded here", m.name, m.labels)
	return 0
}

func fill(t *testing.T, c prom.Collector, set func(labels ...string)) {
	t.Helper()
	for _, m := range describe(t, c) {
		for i := range maxSeriesOf(t, m) {
			labels := make([]string, len(m.labels))
			for l := range labels {
				labels[l] = fmt.Sprint(i)
			}
			set(labels...)
		}
	}
}

// placeEverywhere counts objects of every kind on every member. It uses more reasons and placements than the labels of
// the metrics have values for.
func placeEverywhere(t *testing.T, c *report.Copies) {
	t.Helper()
	ctx := t.Context()
	var targets []hubv1.BindingTarget
	for i := range fleetMembers {
		name := fmt.Sprintf("member-%d", i)
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	for i := range 600 {
		c.PlacementChanged(ctx, changes.Placement{After: &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i)}}})
	}
	for kind := range fleetKinds {
		for reason := range 12 {
			b := &hubv1.ResourceBinding{}
			b.Spec.ObjectRef.Kind, b.Spec.Clusters = fmt.Sprintf("Kind%d", kind), targets
			for _, target := range targets {
				b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{
					Name: target.Name, Applied: metav1.ConditionFalse, Health: hubv1.HealthDegraded, Reason: fmt.Sprintf("Reason%d", reason)})
			}
			c.BindingChanged(ctx, changes.Binding{After: b})
		}
	}
}
