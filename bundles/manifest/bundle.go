// Package manifest reads the manifests of a Bundle, ClusterBundle or FederatedOperator into objects.
//
//   - A bundle is read as a whole: one refused manifest refuses the bundle, so no manifest is left out silently.
//   - An object keeps its content, name, namespace, labels and annotations. The API server of a member sets everything
//     else.
//   - This package checks neither rights nor quotas of the hub. The caller checks which objects an author may have.
package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const (
	// MaxObjects is the maximum number of objects in a bundle.
	MaxObjects = 1000
	// MaxBytes is the maximum size of an object as JSON: 900 KiB.
	MaxBytes = 900 << 10
	// MaxTotalBytes is the maximum size of all objects of a bundle as JSON, and of all its manifests as text: 16 MiB.
	// Each YAML alias in a manifest counts with the size of the value for which it stands.
	MaxTotalBytes = 16 << 20
	// MaxDepth is the maximum number of maps and lists that are inside each other in an object. The object itself counts
	// as one.
	MaxDepth = 64
)

// ErrNoObjects is the error of Read for a bundle without any object.
var ErrNoObjects = errors.New("the bundle has no objects, which would remove all of its copies: add objects, or delete the bundle")

// Input has everything that determines the objects of a bundle.
type Input struct {
	// Namespace is the namespace of a Bundle. It is empty for a ClusterBundle or FederatedOperator.
	Namespace string
	// Operator is true for a FederatedOperator, which may have a few objects in kube-system: see package system.
	Operator bool
	// Partial is true if the bundle has more objects than the input.
	Partial bool
	// Manifests are spec.manifests.
	Manifests []runtime.RawExtension
	// ConfigMaps are the ConfigMaps that spec.configMaps names, in the same order.
	ConfigMaps []corev1.ConfigMap
	// Rendered are the objects of a Helm chart, see package chart.
	Rendered []*unstructured.Unstructured
	// Namespaced tells which kinds are namespaced.
	Namespaced Namespaced
}

// Namespaced reports whether a kind is namespaced. known is false if the hub does not serve the kind. An error means
// that this could not be found out, because the hub did not answer.
type Namespaced func(schema.GroupKind) (namespaced, known bool, err error)

// NamespacedOn returns a function that asks the mapper, which knows the kinds of one API server, whether a kind is
// namespaced.
func NamespacedOn(mapper meta.RESTMapper) Namespaced {
	return func(gk schema.GroupKind) (namespaced, known bool, err error) {
		mapping, err := mapper.RESTMapping(gk)
		switch {
		case meta.IsNoMatchError(err):
			return false, false, nil
		case err != nil:
			return false, false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
	}
}

// ErrScope is the error of Read if the hub has not answered whether a kind is namespaced. The manifests may be valid.
var ErrScope = errors.New("finding out whether a kind is namespaced")

// Read returns the objects of a bundle, sorted by group, kind, namespace and name. The error is ErrScope, ErrNoObjects,
// or a list of up to 5 problems, each with its manifest. The error contains no value of an object. Read does not change
// the input.
func Read(in Input) ([]*unstructured.Unstructured, error) {
	var p problems
	found := readAll(in, &p)
	s := scopes{namespace: in.Namespace, namespaced: in.Namespaced, defined: definedKinds(found), operator: in.Operator}
	if !in.Partial {
		s.systemRoles = systemRoles(found)
	}
	places := map[hubv1.ObjectIdentity]string{}
	var objects []*unstructured.Unstructured
	total := 0
	for _, m := range found {
		if err := s.place(m.object); errors.Is(err, ErrScope) {
			return nil, err
		} else if err != nil {
			p.add(m.where, err)
			continue
		}
		object, size, err := finish(m.object)
		if err != nil {
			p.add(m.where, err)
			continue
		}
		if total += size; total > MaxTotalBytes {
			p.add("", errTotal)
			break
		}
		id := hubv1.IdentityOf(object)
		if first, twice := places[id]; twice {
			p.add(m.where, fmt.Errorf("%s is also in %s: remove one of them", id, first))
			continue
		}
		places[id] = m.where
		objects = append(objects, object)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, ErrNoObjects
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		x, y := hubv1.IdentityOf(a), hubv1.IdentityOf(b)
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return objects, nil
}

var (
	errTotal   = fmt.Errorf("the bundle has more than %d bytes: split it into several bundles", MaxTotalBytes)
	errObjects = fmt.Errorf("the bundle has more than %d objects: split it into several bundles", MaxObjects)
)

// finish returns the object in the form that a JSON decoder returns, and the size of its JSON.
func finish(object *unstructured.Unstructured) (*unstructured.Unstructured, int, error) {
	text := canonical.Bytes(object.Object)
	if len(text) > MaxBytes {
		return nil, 0, fmt.Errorf("the object has %d bytes as JSON, and at most %d are allowed: make the object smaller", len(text), MaxBytes)
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &out.Object); err != nil {
		return nil, 0, fmt.Errorf("reading the object: %w", err)
	}
	return out, len(text), nil
}

const (
	// maxProblems is the maximum number of problems that an error lists.
	maxProblems = 5
	// maxProblemLength is the maximum length of the text of one problem, in characters. The text may contain keys and
	// names of any length.
	maxProblemLength = 600
)

// problems has the first problems of a bundle for the error, and the number of all others.
type problems struct {
	listed []string
	more   int
}

// add adds a problem. where describes the manifest with the problem. It is empty for a problem of the whole bundle.
func (p *problems) add(where string, err error) {
	if len(p.listed) == maxProblems {
		p.more++
		return
	}
	text := err.Error()
	if where != "" {
		text = where + ": " + text
	}
	p.listed = append(p.listed, hubv1.CutMessage(text, maxProblemLength))
}

func (p *problems) err() error {
	if len(p.listed) == 0 {
		return nil
	}
	text := strings.Join(p.listed, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return errors.New(text)
}
