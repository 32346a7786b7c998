package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanse-dev/hanse/internal/answer"
)

const (
	versionsPerGroup = 16
	maxVersions      = 1000      // versions of a group; further versions are ignored
	maxGroup         = 256 << 10 // bytes
	maxResourcesOf   = 10_000    // resources of a group and version
	maxResource      = 64 << 10  // bytes
	maxVersionBytes  = 16 << 20  // bytes of the resources of a group and version
)

// readServed returns the versions at which the cluster serves each of the kinds, the preferred version first. A kind
// that the cluster does not serve has no versions. If a group cannot be read, its kinds keep the known versions.
func readServed(ctx context.Context, l *line, server string, kinds []schema.GroupKind, known map[schema.GroupKind][]string) (map[schema.GroupKind][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	byGroup := map[string][]schema.GroupKind{}
	for _, gk := range kinds {
		byGroup[gk.Group] = append(byGroup[gk.Group], gk)
	}
	out := map[schema.GroupKind][]string{}
	var failed []error
	for _, group := range slices.SortedFunc(maps.Keys(byGroup), cmp.Compare) {
		versions, err := readGroup(ctx, l, server, group, byGroup[group])
		if err != nil {
			failed = append(failed, fmt.Errorf("reading the served kinds of group %q: %w", group, err))
		}
		for _, gk := range byGroup[group] {
			before, wasKnown := known[gk]
			switch {
			case err == nil:
				out[gk] = versions[gk.Kind]
			case wasKnown:
				out[gk] = before
			}
		}
	}
	return out, errors.Join(failed...)
}

// readGroup returns the versions of the requested kinds of a group.
func readGroup(ctx context.Context, l *line, server, group string, wanted []schema.GroupKind) (map[string][]string, error) {
	out := map[string][]string{}
	if group == "" {
		return out, readVersionOf(ctx, l, server+"/api/v1", "v1", wanted, out)
	}
	at := server + "/apis/" + group
	body, err := ask(answer.Streamed(ctx, maxGroup), readClient(l), at)
	if isNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var versions []string
	_, err = answer.List(body, "versions", answer.ListBounds{Items: maxVersions, ItemBytes: maxGroup}, func(item []byte) error {
		var v struct {
			Version string `json:"version"`
		}
		if err := utiljson.Unmarshal(item, &v); err != nil {
			return err
		}
		if len(versions) < versionsPerGroup && len(validation.IsDNS1035Label(v.Version)) == 0 {
			versions = append(versions, v.Version)
		}
		return nil
	})
	if err != nil {
		return nil, listError(l, "GET /apis/"+group, err)
	}
	for _, v := range versions {
		if err := readVersionOf(ctx, l, at+"/"+v, v, wanted, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readVersionOf adds a version to each requested kind that the version contains. It adds nothing if the version has
// disappeared since the group was read.
func readVersionOf(ctx context.Context, l *line, at, version string, wanted []schema.GroupKind, out map[string][]string) error {
	body, err := ask(answer.Streamed(ctx, maxVersionBytes), readClient(l), at)
	if isNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	_, err = answer.List(body, "resources", answer.ListBounds{Items: maxResourcesOf, ItemBytes: maxResource}, func(item []byte) error {
		var r struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		}
		if err := utiljson.Unmarshal(item, &r); err != nil {
			return err
		}
		if strings.Contains(r.Name, "/") { // a subresource may have the kind of another group
			return nil
		}
		asked := slices.ContainsFunc(wanted, func(gk schema.GroupKind) bool { return gk.Kind == r.Kind })
		if asked && !slices.Contains(out[r.Kind], version) {
			out[r.Kind] = append(out[r.Kind], version)
		}
		return nil
	})
	path := at
	if u, failed := url.Parse(at); failed == nil {
		path = u.Path
	}
	return listError(l, "GET "+path, err)
}

func isNotFound(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusNotFound
}
