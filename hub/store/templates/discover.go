package templates

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// resource returns the resource of a kind at the version that the hub prefers. If this version does not have the kind,
// it returns the first version that does. If the hub does not serve the kind, the error is a meta.NoKindMatchError.
func (s *Store) resource(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionResource, error) {
	versions, err := s.versions(ctx, gk.Group)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	for _, gv := range versions {
		served, err := s.served(ctx, gv)
		if err != nil {
			return schema.GroupVersionResource{}, err
		}
		for _, r := range served {
			if r.Kind == gk.Kind {
				return gv.WithResource(r.Name), nil
			}
		}
	}
	names := make([]string, len(versions))
	for i, gv := range versions {
		names[i] = gv.Version
	}
	return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: names}
}

// Kinds returns the kinds of a group whose objects can be templates, which are objects that the hub copies to members.
// Such a kind can be listed and watched. Kinds sends a new discovery request.
func (s *Store) Kinds(ctx context.Context, group string) ([]schema.GroupKind, error) {
	if group == hubv1.GroupVersion.Group {
		return nil, nil
	}
	versions, err := s.versions(ctx, group)
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupKind
	for _, gv := range versions {
		served, err := s.served(ctx, gv)
		if err != nil {
			return nil, err
		}
		for _, r := range served {
			gk := schema.GroupKind{Group: group, Kind: r.Kind}
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && !slices.Contains(kinds, gk) {
				kinds = append(kinds, gk)
			}
		}
	}
	return kinds, nil
}

// versions returns the versions of a group, the preferred one first. It returns none if the hub does not serve the
// group.
func (s *Store) versions(ctx context.Context, group string) ([]schema.GroupVersion, error) {
	if group == "" {
		return []schema.GroupVersion{{Version: "v1"}}, nil
	}
	var g metav1.APIGroup
	err := s.server.discovery.RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&g)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovering the versions of group %q: %w", group, err)
	}
	var out []schema.GroupVersion
	if v := g.PreferredVersion.Version; v != "" {
		out = append(out, schema.GroupVersion{Group: group, Version: v})
	}
	for _, v := range g.Versions {
		if v.Version != g.PreferredVersion.Version {
			out = append(out, schema.GroupVersion{Group: group, Version: v.Version})
		}
	}
	return out, nil
}

// served returns the resources of a version, without subresources. It returns none if the hub does not serve the
// version any more.
func (s *Store) served(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	path := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"/api", gv.Version}
	}
	var list metav1.APIResourceList
	err := s.server.discovery.RESTClient().Get().AbsPath(path...).Do(ctx).Into(&list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovering the kinds of %s: %w", gv, err)
	}
	return slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return strings.Contains(r.Name, "/") }), nil
}
