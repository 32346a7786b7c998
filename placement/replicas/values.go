package replicas

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Value is a number in the manifest for one cluster. It replaces the number in the hub object.
type Value struct {
	// Path is the JSON pointer of the field that has the number.
	Path   string
	Number int64
}

// Values returns the numbers that replace numbers of the hub object in the manifest for one cluster. It takes them from
// the binding. decided is false if the replicas are divided, but the binding has no share for the cluster yet. The
// object must then not be sent to the cluster, because the number in the hub object is the total of all clusters.
//
// If the completions of a Job are divided, its parallelism is divided in the same ratio, so that all clusters end at
// about the same time. Every cluster with completions gets a parallelism of at least 1. If the parallelism in the hub
// object is 0, all clusters get 0.
func Values(binding *hubv1.BindingSpec, cluster string, template *unstructured.Unstructured) (values []Value, decided bool) {
	if binding.Division == nil {
		return nil, true
	}
	target := binding.Target(cluster)
	if target == nil || target.Replicas == nil {
		return nil, false
	}
	values = []Value{{Path: binding.Division.Path, Number: int64(*target.Replicas)}}
	if binding.ObjectRef.GroupVersionKind().GroupKind() == job && binding.Division.Path == completionsPath {
		values = append(values, Value{Path: parallelismPath, Number: parallelism(binding, cluster, template)})
	}
	return values, true
}

func parallelism(binding *hubv1.BindingSpec, cluster string, template *unstructured.Unstructured) int64 {
	total, err := numberAt(template, parallelismPath)
	if err != nil {
		total = 1 // the default of the API server
	}
	if total == 0 {
		return 0
	}
	var working []slot
	for _, t := range binding.Clusters {
		counts := t.State == hubv1.TargetPresent || t.Name == cluster // an Evicting cluster counts only for its own value
		if counts && t.Replicas != nil && *t.Replicas > 0 {
			n := clamp(int64(*t.Replicas))
			working = append(working, slot{name: t.Name, weight: n, lo: 1, hi: n})
		}
	}
	spread(working, max(total, int64(len(working))))
	for _, s := range working {
		if s.name == cluster {
			return s.share
		}
	}
	return 0
}
