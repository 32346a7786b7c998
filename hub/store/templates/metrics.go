package templates

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	templatesDesc = prometheus.NewDesc("hanse_templates", "Hub objects and objects of bundles in memory, by group and kind.", []string{"group", "kind"}, nil)
	bytesDesc     = prometheus.NewDesc("hanse_templates_bytes",
		"Bytes of hub objects and objects of bundles in memory: as uncompressed JSON (json), and in compressed form, estimated (held).", []string{"form"}, nil)
	unreadableDesc = prometheus.NewDesc("hanse_unreadable_kinds",
		"Wanted kinds whose objects the hub cannot read from its own API server, by the reason; always 1.", []string{"group", "kind", "reason"}, nil)
	unpackedDesc = prometheus.NewDesc("hanse_templates_unpacked", "Objects that are also in memory without compression, because they were used recently.", nil, nil)
)

// Metrics are the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{collector{}}

// collector computes the metrics at each scrape, so that no counters must be updated.
type collector struct{ store *Store }

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	out <- templatesDesc
	out <- bytesDesc
	out <- unreadableDesc
	out <- unpackedDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	c.store.mu.Lock()
	wanted := c.store.wanted
	c.store.mu.Unlock()
	var json, held int
	number := map[schema.GroupKind]int{}
	count := func(gk schema.GroupKind, r *record) {
		number[gk]++
		json += r.jsonSize
		held += r.held()
	}
	for gk := range wanted {
		number[gk] = 0
		if state, _ := c.store.State(gk); state.Reason != "" {
			out <- prometheus.MustNewConstMetric(unreadableDesc, prometheus.GaugeValue, 1, gk.Group, gk.Kind, state.Reason)
		}
		for _, o := range c.store.watches.List(unversioned(gk)) {
			if r, ok := o.(*record); ok {
				count(gk, r)
			}
		}
	}
	for _, o := range c.store.stored.List(secrets) {
		if r, ok := o.(*storedRecord); ok {
			count(r.id.GroupKind(), r.template)
		}
	}
	for gk, n := range number {
		gauge(templatesDesc, n, gk.Group, gk.Kind)
	}
	gauge(bytesDesc, json, "json")
	gauge(bytesDesc, held, "held")
	gauge(unpackedDesc, c.store.recent.size())
}
