package view

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// replicas reads how many replicas a member object has, and how many of them are ready, from what was observed of its
// status. Operators call these numbers differently; nil is one that is not there.
func replicas(observed *runtime.RawExtension) (ready, total *int64) {
	if observed == nil {
		return nil, nil
	}
	var status struct {
		Replicas, ReadyReplicas, AvailableReplicas, UnavailableReplicas *int64
		Instances, ReadyInstances                                       *int64
		DesiredNumberScheduled, NumberReady                             *int64
	}
	if json.Unmarshal(observed.Raw, &status) != nil {
		return nil, nil
	}
	ready = first(status.ReadyReplicas, status.AvailableReplicas, status.ReadyInstances, status.NumberReady)
	total = first(status.Replicas, status.Instances, status.DesiredNumberScheduled)
	if ready == nil && total != nil && status.UnavailableReplicas != nil {
		n := *total - *status.UnavailableReplicas // a Deployment leaves zeros out
		ready = &n
	}
	return ready, total
}

func first(numbers ...*int64) *int64 {
	for _, n := range numbers {
		if n != nil {
			return n
		}
	}
	return nil
}
