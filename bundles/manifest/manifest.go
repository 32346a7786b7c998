package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Manifest reads a rendered template of a chart, which has YAML or JSON documents, and returns the objects in the order
// of the text. A manifest must have the same form as for Read, with one exception: as in helm, a map may set a key
// twice, and the last value wins. Unlike Read, Manifest accepts Secrets, and does not check namespaces or whether two
// objects have the same name.
//
// where describes the text in error messages.
func Manifest(where, text string) ([]*unstructured.Unstructured, error) {
	var p problems
	r := &reader{problems: &p, refuse: refuseUnsendable, lastWins: true, texts: map[string]bool{}}
	r.value(where, []byte(text))
	var objects []*unstructured.Unstructured
	for _, m := range r.found {
		object, _, err := finish(m.object)
		if err != nil {
			p.add(m.where+", "+hubv1.IdentityOf(m.object).String(), err)
			continue
		}
		objects = append(objects, object)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return objects, nil
}
