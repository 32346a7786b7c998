package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// MaxLength of an expression, in bytes.
const MaxLength = 4096

// Environment is what the expressions of one purpose may read, and what one evaluation may cost. It is for concurrent
// use.
type Environment struct {
	variables map[string]*cel.Type
	limit     uint64
	env       func() (*cel.Env, error)
	programs  programs
}

// NewEnvironment has these variables, by name; the name may have dots. One evaluation may cost the limit: 20,000 are
// some milliseconds.
func NewEnvironment(limit uint64, variables map[string]*cel.Type) *Environment {
	return &Environment{variables: variables, limit: limit, env: sync.OnceValues(func() (*cel.Env, error) { return environ(variables) })}
}

// environ is the environment that a Kubernetes 1.36 API server has for its own expressions, with our variables.
func environ(variables map[string]*cel.Type) (*cel.Env, error) {
	options := []cel.EnvOption{orderedFunction}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		options = append(options, cel.Variable(name, variables[name]))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options,
	})
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	return set.Env(environment.NewExpressions)
}

var errNotBool = errors.New("the expression must be true or false")

// CompileBool reads an expression that is true or false, by its type. The error says what is wrong, and where.
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

// CompileValue reads an expression whose result has one of these types, or a type that is known only when it is
// evaluated. Without types it may be anything that JSON has. The error says what is wrong, and where.
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

// compile reads a text once for as long as it is in use.
func (e *Environment) compile(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("the expression has more than %d bytes: make it shorter", MaxLength)
	}
	return e.programs.get(text, e.read)
}

func (e *Environment) read(text string) (x *Expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, errors.New("the expression cannot be read: make it simpler")
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
		return nil, fmt.Errorf("estimating what the expression costs: %w", err)
	} else if estimate.Max > e.limit {
		return nil, fmt.Errorf("the expression costs too much already over lists of %d: use fewer or smaller loops", assumedItems)
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

// problems says what is wrong in a text: line 1, column 5: undeclared reference to 'nam'.
func problems(issues *cel.Issues) error {
	const shown = 3
	var out []string
	for _, e := range issues.Errors()[:min(shown, len(issues.Errors()))] {
		message := strings.TrimSuffix(strings.Join(strings.Fields(e.Message), " "), " (in container '')")
		const longest = 300
		if len(message) > longest {
			message = strings.ToValidUTF8(message[:longest], "") + "..."
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

// inJSON says whether values of a type can be in JSON; what is inside of a list or map shows when it is evaluated.
func inJSON(t *cel.Type) bool {
	switch t.Kind() {
	case types.BytesKind, types.DurationKind, types.TimestampKind, types.TypeKind, types.OpaqueKind:
		return false
	case types.StructKind:
		return t.TypeName() == apiservercel.QuantityType.TypeName()
	}
	return true
}

// programs are expressions that were read, in two generations: what is not asked for is forgotten with the older one.
type programs struct {
	mu       sync.Mutex
	new, old map[string]*program
}

type program struct {
	once sync.Once
	x    *Expression
	err  error
}

// generation is how many expressions make one.
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
