package overrides

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// generated has, for some kinds, a function that removes fields from the spec. The hub's API server has set these
// fields, and the member's API server sets them again:
//
//   - the selector of a Job and the pod labels that it selects, which contain the UID of the hub's Job;
//   - the addresses of a Service from the hub's range, except None, which makes the Service headless;
//   - the healthCheckNodePort of a Service.
//
// A value that a user may have set, such as a nodePort, is not removed.
var generated = map[schema.GroupKind]func(spec map[string]any){
	{Group: "batch", Kind: "Job"}: func(spec map[string]any) {
		if spec["manualSelector"] == true {
			return
		}
		delete(spec, "selector")
		template, _ := spec["template"].(map[string]any)
		metadata, _ := template["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		for _, key := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
			delete(labels, key)
		}
		if metadata != nil && len(labels) == 0 {
			delete(metadata, "labels")
		}
	},
	{Kind: "Service"}: func(spec map[string]any) {
		if spec["clusterIP"] != "None" {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
		delete(spec, "healthCheckNodePort")
	},
}

// withoutGenerated returns the manifest without the fields that an API server sets itself. If the kind has no such
// fields, it returns the manifest itself.
func withoutGenerated(manifest map[string]any) map[string]any {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	drop := generated[gv.WithKind(kind).GroupKind()]
	if err != nil || drop == nil {
		return manifest
	}
	manifest = runtime.DeepCopyJSON(manifest)
	if spec, ok := manifest["spec"].(map[string]any); ok {
		drop(spec)
	}
	return manifest
}
