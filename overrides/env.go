package overrides

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// variable is an environment variable of a container, as JSON.
type variable struct {
	name  string
	value map[string]any
}

// compileEnv compiles an override of environment variables.
func compileEnv(in *hubv1.EnvOverride) (containerChange, *fault) {
	if len(in.Set) > maxVariables || len(in.Remove) > maxVariables {
		return containerChange{}, &fault{message: fmt.Sprintf("has more than %d variables: split it into several rules", maxVariables)}
	}
	if len(in.Set) == 0 && len(in.Remove) == 0 {
		return containerChange{}, &fault{message: "changes nothing: name variables to set or to remove"}
	}
	var set []variable
	var values []any
	for i := range in.Set {
		name := in.Set[i].Name
		if name == "" || slices.ContainsFunc(set, func(v variable) bool { return v.name == name }) || slices.Contains(in.Remove, name) {
			return containerChange{}, &fault{leaf: "set", message: fmt.Sprintf("has variable %q without a name, twice, or also in remove", printable(name))}
		}
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&in.Set[i])
		if err != nil {
			return containerChange{}, &fault{leaf: "set", message: fmt.Sprintf("has a variable %q that cannot be written as JSON", printable(name))}
		}
		set, values = append(set, variable{name, value}), append(values, value)
	}
	c, f := compileTarget("env", &in.ContainerTarget)
	c.lower = func(container any, at pointer) ([]action, *fault) {
		return lowerEnv(container, slices.Concat(at, pointer{"env"}), set, in.Remove)
	}
	return c, sized(f, values)
}

// lowerEnv returns the JSON patch operations that set and remove environment variables of a container. at is the path
// of the container's field env. The operations give the index of a variable in env, because JSON patch has no names. If
// several variables have the same name, set replaces the last of them, and remove removes all of them.
func lowerEnv(container any, at pointer, set []variable, remove []string) ([]action, *fault) {
	v, _ := child(container, "env")
	list, ok := v.([]any)
	switch {
	case v != nil && !ok:
		return nil, &fault{path: at.String(), message: "is not a list: correct the path or the object on the hub"}
	case len(list) > maxListed:
		return nil, &fault{path: at.String(), message: fmt.Sprintf("has more than %d variables, which is too many to change by name", maxListed)}
	case v == nil && len(set) == 0:
		return nil, nil
	case v == nil:
		values := make([]any, len(set))
		for i := range set {
			values[i] = set[i].value
		}
		return []action{&operation{op: hubv1.PatchAdd, path: at, value: values}}, nil
	}
	names := make([]any, 0, len(list)+len(set))
	for i := range list {
		name, _ := child(list[i], "name")
		names = append(names, name)
	}
	var out []action
	add := func(op hubv1.PatchOp, step string, value any) {
		out = append(out, &operation{op: op, path: slices.Concat(at, pointer{step}), value: value})
	}
	for i := len(names) - 1; i >= 0; i-- {
		if name, ok := names[i].(string); ok && slices.Contains(remove, name) {
			add(hubv1.PatchRemove, strconv.Itoa(i), nil)
			names = slices.Delete(names, i, i+1)
		}
	}
	for _, v := range set {
		i := len(names) - 1 // if two variables have one name, the last one is effective
		for i >= 0 && names[i] != v.name {
			i--
		}
		if i >= 0 {
			add(hubv1.PatchReplace, strconv.Itoa(i), v.value)
			continue
		}
		add(hubv1.PatchAdd, "-", v.value)
		names = append(names, v.name)
	}
	return out, nil
}
