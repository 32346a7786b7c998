package apply

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// makeNamespace creates the namespace that an object needs, with the OnDemandLabel, which marks such a namespace. If it
// fails, ok is false and the outcome has the reason. It sends a create and not an apply, so that no apply of the hub
// owns the label. Otherwise a later apply of a Namespace object from the hub would remove the label.
func (a *Applier) makeNamespace(ctx context.Context, name string, in member.ApplyIntent) (out member.Outcome, ok bool) {
	if !in.CreateNamespace {
		return refused(hubv1.ReasonNamespaceMissing, member.RetrySlowly,
			"namespace %s is missing on the cluster: create it there, or set spec.apply.createNamespace to true", name), false
	}
	labels := maps.Clone(in.NamespaceLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hubv1.OnDemandLabel] = "true"
	labels[hubv1.HubLabel] = string(a.hubUID)
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(name)
	namespace.SetLabels(labels)

	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	_, err := a.client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{FieldManager: hubv1.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return classify(err, target{
			gvk: namespace.GroupVersionKind(), resource: namespaces, key: types.NamespacedName{Name: name},
		}), false
	}
	return member.Outcome{}, true
}
