package report

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// writer writes the status of bindings and hub objects. These writes are most of the hub's requests. Client libraries
// encode and decode whole objects. To save CPU time, writer sends only the needed fields, and decodes only a part of
// the response.
type writer struct{ requests rest.Interface }

func newWriter(config *rest.Config) (writer, error) {
	config = dynamic.ConfigFor(config)
	config.APIPath = "/unused" // every request sets its full path
	requests, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return writer{}, fmt.Errorf("making the client that writes status: %w", err)
	}
	return writer{requests}, nil
}

// versionAlone is a value of the Accept header. The API server then answers with the object's metadata only.
const versionAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// rows replaces the status of a binding if nobody has changed the binding since it was read. It returns the new
// resourceVersion. It sends no spec, because the API server ignores the spec in a PUT of the status subresource.
func (w writer) rows(ctx context.Context, b hubv1.BindingObject, status *hubv1.BindingStatus) (resourceVersion string, err error) {
	kind, resource := bindingKind(b.GetNamespace())
	var object struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace       string    `json:"namespace,omitempty"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
		Status *hubv1.BindingStatus `json:"status"`
	}
	object.APIVersion, object.Kind = hubv1.GroupVersion.String(), kind
	object.Metadata.Namespace, object.Metadata.Name = b.GetNamespace(), b.GetName()
	object.Metadata.UID, object.Metadata.ResourceVersion = b.GetUID(), b.GetResourceVersion()
	object.Status = status
	body, err := json.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("encoding the status: %w", err)
	}
	a, err := send(ctx, w.requests.Put().
		AbsPath(statusPath(hubv1.GroupVersion.WithResource(resource), b.GetNamespace(), b.GetName())...).
		SetHeader("Accept", versionAlone).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
	return a.Metadata.ResourceVersion, err
}

// bindingKind returns the kind and the resource of bindings in a namespace. If the namespace is empty, these are the
// kind and resource of cluster-scoped bindings.
func bindingKind(namespace string) (kind, resource string) {
	if namespace == "" {
		return "ClusterResourceBinding", "clusterresourcebindings"
	}
	return "ResourceBinding", "resourcebindings"
}

// apply applies the status of a hub object by server-side apply, without force. It does not ask for field validation,
// because server-side apply refuses unknown fields anyway, and validation would parse the status twice.
func (w writer) apply(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured) (answer, error) {
	body, err := o.MarshalJSON()
	if err != nil {
		return answer{}, fmt.Errorf("encoding the status: %w", err)
	}
	return send(ctx, w.requests.Patch(types.ApplyYAMLPatchType).
		AbsPath(statusPath(resource, o.GetNamespace(), o.GetName())...).
		Param("fieldManager", hubv1.StatusFieldManager).Param("fieldValidation", metav1.FieldValidationIgnore).Body(body))
}

func statusPath(r schema.GroupVersionResource, namespace, name string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource, name, "status")
}

// answer has the fields of a response that the hub needs.
type answer struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Status map[string]any `json:"status"`
}

func send(ctx context.Context, request *rest.Request) (a answer, err error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return a, err // return the error unchanged, because users see the server's message
	}
	body, err := result.Raw()
	if err != nil {
		return a, err
	}
	if err := utiljson.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("reading the answer: %w", err)
	}
	return a, nil
}
