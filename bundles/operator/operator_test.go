package operator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
)

func TestWaitsFor(t *testing.T) {
	deployment := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "monitoring", Name: "rotors"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	role := hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "rotors"}
	tests := map[string]struct {
		objects []operator.Object
		want    string
		placed  bool
	}{
		"an operator without objects is ready": {},
		"a healthy operator is ready": {
			objects: []operator.Object{{ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthHealthy}, {ObjectIdentity: definition, Placed: true, Health: hubv1.HealthHealthy}},
			placed:  true,
		},
		"objects other than workloads and definitions do not matter": {
			objects: []operator.Object{{ObjectIdentity: role, Placed: true, Health: hubv1.HealthDegraded}},
		},
		"a workload on the cluster is named before a definition": {
			objects: []operator.Object{{ObjectIdentity: definition, Placed: true, Health: hubv1.HealthProgressing}, {ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthProgressing}},
			want:    "Deployment.apps monitoring/rotors is Progressing, and 1 more", placed: true,
		},
		"the role that the cluster refuses is named before the workload that waits for it": {
			objects: []operator.Object{{ObjectIdentity: deployment, Placed: true}, {ObjectIdentity: role, Placed: true, Refused: true, Message: "it grants rights that the hub does not have"}},
			want:    "ClusterRole.rbac.authorization.k8s.io rotors cannot be written: it grants rights that the hub does not have, and 1 more", placed: true,
		},
		"the namespace that the cluster refuses is named before all objects in it": {
			objects: []operator.Object{
				{ObjectIdentity: hubv1.ObjectIdentity{Kind: "ServiceAccount", Namespace: "monitoring", Name: "rotors"}, Placed: true, Refused: true, Message: "namespace monitoring is missing"},
				{ObjectIdentity: deployment, Placed: true, Refused: true, Message: "namespace monitoring is missing"},
				{ObjectIdentity: hubv1.ObjectIdentity{Kind: "Namespace", Name: "monitoring"}, Placed: true, Refused: true, Message: "the hub may not create namespaces"},
			},
			want: "Namespace monitoring cannot be written: the hub may not create namespaces, and 2 more", placed: true,
		},
		"a refused role of an operator that is ready is no wait": {
			objects: []operator.Object{{ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthHealthy}, {ObjectIdentity: role, Placed: true, Refused: true}},
			placed:  true,
		},
		"a webhook configuration that waits for the workload is named after it": {
			objects: []operator.Object{
				{ObjectIdentity: hubv1.ObjectIdentity{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "rotors"}, Placed: true},
				{ObjectIdentity: deployment, Placed: true},
			},
			want: "Deployment.apps monitoring/rotors is not on the cluster, and 1 more", placed: true,
		},
		"a definition that is not served is named before the workload that waits for it": {
			objects: []operator.Object{{ObjectIdentity: definition, Placed: true, Health: hubv1.HealthProgressing}, {ObjectIdentity: deployment, Placed: true}},
			want:    "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com is Progressing, and 1 more", placed: true,
		},
		"a health has its message": {
			objects: []operator.Object{{ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthDegraded, Message: "0/1 replicas"}},
			want:    "Deployment.apps monitoring/rotors is Degraded: 0/1 replicas", placed: true,
		},
		"a health without a message is named": {
			objects: []operator.Object{{ObjectIdentity: definition, Placed: true, Health: hubv1.HealthUnknown}},
			want:    "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com is Unknown", placed: true,
		},
		"an object without a decision is waited for": {
			objects: []operator.Object{{ObjectIdentity: deployment}, {ObjectIdentity: definition, Placed: true, Health: hubv1.HealthHealthy}},
			want:    "Deployment.apps monitoring/rotors has no decision for the cluster", placed: true,
		},
		"an operator whose objects are not placed is not placed": {
			objects: []operator.Object{{ObjectIdentity: deployment}},
			want:    "Deployment.apps monitoring/rotors has no decision for the cluster",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := operator.WaitsFor(tc.objects); got != tc.want {
				t.Errorf("it waits for %q, want %q", got, tc.want)
			}
			if got := operator.IsPlaced(tc.objects); got != tc.placed {
				t.Errorf("placed is %t", got)
			}
		})
	}
}

func TestCallsWait(t *testing.T) {
	identity := func(group, kind string) hubv1.ObjectIdentity {
		return hubv1.ObjectIdentity{Group: group, Kind: kind, Name: "rotors"}
	}
	object := func(group, kind string, health hubv1.Health) operator.Object {
		return operator.Object{ObjectIdentity: identity(group, kind), Placed: true, Health: health}
	}
	service, deployment := identity("", "Service"), identity("apps", "Deployment")
	tests := map[string]struct {
		objects []operator.Object
		want    string
	}{
		"nothing holds back a webhook configuration alone": {},
		"all is ready": {objects: []operator.Object{object("apps", "Deployment", hubv1.HealthHealthy), object("", "Service", hubv1.HealthHealthy)}},
		"a workload that is not healthy is named first": {
			objects: []operator.Object{object("", "Service", ""), object("apps", "Deployment", hubv1.HealthProgressing)},
			want:    "Deployment.apps rotors is Progressing, and 1 more",
		},
		"other objects only have to exist": {objects: []operator.Object{object("batch", "Job", hubv1.HealthProgressing)}},
		"a workload of another cluster is waited for": {
			objects: []operator.Object{{ObjectIdentity: deployment, LeftOut: true}},
			want:    "Deployment.apps rotors has no decision for the cluster",
		},
		"another object of another cluster is not waited for": {objects: []operator.Object{{ObjectIdentity: service, LeftOut: true}}},
		"an object that was not decided yet is waited for": {
			objects: []operator.Object{{ObjectIdentity: service}},
			want:    "Service rotors has no decision for the cluster",
		},
		"webhook configurations and APIServices do not wait for each other": {objects: []operator.Object{
			object("admissionregistration.k8s.io", "MutatingWebhookConfiguration", ""), object("apiregistration.k8s.io", "APIService", ""),
		}},
		"custom resources are not waited for, because a webhook may complete them": {objects: []operator.Object{object("example.com", "Rotor", "")}},
		"a role of Kubernetes is waited for": {
			objects: []operator.Object{object("rbac.authorization.k8s.io", "ClusterRole", "")},
			want:    "ClusterRole.rbac.authorization.k8s.io rotors is not on the cluster",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := operator.CallsWait(tc.objects); got != tc.want {
				t.Errorf("it waits for %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNewCallsWait(t *testing.T) {
	deployment, service := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Name: "rotors"}, hubv1.ObjectIdentity{Kind: "Service", Name: "rotors"}
	for name, tc := range map[string]struct {
		object operator.Object
		want   string
	}{
		"an object with its new content": {object: operator.Object{ObjectIdentity: service, Placed: true, Health: hubv1.HealthHealthy}},
		"an object with its old content": {
			operator.Object{ObjectIdentity: service, Placed: true, Health: hubv1.HealthHealthy, Outdated: true},
			"Service rotors does not have its new content on the cluster",
		},
		"a refused object":                {object: operator.Object{ObjectIdentity: service, Placed: true, Health: hubv1.HealthHealthy, Outdated: true, Refused: true}},
		"an object of other clusters":     {object: operator.Object{ObjectIdentity: deployment, LeftOut: true}},
		"a workload that is on its way":   {operator.Object{ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthProgressing}, "Deployment.apps rotors is Progressing"},
		"a workload that is not there":    {operator.Object{ObjectIdentity: deployment, Placed: true}, "Deployment.apps rotors is not on the cluster"},
		"a workload that has failed":      {object: operator.Object{ObjectIdentity: deployment, Placed: true, Health: hubv1.HealthDegraded}},
		"a custom resource of the bundle": {object: operator.Object{ObjectIdentity: hubv1.ObjectIdentity{Group: "example.com", Kind: "Rotor"}, Placed: true, Outdated: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := operator.NewCallsWait([]operator.Object{tc.object}); got != tc.want {
				t.Errorf("it waits for %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPodsWait(t *testing.T) {
	role := hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "rotors"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	tests := map[string]struct {
		object operator.Object
		want   string
	}{
		"a role that is there": {object: operator.Object{ObjectIdentity: role, Placed: true, Health: hubv1.HealthHealthy}},
		"a role that is not there yet": {
			object: operator.Object{ObjectIdentity: role, Placed: true}, want: "ClusterRole.rbac.authorization.k8s.io rotors is not on the cluster",
		},
		"a role that has its old content": {
			object: operator.Object{ObjectIdentity: role, Placed: true, Health: hubv1.HealthHealthy, Outdated: true},
			want:   "ClusterRole.rbac.authorization.k8s.io rotors does not have its new content on the cluster",
		},
		"a role without a decision": {
			object: operator.Object{ObjectIdentity: role}, want: "ClusterRole.rbac.authorization.k8s.io rotors has no decision for the cluster",
		},
		"a role of other clusters":         {object: operator.Object{ObjectIdentity: role, LeftOut: true}},
		"a role that the cluster refuses":  {object: operator.Object{ObjectIdentity: role, Placed: true, Refused: true}},
		"a definition that is established": {object: operator.Object{ObjectIdentity: definition, Placed: true, Health: hubv1.HealthHealthy}},
		"a definition that is not served yet": {
			object: operator.Object{ObjectIdentity: definition, Placed: true, Health: hubv1.HealthProgressing},
			want:   "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com is Progressing",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := operator.PodsWait(tc.object); got != tc.want {
				t.Errorf("it waits for %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	tests := map[hubv1.ObjectIdentity]bool{
		{Group: "apps", Kind: "Deployment"}:                                             true,
		{Group: "apps", Kind: "StatefulSet"}:                                            true,
		{Group: "apps", Kind: "DaemonSet"}:                                              true,
		{Group: "apps", Kind: "ReplicaSet"}:                                             false,
		{Kind: "Deployment"}:                                                            false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               true,
		{Kind: "Service"}:                                                               false,
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:      false,
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           true,
	}
	for id, want := range tests {
		if got := operator.Needs(id); got != want {
			t.Errorf("%s: got %t", id, got)
		}
	}
}

func TestVersion(t *testing.T) {
	workload := func(kind, labels, image string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: rotors, labels: {" + labels + "}}, spec: {template: {spec: {containers: [{image: '" + image + "'}]}}}}"
	}
	for name, tc := range map[string]struct{ object, want string }{
		"the label comes before the image": {workload("Deployment", "app.kubernetes.io/version: 1.2.3", "example.com/rotors:v9"), "1.2.3"},
		"without the label, it is the tag": {workload("StatefulSet", "", "example.com:5000/rotors:v1.2.3"), "v1.2.3"},
		"a digest is no version":           {workload("DaemonSet", "", "example.com/rotors:v1.2.3@sha256:0"), "v1.2.3"},
		"an image without a tag has none":  {workload("Deployment", "", "example.com:5000/rotors@sha256:0"), ""},
		"a workload without containers":    {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: rotors}}", ""},
		"only workloads have a version":    {workload("ReplicaSet", "app.kubernetes.io/version: 1.2.3", "example.com/rotors:v9"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			if got := operator.Version(o); got != tc.want {
				t.Errorf("the version is %q, want %q", got, tc.want)
			}
		})
	}
}
