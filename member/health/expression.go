package health

import (
	"errors"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// These are the reasons of a verdict that the Expression of a placement gives.
const (
	ReasonByExpression     = "HealthExpression"
	ReasonExpressionFailed = "HealthExpressionFailed"
)

// Settings are the part of a placement that affects the health and the status of its objects. A Settings is shared and
// never changed. A nil pointer means that the placement sets nothing.
type Settings struct {
	// Expression is the healthExpression of the placement. It judges the objects instead of the rules for their kind. It
	// is nil if the placement has no expression.
	Expression *Expression
	// Paths are JSON pointers to the status fields that the placement merges by its reducers, such as Sum.
	Paths []string
}

// Assess judges the health of an object by the expression of its placement. Without an expression it uses the
// conventions c. An expression never judges a Secret, because its result could reveal the values.
func (s *Settings) Assess(obj *unstructured.Unstructured, c Conventions) Verdict {
	if s == nil || obj == nil || hubv1.IsSecret(obj.GroupVersionKind().GroupKind()) {
		return assess(obj, c, nil)
	}
	return assess(obj, c, s.Expression)
}

// Project returns the parts of the status of an object that the hub keeps (the projection), which include the fields at
// Paths.
func (s *Settings) Project(kind schema.GroupKind, status map[string]any) []byte {
	if s == nil {
		return Project(kind, status)
	}
	return Project(kind, status, s.Paths...)
}

// And returns a copy of the settings with one more path in Paths.
func (s *Settings) And(path string) *Settings {
	if s == nil {
		return &Settings{Paths: []string{path}}
	}
	return &Settings{Paths: append(slices.Clone(s.Paths), path), Expression: s.Expression}
}

// costLimit limits the cost of one evaluation in CEL, because an expression may loop over a large status. An evaluation
// within the limit takes some milliseconds.
const costLimit = 100_000

var environment = cel.NewEnvironment(costLimit, map[string]*celgo.Type{"object": celgo.DynType})

// Expression is the healthExpression of a placement.
type Expression struct {
	compiled *cel.Expression
	err      error
}

// Compile compiles an expression. If it returns an error, it also returns an Expression, which judges every object as
// Unknown.
func Compile(text string) (*Expression, error) {
	compiled, err := environment.CompileValue(text, celgo.BoolType, celgo.StringType, celgo.MapType(celgo.StringType, celgo.DynType))
	return &Expression{compiled: compiled, err: err}, err
}

// judge evaluates the expression. If a condition of the object belongs to an older generation, judge returns
// Progressing instead. The other conditions may then also belong to the older spec.
func (e *Expression) judge(obj *unstructured.Unstructured, generation int64, c Conventions) Verdict {
	r := reader{kind: obj.GroupVersionKind().GroupKind(), Conventions: c}
	if result := r.byConditions(obj, generation); result.verdict.Reason == ReasonGenerationNotObserved {
		return result.verdict
	}
	if e.err != nil {
		return expressionFailed("the expression is invalid: " + e.err.Error())
	}
	value, err := e.compiled.Value(map[string]any{"object": obj.Object}, nil)
	if failure := (*cel.EvaluationError)(nil); errors.As(err, &failure) {
		return expressionFailed(failure.Where())
	} else if err != nil {
		return expressionFailed("the evaluation failed")
	}
	switch value := value.(type) {
	case bool:
		if value {
			return Verdict{Health: hubv1.HealthHealthy}
		}
		return verdict(hubv1.HealthDegraded, ReasonByExpression, "the placement's health expression is false")
	case string:
		return fromWord(value, "")
	case map[string]any:
		word, _ := value["health"].(string)
		message, _ := value["message"].(string)
		return fromWord(word, message)
	}
	return expressionFailed(notAVerdict)
}

const notAVerdict = "the result must be a bool, or one of Healthy, Progressing, Degraded and Unknown, or a map with such a health and a message"

// fromWord returns the verdict for the word that an expression returned. A word that is not the name of a health, such
// as Healthy, gives Unknown.
func fromWord(word, message string) Verdict {
	h := hubv1.Health(word)
	switch h {
	case hubv1.HealthHealthy:
		return Verdict{Health: h}
	case hubv1.HealthProgressing, hubv1.HealthDegraded, hubv1.HealthUnknown:
		if message == "" {
			message = "set by the placement's health expression"
		}
		return verdict(h, ReasonByExpression, message)
	}
	return expressionFailed(notAVerdict)
}

func expressionFailed(why string) Verdict {
	return verdict(hubv1.HealthUnknown, ReasonExpressionFailed, why)
}
