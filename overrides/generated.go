package overrides

import "k8s.io/apimachinery/pkg/runtime/schema"

// What the hub's API server fills in of some core kinds names things of the hub, and the member's API server makes its own:
//   - the selector of a Job, and the labels of its pods by which that selects, which hold the UID of the hub's Job;
//   - the addresses of a Service, which are from the hub's range, but for None, which makes it headless.
//
// What a user may have set with the same right, such as a nodePort, stays.
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

// dropGenerated takes that off the manifest, which is nobody else's.
func dropGenerated(manifest map[string]any) {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return
	}
	if spec, ok := manifest["spec"].(map[string]any); ok {
		if drop := generated[gv.WithKind(kind).GroupKind()]; drop != nil {
			drop(spec)
		}
	}
}
