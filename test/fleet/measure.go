package fleet

import (
	"context"
	"time"
)

// Quiet is how long the hub must have written nothing before a test assumes that it has written everything. The hub may
// delay the status of a changing placement for 5 s. The hub may delay a change that affects only the numbers of regions
// for 10 s.
const Quiet = 11 * time.Second

// HubWrites returns the numbers of creates, updates and deletes in the hub's etcd so far, by resource. It reads the
// metric of the hub's API server about its requests to etcd.
func (f *Fleet) HubWrites(ctx context.Context) (map[string]float64, error) {
	page, err := f.Hub.MetricsPage(ctx)
	if err != nil {
		return nil, err
	}
	return EtcdWrites(page)
}

// EtcdWrites returns the numbers of creates, updates and deletes that an API server has sent to etcd, by resource. page
// is the metrics page of the API server.
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

// resource returns "resource.group", or only the resource for the core group.
func (s Sample) resource() string {
	if group := s.Labels["group"]; group != "" {
		return s.Labels["resource"] + "." + group
	}
	return s.Labels["resource"]
}
