// Package expression compiles and evaluates the CEL expressions of users. Such expressions select clusters, compute the
// values of patches, judge the health of objects, and merge statuses. The package does no I/O and reads no clock: equal
// values give equal results.
//
// The language and its libraries are those of a Kubernetes 1.36 API server, with one exception: lists and maps may have
// values of several types, as in JSON. Each purpose of expressions has its own Environment:
//
//	env := expression.NewEnvironment(limit, map[string]*cel.Type{"object": cel.DynType})   // also "values": cel.ListType(cel.DynType)
//	cond, err := env.CompileBool("object.spec.replicas > 2")                               // must be a bool by its type
//	expr, err := env.CompileValue("object.spec.replicas * 2", cel.IntType)                 // of these types, or of one known only when evaluated; none named: any that JSON has
//	ok, err := cond.Holds(map[string]any{"object": object}, nil)
//	value, err := expr.Value(map[string]any{"object": object}, budget)                     // nil, bool, int64, float64, string, []any, map[string]any
//
// The values of variables are decoded JSON, or CEL values. An evaluation never changes them, and the result shares no
// memory with them.
//
// Expressions come from tenants, as do the objects that expressions read. Therefore:
//   - A text has at most MaxLength bytes. An expression that is too expensive even for short lists is refused when it
//     is compiled.
//   - One evaluation costs at most the limit of its Environment, in units of CEL: 20,000 take some milliseconds. For
//     expensive functions the cost of a call is computed before the call, from its arguments: comparisons, sets,
//     regular expressions, replace, join, format and lists.range. CEL itself counts them afterwards, and compares lists
//     and maps by their length alone. A Budget limits the total cost of several evaluations.
//   - A result has at most MaxResultBytes and MaxResultDepth levels.
//   - There are no panics: a failure is an *EvaluationError, whose Reason contains no part of the values.
//   - A macro visits a map in the order of its keys, so that the result is the same at each evaluation.
//
// The caller defines the variables of an expression, and decides what happens if an evaluation fails.
package expression
