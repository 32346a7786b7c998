package rollup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

var (
	// ErrRequired means that the schema requires a status field for which there is no merged value, and that the field may
	// not be empty.
	ErrRequired = errors.New("a required field has no merged value")
	// ErrInvalid means that the schema refuses the merged status as a whole, although it allows the value of each field.
	ErrInvalid = errors.New("the merged status does not match the schema")
	// ErrIncomplete means that rows were cut to the size limit, and that their clusters have not reported again since this
	// process started. The hub object keeps its current status, because a new status would lack the values of these
	// clusters.
	ErrIncomplete = errors.New("some clusters with a shortened row have not reported since the hub started")
)

const (
	conditionsField         = "conditions"
	observedGenerationField = "observedGeneration"
)

// MergeStatus merges the statuses in the rows of an object into the status of the hub object. rows must be the uncut
// rows that the function Status returns. MergeStatus also returns the names of the fields that were left out. The
// status is nil if there is nothing to write.
//
// template is the hub object with its last merged status, and rules are the merge rules of the object's placement, if
// any. For a condition or a word such as a phase, a copy counts as Unknown while its cluster is unreachable or its
// content is outdated. For other values, such as numbers, the last value of the copy counts.
func MergeStatus(schema Schema, rules Rules, template *unstructured.Unstructured, rows []hubv1.ClusterRow, targets []hubv1.BindingTarget, now metav1.Time) (status map[string]any, leftOut []string, err error) {
	if schema.status == nil || len(schema.status.properties) == 0 {
		return nil, nil, nil
	}
	m, err := newMerger(schema, template, rows, targets, now)
	if err != nil {
		return nil, nil, err
	}
	m.rules = rules
	status, missing := m.fields()
	for _, path := range rules.paths() {
		if !m.used[path] {
			m.leaveOut(fieldName(path)) // leave out the field: the schema has no field at the rule's path
		}
	}
	slices.Sort(m.leftOut)
	m.nameUncounted()
	if len(missing) > 0 {
		for i := range missing {
			missing[i] = "status." + missing[i]
		}
		return nil, m.leftOut, fmt.Errorf("merging the status: %w: %s", ErrRequired, strings.Join(missing, ", "))
	}
	if err := schema.status.refuses(status); err != nil && len(status) > 0 {
		return nil, m.leftOut, fmt.Errorf("merging the status: %w: %w", ErrInvalid, err)
	}
	return status, m.leftOut, nil
}

// outcome says whether the merge of a field has a value. If not, it says why.
type outcome int

const (
	merged  outcome = iota
	omitted         // the values cannot be merged correctly
	silent          // no member has a value
)

// part is the input of the merge from one target.
type part struct {
	row   hubv1.ClusterRow
	share *int32 // the target's share of the replicas; nil: not divided
	// observed is the part of the copy's status that is merged now: the whole status as the row has it, or an object
	// inside this status.
	observed map[string]any
	// lost says which values of the copy's status may be missing in the row, because they did not fit into the size limit.
	lost health.Loss
	// whole is all that the row has of the copy's status. named has the values at the paths that the rules of the
	// placement name.
	whole, named map[string]any
}

// current reports whether the cluster is reachable, and its copy has the wanted content.
func (p part) current() bool {
	return p.row.Applied == metav1.ConditionTrue && p.row.LastObservedTime == nil
}

// merger merges the whole status of an object, or one object inside the status.
type merger struct {
	parts      []part // reports of the targets that shall hold the object, sorted by name
	schema     Schema
	rules      Rules
	used       map[string]bool // the paths of rules that exist in the schema
	spec       map[string]any  // spec of the hub object
	generation int64           // generation of the hub object
	// observed is true if all copies have the hub object's generation, and the operator on each member has observed it.
	observed bool
	now      metav1.Time
	counts   map[string]int64 // merged counts of a workload
	// uncounted are the clusters with a copy, but without a status, that a sum therefore leaves out.
	uncounted map[string]bool

	place   place
	leftOut []string // fields below the object that were left out
}

// place is the object whose fields a merger merges: the whole status, or an object inside the status.
type place struct {
	path   string         // path below the status, such as "/storage"; empty: the status
	node   *node          // schema of the object
	before map[string]any // last merged value of the object
	keys   []string       // fields that are not merged
	needed bool           // whether the schema requires the object, and all objects around it
	// asked is true if only fields that a rule of the placement names are merged. This is the case inside a field whose
	// values describe a single cluster.
	asked bool
}

func newMerger(schema Schema, template *unstructured.Unstructured, rows []hubv1.ClusterRow, targets []hubv1.BindingTarget, now metav1.Time) (*merger, error) {
	m := &merger{schema: schema, place: place{node: schema.status, needed: true}, used: map[string]bool{}, uncounted: map[string]bool{}, generation: template.GetGeneration(), observed: true, now: seconds(now)}
	m.spec, _ = template.Object["spec"].(map[string]any)
	m.place.before, _ = template.Object["status"].(map[string]any)
	byCluster := make(map[string]hubv1.ClusterRow, len(rows))
	for _, row := range rows {
		byCluster[row.Name] = row
	}
	for _, t := range byName(targets) {
		if t.State != hubv1.TargetPresent && !t.Returns() {
			continue
		}
		row, ok := byCluster[t.Name]
		if !ok || t.Returns() { // the copy of an earlier hub object says nothing about this one
			row = hubv1.ClusterRow{Name: t.Name, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}
		}
		if shrunk(row) {
			return nil, fmt.Errorf("merging the status: cluster %s: %w", row.Name, ErrIncomplete)
		}
		p := newPart(row)
		p.share = t.Replicas
		m.parts = append(m.parts, p)
		m.observed = m.observed && hasObserved(p, m.generation)
	}
	if schema.workload != nil {
		m.counts = m.workloadCounts()
	}
	return m, nil
}

// newPart parses the report in the row of a cluster, which is the part of a copy's status that the row has. If the
// report cannot be parsed, all its values count as lost. The reports of the other clusters are still merged.
func newPart(row hubv1.ClusterRow) part {
	p := part{row: row}
	if row.Observed != nil {
		projection, err := health.ReadProjection(row.Observed.Raw)
		if err != nil {
			projection.Lost = health.LostEverything
		}
		p.observed, p.named, p.lost = projection.Fields, projection.Named, projection.Lost
	}
	p.whole = p.observed
	return p
}

// hasObserved reports whether the operator on the member has observed the current generation of the copy. A row has no
// field for this, so that the function derives it from the row's reason and report.
func hasObserved(p part, generation int64) bool {
	if !p.current() || p.row.Generation != generation || len(p.observed) == 0 {
		return false
	}
	switch p.row.Reason {
	// A row has only one reason. The reason Contested may hide one of the other reasons below. Therefore a row with
	// Contested does not count as observed.
	case health.ReasonGenerationNotObserved, health.ReasonStatusMissing, hubv1.ReasonPending, hubv1.ReasonContested:
		return false
	}
	return true
}

// fields merges every field of the object. missing are the fields that the schema requires, but that have no merged
// value.
func (m *merger) fields() (out map[string]any, missing []string) {
	out = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(m.place.node.properties)) {
		if slices.Contains(m.place.keys, name) {
			continue
		}
		value, how := m.field(name, m.place.node.properties[name])
		switch how {
		case merged:
			out[name] = value
		case omitted:
			m.leaveOut(name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(m.place.node.required)) {
		if _, ok := out[name]; ok {
			continue
		}
		if value, ok := m.place.node.properties[name].empty(); ok && m.requires(name) && m.hasStatus() {
			out[name] = value
			m.leaveOut(name)
			continue
		}
		missing = append(missing, name)
	}
	return out, missing
}

// requires reports whether the hub object's status needs the field: its schema requires the field, and all objects
// around it.
func (m *merger) requires(name string) bool {
	return m.place.needed && slices.Contains(m.place.node.required, name)
}

// hasStatus reports whether at least one copy has a status.
func (m *merger) hasStatus() bool {
	return slices.ContainsFunc(m.parts, func(p part) bool { return len(p.whole) > 0 })
}

// empty returns an empty string, list or object. ok is false if the schema does not allow it. A number has no empty
// value: 0 would be a statement. An object has empty values in its required fields.
func (n *node) empty() (value any, ok bool) {
	if n == nil {
		return nil, false
	}
	switch n.kind {
	case "string":
		value = ""
	case "array":
		value = []any{}
	case "object":
		object := map[string]any{}
		for _, name := range n.required {
			if object[name], ok = n.properties[name].empty(); !ok {
				return nil, false
			}
		}
		value = object
	default:
		return nil, false
	}
	return value, n.refuses(value) == nil
}

// field merges one field. It leaves the field out if the schema does not allow the merged value.
func (m *merger) field(name string, n *node) (any, outcome) {
	value, how := m.rule(name, n)
	if how != merged && n.kind == "string" && m.requires(name) && !health.PerCluster(name) {
		if word, ok := m.lastWords(name, n); ok {
			value, how = word, merged
		}
	}
	if how == merged && n.refuses(value) != nil {
		return nil, omitted
	}
	return value, how
}

// rule selects the way to merge a field, and merges it. A field that no rule covers is left out.
func (m *merger) rule(name string, n *node) (any, outcome) {
	path := m.place.path + "/" + escape.Replace(name)
	switch {
	case m.rules.has(path):
		m.used[path] = true
		if (m.place.asked || health.PerCluster(name)) && !n.countable() && n.kind != "number" {
			return nil, omitted
		}
		return m.reduce(path, name, n)
	case n.kind == "object" && len(n.properties) > 0 && m.rules.below(path):
		return m.object(name, n)
	case m.place.asked, health.PerCluster(name):
		return nil, omitted
	case name == conditionsField:
		return m.conditions(n)
	case name == observedGenerationField:
		return m.observedGeneration(name, n)
	}
	switch n.kind {
	case "integer", intOrString:
		return m.count(path, name, n)
	case "string":
		return m.text(name, n)
	case "boolean":
		return m.boolean(name)
	case "array":
		return m.list(name, n)
	case "object":
		if len(n.properties) > 0 {
			return m.object(name, n)
		}
		return m.mapped(name, n)
	}
	return nil, omitted
}

func (m *merger) count(path, name string, n *node) (any, outcome) {
	switch {
	case m.schema.workload != nil:
		return m.workloadCount(name)
	case health.IsCount(name), path == m.schema.replicas:
		return m.sum(name, n)
	case n.kind == intOrString && health.IsAmount(name):
		return m.amount(name)
	}
	return nil, omitted
}

func (m *merger) text(name string, n *node) (any, outcome) {
	switch {
	case name == "phase", name == "state", m.knowsWords(name), m.requires(name) && m.hasWords(name, n):
		return m.phase(name, n)
	case health.IsExpiry(name):
		return m.time(name, n, time.Time.Before)
	case n.format != "date-time" && health.IsAmount(name) && m.quantities(name):
		return m.amount(name)
	case n.format != "date-time" && m.quantities(name):
		return nil, omitted // one cluster's value beside counts of all clusters would mislead
	case n.format != "date-time":
		return m.equal(name)
	case health.IsFailureTime(name):
		return m.time(name, n, time.Time.After)
	}
	return nil, omitted
}
