package bundles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
)

// allowed returns a *refusal if the bundle's ServiceAccount lacks a right that it would need to write a changed object
// directly on the hub. Without this check, the author of a bundle could send objects to members without the right to
// create them on the hub.
func (c *Controller) allowed(ctx context.Context, b hubv1.BundleObject, changed []change) error {
	var needed []access.Need
	for _, ch := range changed {
		if !ch.Removed.IsZero() {
			continue
		}
		needs, err := c.needed(ch.id())
		if err != nil {
			return err
		}
		needed = append(needed, needs...)
	}
	slices.SortFunc(needed, func(a, b access.Need) int {
		x, y := a.Right, b.Right
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Verb, y.Verb))
	})
	home, name := c.home(b), b.BundleSpec().ServiceAccountName
	account := authenticationv1.UserInfo{
		Username: fmt.Sprintf("system:serviceaccount:%s:%s", home, name),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
	}
	missing, err := access.Missing(ctx, c.opts.Client, account, slices.Compact(needed))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &refusal{hubv1.ReasonAccountMayNot, fmt.Sprintf("ServiceAccount %s/%s of the hub needs the right to %s; the stored objects stay",
			home, name, strings.Join(missing, "; "))}
	}
	return nil
}

// needed returns the rights that the bundle's ServiceAccount would need to write the object directly on the hub.
func (c *Controller) needed(id hubv1.ObjectIdentity) ([]access.Need, error) {
	gk := id.GroupKind()
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	resource := plural.Resource // the default for a kind that the hub does not serve
	switch mapping, err := c.opts.Mapper.RESTMapping(gk); {
	case err == nil:
		resource = mapping.Resource.Resource
	case !meta.IsNoMatchError(err):
		return nil, fmt.Errorf("finding the resource of %s: %w", gk, err)
	}
	var out []access.Need
	for _, right := range access.ToWrite(gk, resource, id.Namespace, "") {
		out = append(out, access.Need{Right: right})
	}
	return out, nil
}
