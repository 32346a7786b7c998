package health

import (
	"errors"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/expression"
)

// Reasons of verdicts of an Expression.
const (
	ReasonByExpression     = "HealthExpression"
	ReasonExpressionFailed = "HealthExpressionFailed"
)

// Settings of an object's placement for reading its health and status. They are shared and never changed; nil means
// that there are none.
type Settings struct {
	// Expression judges the object in place of the conventions, unless it is nil.
	Expression *Expression
	// Paths are JSON pointers to the status fields that its reducers merge.
	Paths []string
}

// Assess judges an object by the expression, or else by the conventions of its kind. No expression judges a Secret: the
// verdict would tell of its values.
func (s *Settings) Assess(obj *unstructured.Unstructured, c Conventions) Verdict {
	if s == nil || obj == nil || hubv1.IsSecret(obj.GroupVersionKind().GroupKind()) {
		return assess(obj, c, nil)
	}
	return assess(obj, c, s.Expression)
}

// Project projects a status, with the fields of Paths.
func (s *Settings) Project(status map[string]any) []byte {
	if s == nil {
		return Project(status)
	}
	return Project(status, s.Paths...)
}

// costLimit bounds one evaluation to some milliseconds: it may go through the objects of a status.
const costLimit = 100_000

var environment = expression.NewEnvironment(costLimit, map[string]*cel.Type{"object": cel.DynType})

// Expression is the healthExpression of a placement.
type Expression struct {
	compiled *expression.Expression
	err      error
}

// Compile reads an expression. With an error there is an Expression as well: objects that it should judge are Unknown.
func Compile(text string) (*Expression, error) {
	compiled, err := environment.CompileValue(text, cel.BoolType, cel.StringType, cel.MapType(cel.StringType, cel.DynType))
	return &Expression{compiled: compiled, err: err}, err
}

// judge evaluates the expression, unless conditions of the object are of an older generation: then its inputs may
// belong to another spec.
func (e *Expression) judge(obj *unstructured.Unstructured, generation int64, c Conventions) Verdict {
	r := reader{kind: obj.GroupVersionKind().GroupKind(), Conventions: c}
	if say := r.byConditions(obj, generation); say.verdict.Reason == ReasonGenerationNotObserved {
		return say.verdict
	}
	if e.err != nil {
		return expressionFailed("the expression cannot be read: " + e.err.Error())
	}
	value, err := e.compiled.Value(map[string]any{"object": obj.Object}, nil)
	if failure := (*expression.EvaluationError)(nil); errors.As(err, &failure) {
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

const notAVerdict = "the result is neither a bool, nor one of Healthy, Progressing, Degraded and Unknown, nor a map with such a health and a message"

// fromWord is the verdict that an expression gave in a word.
func fromWord(word, message string) Verdict {
	h := hubv1.Health(word)
	switch h {
	case hubv1.HealthHealthy:
		return Verdict{Health: h}
	case hubv1.HealthProgressing, hubv1.HealthDegraded, hubv1.HealthUnknown:
		if message == "" {
			message = "by the placement's health expression"
		}
		return verdict(h, ReasonByExpression, message)
	}
	return expressionFailed(notAVerdict)
}

func expressionFailed(why string) Verdict {
	return verdict(hubv1.HealthUnknown, ReasonExpressionFailed, why)
}
