package cel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ordered is the name of a function that makes a macro, such as map or filter, visit a map in the order of its keys.
// prepare puts a call of this function around the list or map that a macro visits. The name is not a CEL identifier, so
// that a user's expression cannot call the function.
const ordered = "@ordered"

var orderedFunction = cel.Function(ordered, cel.Overload("ordered", []*cel.Type{cel.TypeParamType("T")}, cel.TypeParamType("T"),
	cel.UnaryBinding(func(v ref.Val) ref.Val {
		if m, ok := v.(traits.Mapper); ok {
			return orderedMap{m}
		}
		return v
	})))

// maxMacros is the maximum number of macros, such as map, in an expression. Each macro may nest the type of its result
// one level deeper, and the time to check a type grows with the cube of its depth.
const maxMacros = 32

// maxStates is the maximum total number of states of the constant regular expressions in an expression. Regular
// expressions are compiled together with the expression, when no cost limit applies yet.
const maxStates = 10_000

// preparation is the state of one call of prepare.
type preparation struct {
	factory ast.ExprFactory
	source  *ast.SourceInfo
	last    int64          // the highest ID of an expression
	results map[int64]bool // IDs of lists with one item, by which macros extend results
	macros  int
	states  uint64
}

// prepare changes a parsed expression before its types are checked, in two ways. Every macro visits maps in the order
// of their keys. And the items of a list or map may have several types, as in JSON. Kubernetes allows several types
// only with dyn(). prepare returns an error for an expression that would take too long to compile.
func prepare(parsed *ast.AST) error {
	p := &preparation{factory: ast.NewExprFactory(), source: parsed.SourceInfo(), results: map[int64]bool{}}
	var all []ast.Expr
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		all = append(all, e)
		p.look(e)
	}))
	switch {
	case p.macros > maxMacros:
		return fmt.Errorf("the expression has more than %d macros: make it shorter", maxMacros)
	case p.states > maxStates:
		return errors.New("the expression has a regular expression that is too large: use fewer repetitions")
	}
	for _, e := range all {
		switch e.Kind() {
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			e.SetKindCase(p.factory.NewComprehensionTwoVar(e.ID(), p.call(ordered, c.IterRange()), c.IterVar(), c.IterVar2(), c.AccuVar(),
				c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
		case ast.ListKind:
			p.mix(e)
		case ast.MapKind:
			p.mixMap(e)
		}
	}
	return nil
}

func (p *preparation) look(e ast.Expr) {
	p.last = max(p.last, e.ID())
	switch e.Kind() {
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			p.last = max(p.last, entry.ID())
		}
	case ast.ComprehensionKind:
		p.macros++
		p.result(e.AsComprehension())
	case ast.CallKind:
		switch c := e.AsCall(); c.FunctionName() {
		case "matches", "find", "findAll":
			for _, arg := range c.Args() {
				if arg.Kind() == ast.LiteralKind {
					p.states += statesOf(arg.AsLiteral())
				}
			}
		}
	}
}

// result handles a macro that builds a list, such as map. In each step, such a macro adds a list with one item to its
// result. The step has the form accu + [item], or condition ? accu + [item] : accu, where accu is the result so far.
// The method result records the list [item], so that mix leaves it as it is.
func (p *preparation) result(c ast.ComprehensionExpr) {
	step := c.LoopStep()
	if step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
		step = step.AsCall().Args()[1]
	}
	if step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Add {
		return
	}
	args := step.AsCall().Args()
	if args[0].Kind() == ast.IdentKind && args[0].AsIdent() == c.AccuVar() {
		p.results[args[1].ID()] = true
	}
}

// mix lets the items of a list have several types: it wraps each item in dyn(). A list of constants of one type, and a
// list that result has recorded, stay as they are.
func (p *preparation) mix(e ast.Expr) {
	l := e.AsList()
	if p.results[e.ID()] || constants(l.Elements()) {
		return
	}
	var items []ast.Expr
	for i, item := range l.Elements() {
		if !l.IsOptional(int32(i)) { // optional items must not be wrapped
			item = p.call(operatorDyn, item)
		}
		items = append(items, item)
	}
	e.SetKindCase(p.factory.NewList(e.ID(), items, l.OptionalIndices()))
}

// mixMap lets the values of a map have several types: it wraps each value in dyn(). A map whose values are constants of
// one type stays as it is.
func (p *preparation) mixMap(e ast.Expr) {
	var values []ast.Expr
	for _, entry := range e.AsMap().Entries() {
		values = append(values, entry.AsMapEntry().Value())
	}
	if constants(values) {
		return
	}
	var entries []ast.EntryExpr
	for _, entry := range e.AsMap().Entries() {
		m := entry.AsMapEntry()
		value := m.Value()
		if !m.IsOptional() {
			value = p.call(operatorDyn, value)
		}
		entries = append(entries, p.factory.NewMapEntry(entry.ID(), m.Key(), value, m.IsOptional()))
	}
	e.SetKindCase(p.factory.NewMap(e.ID(), entries))
}

const operatorDyn = "dyn"

// constants reports whether all values are constants of the same type. Lists and maps of such values need no dyn().
func constants(values []ast.Expr) bool {
	for _, v := range values {
		if v.Kind() != ast.LiteralKind || v.AsLiteral().Type() != values[0].AsLiteral().Type() {
			return false
		}
	}
	return true
}

// call returns a call of the function with the argument arg. Error messages give the call the position of arg.
func (p *preparation) call(function string, arg ast.Expr) ast.Expr {
	p.last++
	if at, ok := p.source.GetOffsetRange(arg.ID()); ok {
		p.source.SetOffsetRange(p.last, at)
	}
	return p.factory.NewCall(p.last, function, arg)
}

// orderedMap is a CEL map whose iterator visits the keys in order.
type orderedMap struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m orderedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.DefaultTypeAdapter.NativeToValue(keys).(traits.Lister).Iterator()
}

func compareKeys(a, b ref.Val) int {
	if x, ok := a.(types.String); ok {
		if y, ok := b.(types.String); ok {
			return cmp.Compare(x, y)
		}
	}
	if x, ok := a.(traits.Comparer); ok && a.Type() == b.Type() {
		if n, ok := x.Compare(b).(types.Int); ok {
			return int(n)
		}
	}
	return cmp.Compare(a.Type().TypeName(), b.Type().TypeName())
}
