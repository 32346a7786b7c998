package overrides

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// operation is a JSON patch operation (RFC 6902).
type operation struct {
	op    hubv1.PatchOp
	path  pointer
	from  pointer // source path of move and copy
	value any     // for add, replace and test; objects get copies of it
	inner bool    // true: the path is in the document of a string field, so every path is allowed
	// expression computes the value. It is nil if the policy gives the value itself. It is also nil after
	// evaluation.evaluated has computed the value.
	expression *cel.Expression
}

func compileOperation(in *hubv1.PatchOperation, inner bool) (operation, *fault) {
	out := operation{op: in.Op, inner: inner}
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
	if message = out.path.closedToWrites(); message != "" && !inner {
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
		if !out.accepts(out.value) {
			return bad("value", in.Path, whyString)
		}
	}
	return out, nil
}

// accepts reports whether the operation may write this value to its path. The result is false for a label or annotation
// that is not a string.
func (o *operation) accepts(value any) bool {
	_, ok := value.(string)
	return ok || o.inner || !o.path.isMetadata()
}

func takesValue(op hubv1.PatchOp) bool {
	return op == hubv1.PatchAdd || op == hubv1.PatchReplace || op == hubv1.PatchTest
}

func takesFrom(op hubv1.PatchOp) bool {
	return op == hubv1.PatchMove || op == hubv1.PatchCopy
}

// malformed returns the name of a missing or invalid field of the operation (leaf) and an error message. Both are empty
// if the operation is valid.
func malformed(in *hubv1.PatchOperation) (leaf, message string) {
	switch {
	case !takesValue(in.Op) && !takesFrom(in.Op) && in.Op != hubv1.PatchRemove:
		return "op", fmt.Sprintf("has the unknown operation %q: use add, remove, replace, move, copy or test", printable(string(in.Op)))
	case in.Path == "":
		return "path", "has an operation without path: name what it changes, such as /spec/replicas"
	case takesFrom(in.Op) && in.From == "":
		return "from", fmt.Sprintf("has no from, which op %s needs", in.Op)
	case takesValue(in.Op) && in.Value == nil && in.Expression == "":
		return "value", fmt.Sprintf("has no value: op %s needs a value other than null, or an expression", in.Op)
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

// compileFrom parses from, the source of a move or copy operation. A rule must be allowed to read the source, and for a
// move also to change the source. message describes the error, and is empty if there is no error.
func (o *operation) compileFrom(text string) (message string) {
	if o.from, message = parsePointer(text); message != "" {
		return message
	}
	if o.op == hubv1.PatchMove && len(o.path) > len(o.from) && o.path.isAtOrBelow(o.from) {
		return "cannot be moved into itself: correct the path"
	}
	switch {
	case o.inner:
		return ""
	case o.op == hubv1.PatchCopy:
		return o.from.closedToReads()
	}
	return strings.Replace(o.from.closedToWrites(), "cannot be overridden", "cannot be moved", 1)
}
