package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// These are the names of the variables of an expression.
const (
	varName        = "name"
	varLabels      = "labels"
	varAnnotations = "annotations"
	varRegion      = "region"
	varZone        = "zone"
	varVersion     = "version"
	varCapacity    = "capacity"
	varAllocatable = "allocatable"
	varNodes       = "nodes"
	varServedKinds = "servedKinds"
	varOperators   = "operators"
)

// variables are the variables that an expression can read, with their types. setByUsers is true if users set the value.
// A change of such a value may remove an object from a cluster. A change of any other variable's value only prevents
// new copies.
var variables = map[string]struct {
	celType    *celgo.Type
	setByUsers bool
}{
	varName:        {celgo.StringType, true},
	varLabels:      {celgo.MapType(celgo.StringType, celgo.StringType), true},
	varAnnotations: {celgo.MapType(celgo.StringType, celgo.StringType), true},
	varRegion:      {celgo.StringType, true},
	varZone:        {celgo.StringType, true},
	varVersion:     {celgo.StringType, false},
	varCapacity:    {celgo.MapType(celgo.StringType, apiservercel.QuantityType), false},
	varAllocatable: {celgo.MapType(celgo.StringType, apiservercel.QuantityType), false},
	varNodes:       {celgo.MapType(celgo.StringType, celgo.IntType), false},
	varServedKinds: {celgo.ListType(celgo.StringType), false},
	varOperators:   {cel.Operators, false},
}

// costLimit limits one evaluation to about a millisecond.
const costLimit = 20_000

var environment = sync.OnceValue(func() *cel.Environment {
	types := map[string]*celgo.Type{}
	for name, v := range variables {
		types[name] = v.celType
	}
	return cel.NewEnvironment(costLimit, types)
})

// condition is a compiled expression that is evaluated for one cluster.
type condition struct {
	*cel.Expression
	// setByUsers is true if users set all the values that the expression reads.
	setByUsers bool
}

func compileExpression(text string) (*condition, error) {
	e, err := environment().CompileBool(text)
	if err != nil {
		return nil, err
	}
	if err := checkNodeKeys(e.Reads()); err != nil {
		return nil, err
	}
	setByUsers := !slices.ContainsFunc(e.Reads(), func(r cel.Reading) bool { return !variables[r.Variable].setByUsers })
	return &condition{Expression: e, setByUsers: setByUsers}, nil
}

// checkNodeKeys returns an error if the expression reads a key of the variable nodes that does not exist. Such an
// expression would fail for every cluster. Keys that an expression computes are not checked, because they are known
// only when the expression is evaluated.
func checkNodeKeys(reads []cel.Reading) error {
	known := nodeCounts(hubv1.NodeSummary{})
	for _, r := range reads {
		if r.Variable != varNodes || r.Key == "" {
			continue
		}
		if _, ok := known[r.Key]; !ok {
			return fmt.Errorf("nodes has no key %q: use nodes.%s", short(r.Key), strings.Join(slices.Sorted(maps.Keys(known)), " or nodes."))
		}
	}
	return nil
}

func (e *condition) readsFacts() bool {
	return e != nil && slices.ContainsFunc(e.Reads(), func(r cel.Reading) bool { return r.Variable == varAnnotations || !variables[r.Variable].setByUsers })
}

// holds evaluates the expression for a cluster. It returns an error if the expression has no result for the cluster.
func (e *condition) holds(c *Cluster) (bool, error) { return e.Holds(c.facts(), nil) }

// facts returns the values of the cluster for the variables of an expression.
func (c *Cluster) facts() map[string]any {
	return map[string]any{
		varName:        c.Name,
		varLabels:      orEmpty(c.Labels),
		varAnnotations: orEmpty(c.Annotations),
		varRegion:      c.Region(),
		varZone:        c.Zone(),
		varVersion:     c.Version,
		varCapacity:    quantities(c.Capacity),
		varAllocatable: quantities(c.Allocatable),
		varNodes:       nodeCounts(c.Nodes),
		varServedKinds: c.servedKinds(),
		varOperators:   cel.OperatorsOf(c.Operators),
	}
}

// nodeCounts returns the value of the variable nodes, with all its keys.
func nodeCounts(n hubv1.NodeSummary) map[string]int64 {
	return map[string]int64{"total": int64(n.Total), "ready": int64(n.Ready)}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func quantities(list corev1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, q := range list {
		out[string(name)] = apiservercel.Quantity{Quantity: &q}
	}
	return out
}

// servedKinds returns the kinds that the cluster has reported to serve, as "Kind.group", sorted.
func (c *Cluster) servedKinds() []string {
	out := []string{}
	for gk, versions := range c.Served {
		if len(versions) > 0 {
			out = append(out, gk.String())
		}
	}
	slices.Sort(out)
	return out
}

// values returns at most five of the values that the expression reads from the cluster, as text: `version is "v1.30.1",
// nodes.ready is 2`.
func (e *condition) values(c *Cluster) string {
	const shown = 5
	facts, reads := c.facts(), e.Reads()
	var out []string
	for _, r := range reads[:min(shown, len(reads))] {
		out = append(out, valueOf(r, facts[r.Variable]))
	}
	if more := len(reads) - shown; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

func valueOf(r cel.Reading, v any) string {
	subject := r.Variable
	if r.Key != "" && r.Variable != varServedKinds {
		var set bool
		switch m := v.(type) {
		case map[string]string:
			v, set = m[r.Key]
		case map[string]int64:
			v, set = m[r.Key]
		case map[string]any:
			v, set = m[r.Key]
		}
		subject += "[" + r.Key + "]"
		if !set {
			return subject + " is not set"
		}
	}
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%s is %q", subject, v)
	case apiservercel.Quantity:
		return fmt.Sprintf("%s is %s", subject, v.String())
	case []string:
		return fmt.Sprintf("%s is %s", subject, list(v))
	case map[string]string:
		return fmt.Sprintf("%s has %d entries", subject, len(v))
	case map[string]any:
		if r.Variable == varOperators && r.Key != "" {
			return fmt.Sprintf("%s has version %q and installed %t", subject, v["version"], v["installed"])
		}
		return fmt.Sprintf("%s has %d entries", subject, len(v))
	}
	return fmt.Sprintf("%s is %v", subject, v)
}
