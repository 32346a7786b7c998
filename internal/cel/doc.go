// Package cel compiles and evaluates the CEL expressions of users. Such expressions select clusters, compute the
// values of patches, judge the health of objects, and merge statuses. The package does no I/O and reads no clock: equal
// values give equal results.
//
// The language and its libraries are those of a Kubernetes 1.36 API server, with two exceptions: lists and maps may
// have values of several types, as in JSON, and there are the functions base64.encode and base64.decode. Each purpose
// of expressions has its own Environment:
//
//	// "object" is a variable of any type. A variable with a list has the type cel.ListType(cel.DynType).
//	env := cel.NewEnvironment(limit, map[string]*cel.Type{"object": cel.DynType})
//	// CompileBool refuses an expression whose type is not bool, or not known before the evaluation.
//	cond, err := env.CompileBool("object.spec.replicas > 2")
//	// CompileValue refuses a known type that is not among the given types. Without types, it allows all types of JSON.
//	expr, err := env.CompileValue("object.spec.replicas * 2", cel.IntType)
//	ok, err := cond.Holds(map[string]any{"object": object}, nil)
//	// value is nil, a bool, int64, float64, string, []any or map[string]any.
//	value, err := expr.Value(map[string]any{"object": object}, budget)
//
// The values of variables are decoded JSON, or CEL values. An evaluation never changes them, and the result shares no
// memory with them.
//
// Expressions come from tenants, as do the objects that expressions read. Therefore:
//   - A text has at most MaxLength bytes. An expression that is too expensive even for short lists is refused when it
//     is compiled.
//   - One evaluation costs at most the limit of its Environment, in cost units of CEL. An evaluation of 20,000 units
//     takes some milliseconds. For expensive functions, the cost is computed from the arguments before the call:
//     comparisons, sets, regular expressions, replace, join, format and lists.range. CEL itself would count the cost
//     after the call. It would count comparisons of lists and maps only by their length. A Budget limits the total cost
//     of several evaluations.
//   - A result has at most MaxResultBytes and MaxResultDepth levels.
//   - An evaluation never panics. A failure is an *EvaluationError, whose Reason contains no part of the values.
//   - A macro visits a map in the order of its keys, so that the result is the same at each evaluation.
//
// The caller defines the variables of an expression, and decides what happens if an evaluation fails.
package cel
