// Package operator determines on which clusters an operator is placed, and whether it is ready there.
//
// It is pure: it has no client, logger or clock.
package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Object is an object of an operator on one cluster.
type Object struct {
	hubv1.ObjectIdentity
	// Placed is true if the object shall be on the cluster.
	Placed bool
	// LeftOut is true if the object has a decision that does not select the cluster.
	LeftOut bool
	// Refused is true if the copy cannot be written until a user changes something.
	Refused bool
	// Health of the object's copy. It is empty if there is no copy.
	Health hubv1.Health
	// Message explains the health. It may be empty.
	Message string
}

// Needs reports whether an operator is ready only if its object of this identity is healthy. It returns true for
// workloads, CustomResourceDefinitions, webhook configurations and APIServices. The health of other objects does not
// affect the readiness of the operator.
func Needs(id hubv1.ObjectIdentity) bool { return isBehind(id) || CallsPods(id.GroupKind()) }

// isBehind reports whether an object of a bundle is a workload or a definition. If one of these is not ready, calls of
// API servers to the pods of the bundle fail.
func isBehind(id hubv1.ObjectIdentity) bool {
	return isWorkload(id) || id.Group == apiextensionsv1.GroupName && id.Kind == "CustomResourceDefinition"
}

func isWorkload(id hubv1.ObjectIdentity) bool {
	return id.Group == appsv1.GroupName && RunsPods(id.GroupKind())
}

// Version returns the version of an operator, from one of its workloads: the label app.kubernetes.io/version, or
// otherwise the tag of the first image. It is empty for other objects, and for a workload without such a label or tag.
func Version(o *unstructured.Unstructured) string {
	if !isWorkload(hubv1.IdentityOf(o)) {
		return ""
	}
	if version := o.GetLabels()[hubv1.VersionLabel]; version != "" {
		return version
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	image, _ := container["image"].(string)
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// RunsPods reports whether objects of the kind run pods.
func RunsPods(gk schema.GroupKind) bool {
	switch gk.Group {
	case appsv1.GroupName:
		return gk.Kind == "Deployment" || gk.Kind == "StatefulSet" || gk.Kind == "DaemonSet"
	case batchv1.GroupName:
		return gk.Kind == "Job" || gk.Kind == "CronJob"
	case corev1.GroupName:
		return gk.Kind == "Pod"
	}
	return false
}

// CallsPods reports whether objects of the kind make API servers call pods. These kinds are webhook configurations and
// APIServices. API servers refuse requests while such pods do not answer.
func CallsPods(gk schema.GroupKind) bool {
	switch gk.Group {
	case admissionregistrationv1.GroupName:
		return gk.Kind == "ValidatingWebhookConfiguration" || gk.Kind == "MutatingWebhookConfiguration"
	case apiServices:
		return gk.Kind == "APIService"
	}
	return false
}

// apiServices is the group of APIService. Hanse does not import the Go package of the group.
const apiServices = "apiregistration.k8s.io"

// CallsWaitFor reports whether webhook configurations and APIServices of a bundle are created after its object of this
// identity. They do not wait for each other. They do not wait for custom resources either, because a webhook may have
// to convert or default these.
func CallsWaitFor(id hubv1.ObjectIdentity) bool {
	return !CallsPods(id.GroupKind()) && isOfKubernetes(id.Group)
}

// isOfKubernetes reports whether a group belongs to Kubernetes: its name has no dot or ends with k8s.io.
func isOfKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// IsPlaced reports whether the operator shall be on the cluster: at least one of its needed objects is placed there.
func IsPlaced(objects []Object) bool {
	return slices.ContainsFunc(objects, func(o Object) bool { return o.Placed && Needs(o.ObjectIdentity) })
}

// WaitsFor returns why an operator is not ready on a cluster. It is empty if the operator is ready. It names the first
// needed object that is not healthy, and the number of all such objects. An operator without needed objects is ready.
func WaitsFor(objects []Object) string {
	var waits []Object
	for _, o := range objects {
		if Needs(o.ObjectIdentity) && !o.isHealthy() {
			waits = append(waits, o)
		}
	}
	return firstOf(waits)
}

// CallsWait returns why a webhook configuration or APIService of a bundle is not created on a cluster yet. It is empty
// if it waits for no object. Workloads and definitions must be healthy on the cluster. Other objects must exist there,
// unless they are not placed there.
func CallsWait(objects []Object) string {
	var waits []Object
	for _, o := range objects {
		switch {
		case !CallsWaitFor(o.ObjectIdentity), isBehind(o.ObjectIdentity) && o.isHealthy():
		case !isBehind(o.ObjectIdentity) && (o.Health != "" || o.LeftOut):
		default:
			waits = append(waits, o)
		}
	}
	return firstOf(waits)
}

// PodsWait returns why a workload of a bundle is not created on a cluster yet. It is empty if the workload does not
// wait for this object. The pods of the workload may need the object, such as a role. A definition must be established
// on the cluster, and another object must exist there.
func PodsWait(o Object) string {
	if o.LeftOut || o.Refused || o.isHealthy() || !isBehind(o.ObjectIdentity) && o.Health != "" {
		return ""
	}
	return firstOf([]Object{o})
}

func (o Object) isHealthy() bool { return o.Placed && o.Health == hubv1.HealthHealthy }

// firstOf returns the first of the objects with its state, and the number of the other objects. It is empty if there
// are no objects.
func firstOf(waits []Object) string {
	if len(waits) == 0 {
		return ""
	}
	// A workload is named first. It needs the definitions and the images, so that its state tells most.
	first := slices.MinFunc(waits, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.String(), b.String()))
	})
	text := fmt.Sprintf("%s %s", first.ObjectIdentity, state(first))
	if more := len(waits) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

func rank(o Object) int {
	if o.Group == appsv1.GroupName {
		return 0
	}
	return 1
}

func state(o Object) string {
	switch {
	case !o.Placed:
		return "has no decision for the cluster"
	case o.Health == "":
		return "is not on the cluster"
	case o.Message == "":
		return "is " + string(o.Health)
	}
	return fmt.Sprintf("is %s: %s", o.Health, o.Message)
}
