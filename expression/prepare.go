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

// ordered is the function through which every macro goes: no text can name it.
const ordered = "@ordered"

var orderedFunction = cel.Function(ordered, cel.Overload("ordered", []*cel.Type{cel.TypeParamType("T")}, cel.TypeParamType("T"),
	cel.UnaryBinding(func(v ref.Val) ref.Val {
		if m, ok := v.(traits.Mapper); ok {
			return orderedMap{m}
		}
		return v
	})))

// maxMacros of an expression. With each of them a type may become deeper, and what it takes to read it grows with the
// cube of that.
const maxMacros = 32

// maxStates of a regular expression that stands in a text, which is compiled when the text is read.
const maxStates = 10_000

// preparation of a parsed expression, before its types are known.
type preparation struct {
	factory ast.ExprFactory
	source  *ast.SourceInfo
	last    int64          // the highest id that is in use
	results map[int64]bool // lists with one item, by which macros grow their results
	macros  int
	states  uint64
}

// prepare makes every macro go through maps in the order of their keys, and takes what lists and maps hold for dynamic,
// unless it is constant: as in JSON they may hold several types, for which Kubernetes asks for dyn(), and their types
// do not grow. It refuses what could not be read in good time.
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

// result notes the list of a step such as: accu + [item], or: condition ? accu + [item] : accu.
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

// mix lets the items of a list be of several types.
func (p *preparation) mix(e ast.Expr) {
	l := e.AsList()
	if p.results[e.ID()] || constants(l.Elements()) {
		return
	}
	var items []ast.Expr
	for i, item := range l.Elements() {
		if !l.IsOptional(int32(i)) { // which must stay one
			item = p.call(operatorDyn, item)
		}
		items = append(items, item)
	}
	e.SetKindCase(p.factory.NewList(e.ID(), items, l.OptionalIndices()))
}

// mixMap lets the values of a map be of several types.
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

// constants of one type keep it.
func constants(values []ast.Expr) bool {
	for _, v := range values {
		if v.Kind() != ast.LiteralKind || v.AsLiteral().Type() != values[0].AsLiteral().Type() {
			return false
		}
	}
	return true
}

// call of a function in the place of its argument.
func (p *preparation) call(function string, arg ast.Expr) ast.Expr {
	p.last++
	if at, ok := p.source.GetOffsetRange(arg.ID()); ok {
		p.source.SetOffsetRange(p.last, at)
	}
	return p.factory.NewCall(p.last, function, arg)
}

// orderedMap goes through its keys in order.
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
