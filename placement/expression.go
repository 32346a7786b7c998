package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Names of the variables of an expression.
const (
	varName        = "name"
	varLabels      = "labels"
	varAnnotations = "annotations"
	varRegion      = "region"
	varZone        = "zone"
	varVersion     = "version"
	varCapacity    = "capacity"
	varAllocatable = "allocatable"
	varNodes       = "nodes"
	varServedKinds = "servedKinds"
)

// variables of an expression. Those that somebody has said of the cluster, or that are pinned, may take an object away when they
// change; the others change by themselves.
var variables = map[string]struct {
	celType *cel.Type
	said    bool
}{
	varName:        {cel.StringType, true},
	varLabels:      {cel.MapType(cel.StringType, cel.StringType), true},
	varAnnotations: {cel.MapType(cel.StringType, cel.StringType), true},
	varRegion:      {cel.StringType, true},
	varZone:        {cel.StringType, true},
	varVersion:     {cel.StringType, false},
	varCapacity:    {cel.MapType(cel.StringType, apiservercel.QuantityType), false},
	varAllocatable: {cel.MapType(cel.StringType, apiservercel.QuantityType), false},
	varNodes:       {cel.MapType(cel.StringType, cel.IntType), false},
	varServedKinds: {cel.ListType(cel.StringType), false},
}

// costLimit bounds one evaluation to about a millisecond.
const costLimit = 20_000

// environ is the environment that a Kubernetes 1.36 API server has for its own expressions, with our variables.
var environ = sync.OnceValues(func() (*cel.Env, error) {
	var options []cel.EnvOption
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		options = append(options, cel.Variable(name, variables[name].celType))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options,
	})
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	return set.Env(environment.NewExpressions)
})

// expression is a compiled CEL expression over one cluster.
type expression struct {
	program cel.Program
	// said is true if the expression reads only what somebody has said of the cluster.
	said bool
	// reads are the variables, and entries of maps, whose values a message names.
	reads []reading
}

// reading is a variable, or the entry of one that is a map.
type reading struct{ variable, key string }

var errNotBool = errors.New("the expression must be true or false")

func compileExpression(text string) (*expression, error) {
	env, err := environ()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, errors.New(strings.Join(strings.Fields(issues.Err().Error()), " "))
	}
	if checked.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("%w, not %s", errNotBool, checked.OutputType())
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit))
	if err != nil {
		return nil, err
	}
	e := &expression{program: program, reads: readings(checked.NativeRep())}
	e.said = !slices.ContainsFunc(e.reads, func(r reading) bool { return !variables[r.variable].said })
	return e, nil
}

func (e *expression) readsFacts() bool {
	return e != nil && slices.ContainsFunc(e.reads, func(r reading) bool { return r.variable == varAnnotations || !variables[r.variable].said })
}

// readings lists what an expression reads, in order of appearance.
func readings(checked *ast.AST) []reading {
	var out []reading
	add := func(r reading) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	references := checked.ReferenceMap()
	variable := func(e ast.Expr) string {
		if e.Kind() != ast.IdentKind || references[e.ID()] == nil {
			return ""
		}
		if _, ok := variables[references[e.ID()].Name]; ok {
			return references[e.ID()].Name
		}
		return "" // the variable of a macro
	}
	inEntry := map[int64]bool{} // identifiers of which just one entry is read
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			if v := variable(e.AsSelect().Operand()); v != "" {
				inEntry[e.AsSelect().Operand().ID()] = true
				add(reading{v, e.AsSelect().FieldName()})
			}
		case ast.CallKind:
			if v, key, ident := entryRead(e.AsCall(), variable); v != "" {
				inEntry[ident] = true
				add(reading{v, key})
			}
		case ast.IdentKind:
			if v := variable(e); v != "" && !inEntry[e.ID()] {
				add(reading{variable: v})
			}
		}
	}))
	return out
}

// entryRead recognizes labels["key"] and "key" in labels.
func entryRead(call ast.CallExpr, variable func(ast.Expr) string) (v, key string, ident int64) {
	args := call.Args()
	if len(args) != 2 {
		return "", "", 0
	}
	of, entry := args[0], args[1]
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
	case operators.In:
		of, entry = entry, of
	default:
		return "", "", 0
	}
	if entry.Kind() != ast.LiteralKind {
		return "", "", 0
	}
	text, ok := entry.AsLiteral().Value().(string)
	if !ok {
		return "", "", 0
	}
	return variable(of), text, of.ID()
}

// holds evaluates the expression. An error means that it gives no answer for this cluster.
func (e *expression) holds(c *Cluster) (bool, error) {
	out, _, err := e.program.Eval(c.facts())
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, errNotBool
	}
	return bool(b), nil
}

// facts are the values of the variables.
func (c *Cluster) facts() map[string]any {
	return map[string]any{
		varName:        c.Name,
		varLabels:      orEmpty(c.Labels),
		varAnnotations: orEmpty(c.Annotations),
		varRegion:      c.Region(),
		varZone:        c.Zone(),
		varVersion:     c.Version,
		varCapacity:    quantities(c.Capacity),
		varAllocatable: quantities(c.Allocatable),
		varNodes:       map[string]int64{"total": int64(c.Nodes.Total), "ready": int64(c.Nodes.Ready)},
		varServedKinds: c.servedKinds(),
	}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func quantities(list corev1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, q := range list {
		out[string(name)] = apiservercel.Quantity{Quantity: &q}
	}
	return out
}

// servedKinds are those that are known to be served, "Kind.group", sorted.
func (c *Cluster) servedKinds() []string {
	out := []string{}
	for gk, versions := range c.Served {
		if len(versions) > 0 {
			out = append(out, gk.String())
		}
	}
	slices.Sort(out)
	return out
}

// values says what the expression reads of a cluster: `version is "v1.30.1", nodes.ready is 2`. At most five values.
func (e *expression) values(c *Cluster) string {
	const shown = 5
	facts := c.facts()
	var out []string
	for _, r := range e.reads[:min(shown, len(e.reads))] {
		out = append(out, r.value(facts[r.variable]))
	}
	if more := len(e.reads) - shown; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

func (r reading) value(v any) string {
	subject := r.variable
	if r.key != "" && r.variable != varServedKinds {
		var set bool
		switch m := v.(type) {
		case map[string]string:
			v, set = m[r.key]
		case map[string]int64:
			v, set = m[r.key]
		case map[string]any:
			v, set = m[r.key]
		}
		subject += "[" + r.key + "]"
		if !set {
			return subject + " is not set"
		}
	}
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%s is %q", subject, v)
	case apiservercel.Quantity:
		return fmt.Sprintf("%s is %s", subject, v.String())
	case []string:
		return fmt.Sprintf("%s is %s", subject, list(v))
	case map[string]string:
		return fmt.Sprintf("%s has %d entries", subject, len(v))
	case map[string]any:
		return fmt.Sprintf("%s has %d entries", subject, len(v))
	}
	return fmt.Sprintf("%s is %v", subject, v)
}
