package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/bundles/manifest"
)

// objects reads the objects in the rendered templates and in the files of the folders crds. namespace is the namespace
// of the release.
func (r rendering) objects(namespace string) (Rendered, error) {
	out := Rendered{Name: r.chart.Name(), Version: r.chart.Metadata.Version, AppVersion: r.chart.AppVersion()}
	places := map[*unstructured.Unstructured]string{}
	add := func(where, text string, hooks bool) error {
		found, err := readTemplate(where, text)
		if err != nil {
			return err
		}
		for _, object := range found {
			places[object] = where
			hook, isHook := hookOf(object)
			switch {
			case isHook && hooks:
				out.Hooks = append(out.Hooks, hook)
			case manifest.IsDefinition(object):
				out.Definitions = append(out.Definitions, object)
			default:
				out.Objects = append(out.Objects, object)
			}
		}
		return nil
	}
	for _, crd := range r.chart.CRDObjects() { // helm ignores hook annotations in the folder crds
		if err := add(crd.Filename, string(crd.File.Data), false); err != nil {
			return Rendered{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if err := add(name, r.texts[name], true); err != nil {
			return Rendered{}, err
		}
	}
	scope := scopesWith(out.Definitions)
	for _, object := range out.Objects {
		scope.place(object, namespace)
	}
	for _, hook := range out.Hooks {
		scope.place(hook.Object, namespace)
	}
	sortObjects(out.Definitions)
	sortObjects(out.Objects)
	slices.SortStableFunc(out.Hooks, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), compareObjects(a.Object, b.Object))
	})
	if err := once(slices.Concat(out.Definitions, out.Objects), places); err != nil {
		return Rendered{}, err
	}
	var err error
	out.Lookups, err = lookups(r.chart)
	return out, err
}

// readTemplate reads the objects of a rendered template. It separates documents as helm does, which accepts text after
// --- on the same line.
func readTemplate(where, text string) ([]*unstructured.Unstructured, error) {
	documents := releaseutil.SplitManifests(text)
	keys := slices.Collect(maps.Keys(documents))
	sort.Sort(releaseutil.BySplitManifestsOrder(keys))
	var out []*unstructured.Unstructured
	for i, key := range keys {
		name := where
		if len(keys) > 1 {
			name = fmt.Sprintf("%s, document %d of %d", where, i+1, len(keys))
		}
		objects, err := manifest.Manifest(name, documents[key])
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// once returns an error if the chart contains an object twice. The argument objects has the definitions and then all
// other objects, both sorted. Two equal objects are therefore neighbours.
func once(objects []*unstructured.Unstructured, places map[*unstructured.Unstructured]string) error {
	for i := 1; i < len(objects); i++ {
		a, b := objects[i-1], objects[i]
		if compareObjects(a, b) == 0 {
			return fmt.Errorf("%s: %s %s is also in %s: remove one of them", places[b], b.GroupVersionKind().GroupKind(), b.GetName(), places[a])
		}
	}
	return nil
}

// hookEvents are the events of hooks that helm knows.
var hookEvents = []release.HookEvent{
	release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade,
	release.HookPostUpgrade, release.HookPreRollback, release.HookPostRollback, release.HookTest,
}

// hookOf returns an object as a Hook, with the data of helm's annotations. It returns false if the object is no hook.
func hookOf(object *unstructured.Unstructured) (Hook, bool) {
	annotations := object.GetAnnotations()
	text, isHook := annotations[release.HookAnnotation]
	if !isHook {
		return Hook{}, false
	}
	h := Hook{Object: object, Definition: manifest.IsDefinition(object)}
	h.Weight, _ = strconv.Atoi(annotations[release.HookWeightAnnotation]) // like helm, 0 if the text is no number
	for event := range strings.SplitSeq(text, ",") {
		event = strings.ToLower(strings.TrimSpace(event))
		if event == "test-success" { // the name of this event in Helm 2
			event = release.HookTest.String()
		}
		h.Events = append(h.Events, event)
		h.Test = h.Test || event == release.HookTest.String()
		h.Ignored = h.Ignored || !slices.Contains(hookEvents, release.HookEvent(event))
	}
	return h, true
}

// equal returns an error if two renderings of a chart differ in an object. The error names the first template, object
// and field that differ. Differences in comments are no error.
func (r rendering) equal(other rendering) error {
	names := maps.Clone(r.texts)
	maps.Copy(names, other.texts)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if r.texts[name] == other.texts[name] {
			continue
		}
		a, err := readTemplate(name, r.texts[name])
		if err != nil {
			return err
		}
		b, err := readTemplate(name, other.texts[name])
		if err != nil {
			return err
		}
		if len(a) != len(b) {
			return fmt.Errorf("%s has %d objects in one rendering and %d in another: %w", name, len(a), len(b), ErrNonDeterministic)
		}
		for i := range a {
			if path, differs := firstDifference("", a[i].Object, b[i].Object); differs {
				return fmt.Errorf("%s, %s %s, field %s: %w", name, a[i].GetKind(), a[i].GetName(), path, ErrNonDeterministic)
			}
		}
	}
	return nil
}

// firstDifference returns the path of the first field in which the values a and b differ. It compares the fields of a
// map in the order of their keys. It returns false if a and b are equal.
func firstDifference(path string, a, b any) (string, bool) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path, true
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			_, inX := x[key]
			_, inY := y[key]
			if inX != inY {
				return path + "." + key, true
			}
			if at, differs := firstDifference(path+"."+key, x[key], y[key]); differs {
				return at, true
			}
		}
		return "", false
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path, true
		}
		for i := range x {
			if at, differs := firstDifference(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]); differs {
				return at, true
			}
		}
		return "", false
	}
	return path, !equality.Semantic.DeepEqual(a, b)
}
