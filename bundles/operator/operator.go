// Package operator determines on which clusters an operator is placed, whether the operator is ready there, and which
// version of its chart is the newest.
//
// Its functions only compute: they use no client, logger or clock.
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

// Object is one object of an operator or bundle, with what the hub knows about its copy on one cluster.
type Object struct {
	hubv1.ObjectIdentity
	// Placed is true if the hub has decided that the cluster shall hold the object.
	Placed bool
	// LeftOut is true if the hub has decided about the object, and the decision does not select the cluster.
	LeftOut bool
	// Refused is true if the hub cannot write the copy until a user changes something. Message then says why.
	Refused bool
	// Outdated is true if the hub still has to write the content that it wants for the cluster.
	Outdated bool
	// Health is the health of the copy. It is empty if there is no copy.
	Health hubv1.Health
	// Message explains Health or Refused. It may be empty.
	Message string
}

// Needs reports whether an operator is ready only while its object with this identity is healthy. This is so for
// workloads, CustomResourceDefinitions, webhook configurations and APIServices. For other objects, Needs returns false.
func Needs(id hubv1.ObjectIdentity) bool { return isBehind(id) || CallsPods(id.GroupKind()) }

// isBehind reports whether an object of a bundle is a workload or a CustomResourceDefinition. The pods of a bundle may
// answer calls of an API server, for example as a webhook. While one of the bundle's workloads or
// CustomResourceDefinitions is not ready, the API server gets errors from these pods.
func isBehind(id hubv1.ObjectIdentity) bool {
	return isWorkload(id) || id.Group == apiextensionsv1.GroupName && id.Kind == "CustomResourceDefinition"
}

func isWorkload(id hubv1.ObjectIdentity) bool {
	return id.Group == appsv1.GroupName && RunsPods(id.GroupKind())
}

// Version returns the version of an operator, which it reads from one of the operator's workloads. It is the label
// app.kubernetes.io/version or, without this label, the tag of the first image. It is empty if the object is no
// workload, or has neither label nor tag.
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

// RunsPods reports whether objects of the kind are pods or create pods.
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

// CallsPods reports whether objects of the kind tell API servers to call pods. These kinds are webhook configurations
// and APIServices. While such pods do not answer, API servers refuse requests.
func CallsPods(gk schema.GroupKind) bool {
	switch gk.Group {
	case admissionregistrationv1.GroupName:
		return gk.Kind == "ValidatingWebhookConfiguration" || gk.Kind == "MutatingWebhookConfiguration"
	case apiServices:
		return gk.Kind == "APIService"
	}
	return false
}

// apiServices is the API group of APIService. It is a constant, because Hanse does not import the Go package of the
// group.
const apiServices = "apiregistration.k8s.io"

// CallsWaitFor reports whether the webhook configurations and APIServices of a bundle are created only after the object
// with this identity, which belongs to the same bundle. It is false for webhook configurations and APIServices
// themselves. It is also false for custom resources, because they may need the webhook for conversion or default
// values.
func CallsWaitFor(id hubv1.ObjectIdentity) bool {
	return !CallsPods(id.GroupKind()) && isOfKubernetes(id.Group)
}

// isOfKubernetes reports whether a group belongs to Kubernetes: its name has no dot, or ends with ".k8s.io".
func isOfKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// IsPlaced reports whether the operator is placed on a cluster. objects are the operator's objects, with their state on
// this cluster. At least one object for which Needs is true, such as a workload, must be placed there.
func IsPlaced(objects []Object) bool {
	return slices.ContainsFunc(objects, func(o Object) bool { return o.Placed && Needs(o.ObjectIdentity) })
}

// WaitsFor returns why an operator is not ready on a cluster. objects are all of the operator's objects, with their
// state on this cluster. An operator waits only for objects for which Needs is true, such as workloads and
// CustomResourceDefinitions. The text is empty if it waits for none. Otherwise the text names the cause: an object of
// any kind that the hub cannot write, because the others may need it, or else an object that is not healthy. It counts
// the others.
func WaitsFor(objects []Object) string {
	var waits, refused []Object
	for _, o := range objects {
		switch {
		case Needs(o.ObjectIdentity) && !o.isHealthy():
			waits = append(waits, o)
		case o.Placed && o.Refused:
			refused = append(refused, o)
		}
	}
	if len(waits) == 0 {
		return ""
	}
	return firstOf(append(waits, refused...))
}

// CallsWait returns why a webhook configuration or APIService of a bundle is not created on a cluster yet. objects are
// the objects of the bundle, with their state on this cluster. Workloads and CustomResourceDefinitions must be healthy
// there. Other objects of Kubernetes' own kinds must exist there, unless the hub has decided not to place them there.
// None of them may be outdated.
// The text is empty if nothing is missing.
func CallsWait(objects []Object) string {
	var waits []Object
	for _, o := range objects {
		switch {
		case !CallsWaitFor(o.ObjectIdentity), isBehind(o.ObjectIdentity) && o.isHealthy() && !o.Outdated:
		case !o.Outdated && !isBehind(o.ObjectIdentity) && (o.Health != "" || o.LeftOut):
		default:
			waits = append(waits, o)
		}
	}
	return firstOf(waits)
}

// NewCallsWait returns why an existing webhook configuration or APIService of a bundle is not changed on a cluster yet.
// objects are the objects of the bundle, with their state on this cluster. Objects of Kubernetes' own kinds must have
// the content that the hub wants there, and workloads and CustomResourceDefinitions must not be on their way to become
// healthy. The text is empty if the object need not wait. It does not wait for an object that is refused or not placed
// there, nor for a workload that has failed: the changed object may be the repair of its pods.
func NewCallsWait(objects []Object) string {
	var waits []Object
	for _, o := range objects {
		on := isBehind(o.ObjectIdentity) && (o.Health == hubv1.HealthProgressing || o.Health == hubv1.HealthUnknown)
		if CallsWaitFor(o.ObjectIdentity) && !o.LeftOut && !o.Refused && (o.Health == "" || o.Outdated || on) {
			waits = append(waits, o)
		}
	}
	return firstOf(waits)
}

// PodsWait returns why a workload of a bundle is not created or changed on a cluster yet. o is another object that the
// pods of the workload may need, such as a Role. A workload or CustomResourceDefinition o must be healthy on the
// cluster, and any other object must exist there. If the workload exists, o must also have the content that the hub
// wants. The text is empty if the workload need not wait for o. It does not wait for an object that is refused or not
// placed there.
func PodsWait(o Object) string {
	if o.LeftOut || o.Refused || !o.Outdated && (o.isHealthy() || !isBehind(o.ObjectIdentity) && o.Health != "") {
		return ""
	}
	return firstOf([]Object{o})
}

func (o Object) isHealthy() bool { return o.Placed && o.Health == hubv1.HealthHealthy }

// firstOf names one of the objects and its state, and counts the others. The text is empty if there are no objects.
func firstOf(waits []Object) string {
	if len(waits) == 0 {
		return ""
	}
	first := slices.MinFunc(waits, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.String(), b.String()))
	})
	text := fmt.Sprintf("%s %s", first.ObjectIdentity, state(first))
	if more := len(waits) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// rank orders objects by how much their state says about the cause of a wait, most first. An object that the hub cannot
// write comes first: of these, a Namespace or a CustomResourceDefinition, which others need, and at last a workload. A
// workload on the cluster comes next, because it needs the CustomResourceDefinitions and the images. Objects that are
// not on the cluster come later. Objects that the hub creates after the workloads come last.
func rank(o Object) int {
	workload, calls := isWorkload(o.ObjectIdentity), CallsPods(o.GroupKind())
	needed := o.Group == "" && o.Kind == "Namespace" || isBehind(o.ObjectIdentity) && !workload
	switch {
	case o.Refused && needed:
		return 0
	case o.Refused && !workload && !calls:
		return 1
	case o.Refused:
		return 2
	case workload && o.Health != "":
		return 3
	case !calls && o.Placed && o.Health != "":
		return 4
	case workload:
		return 5
	case !calls:
		return 6
	}
	return 7
}

func state(o Object) string {
	switch {
	case !o.Placed:
		return "has no decision for the cluster"
	case o.Refused && o.Message != "":
		return "cannot be written: " + o.Message
	case o.Health == "":
		return "is not on the cluster"
	case o.Outdated:
		return "does not have its new content on the cluster"
	case o.Message == "":
		return "is " + string(o.Health)
	}
	return fmt.Sprintf("is %s: %s", o.Health, o.Message)
}
