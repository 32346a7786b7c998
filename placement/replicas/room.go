package replicas

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	podresource "k8s.io/component-helpers/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var errNoTemplate = errors.New("the object has no pod template at /spec/template: set spec.replicas.requests to the requests of one replica")

// Requests returns the resource requests of one replica. They come from the policy, or are computed from the pod
// template as the Kubernetes scheduler computes them. They include one unit of the resource pods.
func Requests(policy *hubv1.ReplicasPolicy, template *unstructured.Unstructured) (corev1.ResourceList, error) {
	requests := policy.Requests.DeepCopy()
	if requests == nil {
		pod, err := podOf(template)
		if err != nil {
			return nil, fmt.Errorf("finding the requests of one replica of the %s: %w", template.GetKind(), err)
		}
		requests = podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	}
	if _, ok := requests[corev1.ResourcePods]; !ok {
		requests[corev1.ResourcePods] = resource.MustParse("1")
	}
	return requests, nil
}

func podOf(template *unstructured.Unstructured) (*corev1.Pod, error) {
	raw, found, err := unstructured.NestedFieldNoCopy(template.Object, "spec", "template")
	fields, ok := raw.(map[string]any)
	if err != nil || !found || !ok {
		return nil, errNoTemplate
	}
	var t corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &t); err != nil {
		return nil, fmt.Errorf("reading /spec/template as a pod template: %w", err)
	}
	if len(t.Spec.Containers) == 0 {
		return nil, errNoTemplate
	}
	// A request that is missing defaults to the limit, as on an API server.
	for _, list := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range list {
			list[i].Resources.Requests = orLimits(list[i].Resources)
		}
	}
	return &corev1.Pod{Spec: t.Spec}, nil
}

func orLimits(r corev1.ResourceRequirements) corev1.ResourceList {
	out := r.Requests.DeepCopy()
	for name, limit := range r.Limits {
		if _, ok := out[name]; ok {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = limit
	}
	return out
}

// Room returns how many replicas fit on a cluster. allocatable has the allocatable resources of its nodes, and requests
// has those of one replica. The result is 0 if the cluster does not report a requested resource. Only the resource pods
// is ignored in this case, because some types of nodes do not report it.
func Room(allocatable, requests corev1.ResourceList) int64 {
	room := int64(Unlimited)
	for name, want := range requests {
		have, known := allocatable[name]
		if want.Sign() <= 0 || !known && name == corev1.ResourcePods {
			continue
		}
		room = min(room, times(have, want))
	}
	return max(0, room)
}

// times returns how many times the quantity want fits into the quantity have. want is positive.
func times(have, want resource.Quantity) int64 {
	const whole = math.MaxInt64 / 1000 // more whole units would overflow as milli-units
	if have.Value() >= whole || want.Value() >= whole {
		return have.Value() / max(1, want.Value())
	}
	return have.MilliValue() / max(1, want.MilliValue())
}
