package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// listedResource is a resource in a discovery response. The name of a subresource has a slash.
type listedResource struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Namespaced bool     `json:"namespaced"`
	Verbs      []string `json:"verbs"`
}

// eachResource calls visit with each resource of a group and version. If the member does not serve the version, it does
// not call visit.
func (k *Kinds) eachResource(ctx context.Context, gv schema.GroupVersion, visit func(listedResource)) error {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	err := k.each(ctx, path, "resources", func(item []byte) error {
		var r listedResource
		if err := utiljson.Unmarshal(item, &r); err != nil {
			return err
		}
		visit(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("discovering %s: %w", gv, err)
	}
	return nil
}

// each reads a list in a discovery response, and calls visit with one item after the other.
func (k *Kinds) each(ctx context.Context, path, items string, visit func(item []byte) error) error {
	ctx, cancel := context.WithTimeout(answer.Streamed(ctx, maxDiscoveryBytes), answer.Timeout)
	defer cancel()
	body, err := k.options.Discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Stream(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	_, err = answer.List(body, items, answer.ListBounds{Items: maxResources, ItemBytes: maxResourceBytes}, visit)
	return err
}

// Kind is a kind with the resource that serves it.
type Kind struct {
	schema.GroupVersionKind
	Resource string
}

const (
	maxGroups   = 500
	maxVersions = 8 // versions of a group
)

// Groups lists the API groups that the member serves, at most the first 500.
func (k *Kinds) Groups(ctx context.Context) ([]string, error) {
	groups := []string{""}
	err := k.each(ctx, "/apis", "groups", func(item []byte) error {
		var g struct {
			Name string `json:"name"`
		}
		if err := utiljson.Unmarshal(item, &g); err != nil {
			return err
		}
		if len(groups) < maxGroups && len(validation.IsDNS1123Subdomain(g.Name)) == 0 {
			groups = append(groups, g.Name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("discovering groups: %w", err)
	}
	return groups, nil
}

// Listable returns the kinds of a group whose objects can be listed, each at the version that the member prefers. It
// sends requests at each call.
func (k *Kinds) Listable(ctx context.Context, group string) ([]Kind, error) {
	versions := []string{"v1"}
	if group != "" {
		var err error
		if versions, err = k.versions(ctx, group); err != nil {
			return nil, err
		}
	}
	var out []Kind
	for _, version := range versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		err := k.eachResource(ctx, gv, func(r listedResource) {
			same := func(found Kind) bool { return found.Resource == r.Name }
			odd := len(validation.IsDNS1035Label(r.Name)) > 0 || member.Line(r.Kind, hubv1.MaxNameLength) != r.Kind
			if !odd && slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") && !slices.ContainsFunc(out, same) {
				out = append(out, Kind{gv.WithKind(r.Kind), r.Name})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// versions returns the versions of a group. The version that the member prefers is the first.
func (k *Kinds) versions(ctx context.Context, group string) ([]string, error) {
	var out []string
	err := k.each(ctx, "/apis/"+group, "versions", func(item []byte) error {
		var v struct {
			Version string `json:"version"`
		}
		if err := utiljson.Unmarshal(item, &v); err != nil {
			return err
		}
		if len(out) < maxVersions && len(validation.IsDNS1035Label(v.Version)) == 0 {
			out = append(out, v.Version)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("discovering group %s: %w", group, err)
	}
	return out, nil
}
