package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

var errNoClusterInFiles = errors.New("no MemberCluster in the files: add them, such as the output of kubectl get memberclusters -o yaml")

// readFiles reads all inputs from the files. If the files have no binding of the object, it decides on the clusters
// with the placements in the files.
func (r *renderRun) readFiles(ctx context.Context, in *preview.RenderInput, files *fleetFiles, kind, name string) error {
	namespace := *r.hub.flags.Namespace
	fleet, _ := files.fleet(time.Now(), namespace)
	object, err := files.find(kind, name, namespace)
	if err != nil {
		return err
	}
	in.Object, in.Clusters, in.Policies = object, fleet.Clusters, fleet.Overrides
	in.NamespaceLabels = fleet.NamespaceLabels[object.GetNamespace()]
	i := slices.IndexFunc(fleet.Objects, func(o decide.FleetObject) bool { return o.Object == object })
	in.OtherVersions = fleet.Objects[i].OtherVersions
	binding := fleet.Objects[i].Binding
	if len(fleet.Clusters) == 0 && (binding == nil || r.all || len(r.clusters) > 0) {
		return errNoClusterInFiles
	}
	if binding == nil && len(fleet.Placements) > 0 {
		settled, err := fleet.Settle(ctx, func(int, int) {})
		if err != nil {
			return fmt.Errorf("deciding on the clusters: %w", err)
		}
		binding = settled.Outcomes[i].Binding
	}
	if binding != nil {
		in.Binding = binding.BindingSpec()
	}
	return nil
}

// find returns the object of this kind and name in the files. If namespace is empty, only one object may have this kind
// and name.
func (f *fleetFiles) find(kind, name, namespace string) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	var names []string
	for _, u := range f.objects {
		if u.GetName() == name && isKind(u, kind) && (namespace == "" || u.GetNamespace() == namespace || u.GetNamespace() == "") {
			found = append(found, u)
			names = append(names, hubv1.IdentityOf(u).String())
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the files have no %s %s", kind, name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("the files have %s: name the group, as in KIND.GROUP, or the namespace", strings.Join(names, " and "))
}

// isKind reports whether the user's text may name the kind of the object.
func isKind(u *unstructured.Unstructured, text string) bool {
	return isNamed(u.GroupVersionKind(), text)
}

// isNamed reports whether the user's text names the kind, by its singular, or by its usual plural, with or without the
// group. Unlike kubectl, it knows no short names.
func isNamed(gvk schema.GroupVersionKind, text string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	word, group, grouped := strings.Cut(strings.ToLower(text), ".")
	return (word == plural.Resource || word == singular.Resource) && (!grouped || group == strings.ToLower(gvk.Group))
}
