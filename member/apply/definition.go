package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// metadataOfOne is the media type for a list that contains only the metadata of objects.
const metadataOfOne = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

func isDefinition(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: definitions.Group, Kind: "CustomResourceDefinition"}
}

// definitionKept returns the outcome for a CustomResourceDefinition that must not be deleted now, because the API
// server would delete all objects of its kind, too. The outcome is nil if there are no such objects. If a user creates
// an object after this check, the object is deleted with the definition.
func (a *Applier) definitionKept(ctx context.Context, live *unstructured.Unstructured) *member.Outcome {
	var d apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &d); err != nil {
		return kept(live, "it could not be read: %s", err)
	}
	version := servedVersion(&d)
	if version == "" {
		return kept(live, "it serves no version, so the hub cannot see whether there are objects: delete it there")
	}
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
	some, err := a.someOf(ctx, gvk.GroupVersion().WithResource(d.Spec.Names.Plural))
	if err != nil {
		out := classify(err, target{gvk: gvk})
		switch out.Reason {
		case hubv1.ReasonForbidden, hubv1.ReasonServerError, hubv1.ReasonKindNotServed, hubv1.ReasonAnswerTooLarge:
			return kept(live, "its objects cannot be listed: %s", out.Message)
		}
		return &out
	}
	if some == "" {
		return nil
	}
	return kept(live, "there are objects of %s (%s): delete them, and the hub deletes the definition", gvk.GroupKind(), some)
}

// kept returns the outcome for a CustomResourceDefinition that the hub does not delete now. The outcome asks for a
// retry. format and args are the reason.
func kept(live *unstructured.Unstructured, format string, args ...any) *member.Outcome {
	out := seen(refused(hubv1.ReasonDefinitionKept, member.RetrySoon, "the definition stays on the cluster, because "+format, args...), live)
	return &out
}

// servedVersion returns a version at which the objects of a definition can be listed. It prefers the storage version,
// because objects at this version need no conversion. The result is empty if no version is served.
func servedVersion(d *apiextensionsv1.CustomResourceDefinition) (version string) {
	for _, v := range d.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	return version
}

// someOf returns a text with the number of objects of a kind in all namespaces, and the name of one of them. The text
// is empty if there are no objects. The API server must read the objects from etcd, because its cache may be older.
func (a *Applier) someOf(ctx context.Context, of schema.GroupVersionResource) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	result := a.requests.Get().AbsPath(pathOf(of.GroupVersion())).Resource(of.Resource).Param("limit", "1").
		SetHeader("Accept", metadataOfOne).Do(ctx)
	if err := result.Error(); err != nil { // unlike the error of Raw, this error has the status of the response
		return "", err
	}
	raw, err := result.Raw()
	if err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("reading the list of %s: %w", of.GroupResource(), err)
	}
	more := list.RemainingItemCount
	switch {
	case len(list.Items) == 0 && list.Continue == "":
		return "", nil
	case len(list.Items) == 0:
		return "the first page of the list is empty", nil
	}
	first := list.Items[0].Name
	if ns := list.Items[0].Namespace; ns != "" {
		first = ns + "/" + first
	}
	switch {
	case more != nil:
		return fmt.Sprintf("%d, such as %s", int64(len(list.Items))+*more, first), nil
	case list.Continue != "":
		return "such as " + first, nil
	}
	return fmt.Sprintf("%d, such as %s", len(list.Items), first), nil
}
