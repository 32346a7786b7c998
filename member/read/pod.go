package read

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxContainers is the maximum number of named containers of a pod.
const maxContainers = 50

// containers returns the names of the init containers and containers of a pod, at most maxContainers.
func containers(pod *unstructured.Unstructured) (names []string) {
	for _, field := range []string{"initContainers", "containers"} {
		found, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, c := range found {
			fields, _ := c.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			if len(validation.IsDNS1123Label(name)) == 0 && len(names) < maxContainers {
				names = append(names, name)
			}
		}
	}
	return names
}

// podState returns a text such as "Running 2/2" or "Pending 0/1 ImagePullBackOff": the phase, the number of ready
// containers, and the reason why a container waits.
func podState(pod *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if phase == "" {
		phase = "Pending"
	}
	if pod.GetDeletionTimestamp() != nil {
		phase = "Terminating"
	}
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	ready, waits := 0, ""
	for _, s := range statuses {
		fields, _ := s.(map[string]any)
		if is, _, _ := unstructured.NestedBool(fields, "ready"); is {
			ready++
		}
		if reason, _, _ := unstructured.NestedString(fields, "state", "waiting", "reason"); reason != "" && waits == "" {
			waits = " " + reason
		}
	}
	return fmt.Sprintf("%s %d/%d%s", phase, ready, max(len(containers), len(statuses)), waits)
}
