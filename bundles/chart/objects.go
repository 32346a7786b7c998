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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/bundles/manifest"
)

// documents are the objects in the rendered templates of a chart, by the paths of the templates.
type documents map[string][]*unstructured.Unstructured

// read reads the objects in the rendered templates.
func (r rendering) read() (documents, error) {
	out := documents{}
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		found, err := readTemplate(name, r.texts[name])
		if err != nil {
			return nil, err
		}
		out[name] = found
	}
	return out, nil
}

// objects returns the objects in the rendered templates, and those in the files of the folders crds. namespace is the
// namespace of the release.
func (r rendering) objects(rendered documents, namespace string) (Rendered, error) {
	out := Rendered{Name: r.chart.Name(), Version: r.chart.Metadata.Version, AppVersion: r.chart.AppVersion()}
	places := map[*unstructured.Unstructured]string{}
	add := func(where string, found []*unstructured.Unstructured, hooks bool) {
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
	}
	for _, crd := range r.chart.CRDObjects() { // helm ignores hook annotations in the folder crds
		found, err := readTemplate(crd.Filename, string(crd.File.Data))
		if err != nil {
			return Rendered{}, err
		}
		add(crd.Filename, found, false)
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		add(name, rendered[name], true)
	}
	scope := scopesWith(out.Definitions)
	for _, object := range out.Objects {
		scope.place(object, namespace)
	}
	for _, hook := range out.Hooks {
		scope.place(hook.Object, namespace)
	}
	dropNulls(out.Objects, out.Definitions)
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
// --- on the same line, and ends each document with a further line end. A text that begins with |+ keeps that line end.
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
		objects, err := manifest.Manifest(name, documents[key]+"\n")
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
