package catalog

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/member/rollup"
)

// Definition has the parts of a CustomResourceDefinition that the hub uses. The caller must not change it.
type Definition struct {
	Name, ResourceVersion string
	Versions              []Version
	Preferred             string // the version that the API server prefers; empty if none is served

	uid        types.UID
	generation int64
}

// Version has the parts of one version of a definition that the hub uses.
type Version struct {
	Name string
	// Served is true if the API server serves the version.
	Served bool
	// Conventions tell how to read the status of an object.
	Conventions health.Conventions
	// Status is the schema for merging the statuses of members. StatusSubresource is true if the version has the
	// subresource status.
	Status            rollup.Schema
	StatusSubresource bool
	// ScalePath is the path of the replicas in the scale subresource, such as ".spec.replicas". It is empty if the version
	// has no scale subresource.
	ScalePath string
	// Others are the further versions at which clusters may get an object that the hub reads at this version, the newest
	// first.
	Others []string
}

func newDefinition(definition *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	d := &Definition{Name: definition.Name, ResourceVersion: definition.ResourceVersion, Preferred: crd.Preferred(definition), uid: definition.UID, generation: definition.Generation}
	for i := range definition.Spec.Versions {
		from := &definition.Spec.Versions[i]
		v := Version{Name: from.Name, Served: from.Served, Conventions: health.ReadConventions(definition, from.Name)}
		if from.Subresources != nil && from.Subresources.Scale != nil {
			v.ScalePath = from.Subresources.Scale.SpecReplicasPath
		}
		var err error
		if v.Status, v.StatusSubresource, err = rollup.NewSchema(definition, from.Name); err != nil {
			return nil, fmt.Errorf("reading the schema of CustomResourceDefinition %s: %w", definition.Name, err)
		}
		v.Others = crd.Others(definition, from.Name)
		d.Versions = append(d.Versions, v)
	}
	return d, nil
}

// Version returns the part of the definition for the version with this name, or an error if there is no such version.
// For a nil definition, it returns an empty Version.
func (d *Definition) Version(name string) (Version, error) {
	if d == nil {
		return Version{}, nil
	}
	for _, v := range d.Versions {
		if v.Name == name {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("CustomResourceDefinition %s: version %s: %w", d.Name, name, errNoVersion)
}

// ScalePath returns the path of the first served version with a scale subresource. The result is empty if no version
// has one.
func (d *Definition) ScalePath() string {
	if d == nil {
		return ""
	}
	for _, v := range d.Versions {
		if v.Served && v.ScalePath != "" {
			return v.ScalePath
		}
	}
	return ""
}

// SameConventions reports whether two definitions give equal conventions for reading the status, in all versions. Both
// definitions may be nil.
func (d *Definition) SameConventions(other *Definition) bool {
	return equality.Semantic.DeepEqual(d.conventions(), other.conventions())
}

func (d *Definition) conventions() map[string]health.Conventions {
	out := map[string]health.Conventions{}
	if d != nil {
		for _, v := range d.Versions {
			out[v.Name] = v.Conventions
		}
	}
	return out
}

// covers reports whether the definition is at least as new as the observed metadata. It compares generations, so that a
// change of only the definition's status does not count.
func (d *Definition) covers(seen *metav1.PartialObjectMetadata) bool {
	return d != nil && d.uid == seen.UID && d.generation >= seen.Generation
}
