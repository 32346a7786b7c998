package expression

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

// ordered is the name of the function that wraps the range of every macro. The name is not an identifier, so that an
// expression cannot call the function.
const ordered = "@ordered"

var orderedFunction = cel.Function(ordered, cel.Overload("ordered", []*cel.Type{cel.TypeParamType("T")}, cel.TypeParamType("T"),
	cel.UnaryBinding(func(v ref.Val) ref.Val {
		if m, ok := v.(traits.Mapper); ok {
			return orderedMap{m}
		}
		return v
	})))

// maxMacros is the maximum number of macros in an expression. Each macro may make a type deeper, and the time to check
// a type grows with the cube of its depth.
const maxMacros = 32

// maxStates is the maximum number of states of a constant regular expression. A constant one is compiled together with
// the CEL expression, before any cost limit applies.
const maxStates = 10_000

// preparation is the state of preparing a parsed expression, before type checking.
type preparation struct {
	factory ast.ExprFactory
	source  *ast.SourceInfo
	last    int64          // the highest ID in use
	results map[int64]bool // lists with one item, by which macros extend their results
	macros  int
	states  uint64
}

// prepare changes a parsed expression before its types are checked. Every macro then visits maps in the order of their
// keys. The items of a list or map may have several types, as in JSON. For such items, Kubernetes requires dyn().
// prepare returns an error for an expression that would take too long to compile.
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
		return errors.New("the expression has a regular expression that is too large: repeat less in it")
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

// result records the list to which a macro appends in each step: accu + [item], or condition ? accu + [item] : accu.
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

// mix permits items of several types in a list.
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

// mixMap permits values of several types in a map.
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

// constants reports whether all values are constants of one type. Such values keep their type.
func constants(values []ast.Expr) bool {
	for _, v := range values {
		if v.Kind() != ast.LiteralKind || v.AsLiteral().Type() != values[0].AsLiteral().Type() {
			return false
		}
	}
	return true
}

// call replaces arg by a call of the function with arg as its argument.
func (p *preparation) call(function string, arg ast.Expr) ast.Expr {
	p.last++
	if at, ok := p.source.GetOffsetRange(arg.ID()); ok {
		p.source.SetOffsetRange(p.last, at)
	}
	return p.factory.NewCall(p.last, function, arg)
}

// orderedMap is a map whose iterator visits the keys in order.
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
