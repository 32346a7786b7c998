package rollup

import (
	"bytes"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// Replicas returns how many replicas of a copy are ready, and how many exist. It reads them from the copy's status, and
// knows the field names of several operators. A number is nil if the status does not have it.
func Replicas(observed *runtime.RawExtension) (ready, total *int64) {
	if observed == nil {
		return nil, nil
	}
	var replicas, readyReplicas, available, unavailable, instances, readyInstances, desired, numberReady *int64
	eachInteger(observed.Raw, func(name []byte, n int64) {
		switch string(name) {
		case "replicas":
			replicas = &n
		case "readyReplicas":
			readyReplicas = &n
		case "availableReplicas":
			available = &n
		case "unavailableReplicas":
			unavailable = &n
		case "instances":
			instances = &n
		case "readyInstances":
			readyInstances = &n
		case "desiredNumberScheduled":
			desired = &n
		case "numberReady":
			numberReady = &n
		}
	})
	ready = firstKnown(readyReplicas, available, readyInstances, numberReady)
	total = firstKnown(replicas, instances, desired)
	if ready == nil && total != nil && unavailable != nil {
		n := *total - *unavailable // computed, because a Deployment's status omits zeros
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

// eachInteger calls visit for the top-level integer fields of a JSON object. It skips all other fields without decoding
// them, which is fast enough for the statuses of many copies.
func eachInteger(object []byte, visit func(name []byte, n int64)) {
	depth := 0
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			begin := i + 1
			for i = begin; i < len(object) && object[i] != '"'; i++ {
				if object[i] == '\\' {
					i++
				}
			}
			if depth != 1 || i >= len(object) {
				continue
			}
			value, isName := bytes.CutPrefix(bytes.TrimLeft(object[i+1:], " "), []byte(":"))
			if !isName {
				continue
			}
			value = bytes.TrimLeft(value, " ")
			if n, err := strconv.ParseInt(string(value[:integerIn(value)]), 10, 64); err == nil {
				visit(object[begin:i], n)
			}
		}
	}
}

// integerIn returns the length in bytes of the integer at the start of value. It is 0 if value does not start with an
// integer.
func integerIn(value []byte) int {
	n := 0
	for n < len(value) && (value[n] >= '0' && value[n] <= '9' || value[n] == '-') {
		n++
	}
	if n < len(value) && (value[n] == '.' || value[n] == 'e' || value[n] == 'E') {
		return 0
	}
	return n
}
