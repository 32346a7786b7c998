package overrides

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// variable is an environment variable of a container, as JSON.
type variable struct {
	name  string
	value map[string]any
	// expression computes the value. It is nil if the policy gives the value itself, or after the evaluation.
	expression *cel.Expression
}

// compileEnv compiles an override of environment variables.
func compileEnv(in *hubv1.EnvOverride) (containerChange, *fault) {
	if len(in.Set) > maxVariables || len(in.Remove) > maxVariables {
		return containerChange{}, &fault{message: fmt.Sprintf("has more than %d variables: split it into several rules", maxVariables)}
	}
	if len(in.Set) == 0 && len(in.Remove) == 0 {
		return containerChange{}, &fault{message: "changes nothing: name variables to set or to remove"}
	}
	change := envChange{remove: in.Remove}
	var values []any
	for i := range in.Set {
		name := in.Set[i].Name
		if name == "" || slices.ContainsFunc(change.set, func(v variable) bool { return v.name == name }) || slices.Contains(in.Remove, name) {
			return containerChange{}, &fault{leaf: "set", message: fmt.Sprintf("has variable %q without a name, twice, or in both set and remove", printable(name))}
		}
		v, f := compileVariable(&in.Set[i])
		if f != nil {
			return containerChange{}, f
		}
		change.set, values = append(change.set, v), append(values, v.value)
	}
	c, f := compileTarget("env", &in.ContainerTarget)
	c.lower = change.lower
	if slices.ContainsFunc(change.set, func(v variable) bool { return v.expression != nil }) {
		c.evaluated = func(e *evaluation, budget *int) (containerChange, *fault) {
			evaluated, f := change.evaluated(e, budget)
			out := c
			out.lower, out.evaluated = evaluated.lower, nil
			return out, f
		}
	}
	return c, sized(f, values)
}

func compileVariable(in *hubv1.EnvVariable) (variable, *fault) {
	bad := func(format string, args ...any) (variable, *fault) {
		return variable{}, &fault{leaf: "set", message: fmt.Sprintf("has a variable %q that ", printable(in.Name)) + fmt.Sprintf(format, args...)}
	}
	out := variable{name: in.Name}
	if in.Expression != "" {
		if in.Value != "" || in.ValueFrom != nil {
			return bad("has both an expression and a value: drop one")
		}
		var message string
		if out.expression, message = compileValue(in.Expression); message != "" {
			return bad("%s", message)
		}
	}
	var err error
	if out.value, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&in.EnvVar); err != nil {
		return bad("cannot be written as JSON")
	}
	return out, nil
}

// envChange sets and removes environment variables of a container.
type envChange struct {
	set    []variable
	remove []string
}

func (c envChange) lower(container any, at pointer) ([]action, *fault) {
	return lowerEnv(container, slices.Concat(at, pointer{"env"}), c.set, c.remove)
}

// evaluated returns the change with the values of its expressions. It subtracts the size of these values from budget.
func (c envChange) evaluated(e *evaluation, budget *int) (envChange, *fault) {
	c.set = slices.Clone(c.set)
	for i := range c.set {
		v := &c.set[i]
		if v.expression == nil {
			continue
		}
		value, f := e.value(v.expression, budget)
		text, ok := value.(string)
		switch {
		case f != nil:
			return c, &fault{field: "env", leaf: "set", message: fmt.Sprintf("variable %q ", printable(v.name)) + f.message}
		case !ok:
			return c, &fault{field: "env", leaf: "set", message: fmt.Sprintf("variable %q takes only a string: use string() in its expression", printable(v.name))}
		}
		v.value, v.expression = map[string]any{"name": v.name, "value": text}, nil
	}
	return c, nil
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
		return nil, &fault{path: at.String(), message: fmt.Sprintf("has more than %d variables: change one of them by its index, with patches in place of env", maxListed)}
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
