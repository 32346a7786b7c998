package dispatch

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/overrides"
)

// possibleDefault is a value of a template that equals the default of the hub's schema, and that a client may have sent
// only because the hub's API server had filled it in.
type possibleDefault struct {
	path   openapi.Path
	value  string // as JSON
	inside bool   // whether the value is in a list or map that is owned as a whole
}

// possibleDefaults returns the possible defaults of the template. They are computed again when the hub's schema
// changes.
func (e *rendering) possibleDefaults(hub *openapi.Schema) []possibleDefault {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hub == hub {
		return e.possible
	}
	e.hub, e.possible = hub, nil
	for _, d := range hub.Defaults(e.prepared.Whole().Object) {
		if unsure, inside := e.prepared.Unsure(stepsOf(d.Path)); unsure {
			e.possible = append(e.possible, possibleDefault{path: d.Path, value: d.Value, inside: inside})
		}
	}
	return e.possible
}

// leaving returns the template without the fields at these paths. Clusters to which the same fields are not sent share
// the result.
func (e *rendering) leaving(paths []openapi.Path) *overrides.Prepared {
	if len(paths) == 0 {
		return e.prepared
	}
	steps := make([][]string, 0, len(paths))
	var key strings.Builder
	for _, p := range paths {
		key.WriteString(p.String() + "\n")
		steps = append(steps, stepsOf(p))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left == nil {
		e.left = map[string]*overrides.Prepared{}
	}
	if e.left[key.String()] == nil {
		e.left[key.String()] = e.prepared.Leaving(steps)
	}
	return e.left[key.String()]
}

func stepsOf(path openapi.Path) []string {
	out := make([]string, 0, len(path))
	for _, s := range path {
		if s.Field {
			out = append(out, s.Name)
		} else {
			out = append(out, strconv.Itoa(s.Index))
		}
	}
	return out
}

// leavingDefaults returns the template without the possible defaults that this cluster must not get: its schema lacks
// the field, or has another default. A value in a list or map that is owned as a whole is left out only if the schema
// lacks the field, because the list is sent as a whole: the copy would lose the value.
func (r *run) leavingDefaults(ctx context.Context) *overrides.Prepared {
	prepared := r.out.rendering.prepared
	if !prepared.HasOwners() {
		return prepared
	}
	gvk := prepared.Manifest().GroupVersionKind()
	possible := r.out.rendering.possibleDefaults(r.queue.opts.Schema(ctx, gvk))
	if len(possible) == 0 {
		return prepared
	}
	there := r.cluster.Schema(ctx, gvk)
	var left []openapi.Path
	for _, d := range possible {
		value, declared := there.Default(d.path)
		switch {
		case !declared:
			left = append(left, undeclared(there, prepared.Whole().Object, d.path, possible))
		case !d.inside && value != "" && value != d.value:
			left = append(left, d.path)
		}
	}
	return r.out.rendering.leaving(left)
}

// undeclared returns the path of a possible default, or of the map around it that the schema lacks, too, if all values
// in the map are possible defaults. Without its values, such a map would still be a field that the schema lacks.
func undeclared(there *openapi.Schema, object map[string]any, path openapi.Path, possible []possibleDefault) openapi.Path {
	for n := 1; n < len(path); n++ {
		if _, declared := there.Default(path[:n]); declared {
			continue
		}
		inside := 0
		for _, d := range possible {
			if len(d.path) > n && slices.Equal(d.path[:n], path[:n]) {
				inside++
			}
		}
		if leaves(valueAt(object, path[:n])) == inside {
			return path[:n]
		}
	}
	return path
}

// leaves returns the number of values in a value that are no map or list with content.
func leaves(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for _, part := range v {
			n += leaves(part)
		}
	case []any:
		for _, item := range v {
			n += leaves(item)
		}
	}
	return max(n, 1)
}

func valueAt(value any, path openapi.Path) any {
	for _, s := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[s.Name]
		case []any:
			value = v[s.Index]
		}
	}
	return value
}

// digestOf returns the digest that the copy must have. confirmed is the digest of the copy when the member last
// confirmed it. If a hub that sends all fields has computed this digest from the same content, the copy keeps it: the
// upgrade of the hub writes no copy. The copy gets the other digest when its content changes.
func (r *run) digestOf(ctx context.Context, manifest *unstructured.Unstructured, confirmed string) string {
	digest := r.digest(manifest)
	if r.out.whole == nil || confirmed == "" || confirmed == digest {
		return digest
	}
	fitting, _ := r.cluster.Fit(ctx, r.out.whole)
	earlier := overrides.DigestLeaving(r.queue.renderings.key, fitting, r.policy().Apply.MemberOwnedFields, string(r.binding.BindingSpec().ObjectRef.UID))
	if earlier == confirmed {
		return earlier
	}
	return digest
}
