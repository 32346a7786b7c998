package cel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// MaxLength is the maximum length of an expression, in bytes.
const MaxLength = 4096

// Environment has the variables of the expressions for one purpose, and the maximum cost of one evaluation. It is safe
// for concurrent use.
type Environment struct {
	variables map[string]*cel.Type
	limit     uint64
	env       func() (*cel.Env, error)
	programs  programs
}

// NewEnvironment returns an Environment with these variables. variables has their types by name, and a name may have
// dots. limit is the maximum cost of one evaluation, in the units of CEL. A cost of 20,000 takes some milliseconds.
func NewEnvironment(limit uint64, variables map[string]*cel.Type) *Environment {
	return &Environment{variables: variables, limit: limit, env: sync.OnceValues(func() (*cel.Env, error) { return environ(variables) })}
}

// environ returns the CEL environment of a Kubernetes 1.36 API server, with base64.encode and base64.decode, and with
// these variables.
func environ(variables map[string]*cel.Type) (*cel.Env, error) {
	options := []cel.EnvOption{orderedFunction, ext.Encoders()}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		options = append(options, cel.Variable(name, variables[name]))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options, DeclTypes: []*apiservercel.DeclType{operator},
	})
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	return set.Env(environment.NewExpressions)
}

var errNotBool = errors.New("the result of the expression must be true or false")

// CompileBool compiles an expression whose result is true or false. It returns an error if the result has another type.
// An error has the reason, and the position in the expression if it is known.
func (e *Environment) CompileBool(text string) (*Expression, error) {
	x, err := e.compile(text)
	if err != nil {
		return nil, err
	}
	if x.result != cel.BoolType {
		return nil, fmt.Errorf("%w, not %s", errNotBool, x.result)
	}
	return x, nil
}

// CompileValue compiles an expression whose result has one of the allowed types. If no type is given, every type that
// JSON has is allowed. An expression whose type is known only after evaluation is also accepted. An error has the
// reason, and the position in the expression if it is known.
func (e *Environment) CompileValue(text string, allowed ...*cel.Type) (*Expression, error) {
	x, err := e.compile(text)
	if err != nil {
		return nil, err
	}
	if !inJSON(x.result) {
		return nil, notJSON(x.result)
	}
	if len(allowed) == 0 || x.result.Kind() == types.DynKind || slices.ContainsFunc(allowed, func(t *cel.Type) bool { return t.IsAssignableType(x.result) }) {
		return x, nil
	}
	var names []string
	for _, t := range allowed {
		names = append(names, t.String())
	}
	return nil, fmt.Errorf("the expression must be of type %s, not %s", strings.Join(names, " or "), x.result)
}

// compile returns the compiled expression of a text, from the cache if possible.
func (e *Environment) compile(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("the expression has more than %d bytes: make it shorter", MaxLength)
	}
	return e.programs.get(text, e.read)
}

func (e *Environment) read(text string) (x *Expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, errors.New("the expression cannot be parsed: make it simpler")
		}
	}()
	env, err := e.env()
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, problems(issues)
	}
	if err := prepare(parsed.NativeRep()); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, problems(issues)
	}
	if estimate, err := env.EstimateCost(checked, estimator); err != nil {
		return nil, fmt.Errorf("estimating the cost of the expression: %w", err)
	} else if estimate.Max > e.limit {
		return nil, fmt.Errorf("the expression costs too much, even with lists of %d items: use fewer or smaller loops", assumedItems)
	}
	calls, err := pricedCalls(env, e.limit)
	if err != nil {
		return nil, err
	}
	program, err := env.Program(checked, append(calls, cel.CostLimit(e.limit), cel.CostTracking(estimator))...)
	if err != nil {
		return nil, err
	}
	rep := checked.NativeRep()
	return &Expression{program: program, limit: e.limit, result: checked.OutputType(), reads: e.readings(rep), source: rep.SourceInfo()}, nil
}

// problems returns an error with the first errors of a compilation, such as "line 1, column 5: undeclared reference to
// 'nam'".
func problems(issues *cel.Issues) error {
	const shown = 3
	var out []string
	for _, e := range issues.Errors()[:min(shown, len(issues.Errors()))] {
		message := strings.TrimSuffix(strings.Join(strings.Fields(e.Message), " "), " (in container '')")
		const maxBytes = 300
		if len(message) > maxBytes {
			message = strings.ToValidUTF8(message[:maxBytes], "") + "..."
		}
		if e.Location.Line() > 0 {
			message = fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, message)
		}
		out = append(out, message)
	}
	if more := len(issues.Errors()) - shown; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(out, "; "))
}

// inJSON reports whether JSON can represent values of a CEL type. It does not look at the items of a list or map: the
// method Value checks these after the evaluation.
func inJSON(t *cel.Type) bool {
	switch t.Kind() {
	case types.BytesKind, types.DurationKind, types.TimestampKind, types.TypeKind, types.OpaqueKind:
		return false
	case types.StructKind:
		return t.TypeName() == apiservercel.QuantityType.TypeName()
	}
	return true
}

// programs caches compiled expressions in two maps. When the map new is full, it becomes the map old, and the previous
// map old is dropped. Expressions that were used in the meantime are not lost, because each use moves them to the map
// new.
type programs struct {
	mu       sync.Mutex
	new, old map[string]*program
}

type program struct {
	once sync.Once
	x    *Expression
	err  error
}

// generation is the maximum number of expressions in the newer of the two maps in which programs caches compiled
// expressions.
const generation = 256

func (p *programs) get(text string, read func(string) (*Expression, error)) (*Expression, error) {
	e := p.entry(text)
	e.once.Do(func() { e.x, e.err = read(text) })
	return e.x, e.err
}

func (p *programs) entry(text string) *program {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.new[text]
	if e != nil {
		return e
	}
	if e = p.old[text]; e == nil {
		e = &program{}
	}
	if p.new == nil || len(p.new) >= generation {
		p.old, p.new = p.new, map[string]*program{}
	}
	p.new[strings.Clone(text)] = e
	return e
}
