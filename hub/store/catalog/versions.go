package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// HubObject returns the hub object of a binding, with the versions at which clusters may get it. template is nil if the
// object is not in memory. The version of the object is then the one that the API server prefers. If the definition
// cannot be read, HubObject returns an error, and the object without other versions. An object of a bundle has no other
// versions, because the hub may not serve its kind.
func (c *Catalog) HubObject(
	ctx context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured,
) (hubv1.HubObject, error) {
	o := hubv1.HubObjectOf(ref, template)
	if ref.Bundle != nil || template != nil && hubv1.BundleOf(template) != nil {
		return o, nil
	}
	d, err := c.Get(ctx, o.GVK.GroupKind())
	if err != nil {
		return o, fmt.Errorf("finding the versions of %s: %w", o.GVK.GroupKind(), err)
	}
	if template == nil {
		o.GVK.Version = cmp.Or(d.preferred(), o.GVK.Version)
	}
	o.OtherVersions = d.others(o.GVK.Version)
	return o, nil
}

// preferred returns the version that the API server prefers. The result is empty if no version is served.
func (d *Definition) preferred() string {
	if d == nil {
		return ""
	}
	return d.Preferred
}

// others returns the further versions at which clusters may get an object that the hub reads at the given version.
func (d *Definition) others(version string) []string {
	v, err := d.Version(version)
	if err != nil {
		return nil
	}
	return v.Others
}

// SameVersions reports whether two definitions let clusters get objects at the same versions.
func (d *Definition) SameVersions(other *Definition) bool {
	return d.preferred() == other.preferred() && slices.Equal(d.others(d.preferred()), other.others(other.preferred()))
}
