package overrides

import (
	"fmt"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// compileCommand compiles an override of command or args. The override replaces the whole list.
func compileCommand(field string, in *hubv1.CommandOverride) (containerChange, *fault) {
	if len(in.Value) > maxArguments {
		return containerChange{}, &fault{leaf: "value", message: fmt.Sprintf("has more than %d arguments: pass fewer, such as by a file", maxArguments)}
	}
	value := make([]any, len(in.Value))
	for i, v := range in.Value {
		value[i] = v
	}
	c, f := compileTarget(field, &in.ContainerTarget)
	c.lower = func(_ any, at pointer) ([]action, *fault) {
		return []action{&operation{op: hubv1.PatchAdd, path: slices.Concat(at, pointer{field}), value: value}}, nil
	}
	return c, sized(f, value)
}

// sized returns the error f if it is not nil. Otherwise it returns an error if the value is too large, or nil.
func sized(f *fault, value any) *fault {
	if f != nil {
		return f
	}
	if _, err := size(value, maxValueBytes, maxDepth); err != nil {
		return &fault{message: fmt.Sprintf("is larger than %d KiB or nests deeper than %d levels: split it into several rules", maxValueBytes>>10, maxDepth)}
	}
	return nil
}
