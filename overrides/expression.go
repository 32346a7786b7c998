package overrides

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// facts are the data of a cluster that expressions can read. Users set these data, or they seldom change. Data that
// often change, such as the load, are not included, because each change would write objects again. In a rule's
// clusters.expression, each fact is a variable. In an expression that computes a value, each fact is a field of the
// variable cluster.
var facts = []struct {
	name    string
	celType *celgo.Type
	of      func(*Cluster) any
}{
	{"name", celgo.StringType, func(c *Cluster) any { return c.Name }},
	{"labels", celgo.MapType(celgo.StringType, celgo.StringType), func(c *Cluster) any { return c.Labels }},
	{"annotations", celgo.MapType(celgo.StringType, celgo.StringType), func(c *Cluster) any { return c.Annotations }},
	{"region", celgo.StringType, func(c *Cluster) any { return c.Labels[hubv1.RegionLabel] }},
	{"zone", celgo.StringType, func(c *Cluster) any { return c.Labels[hubv1.ZoneLabel] }},
	{"version", celgo.StringType, func(c *Cluster) any { return c.Version }},
	{"capacity", celgo.MapType(celgo.StringType, apiservercel.QuantityType), func(c *Cluster) any { return quantities(c.Capacity) }},
	{"operators", cel.Operators, func(c *Cluster) any { return cel.OperatorsOf(c.Operators) }},
}

const (
	ofCluster = "cluster." // prefix of a fact in a value's expression
	varObject = "object"
)

var targetExpressions = sync.OnceValue(func() *cel.Environment {
	variables := map[string]*celgo.Type{}
	for _, f := range facts {
		variables[f.name] = f.celType
	}
	return cel.NewEnvironment(maxExpressionCost, variables)
})

var valueExpressions = sync.OnceValue(func() *cel.Environment {
	variables := map[string]*celgo.Type{varObject: celgo.MapType(celgo.StringType, celgo.DynType)}
	for _, f := range facts {
		variables[ofCluster+f.name] = f.celType
	}
	return cel.NewEnvironment(maxExpressionCost, variables)
})

func quantities(list corev1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, q := range list {
		out[string(name)] = apiservercel.Quantity{Quantity: &q}
	}
	return out
}

// evaluation evaluates all expressions for one object in one cluster. Every expression reads the object in its state
// before all rules. The order of the expressions therefore does not matter.
type evaluation struct {
	cluster Cluster
	object  map[string]any
	budget  *cel.Budget
	values  map[string]any
}

func newEvaluation(cluster Cluster, object map[string]any) *evaluation {
	return &evaluation{cluster: cluster, object: object, budget: cel.NewBudget(maxRenderCost)}
}

// shownToExpressions returns the part of an object that expressions can read. The values of a Secret are left out. They
// could become visible through a label or a key that an expression computes, or through the success or failure of a
// rule.
func shownToExpressions(object *unstructured.Unstructured) map[string]any {
	if !hubv1.IsSecret(object.GroupVersionKind().GroupKind()) {
		return object.Object
	}
	shown := maps.Clone(object.Object)
	delete(shown, "data")
	delete(shown, "stringData")
	return shown
}

// variables returns the values of the variables that expressions can read. It computes them at the first call, because
// most objects have no expression.
func (e *evaluation) variables() map[string]any {
	if e.values == nil {
		e.values = map[string]any{varObject: e.object}
		for _, f := range facts {
			v := f.of(&e.cluster)
			e.values[f.name], e.values[ofCluster+f.name] = v, v
		}
	}
	return e.values
}

// selects reports whether the rule selects the cluster. The cluster must match every field that is set in
// rule.Clusters: the names, the label selector and the expression. If rule.Clusters is nil, the rule selects every
// cluster.
func (e *evaluation) selects(rule *hubv1.OverrideRule) (bool, *fault) {
	t, f := readTarget(rule.Clusters)
	if f != nil {
		return false, f
	}
	return e.in(&t, rule.Clusters)
}

// in reports whether t selects the cluster. t is the parsed form of c.
func (e *evaluation) in(t *target, c *hubv1.RuleClusters) (bool, *fault) {
	switch {
	case c == nil:
		return true, nil
	case !t.labels.Matches(labels.Set(e.cluster.Labels)) || len(c.Names) > 0 && !slices.Contains(c.Names, e.cluster.Name):
		return false, nil
	case t.expression == nil:
		return true, nil
	}
	holds, err := t.expression.Holds(e.variables(), e.budget)
	if err != nil {
		reason := ""
		if failure := (*cel.EvaluationError)(nil); errors.As(err, &failure) {
			reason = failure.Reason
		}
		return false, targetFault(fmt.Sprintf("fails for cluster %s: %s: %s", e.cluster.Name, printable(err.Error()), advice(reason)))
	}
	return holds, nil
}

// target is a rule's parsed selection of clusters.
type target struct {
	labels     labels.Selector
	expression *cel.Expression // nil if the rule has none
}

// readTarget parses a selection of clusters. It parses all fields at once, so that an invalid rule is invalid for every
// cluster.
func readTarget(c *hubv1.RuleClusters) (t target, f *fault) {
	t.labels = labels.Everything()
	if c == nil {
		return t, nil
	}
	var err error
	if c.LabelSelector != nil {
		if t.labels, err = metav1.LabelSelectorAsSelector(c.LabelSelector); err != nil {
			return t, clusterFault(err)
		}
	}
	if c.Expression != "" {
		if t.expression, err = targetExpressions().CompileBool(c.Expression); err != nil {
			return t, targetFault(printable(err.Error()) + ": correct the expression")
		}
	}
	return t, nil
}

const adviceMissing = "test first for fields that may be missing, such as labels.?tier.orValue('') or has(object.spec.replicas)"

// advice returns what a user can do about an expression that failed. reason is the field Reason of an
// *cel.EvaluationError.
func advice(reason string) string {
	switch reason {
	case "no such key":
		return adviceMissing
	case "no such overload", "type conversion error":
		return "convert values to one type, such as by int(), double() or string()"
	case "cost limit exceeded":
		return "use fewer or smaller loops"
	}
	return "correct it"
}

func targetFault(message string) *fault {
	return &fault{field: "clusters", index: -1, leaf: "expression", message: "clusters.expression: " + message}
}

// compileValue compiles the expression that computes the value of an operation. The second result is an error message,
// or empty.
func compileValue(text string) (*cel.Expression, string) {
	x, err := valueExpressions().CompileValue(text)
	if err != nil {
		return nil, "has an expression that is refused: " + printable(err.Error()) + ": correct it"
	}
	return x, ""
}

// evaluated returns a copy of the operations in which each expression is replaced by its value. It subtracts the size
// of these values from budget.
func (e *evaluation) evaluated(ops []operation, budget *int) ([]operation, *fault) {
	if !slices.ContainsFunc(ops, func(o operation) bool { return o.expression != nil }) {
		return ops, nil
	}
	ops = slices.Clone(ops)
	for i := range ops {
		o := &ops[i]
		if o.expression == nil {
			continue
		}
		v, f := e.value(o.expression, budget)
		if f == nil && !o.accepts(v) {
			f = &fault{message: "is a label or annotation and takes only a string: use string() in its expression"}
		}
		if f != nil {
			return nil, &fault{field: "patches", index: i, leaf: "expression", path: o.path.String(), message: f.message}
		}
		o.value, o.expression = v, nil
	}
	return ops, nil
}

// value evaluates an expression that computes a value, and subtracts the size of the value from budget. The fault has
// only a message.
func (e *evaluation) value(x *cel.Expression, budget *int) (any, *fault) {
	bad := func(format string, args ...any) (any, *fault) {
		return nil, &fault{message: fmt.Sprintf(format, args...)}
	}
	v, err := x.Value(e.variables(), e.budget)
	if failure := (*cel.EvaluationError)(nil); errors.As(err, &failure) {
		return bad("has an expression that %s: %s", answerless(failure), advice(failure.Reason))
	}
	if v == nil {
		return bad("has an expression that gives null: let it give a value, or use op remove in a rule for these clusters")
	}
	n, err := size(v, *budget, maxDepth)
	if errors.Is(err, errTooDeep) {
		return bad("has an expression whose value nests deeper than %d levels: flatten it", maxDepth)
	}
	if err != nil {
		return bad("has an expression whose value does not fit: all rules together may add %d KiB to an object: return less, or remove other rules", maxAdded>>10)
	}
	*budget -= n
	return v, nil
}

// meets reports whether the object and the cluster meet the condition when of a rule.
func (e *evaluation) meets(when *cel.Expression) (bool, *fault) {
	holds, err := when.Holds(e.variables(), e.budget)
	if failure := (*cel.EvaluationError)(nil); errors.As(err, &failure) {
		return false, whenFault(fmt.Sprintf("fails for cluster %s: %s: %s", e.cluster.Name, answerless(failure), advice(failure.Reason)))
	}
	return holds, nil
}

func compileWhen(text string) (*cel.Expression, *fault) {
	if text == "" {
		return nil, nil
	}
	x, err := valueExpressions().CompileBool(text)
	if err != nil {
		return nil, whenFault("is refused: " + printable(err.Error()) + ": correct it")
	}
	return x, nil
}

func whenFault(message string) *fault {
	return &fault{field: "when", index: -1, message: "its field when " + message}
}

// answerless returns the reason why an expression has no value. The text contains no part of the object, because the
// object may be a Secret.
func answerless(f *cel.EvaluationError) string {
	if strings.HasPrefix(f.Reason, "gives ") {
		return f.Reason
	}
	return "gives no value: " + f.Where()
}

// ReadsFacts reports whether the rule's selection of clusters depends on facts that change without an action of a user:
// version, capacity, operators and annotations, which tools write. Names, labels, region and zone are not such facts.
// Users set names and labels, and region and zone change only when a user permits it. ReadsFacts returns false for a
// rule that cannot be compiled.
func ReadsFacts(rule *hubv1.OverrideRule) bool {
	if rule.Clusters == nil || rule.Clusters.Expression == "" {
		return false
	}
	t, f := readTarget(rule.Clusters)
	return f == nil && slices.ContainsFunc(t.expression.Reads(), func(r cel.Reading) bool {
		return r.Variable == "version" || r.Variable == "capacity" || r.Variable == "operators" || r.Variable == "annotations"
	})
}
