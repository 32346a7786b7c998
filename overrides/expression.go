package overrides

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/expression"
)

// facts are what expressions see of a cluster: what somebody has said of it, and what changes seldom. How it does at
// the moment is not among them, or objects would be written over and over. In a rule's clusters.expression they stand
// alone; in a value they belong to cluster, beside object.
var facts = []struct {
	name    string
	celType *cel.Type
	of      func(*Cluster) any
}{
	{"name", cel.StringType, func(c *Cluster) any { return c.Name }},
	{"labels", cel.MapType(cel.StringType, cel.StringType), func(c *Cluster) any { return c.Labels }},
	{"region", cel.StringType, func(c *Cluster) any { return c.Labels[hubv1.RegionLabel] }},
	{"zone", cel.StringType, func(c *Cluster) any { return c.Labels[hubv1.ZoneLabel] }},
	{"version", cel.StringType, func(c *Cluster) any { return c.Version }},
	{"capacity", cel.MapType(cel.StringType, apiservercel.QuantityType), func(c *Cluster) any { return quantities(c.Capacity) }},
}

const (
	ofCluster = "cluster." // before the name of a fact in a value
	varObject = "object"
)

var targetExpressions = sync.OnceValue(func() *expression.Environment {
	variables := map[string]*cel.Type{}
	for _, f := range facts {
		variables[f.name] = f.celType
	}
	return expression.NewEnvironment(maxExpressionCost, variables)
})

var valueExpressions = sync.OnceValue(func() *expression.Environment {
	variables := map[string]*cel.Type{varObject: cel.MapType(cel.StringType, cel.DynType)}
	for _, f := range facts {
		variables[ofCluster+f.name] = f.celType
	}
	return expression.NewEnvironment(maxExpressionCost, variables)
})

func quantities(list corev1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, q := range list {
		out[string(name)] = apiservercel.Quantity{Quantity: &q}
	}
	return out
}

// evaluation is of all expressions for one object in one cluster. Every one of them sees the object as it is before any
// rule, so that their order does not matter.
type evaluation struct {
	cluster Cluster
	object  map[string]any
	budget  *expression.Budget
	values  map[string]any
}

func newEvaluation(cluster Cluster, object map[string]any) *evaluation {
	return &evaluation{cluster: cluster, object: object, budget: expression.NewBudget(maxRenderCost)}
}

// shownToExpressions is what expressions see of an object: of a Secret not its values, which would show in labels, in
// keys, or in whether a rule can be followed.
func shownToExpressions(object *unstructured.Unstructured) map[string]any {
	if !hubv1.IsSecret(object.GroupVersionKind().GroupKind()) {
		return object.Object
	}
	shown := maps.Clone(object.Object)
	delete(shown, "data")
	delete(shown, "stringData")
	return shown
}

// variables are made when they are first asked for: most objects have no expression.
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

// selects says whether the rule applies in the cluster: everything that its clusters name must hold, and no clusters
// means all.
func (e *evaluation) selects(rule *hubv1.OverrideRule) (bool, *fault) {
	t, f := readTarget(rule.Clusters)
	if f != nil {
		return false, f
	}
	return e.in(&t, rule.Clusters)
}

// in says whether the cluster is one of those that are meant.
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
		if failure := (*expression.EvaluationError)(nil); errors.As(err, &failure) {
			reason = failure.Reason
		}
		return false, targetFault(fmt.Sprintf("fails for cluster %s: %s: %s", e.cluster.Name, printable(err.Error()), advice(reason)))
	}
	return holds, nil
}

// target is a rule's choice of clusters, read.
type target struct {
	labels     labels.Selector
	expression *expression.Expression // nil if there is none
}

// readTarget reads all of it, whatever the cluster, so that a faulty rule is one in every cluster.
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

// advice says what to do about a reason of an *expression.EvaluationError.
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

// compileValue reads the expression of an operation. The message says what is wrong, or is empty.
func compileValue(text string) (*expression.Expression, string) {
	x, err := valueExpressions().CompileValue(text)
	if err != nil {
		return nil, "has an expression that is refused: " + printable(err.Error()) + ": correct it"
	}
	return x, ""
}

// evaluated are the operations with the values of their expressions, whose size is taken off budget. The operations
// that are handed in stay as they are.
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
		bad := func(format string, args ...any) ([]operation, *fault) {
			return nil, &fault{field: "patches", index: i, leaf: "expression", path: o.path.String(), message: fmt.Sprintf(format, args...)}
		}
		v, err := o.expression.Value(e.variables(), e.budget)
		if failure := (*expression.EvaluationError)(nil); errors.As(err, &failure) {
			return bad("has an expression that %s: %s", answerless(failure), advice(failure.Reason))
		}
		if v == nil {
			return bad("has an expression that gives null: let it give a value, or use op remove in a rule for these clusters")
		}
		if !o.takes(v) {
			return bad("is a label or annotation and takes only a string: use string() in its expression")
		}
		n, err := size(v, *budget, maxDepth)
		if err != nil {
			return bad("has an expression that gives too much: all rules together may add %d KiB and %d levels to an object", maxAdded>>10, maxDepth)
		}
		*budget -= n
		o.value, o.expression = v, nil
	}
	return ops, nil
}

// answerless says why there is no value. It holds nothing of the object, which may be a Secret.
func answerless(f *expression.EvaluationError) string {
	if strings.HasPrefix(f.Reason, "gives ") {
		return f.Reason
	}
	return "gives no value: " + f.Where()
}

// ReadsFacts says whether the rule's choice of clusters depends on what changes by itself: the version and the
// capacity. Names, labels, region and zone do not: somebody has said them of the cluster, or they are pinned. A rule
// that cannot be read does not.
func ReadsFacts(rule *hubv1.OverrideRule) bool {
	if rule.Clusters == nil || rule.Clusters.Expression == "" {
		return false
	}
	t, f := readTarget(rule.Clusters)
	return f == nil && slices.ContainsFunc(t.expression.Reads(), func(r expression.Reading) bool { return r.Variable == "version" || r.Variable == "capacity" })
}
