package apiserver

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
)

// NewerField is the name of a field that no type of Hanse has.
const NewerField = "newer"

// AddNewerField adds the optional string NewerField to objects in the schema of a CRD, as a newer release of Hanse
// might. A path consists of names of properties, with "items" for the items of a list. The API server serves the field
// only after a moment, and drops it from requests until then.
func AddNewerField(ctx context.Context, config *rest.Config, name string, paths ...[]string) error {
	client, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	crd, err := client.CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading CRD %s: %w", name, err)
	}
	for _, path := range paths {
		if !addField(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, path) {
			return fmt.Errorf("the schema of CRD %s has no %v", name, path)
		}
	}
	if _, err := client.CustomResourceDefinitions().Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("adding a field to CRD %s: %w", name, err)
	}
	return nil
}

// addField adds NewerField to the object at a path of the schema. It returns false if the schema has no object at the
// path.
func addField(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	switch {
	case len(path) == 0:
		schema.Properties[NewerField] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		return true
	case path[0] == "items" && schema.Items != nil:
		return addField(schema.Items.Schema, path[1:])
	}
	property, ok := schema.Properties[path[0]]
	if !ok || !addField(&property, path[1:]) {
		return false
	}
	schema.Properties[path[0]] = property
	return true
}
