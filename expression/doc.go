// Package expression compiles and evaluates what users write in CEL: which clusters are meant, what a patch sets,
// whether an object is healthy, what a status folds to. It does no I/O and reads no clock: equal values give an equal
// answer.
//
// The language is that of a Kubernetes 1.36 API server, its libraries included; but that lists and maps may hold values
// of several types, as in JSON. Each purpose has an Environment of its own:
//
//	env := expression.NewEnvironment(limit, map[string]*cel.Type{"object": cel.DynType})   // also "values": cel.ListType(cel.DynType)
//	cond, err := env.CompileBool("object.spec.replicas > 2")                               // must be a bool by its type
//	expr, err := env.CompileValue("object.spec.replicas * 2", cel.IntType)                 // of these types, or of one known only when evaluated; none named: any that JSON has
//	ok, err := cond.Holds(map[string]any{"object": object}, nil)
//	value, err := expr.Value(map[string]any{"object": object}, budget)                     // nil, bool, int64, float64, string, []any, map[string]any
//
// Values that are handed in are what JSON decodes to, or values of CEL. They are neither changed nor part of what is
// given back.
//
// Expressions come from tenants, and so do the objects that they read. Therefore:
//   - A text has at most MaxLength bytes, and one that would be too expensive already over short lists is refused when
//     it is compiled.
//   - One evaluation costs at most the limit of its Environment, in units of CEL: 20,000 take some milliseconds. What a
//     call will cost is known before it is made, from its arguments: comparisons, sets, regular expressions, replace,
//     join, format and lists.range. CEL itself counts them afterwards, and compares lists and maps by their length
//     alone. A Budget bounds what several evaluations cost together.
//   - A result has at most MaxResultBytes and MaxResultDepth levels.
//   - Nothing panics: what fails is a *EvaluationError, whose Reason holds nothing of what was read.
//   - A macro goes through a map in the order of its keys: what an expression gives does not change from one evaluation
//     to the next.
//
// Not decided here: what an expression is for, what a failure leads to, and which facts it may see.
package expression
