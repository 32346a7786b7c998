package replicas

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	replicasPath    = "/spec/replicas"
	completionsPath = "/spec/completions"
	parallelismPath = "/spec/parallelism"
)

var (
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	job        = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Field is the field of an object whose number is divided among clusters.
type Field struct {
	// Path is the JSON pointer to the field.
	Path string
	// Total is the value of the field in the hub object: the number that is divided.
	Total int64
	// Fixed is true if a member refuses to change the field after the object is created.
	Fixed bool
}

var (
	errMissing   = errors.New("the field is missing: set it on the hub object, or correct spec.replicas.path")
	errNoInteger = errors.New("the field is not a whole number between 0 and 2147483647")
	errIndexed   = errors.New("each copy of a Job with completionMode Indexed would start with index 0 and do the same work: " +
		"use NonIndexed, or spec.replicas.type Duplicate")
)

// CheckKind returns an error if the placement divides replicas, but the field with the replicas of this kind is not
// known. scalePath is the path of the replicas in the kind's scale subresource, such as ".spec.replicas", or empty. The
// error suggests this path, but Hanse never uses it on its own. The path may have another meaning: for Prometheus it is
// .spec.shards, and each shard has different data.
func CheckKind(kind schema.GroupKind, spec *hubv1.PlacementSpec, scalePath string) error {
	if !NeedsPath(kind, &spec.Replicas) {
		return nil
	}
	suggestion := "its definition has no scale subresource to suggest one"
	if scalePath != "" {
		suggestion = fmt.Sprintf("the scale subresource of its definition suggests %s, if that number can be divided", pointerOf(scalePath))
	}
	return fmt.Errorf("dividing the replicas of a %s: the field with the replicas is not known: set spec.replicas.path; %s", kind, suggestion)
}

// NeedsPath reports whether the policy divides replicas of a kind for which it must name the path of the replicas, but
// names no path.
func NeedsPath(kind schema.GroupKind, policy *hubv1.ReplicasPolicy) bool {
	return policy.Divides() && policy.Path == "" && kind != deployment && kind != replicaSet && kind != job
}

// pointerOf converts a path such as ".spec.replicas", which has only dots and names, to a JSON pointer.
func pointerOf(jsonPath string) string { return strings.ReplaceAll(jsonPath, ".", "/") }

// Locate returns the field of an object whose number is divided. It returns an error if the field is not known, cannot
// be divided, or belongs to the members.
func Locate(kind schema.GroupKind, spec *hubv1.PlacementSpec, template *unstructured.Unstructured, scalePath string) (Field, error) {
	if err := CheckKind(kind, spec, scalePath); err != nil {
		return Field{}, err
	}
	f := Field{Path: spec.Replicas.Path}
	if f.Path == "" {
		f.Path = knownPath(kind, template)
	}
	f.Fixed = kind == job && f.Path == completionsPath
	for _, owned := range spec.Apply.MemberOwnedFields {
		if within(owned, f.Path) || within(f.Path, owned) {
			return Field{}, fmt.Errorf("dividing %s: spec.apply.memberOwnedFields leaves %s to members: remove it there, or set spec.replicas.type to Duplicate", f.Path, owned)
		}
	}
	total, err := numberAt(template, f.Path)
	if errors.Is(err, errMissing) && spec.Replicas.Path == "" {
		total, err = 1, nil // the default of the API server for these kinds
	}
	if err == nil && f.Fixed && isIndexed(template) {
		err = errIndexed
	}
	if err != nil {
		return Field{}, fmt.Errorf("dividing %s of the %s: %w", f.Path, template.GetKind(), err)
	}
	f.Total = total
	return f, nil
}

// knownPath returns the path of the replicas for kinds whose path the policy need not name. For a Job it is
// /spec/completions, and the parallelism of each cluster is computed from its completions. A Job without completions
// ends when its pods find no more work. For such a Job, the path is /spec/parallelism.
func knownPath(kind schema.GroupKind, template *unstructured.Unstructured) string {
	if kind != job {
		return replicasPath
	}
	if _, err := numberAt(template, completionsPath); errors.Is(err, errMissing) {
		return parallelismPath
	}
	return completionsPath
}

func isIndexed(template *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(template.Object, "spec", "completionMode")
	return mode == "Indexed"
}

// within reports whether a JSON pointer equals other, or points to a value below it.
func within(pointer, other string) bool {
	return pointer == other || strings.HasPrefix(pointer, other+"/")
}

func numberAt(template *unstructured.Unstructured, pointer string) (int64, error) {
	var at any = template.Object
	for _, step := range steps(pointer) {
		fields, ok := at.(map[string]any)
		if !ok {
			return 0, errMissing
		}
		at = fields[step]
	}
	n, ok := at.(int64)
	if f, isFloat := at.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) <= Unlimited {
		n, ok = int64(f), true
	}
	switch {
	case at == nil:
		return 0, errMissing
	case !ok || n < 0 || n > Unlimited:
		return 0, errNoInteger
	}
	return n, nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// steps returns the steps of a JSON pointer, unescaped. Each step is a key of a map.
func steps(pointer string) []string {
	out := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range out {
		out[i] = unescape.Replace(s)
	}
	return out
}
