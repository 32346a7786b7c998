package cel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	program cel.Program
	limit   uint64
	result  *cel.Type
	reads   []Reading
	source  *ast.SourceInfo
}

// Budget limits the total cost of several evaluations: each evaluation takes its cost from the Budget. A Budget is not
// safe for concurrent use.
type Budget struct{ left uint64 }

// NewBudget returns a Budget with this number of units of CEL's cost.
func NewBudget(units uint64) *Budget { return &Budget{left: units} }

// Holds returns the result, true or false, of an expression that CompileBool returned. If budget is nil, only the limit
// of the Environment applies. If the evaluation fails, the error is an *EvaluationError, and the expression is neither
// true nor false.
func (x *Expression) Holds(values map[string]any, budget *Budget) (bool, error) {
	out, err := x.eval(values, budget)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, &EvaluationError{Reason: errNotBool.Error(), err: errNotBool}
	}
	return bool(b), nil
}

// Value evaluates an expression that CompileValue returned. It returns the result as decoded JSON: nil, bool, int64,
// float64, string, []any or map[string]any. A quantity becomes a string. The caller may change the result. If budget is
// nil, only the limit of the Environment applies. The error is an *EvaluationError.
func (x *Expression) Value(values map[string]any, budget *Budget) (v any, err error) {
	out, err := x.eval(values, budget)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, &EvaluationError{Reason: "gives a result that cannot be read", err: fmt.Errorf("internal error: %v", r)}
		}
	}()
	left := MaxResultBytes
	if v, err = toJSON(out, MaxResultDepth, &left); err != nil {
		return nil, &EvaluationError{Reason: err.Error(), err: err}
	}
	return v, nil
}

func (x *Expression) eval(values map[string]any, budget *Budget) (ref.Val, error) {
	if budget != nil && budget.left == 0 {
		return nil, &EvaluationError{Reason: reasonBudget, err: errors.New(reasonBudget)}
	}
	out, details, err := x.program.Eval(values)
	if budget != nil {
		cost := x.limit
		if details != nil && details.ActualCost() != nil {
			cost = *details.ActualCost()
		}
		budget.left -= min(cost, budget.left)
	}
	if err != nil {
		return nil, x.failure(err)
	}
	return out, nil
}

// EvaluationError means that an evaluation has failed, so that there is no result.
type EvaluationError struct {
	// Reason is a short text, such as "no such key", "cost limit exceeded" or "gives null". It contains no part of the
	// values of variables.
	Reason string
	// Line and Column are the position, in the expression, of the part that failed. They start at 1, and are 0 if the
	// position is unknown.
	Line, Column int

	err error
}

// Error returns CEL's message. The message may contain parts of the values of variables.
func (f *EvaluationError) Error() string { return f.err.Error() }

// Unwrap returns CEL's error.
func (f *EvaluationError) Unwrap() error { return f.err }

// Where returns Reason with the position, such as "no such key, at line 1, column 7". The text contains no part of the
// values of variables.
func (f *EvaluationError) Where() string {
	if f.Line == 0 {
		return f.Reason
	}
	return fmt.Sprintf("%s, at line %d, column %d", f.Reason, f.Line, f.Column)
}

const (
	reasonCost   = "cost limit exceeded"
	reasonBudget = "the expressions cost too much together"
)

// reasons are parts of CEL's error messages. They never contain a part of the values of variables, so that Reason may
// contain them.
var reasons = []string{
	reasonCost, "no such key", "no such overload", "division by zero", "divide by zero", "modulus by zero", "integer overflow", "unsigned integer overflow",
	"index out of bounds", "range error", "type conversion error", "no such attribute", "optional.none() dereference", "duplicate key", "illegal base64 data",
}

func (x *Expression) failure(err error) *EvaluationError {
	f := &EvaluationError{Reason: "the evaluation failed", err: err}
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) {
		f.Reason, f.err = reasonCost, errors.New("operation cancelled: actual "+reasonCost)
		return f
	}
	for _, r := range reasons {
		if strings.Contains(err.Error(), r) {
			f.Reason = r
			break
		}
	}
	if e := (*types.Err)(nil); errors.As(err, &e) && e.NodeID() > 0 {
		if at := x.source.GetStartLocation(e.NodeID()); at.Line() > 0 {
			f.Line, f.Column = at.Line(), at.Column()+1
		}
	}
	return f
}
