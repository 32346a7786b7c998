package rollup

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// Replicas reads how many replicas a copy has, and how many of them are ready, from what was observed of its status. Operators call these
// numbers differently; nil is one that is not there.
func Replicas(observed *runtime.RawExtension) (ready, total *int64) {
	if observed == nil || !bytes.Contains(observed.Raw, []byte("eplicas")) && !bytes.Contains(observed.Raw, []byte("nstances")) && !bytes.Contains(observed.Raw, []byte("umber")) {
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
	ready = firstKnown(status.ReadyReplicas, status.AvailableReplicas, status.ReadyInstances, status.NumberReady)
	total = firstKnown(status.Replicas, status.Instances, status.DesiredNumberScheduled)
	if ready == nil && total != nil && status.UnavailableReplicas != nil {
		n := *total - *status.UnavailableReplicas // a Deployment leaves zeros out
		ready = &n
	}
	return ready, total
}

func firstKnown(numbers ...*int64) *int64 {
	for _, n := range numbers {
		if n != nil {
			return n
		}
	}
	return nil
}
