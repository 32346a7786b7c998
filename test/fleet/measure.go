package fleet

import (
	"context"
	"time"
)

// Quiet is how long the hub must not have written before all its writes are done. It may delay the status of a changing
// placement for 5 s, and numbers of regions alone for 10 s.
const Quiet = 11 * time.Second

// HubWrites counts the creates, updates and deletes in the hub's etcd so far, by resource. The source is the API
// server's own metric of its etcd requests.
func (f *Fleet) HubWrites(ctx context.Context) (map[string]float64, error) {
	page, err := f.Hub.MetricsPage(ctx)
	if err != nil {
		return nil, err
	}
	return EtcdWrites(page)
}

// EtcdWrites counts, by resource, the creates, updates and deletes that an API server has sent to etcd, from its
// metrics page.
func EtcdWrites(page string) (map[string]float64, error) {
	samples, err := Samples(page, "etcd_request_duration_seconds_count")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range samples {
		switch s.Labels["operation"] {
		case "create", "update", "delete":
			out[s.resource()] += s.Value
		}
	}
	return out, nil
}

// resource returns "resource.group", or the resource alone in the core group.
func (s Sample) resource() string {
	if group := s.Labels["group"]; group != "" {
		return s.Labels["resource"] + "." + group
	}
	return s.Labels["resource"]
}
