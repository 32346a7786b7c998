package cel

import (
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// The cost estimate at compilation does not know the real sizes of values. It assumes assumedItems for the length of a
// list or map, and assumedBytes for the length of a text.
const (
	assumedItems = 8
	assumedBytes = 16
)

// prices has the functions whose cost CEL underestimates, or computes only after the call. For example, a comparison
// may visit nested lists of any size, and the size of a result may be the product of the sizes of the arguments. For
// each function, prices has a Go function that computes the price of a call from its arguments, in the units of CEL's
// cost. The Go function may stop counting when the price exceeds the bound.
var prices = map[string]func(args []ref.Val, bound uint64) uint64{
	operators.Equals:    func(a []ref.Val, bound uint64) uint64 { return comparison(a[0], a[1], bound) },
	operators.NotEquals: func(a []ref.Val, bound uint64) uint64 { return comparison(a[0], a[1], bound) },
	operators.In: func(a []ref.Val, bound uint64) uint64 {
		if _, isMap := a[1].(traits.Mapper); isMap {
			return 1
		}
		return lesser(func(bound uint64) uint64 { return weight(a[1], bound) },
			func(bound uint64) uint64 { return times(items(a[1]), 1+weight(a[0], bound)) }, bound)
	},
	"sets.contains":   product,
	"sets.equivalent": product,
	"sets.intersects": product,
	"distinct":        func(a []ref.Val, bound uint64) uint64 { return times(items(a[0]), weight(a[0], bound)) },
	"flatten":         func(a []ref.Val, bound uint64) uint64 { return weight(a[0], bound) },
	"indexOf":         search,
	"lastIndexOf":     search,
	"matches":         regex,
	"find":            regex,
	"findAll":         regex,
	"lists.range":     func(a []ref.Val, _ uint64) uint64 { return number(a[0]) },
	"join":            join,
	"split":           func(a []ref.Val, _ uint64) uint64 { return 1 + length(a[0]) },
	"replace":         replace,
	"format":          format,
	"size":            text,
	"charAt":          text,
	"isURL":           text,
	"timestamp":       text,
	"duration":        text,
	"int":             text,
	"uint":            text,
	"double":          text,
	"base64.encode":   text,
	"base64.decode":   text,
}

// text returns the price of a call that reads its first argument, a text, once.
func text(a []ref.Val, _ uint64) uint64 { return 1 + length(a[0])/10 }

// maxPrice is the price at which the counting of a price stops if no other limit is given. It is higher than the cost
// limit of any Environment.
const maxPrice = 1 << 24

// comparison returns the price of comparing two values. A comparison stops at the end of the smaller value.
func comparison(a, b ref.Val, bound uint64) uint64 {
	if !composite(a) {
		return weight(a, bound)
	}
	if !composite(b) {
		return weight(b, bound)
	}
	return lesser(func(bound uint64) uint64 { return weight(a, bound) }, func(bound uint64) uint64 { return weight(b, bound) }, bound)
}

// lesser returns the lower of the prices that a and b compute. It does not compute the higher price to its end, because
// that price may be very large. If both exceed the bound, it returns more than the bound.
func lesser(a, b func(bound uint64) uint64, bound uint64) uint64 {
	for m := min(32, bound); ; m = min(4*m, bound) {
		if n := a(m); n <= m {
			return min(n, b(n))
		}
		if n := b(m); n <= m {
			return n
		}
		if m == bound {
			return bound + 1
		}
	}
}

func product(a []ref.Val, bound uint64) uint64 {
	return times(items(a[0]), weight(a[1], bound)) + times(items(a[1]), weight(a[0], bound))
}

func search(a []ref.Val, bound uint64) uint64 {
	if _, ok := a[0].(types.String); ok {
		return 1 + times(length(a[0]), length(a[1]))/10
	}
	return weight(a[0], bound)
}

func regex(a []ref.Val, _ uint64) uint64 {
	states := statesOf(a[1])
	return times(1+length(a[0])/10, 1+states/4) + states + length(a[1])/10
}

// statesOf returns the approximate number of states of a regular expression. It returns 0 if the text is not a valid
// regular expression.
func statesOf(v ref.Val) uint64 {
	text, _ := v.Value().(string)
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	return steps(re)
}

// steps returns the approximate number of states of a parsed regular expression.
func steps(re *syntax.Regexp) uint64 {
	n := uint64(1 + len(re.Rune))
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n = times(n, uint64(max(re.Min, re.Max, 1)))
	}
	return n
}

func join(a []ref.Val, bound uint64) uint64 {
	n := weight(a[0], bound)
	if len(a) > 1 {
		n += times(items(a[0]), 1+length(a[1])/10)
	}
	return n
}

func replace(a []ref.Val, _ uint64) uint64 {
	text, _ := a[0].Value().(string)
	old, _ := a[1].Value().(string)
	count := uint64(strings.Count(text, old))
	if len(a) > 3 && number(a[3]) < count {
		count = number(a[3])
	}
	return 1 + length(a[0])/5 + times(count, 1+length(a[2])/5)
}

func format(a []ref.Val, bound uint64) uint64 {
	text, _ := a[0].Value().(string)
	n := 1 + length(a[0])/10 + 2*weight(a[1], bound)
	for _, clause := range strings.Split(text, "%.")[1:] {
		digits := len(clause) - len(strings.TrimLeft(clause, "0123456789"))
		precision, err := strconv.ParseUint(clause[:digits], 10, 32)
		if err != nil && digits > 0 {
			return math.MaxUint64
		}
		n += precision
	}
	return n
}

// weight returns the size of a value: 1 for the value itself, 1 for each value nested in it, and 1 for each ten bytes
// of text. It stops counting when the size exceeds the bound.
func weight(v ref.Val, bound uint64) uint64 {
	n := uint64(1)
	switch v := v.(type) {
	case types.String, types.Bytes:
		n += length(v) / 10
	case *types.Optional:
		if v.HasValue() {
			n += weight(v.GetValue(), bound)
		}
	case traits.Mapper:
		for it := v.Iterator(); n <= bound && it.HasNext() == types.True; {
			k := it.Next()
			n += weight(k, bound-n)
			if inner, ok := v.Find(k); ok && n <= bound {
				n += weight(inner, bound-n)
			}
		}
	case traits.Lister:
		for it := v.Iterator(); n <= bound && it.HasNext() == types.True; {
			n += weight(it.Next(), bound-n)
		}
	}
	return n
}

func composite(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

func length(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

func items(v ref.Val) uint64 {
	if l, ok := v.(traits.Lister); ok {
		return number(l.Size())
	}
	return 1
}

func number(v ref.Val) uint64 {
	if n, ok := v.(types.Int); ok && n > 0 {
		return uint64(n)
	}
	return 0
}

func times(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/4/a {
		return math.MaxUint64 / 4
	}
	return a * b
}

// pricedFunction is a prefix that pricedCall puts before the name of a function. CEL replaces calls of some functions,
// which it finds by name, by faster code that would skip the price. With the prefix, CEL does not find them.
const pricedFunction = "priced "

// pricedCall is a call of a function in prices. The function is called only if the price of the call is within the
// limit.
type pricedCall struct {
	interpreter.InterpretableCall
	call  functions.FunctionOp
	price func([]ref.Val, uint64) uint64
	limit uint64
}

// Function implements interpreter.InterpretableCall.
func (c *pricedCall) Function() string { return pricedFunction + c.InterpretableCall.Function() }

// Eval implements interpreter.Interpretable. If the price exceeds the limit, it aborts the whole evaluation, as CEL
// does at its own limit. An error value would not be enough, because || can ignore it.
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	args := make([]ref.Val, len(c.Args()))
	for i, a := range c.Args() {
		if args[i] = a.Eval(vars); types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	if c.price(args, c.limit) > c.limit {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "operation cancelled: actual cost limit exceeded"})
	}
	return types.LabelErrNode(c.ID(), c.call(args...))
}

// countedByCEL are the functions in prices for which CEL always counts the cost itself and ignores the cost estimator
// (see costs). For these functions, pricedCalls replaces CEL's count.
var countedByCEL = []string{"sets.contains", "sets.equivalent", "sets.intersects", "distinct", "flatten", "lists.range"}

// pricedCalls returns options for a CEL program. With these options, the program checks the price of a call before it
// makes the call, and adds the price to the cost of the evaluation.
func pricedCalls(env *cel.Env, limit uint64) ([]cel.ProgramOption, error) {
	implementations := map[string]*functions.Overload{}
	counted := []interpreter.CostTrackerOption{}
	for name := range prices {
		declared, ok := env.Functions()[name]
		if !ok {
			return nil, fmt.Errorf("the function %s is not known", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			implementations[b.Operator] = b
			if slices.Contains(countedByCEL, name) {
				counted = append(counted, interpreter.OverloadCostTracker(b.Operator, func(args []ref.Val, _ ref.Val) *uint64 {
					cost := prices[name](args, maxPrice)
					return &cost
				}))
			}
		}
	}
	decorator := func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || prices[call.Function()] == nil {
			return i, nil
		}
		out := &pricedCall{InterpretableCall: call, price: prices[call.Function()], limit: limit}
		switch call.Function() {
		case operators.Equals:
			out.call = func(a ...ref.Val) ref.Val { return types.Equal(a[0], a[1]) }
			return out, nil
		case operators.NotEquals:
			out.call = func(a ...ref.Val) ref.Val { return types.Bool(types.Equal(a[0], a[1]) != types.True) }
			return out, nil
		}
		implementation := implementations[call.OverloadID()]
		if implementation == nil {
			implementation = implementations[call.Function()]
		}
		if implementation == nil {
			return nil, fmt.Errorf("the function %s cannot be called", call.Function())
		}
		out.call = called(call, implementation)
		return out, nil
	}
	return []cel.ProgramOption{cel.CustomDecorator(decorator), cel.CostTrackerOptions(counted...)}, nil
}

// called returns a Go function that calls an overload with all its arguments, in the same way as CEL.
func called(call interpreter.InterpretableCall, o *functions.Overload) functions.FunctionOp {
	return func(a ...ref.Val) ref.Val {
		switch {
		case o.OperandTrait != 0 && !a[0].Type().HasTrait(o.OperandTrait):
		case o.Unary != nil && len(a) == 1:
			return o.Unary(a[0])
		case o.Binary != nil && len(a) == 2:
			return o.Binary(a[0], a[1])
		case o.Function != nil:
			return o.Function(a...)
		}
		return types.NewErr("no such overload: %s", call.Function())
	}
}

// costs says what calls of functions cost. CEL uses it to estimate the cost at compilation, and to count the cost
// during an evaluation.
type costs struct{ library.CostEstimator }

var estimator = &costs{library.CostEstimator{SizeEstimator: assumed{}}}

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	function, isPriced := strings.CutPrefix(function, pricedFunction)
	if isPriced {
		cost := prices[function](args, maxPrice)
		return &cost
	}
	if m, ok := result.(orderedMap); ok && function == ordered {
		cost := 1 + number(m.Size())
		return &cost
	}
	return c.CostEstimator.CallCost(function, overload, args, result)
}

// EstimateCallCost implements checker.CostEstimator.
func (c *costs) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function != ordered {
		return c.CostEstimator.EstimateCallCost(function, overload, target, args)
	}
	size := args[0].ComputedSize()
	if size == nil {
		size = assumed{}.EstimateSize(args[0])
	}
	return &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(1), ResultSize: size}
}

// assumed tells CEL, at compilation, the sizes of values whose real size is not known.
type assumed struct{}

// EstimateSize implements checker.CostEstimator.
func (assumed) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	switch node.Type().Kind() {
	case types.StringKind, types.BytesKind:
		return &checker.SizeEstimate{Max: assumedBytes}
	}
	return &checker.SizeEstimate{Max: assumedItems}
}

// EstimateCallCost implements checker.CostEstimator.
func (assumed) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
