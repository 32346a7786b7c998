package overrides

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// compileResources compiles an override of requests and limits. The override changes only the resources that it names.
func compileResources(in *hubv1.ResourcesOverride) (containerChange, *fault) {
	resources := map[string]any{}
	for field, list := range map[string]map[corev1.ResourceName]resource.Quantity{"requests": in.Requests, "limits": in.Limits} {
		if len(list) > maxTyped {
			return containerChange{}, &fault{leaf: field, message: fmt.Sprintf("has more than %d resources: split it into several rules", maxTyped)}
		}
		values := make(map[string]any, len(list))
		for name, quantity := range list {
			values[string(name)] = quantity.String()
		}
		if len(values) > 0 {
			resources[field] = values
		}
	}
	if len(resources) == 0 {
		return containerChange{}, &fault{message: "changes nothing: set requests or limits"}
	}
	c, f := compileTarget("resources", &in.ContainerTarget)
	patch := map[string]any{"resources": resources}
	c.lower = func(_ any, at pointer) ([]action, *fault) {
		return []action{&mergeChange{at: at, patch: patch}}, nil
	}
	return c, sized(f, patch)
}
