package rollup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
	"github.com/hanse-dev/hanse/member/health"
)

// Rules are the merge rules that a placement sets in spec.statusAggregation. They take precedence over the built-in
// rules. The zero value has no rules.
type Rules struct {
	reducers map[string]reducer // reducers by path below the status, such as "/storage/used"
	polarity map[string]health.Polarity
}

// NewRules parses the merge rules of a placement. The error names every invalid rule. The returned Rules are usable in
// any case, but they leave out a field whose expression is invalid.
func NewRules(a hubv1.StatusAggregation) (Rules, error) {
	var r Rules
	var faults []error
	for i, wanted := range a.Reducers {
		path, ok := strings.CutPrefix(wanted.Path, "/status")
		if !ok || path == "" {
			faults = append(faults, fmt.Errorf("statusAggregation.reducers[%d].path: %s is not below /status", i, wanted.Path))
			continue
		}
		reduce := reducers[wanted.Reducer]
		if wanted.Reducer == hubv1.ReducerCEL {
			var err error
			if reduce, err = byExpression(wanted.Expression); err != nil {
				faults = append(faults, fmt.Errorf("statusAggregation.reducers[%d].expression: %w", i, err))
			}
		}
		if r.reducers == nil {
			r.reducers = map[string]reducer{}
		}
		r.reducers[path] = reduce
	}
	for _, c := range a.ConditionPolarity {
		if r.polarity == nil {
			r.polarity = map[string]health.Polarity{}
		}
		if r.polarity[c.Type] = health.GoodWhenTrue; c.Polarity == hubv1.PolarityNegative {
			r.polarity[c.Type] = health.GoodWhenFalse
		}
	}
	return r, errors.Join(faults...)
}

func (r Rules) has(path string) bool {
	_, ok := r.reducers[path]
	return ok
}

// below reports whether a rule names a field inside the object at the path.
func (r Rules) below(path string) bool {
	for p := range r.reducers {
		if strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}

func (r Rules) paths() []string { return slices.Sorted(maps.Keys(r.reducers)) }

// fieldName converts the path of a field, such as /storage/used, to the form storage.used.
func fieldName(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := range segments {
		segments[i] = unescape.Replace(segments[i])
	}
	return strings.Join(segments, ".")
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// reduction is the cost limit for one evaluation of a CEL expression. This cost takes about 10 ms.
const reduction = 200_000

var reductions = cel.NewEnvironment(reduction, map[string]*celgo.Type{"values": celgo.ListType(celgo.MapType(celgo.StringType, celgo.DynType))})

// byExpression returns a reducer that evaluates a CEL expression over the values of all clusters of a binding. It is
// nil if the expression is invalid.
func byExpression(text string) (reducer, error) {
	x, err := reductions.CompileValue(text)
	if err != nil {
		return nil, err
	}
	return func(values []report, _ reduced) (any, bool) {
		given := make([]any, 0, len(values))
		for _, v := range values {
			if v.value != nil {
				given = append(given, map[string]any{"cluster": v.cluster, "value": native(v.value)})
			}
		}
		out, err := x.Value(map[string]any{"values": given}, nil)
		return out, err == nil && out != nil
	}, nil
}
