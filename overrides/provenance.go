package overrides

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// FieldOrigin names the author of a field that differs from the template, which is the hub object. If the values are
// secret, as in a Secret, the caller must show only the path and the authors, and not the values in Value and Shadowed.
type FieldOrigin struct {
	// Path is the full JSON pointer of the field: of a scalar, or of an empty object or list.
	Path string
	FieldValue
	// Shadowed are the earlier values of the field, the latest one first. If the template has the field, its value comes
	// last.
	Shadowed []FieldValue
}

// FieldValue is one author's value of a field.
type FieldValue struct {
	By Author
	// Value is the value as decoded JSON: a scalar, or an empty object or list. If the author has removed the field, Value
	// is nil and Removed is true.
	Value   any
	Removed bool
}

// Author is the author of a value: a rule, the division of replicas, or the template. The zero value is the template,
// which is the hub object.
type Author struct {
	Rule     RuleRef
	Rank     string // rank of the rule
	Division bool   // true: the division of replicas set the value, see Divided
}

// String returns the author as text: the rule, "template" or "division of replicas".
func (a Author) String() string {
	switch {
	case a.Division:
		return "division of replicas"
	case a.Rule == RuleRef{}:
		return "template"
	}
	return a.Rule.String()
}

// Explain renders the object in the same way as Render, and also returns the author of each field that differs from the
// template. Explain is slower, because it compares the object before and after each rule.
func (p *Prepared) Explain(cluster Cluster, policies []hubv1.OverridePolicyObject, divided []Divided) (Result, error) {
	seen := &recorder{values: map[string][]FieldValue{}}
	result, err := p.render(cluster, policies, divided, seen)
	if err != nil {
		return Result{}, err
	}
	whole := result.Manifest
	if result.Whole != nil {
		whole = result.Whole
	}
	result.Fields = seen.fields(p.folded.Object, whole.Object)
	return result, nil
}

// recorder records who has set each field to which values, in the order of the rules. A nil recorder records nothing.
type recorder struct {
	values map[string][]FieldValue
	was    map[string]any // the object before the rule
}

// start records the division of replicas as the author of the numbers that it has set in the object. The division comes
// before all rules. start returns an error if the object is too large to be compared after each rule.
func (r *recorder) start(template, divided map[string]any, rules int) error {
	if r == nil {
		return nil
	}
	if n, err := size(divided, maxExplained/max(rules, 1), maxManifestDepth); err != nil || n*rules > maxExplained {
		return &InvalidError{Message: fmt.Sprintf("is too large to be explained field by field, with %d rules that apply to it: compare the template with the output of hansectl render", rules)}
	}
	r.add(Author{Division: true}, leavesOf(template), leavesOf(divided), nil)
	return nil
}

func (r *recorder) before(manifest map[string]any) {
	if r != nil {
		r.was = runtime.DeepCopyJSON(manifest)
	}
}

func (r *recorder) after(rule *rankedRule, manifest map[string]any) {
	if r == nil {
		return
	}
	before, after := leavesOf(r.was), leavesOf(manifest)
	r.add(Author{Rule: rule.ref, Rank: rule.rank.String()}, before, after, written(rule, r.was, manifest))
}

// add records the fields that an author has changed, removed or set. set has the fields that the author sets, even if
// they already had the value.
func (r *recorder) add(by Author, before, after, set map[string]any) {
	for path, v := range after {
		was, had := before[path]
		if _, isSet := set[path]; isSet || !had || !equal(was, v) {
			r.values[path] = append(r.values[path], FieldValue{By: by, Value: v})
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			r.values[path] = append(r.values[path], FieldValue{By: by, Removed: true})
		}
	}
}

// fields returns the fields whose values differ between the template and the final manifest, with their authors.
func (r *recorder) fields(template, manifest map[string]any) []FieldOrigin {
	before, after := leavesOf(template), leavesOf(manifest)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var out []FieldOrigin
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, had := before[path]
		is, has := after[path]
		if had && has && equal(was, is) {
			continue
		}
		values := r.values[path]
		if len(values) == 0 {
			continue // above 2^53, unequal numbers may be equal as floats
		}
		f := FieldOrigin{Path: path, FieldValue: values[len(values)-1], Shadowed: slices.Clone(values[:len(values)-1])}
		slices.Reverse(f.Shadowed)
		if had {
			f.Shadowed = append(f.Shadowed, FieldValue{Value: was})
		}
		out = append(out, f)
	}
	return out
}

// written returns the fields that the rule sets, with their values. It includes fields that already had the value. It
// finds the fields by the rule's claims (see claim), and not by a comparison.
func written(rule *rankedRule, before, after map[string]any) map[string]any {
	c := claims{root: rootFor(before), budget: newBudget()}
	c.begin(rule)
	c.claim(before)
	out := map[string]any{}
	c.root.walk(nil, func(path pointer, n *node) bool {
		if !slices.ContainsFunc(n.claims, func(c claim) bool { return c.kind.holds() && c.kind != claimObject }) {
			return true
		}
		if v, ok := path.lookup(after); ok {
			addLeaves(out, full(path), v)
		}
		return false
	})
	return out
}

// walk calls f for the node n. If f returns true, walk does the same for all nodes below n.
func (n *node) walk(path pointer, f func(pointer, *node) bool) {
	if !f(path, n) {
		return
	}
	for key, c := range n.children {
		c.walk(append(slices.Clip(path), key), f)
	}
}

// leavesOf returns the scalars, empty objects and empty lists of an object, by their paths.
func leavesOf(v map[string]any) map[string]any {
	out := map[string]any{}
	addLeaves(out, "", v)
	return out
}

func addLeaves(out map[string]any, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, c := range v {
			addLeaves(out, path+"/"+escape.Replace(key), c)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, c := range v {
			addLeaves(out, path+"/"+strconv.Itoa(i), c)
		}
		if len(v) > 0 {
			return
		}
	}
	out[path] = v
}

// full returns the pointer as text. In contrast to String, it does not cut the text.
func full(p pointer) string {
	var b strings.Builder
	for _, step := range p {
		b.WriteString("/" + escape.Replace(step))
	}
	return b.String()
}
