package overrides

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// change is a compiled override rule. One change serves all objects and clusters, so no code modifies it after compile.
type change struct {
	guards      []operation // tests before all other patches, evaluated before any change
	containers  []containerChange
	merges      []mergeChange   // labels and annotations, then mergePatch
	ops         []operation     // the other patches
	edits       []textEdit      // changes inside string fields
	when        *cel.Expression // nil: the rule has no condition
	expressions bool            // whether some operation or variable has an expression as its value
	unwanted    bool            // whether the condition when is not met; the rule is then skipped
	late        bool            // whether some test comes after another patch
}

// action is one step of a compiled rule, such as a patch operation.
type action interface {
	// apply changes the object doc, which must not be shared with other code. It returns nil, or the error of the rule.
	// After an error, doc must not be used.
	apply(doc map[string]any, b *budget) *fault
	// claim records in c which fields of the object state the action would read or change. Later, package overrides
	// compares the claims of different policies to find conflicts.
	claim(c *claims, state map[string]any)
	// touches reports whether the action may change the value at the path, or a part of it.
	touches(path pointer) bool
}

// each calls f for the actions of the rule in the order of their application. It stops at the first error (fault) and
// returns it.
func (c *change) each(f func(action) *fault) *fault {
	for i := range c.containers {
		if bad := f(&c.containers[i]); bad != nil {
			return bad
		}
	}
	for i := range c.merges {
		if bad := f(&c.merges[i]); bad != nil {
			return bad
		}
	}
	for i := range c.ops {
		if bad := f(&c.ops[i]); bad != nil {
			return bad
		}
	}
	for i := range c.edits {
		if bad := f(&c.edits[i]); bad != nil {
			return bad
		}
	}
	return nil
}

// apply applies the actions of the rule to the object doc. If a guard is not met (see the method unmet), apply returns
// a fault whose field unmet is set, and leaves doc as it is. After any other fault, doc must not be used.
func (c *change) apply(doc map[string]any, b *budget) *fault {
	if f := c.unmet(doc); f != nil {
		return f
	}
	return c.each(func(a action) *fault { return a.apply(doc, b) })
}

// unmet returns a fault if the condition when is not met, or for the first guard that the object does not meet. Guards
// are the test operations that stand before all other patches of the rule. The result is nil if all are met.
func (c *change) unmet(doc map[string]any) *fault {
	if c.unwanted {
		return &fault{message: "its field when is false", unmet: true}
	}
	for i := range c.guards {
		if f := c.guards[i].test(doc); f != nil {
			return f
		}
	}
	return nil
}

// evaluated returns a copy of the change in which each expression is replaced by its value for one object and cluster.
// If the condition when is not met, it returns an empty change that is unwanted.
func (c *change) evaluated(e *evaluation, b *budget) (*change, *fault) {
	if c.when != nil {
		if yes, f := e.meets(c.when); f != nil || !yes {
			return &change{unwanted: true}, f
		}
	}
	if !c.expressions {
		return c, nil
	}
	out := *c
	var f *fault
	out.containers = slices.Clone(c.containers)
	for i := range out.containers {
		if evaluated := out.containers[i].evaluated; evaluated != nil {
			if out.containers[i], f = evaluated(e, &b.added); f != nil {
				return nil, f
			}
		}
	}
	if out.guards, f = e.evaluated(c.guards, &b.added); f != nil {
		return nil, f
	}
	if out.ops, f = e.evaluated(c.ops, &b.added); f != nil {
		return nil, f
	}
	out.edits = slices.Clone(c.edits)
	for i := range out.edits {
		edit := &out.edits[i]
		if edit.ops, f = e.evaluated(edit.ops, &b.added); f != nil {
			return nil, &fault{path: edit.path.String(), message: inside(f)}
		}
	}
	return &out, nil
}

// some reports whether f returns true for at least one of the rule's actions.
func (c *change) some(f func(action) bool) bool {
	found := &fault{}
	return c.each(func(a action) *fault {
		if f(a) {
			return found
		}
		return nil
	}) != nil
}

func (c *change) touches(path pointer) bool {
	return c.some(func(a action) bool { return a.touches(path) })
}

// compile compiles an override rule. It returns all errors that can be found without an object.
func compile(rule *hubv1.OverrideRule) (*change, []fault) {
	changes := len(rule.Images)+len(rule.Command)+len(rule.Args)+len(rule.Env)+len(rule.Resources)+len(rule.Labels)+len(rule.Annotations)+
		len(rule.Patches)+len(rule.Edits) > 0 || rule.MergePatch != nil
	switch {
	case rule.Exclude && changes:
		return nil, []fault{{field: "exclude", index: -1, message: "has exclude and other changes: split it into two rules"}}
	case rule.Exclude && rule.When != "":
		return nil, []fault{{field: "when", index: -1, message: "cannot be combined with exclude, which decides before an object is rendered: use clusters.expression"}}
	case rule.Exclude:
		return &change{}, nil
	case !changes:
		return nil, []fault{{index: -1, message: "changes nothing: set exclude, images, command, args, env, resources, labels, annotations, mergePatch, patches or edits"}}
	}
	if f := tooMany(rule); f != nil {
		return nil, []fault{*f}
	}
	c := compiler{}
	var f *fault
	if c.change.when, f = compileWhen(rule.When); f != nil {
		c.faults = append(c.faults, *f)
	}
	c.addContainers(rule)
	c.addKeys(rule)
	c.addMerge(rule.MergePatch)
	c.addPatches(rule.Patches)
	c.addEdits(rule.Edits)
	return &c.change, c.faults
}

// compiler has the rule compiled so far, and the errors found so far.
type compiler struct {
	change change
	faults []fault
}

// fault records the error f, if it is not nil, with its position in the rule. It reports whether f is an error.
func (c *compiler) fault(field string, index int, f *fault) bool {
	if f == nil {
		return false
	}
	f.field, f.index = field, index
	c.faults = append(c.faults, *f)
	return true
}

func tooMany(rule *hubv1.OverrideRule) *fault {
	for _, list := range []struct {
		field    string
		n, limit int
		what     string
	}{
		{"images", len(rule.Images), maxTyped, "entries"},
		{"command", len(rule.Command), maxTyped, "entries"},
		{"args", len(rule.Args), maxTyped, "entries"},
		{"env", len(rule.Env), maxTyped, "entries"},
		{"resources", len(rule.Resources), maxTyped, "entries"},
		{"labels", len(rule.Labels), maxKeys, "keys"},
		{"annotations", len(rule.Annotations), maxKeys, "keys"},
		{"patches", len(rule.Patches), maxPatches, "operations"},
		{"edits", len(rule.Edits), maxEdits, "entries"},
	} {
		if list.n > list.limit {
			return &fault{field: list.field, index: -1, message: fmt.Sprintf("has more than %d %s: split it into several rules", list.limit, list.what)}
		}
	}
	return nil
}

// addKeys converts the labels and annotations of a rule into a merge patch.
func (c *compiler) addKeys(rule *hubv1.OverrideRule) {
	metadata := map[string]any{}
	for _, m := range []struct {
		field string
		keys  map[string]string
	}{{"labels", rule.Labels}, {"annotations", rule.Annotations}} {
		if len(m.keys) == 0 {
			continue
		}
		values := make(map[string]any, len(m.keys))
		for _, key := range slices.Sorted(maps.Keys(m.keys)) {
			path := pointer{"metadata", m.field, key}
			message := path.closedMetadata()
			if message == "" {
				message = invalidKey(m.field, key, m.keys[key])
			}
			if message != "" {
				c.fault(m.field, -1, &fault{path: path.String(), message: message})
				continue
			}
			values[key] = m.keys[key]
		}
		metadata[m.field] = values
	}
	if len(metadata) > 0 {
		c.change.merges = append(c.change.merges, mergeChange{patch: map[string]any{"metadata": metadata}})
	}
}

// invalidKey returns why the API server would refuse a label or an annotation. The text is empty if both the key and
// the value are valid.
func invalidKey(field, key, value string) string {
	if len(validation.IsQualifiedName(key)) > 0 {
		return "is not a valid key of a label or annotation: use letters, digits, '-', '_' and '.', after an optional DNS name and /"
	}
	if field == "labels" && len(validation.IsValidLabelValue(value)) > 0 {
		return "is not a valid value of a label: use at most 63 letters, digits, '-', '_' and '.'"
	}
	return ""
}

func (c *compiler) addMerge(patch *apiextensionsv1.JSON) {
	if patch == nil {
		return
	}
	merge, f := compileMerge(patch.Raw)
	if c.fault("mergePatch", -1, f) {
		return
	}
	c.change.merges = append(c.change.merges, mergeChange{patch: merge})
}

func (c *compiler) addPatches(patches []hubv1.PatchOperation) {
	leading := true
	for i := range patches {
		op, f := compileOperation(&patches[i], false)
		if c.fault("patches", i, f) {
			continue
		}
		c.change.expressions = c.change.expressions || op.expression != nil
		switch leading = leading && op.op == hubv1.PatchTest; {
		case leading:
			c.change.guards = append(c.change.guards, op)
			continue
		case op.op == hubv1.PatchTest:
			c.change.late = true
		}
		c.change.ops = append(c.change.ops, op)
	}
}

// weight returns upper bounds of the bytes that a rule adds to an object, and of its number of operations. It does not
// decode the rule.
func weight(rule *hubv1.OverrideRule) (bytes, operations int) {
	merge := func(patch *apiextensionsv1.JSON) {
		if patch != nil {
			bytes += len(patch.Raw)
		}
	}
	merge(rule.MergePatch)
	for i := range rule.Patches {
		merge(rule.Patches[i].Value)
	}
	operations = len(rule.Patches) + len(rule.Images) + len(rule.Command) + len(rule.Args) + len(rule.Env) + len(rule.Resources) + len(rule.Edits)
	for i := range rule.Edits {
		merge(rule.Edits[i].MergePatch)
		operations += len(rule.Edits[i].Patches)
		for j := range min(len(rule.Edits[i].Patches), maxPatches) {
			merge(rule.Edits[i].Patches[j].Value)
		}
	}
	for _, keys := range []map[string]string{rule.Labels, rule.Annotations} {
		for k, v := range keys {
			bytes += len(k) + len(v)
		}
	}
	return bytes, operations
}

// clusterFault converts an error in the label selector for clusters into a fault, the error type of this package.
func clusterFault(err error) *fault {
	return &fault{field: "clusters", index: -1, leaf: "labelSelector",
		message: "clusters.labelSelector: " + printable(err.Error()) + ": correct the selector"}
}
