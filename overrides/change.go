package overrides

import (
	"fmt"
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/expression"
)

// change is a rule, decoded and within its bounds.
type change struct {
	merge map[string]any
	ops   []operation
}

// operation is one of RFC 6902.
type operation struct {
	op    hubv1.PatchOp
	path  pointer
	from  pointer // of move and copy
	value any     // of add, replace and test
	// expression makes the value, for which see evaluation.evaluated.
	expression *expression.Expression
}

// compile decodes a rule and finds what is wrong in it, whatever the object.
func compile(rule *hubv1.OverrideRule) (*change, []fault) {
	var c change
	var faults []fault
	if rule.MergePatch == nil && len(rule.Patches) == 0 {
		return nil, []fault{{index: -1, message: "changes nothing: set mergePatch or patches"}}
	}
	if len(rule.Patches) > maxPatches {
		return nil, []fault{{field: "patches", index: -1, message: fmt.Sprintf("has more than %d operations: split it into several rules", maxPatches)}}
	}
	if rule.MergePatch != nil {
		merge, f := compileMerge(rule.MergePatch.Raw)
		if f != nil {
			faults = append(faults, *f)
		}
		c.merge = merge
	}
	for i := range rule.Patches {
		op, f := compileOperation(&rule.Patches[i])
		if f != nil {
			f.field, f.index = "patches", i
			faults = append(faults, *f)
			continue
		}
		c.ops = append(c.ops, op)
	}
	return &c, faults
}

func compileMerge(raw []byte) (map[string]any, *fault) {
	bad := func(path, message string) *fault {
		return &fault{field: "mergePatch", index: -1, path: path, message: message}
	}
	v, message := decode(raw)
	if message != "" {
		return nil, bad("", "its mergePatch "+message)
	}
	merge, ok := v.(map[string]any)
	if !ok {
		return nil, bad("", "its mergePatch must be an object")
	}
	for _, field := range []string{"apiVersion", "kind", "status"} {
		if _, ok := merge[field]; ok {
			return nil, bad("/"+field, pointer{field}.closedToWrites())
		}
	}
	metadata, ok := merge["metadata"]
	if !ok {
		return merge, nil
	}
	if p, message := closedMerge(metadata); message != "" {
		return nil, bad(p.String(), message)
	}
	return merge, nil
}

// closedMerge finds what a merge patch says about metadata and may not.
func closedMerge(v any) (pointer, string) {
	metadata, ok := v.(map[string]any)
	if !ok {
		return pointer{"metadata"}, whyMetadata
	}
	for _, field := range slices.Sorted(maps.Keys(metadata)) {
		keys, ok := metadata[field].(map[string]any)
		if p := (pointer{"metadata", field}); !ok || !isKeyMap(field) {
			return p, p.closedMetadata()
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			p := pointer{"metadata", field, key}
			if message := p.closedMetadata(); message != "" {
				return p, message
			}
			if _, ok := keys[key].(string); !ok && keys[key] != nil {
				return p, whyString
			}
		}
	}
	return nil, ""
}

func compileOperation(in *hubv1.PatchOperation) (operation, *fault) {
	out := operation{op: in.Op}
	bad := func(leaf, path, message string) (operation, *fault) {
		return operation{}, &fault{leaf: leaf, path: printable(path), message: message}
	}
	if leaf, message := malformed(in); message != "" {
		return bad(leaf, in.Path, message)
	}
	var message string
	if out.path, message = parsePointer(in.Path); message != "" {
		return bad("path", in.Path, message)
	}
	if message = out.path.closedToWrites(); message != "" {
		return bad("path", in.Path, message)
	}
	if takesFrom(in.Op) {
		if message := out.compileFrom(in.From); message != "" {
			return bad("from", in.From, message)
		}
	}
	if in.Expression != "" {
		if out.expression, message = compileValue(in.Expression); message != "" {
			return bad("expression", in.Path, message)
		}
		return out, nil
	}
	if takesValue(in.Op) {
		if out.value, message = decode(in.Value.Raw); message != "" {
			return bad("value", in.Path, "has a value that "+message)
		}
		if _, ok := out.value.(string); !ok && out.path.isMetadata() {
			return bad("value", in.Path, whyString)
		}
	}
	return out, nil
}

func takesValue(op hubv1.PatchOp) bool {
	return op == hubv1.PatchAdd || op == hubv1.PatchReplace || op == hubv1.PatchTest
}

func takesFrom(op hubv1.PatchOp) bool {
	return op == hubv1.PatchMove || op == hubv1.PatchCopy
}

// malformed finds a field of the operation that does not go with the others.
func malformed(in *hubv1.PatchOperation) (leaf, message string) {
	switch {
	case !takesValue(in.Op) && !takesFrom(in.Op) && in.Op != hubv1.PatchRemove:
		return "op", fmt.Sprintf("has the unknown operation %q: use add, remove, replace, move, copy or test", printable(string(in.Op)))
	case in.Path == "":
		return "path", "has an operation without path: name what it changes, such as /spec/replicas"
	case takesFrom(in.Op) && in.From == "":
		return "from", fmt.Sprintf("has no from, which op %s needs", in.Op)
	case takesValue(in.Op) && in.Value == nil && in.Expression == "":
		return "value", fmt.Sprintf("has no value: op %s needs one other than null, or an expression", in.Op)
	case in.Value != nil && in.Expression != "":
		return "expression", "has both a value and an expression: drop one"
	case !takesValue(in.Op) && in.Expression != "":
		return "expression", fmt.Sprintf("has an expression, which op %s does not take", in.Op)
	case !takesValue(in.Op) && in.Value != nil:
		return "value", fmt.Sprintf("has a value, which op %s does not take", in.Op)
	case !takesFrom(in.Op) && in.From != "":
		return "from", fmt.Sprintf("has a from, which op %s does not take", in.Op)
	}
	return "", ""
}

// compileFrom reads the source of move and copy; a move changes it too. The message says what is wrong, or is empty.
func (o *operation) compileFrom(text string) (message string) {
	if o.from, message = parsePointer(text); message != "" {
		return message
	}
	if o.op == hubv1.PatchCopy {
		return o.from.closedToReads()
	}
	if len(o.path) > len(o.from) && o.path.isAtOrBelow(o.from) {
		return "cannot be moved into itself: correct the path"
	}
	return o.from.closedToWrites()
}

// weight is what a rule costs at most, known before it is decoded.
func weight(rule *hubv1.OverrideRule) (bytes, operations int) {
	if rule.MergePatch != nil {
		bytes = len(rule.MergePatch.Raw)
	}
	for i := range rule.Patches {
		if v := rule.Patches[i].Value; v != nil {
			bytes += len(v.Raw)
		}
	}
	return bytes, len(rule.Patches)
}

// clusterFault finds what is wrong in the selection of clusters.
func clusterFault(err error) *fault {
	return &fault{field: "clusters", index: -1, leaf: "labelSelector",
		message: "clusters.labelSelector: " + printable(err.Error()) + ": correct the selector"}
}
