package expression

import (
	"cmp"
	"errors"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
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

// maxComputedKeys of the map literals of an expression. The type of a map has the type of its key in it twice as soon as both are the same
// variable, so that a chain of macros could make a type that nobody can read to its end.
const maxComputedKeys = 4

// orderIterations makes every macro of a parsed expression go through maps in the order of their keys.
func orderIterations(parsed *ast.AST) error {
	var loops []ast.Expr
	last, computed := int64(0), 0
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		last = max(last, e.ID())
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops = append(loops, e)
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				last = max(last, entry.ID())
				if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
					computed++
				}
			}
		}
	}))
	if computed > maxComputedKeys {
		return errors.New("the expression has too many maps whose keys are not constants: at most 4")
	}
	factory := ast.NewExprFactory()
	for _, e := range loops {
		last++
		c := e.AsComprehension()
		if at, ok := parsed.SourceInfo().GetOffsetRange(c.IterRange().ID()); ok {
			parsed.SourceInfo().SetOffsetRange(last, at)
		}
		e.SetKindCase(factory.NewComprehensionTwoVar(e.ID(), factory.NewCall(last, ordered, c.IterRange()), c.IterVar(), c.IterVar2(), c.AccuVar(),
			c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
	}
	return nil
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
