package revisions

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Templates reads the templates of revisions. A Store implements it.
type Templates interface {
	// Template returns the template with this digest. It is shared and must not be changed. The error may be
	// decide.ErrRevisionMissing.
	Template(ctx context.Context, digest string) (*unstructured.Unstructured, error)
}

// Definitions returns the stored revisions of a CustomResourceDefinition that a binding names. It leaves out the
// revisions that are not stored any more.
func Definitions(ctx context.Context, from Templates, spec *hubv1.BindingSpec) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var out []*apiextensionsv1.CustomResourceDefinition
	read := sets.New[string]()
	for _, r := range spec.Revisions {
		if read.Has(r.Template) {
			continue
		}
		read.Insert(r.Template)
		template, err := from.Template(ctx, r.Template)
		if errors.Is(err, decide.ErrRevisionMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		definition, err := crd.Definition(template)
		if err != nil {
			return nil, err
		}
		out = append(out, definition)
	}
	return out, nil
}
