package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/charts"
)

// definition has the schema and the validation rules with which an API server checks objects of one kind.
type definition struct {
	namespaced bool
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// definitions returns the definitions of Hanse's kinds. It reads them only once, because compiling the rules is slow.
var definitions = sync.OnceValues(readDefinitions)

func readDefinitions() (map[string]definition, error) {
	out := map[string]definition{}
	err := fs.WalkDir(charts.Definitions, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := charts.Definitions.ReadFile(path)
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		d, err := readDefinition(&crd.Spec.Versions[0]) // there is one version only
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		d.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
		out[crd.Spec.Names.Kind] = d
		return nil
	})
	return out, err
}

// readDefinition returns the schema and the rules of one version of a CustomResourceDefinition.
func readDefinition(version *apiextensionsv1.CustomResourceDefinitionVersion) (definition, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return definition{}, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return definition{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return definition{}, err
	}
	return definition{structural: structural, schema: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// validate checks an object of Hanse's kinds as an API server does when it creates the object: metadata, schema, lists
// and rules. It accepts a missing namespace, because the command adds it later.
func validate(ctx context.Context, u *unstructured.Unstructured) error {
	all, err := definitions()
	if err != nil {
		return err
	}
	d, ok := all[u.GetKind()]
	if !ok {
		return nil
	}
	located := u.DeepCopy()
	if d.namespaced && located.GetNamespace() == "" {
		located.SetNamespace(metav1.NamespaceDefault)
	}
	errs := apivalidation.ValidateObjectMetaAccessor(located, d.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return errors.Join(errs.ToAggregate(), d.check(ctx, u))
}

// check sets the defaults of the schema in a copy of the object. It then checks the copy as an API server does on
// creation: schema, lists and rules.
func (d definition) check(ctx context.Context, u *unstructured.Unstructured) error {
	content := u.DeepCopy().Object
	defaulting.Default(content, d.structural)
	errs := validation.ValidateCustomResource(nil, content, d.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, content)...)
	if len(errs) == 0 { // rules require an object that matches the schema
		errs, _ = d.rules.Validate(ctx, nil, d.structural, content, nil, math.MaxInt64)
	}
	return errs.ToAggregate()
}
