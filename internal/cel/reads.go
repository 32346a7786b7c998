package cel

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Reading is what an expression reads: a whole variable, or one entry of a variable, such as labels["team"].
type Reading struct {
	Variable string
	Key      string // the key that is read; empty: the whole variable
}

// Reads returns the variables that the expression reads, in order of appearance. If the expression reads only single
// entries of a variable, the result has these entries. The caller must not change the result.
func (x *Expression) Reads() []Reading { return x.reads }

func (e *Environment) readings(checked *ast.AST) []Reading {
	var out []Reading
	add := func(r Reading) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	references := checked.ReferenceMap()
	variable := func(x ast.Expr) string {
		if x.Kind() != ast.IdentKind || references[x.ID()] == nil {
			return ""
		}
		if _, ok := e.variables[references[x.ID()].Name]; ok {
			return references[x.ID()].Name
		}
		return "" // a macro's variable; with the name of one of ours, too much is reported
	}
	inEntry := map[int64]bool{} // IDs of variables of which only one entry is read
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.SelectKind:
			if v := variable(x.AsSelect().Operand()); v != "" {
				inEntry[x.AsSelect().Operand().ID()] = true
				add(Reading{v, x.AsSelect().FieldName()})
			}
		case ast.CallKind:
			if v, key, ident := entryRead(x.AsCall(), variable); v != "" {
				inEntry[ident] = true
				add(Reading{v, key})
			}
		case ast.IdentKind:
			if v := variable(x); v != "" && !inEntry[x.ID()] {
				add(Reading{Variable: v})
			}
		}
	}))
	return out
}

// entryRead returns the variable and the key if the call has the form labels["key"] or "key" in labels. ident is the ID
// of the variable's identifier in the expression. For any other call, v is empty.
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
