package rollup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

var (
	// ErrRequired means that the schema requires a status field for which the members give no value.
	ErrRequired = errors.New("a required field has no value that can be merged")
	// ErrIncomplete means that rows were cut to the size limit and their clusters have not reported to this process yet: the
	// status on the hub object is better than one without them.
	ErrIncomplete = errors.New("not every cluster whose row was cut has reported since the start")
)

const (
	conditionsField         = "conditions"
	observedGenerationField = "observedGeneration"
)

// MergeStatus returns the status that the hub object is to have, from the full rows of its clusters (Rows), and the names of the
// fields that were left out. It is nil if there is nothing to say. template is the hub object; its status is what was said last.
// Numbers of clusters that are away stay in sums; all else of what is not applied counts as Unknown.
func MergeStatus(schema Schema, template *unstructured.Unstructured, rows []hubv1.ClusterRow, targets []hubv1.BindingTarget, now metav1.Time) (status map[string]any, leftOut []string, err error) {
	if schema.status == nil || len(schema.status.properties) == 0 {
		return nil, nil, nil
	}
	m, err := newMerger(schema, template, rows, targets, now)
	if err != nil {
		return nil, nil, err
	}
	status = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.status.properties)) {
		value, verdict := m.field(name, schema.status.properties[name])
		switch verdict {
		case merged:
			status[name] = value
		case omitted:
			leftOut = append(leftOut, name)
		}
	}
	var missing []string
	for _, name := range schema.status.required {
		if _, ok := status[name]; !ok {
			missing = append(missing, "status."+name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, leftOut, fmt.Errorf("merging the status: %w: %s", ErrRequired, strings.Join(missing, ", "))
	}
	return status, leftOut, nil
}

// outcome of one field.
type outcome int

const (
	merged  outcome = iota
	omitted         // it cannot be merged honestly
	silent          // no member has a value
)

// part is what one target contributes.
type part struct {
	row      hubv1.ClusterRow
	observed map[string]any
}

// current is true if the target's conditions speak of what is desired now.
func (p part) current() bool { return p.row.Applied == metav1.ConditionTrue }

type merger struct {
	parts        []part // of the targets that shall hold the object, sorted by name
	schema       Schema
	spec, before map[string]any // of the template
	generation   int64
	// observed is true if every target has the hub's generation and its operator has seen it.
	observed bool
	now      metav1.Time
}

func newMerger(schema Schema, template *unstructured.Unstructured, rows []hubv1.ClusterRow, targets []hubv1.BindingTarget, now metav1.Time) (*merger, error) {
	m := &merger{schema: schema, generation: template.GetGeneration(), observed: true, now: seconds(now)}
	m.spec, _ = template.Object["spec"].(map[string]any)
	m.before, _ = template.Object["status"].(map[string]any)
	byCluster := make(map[string]hubv1.ClusterRow, len(rows))
	for _, row := range rows {
		byCluster[row.Name] = row
	}
	for _, t := range byName(targets) {
		if t.State != hubv1.TargetPresent {
			continue
		}
		row, ok := byCluster[t.Name]
		if !ok {
			row = hubv1.ClusterRow{Name: t.Name, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}
		}
		if shrunk(row) {
			return nil, fmt.Errorf("merging the status: cluster %s: %w", row.Name, ErrIncomplete)
		}
		p := part{row: row, observed: map[string]any{}}
		if row.Observed != nil {
			if err := json.Unmarshal(row.Observed.Raw, &p.observed); err != nil {
				return nil, fmt.Errorf("merging the status: reading what cluster %s reported: %w", row.Name, err)
			}
		}
		m.parts = append(m.parts, p)
		m.observed = m.observed && hasObserved(p, m.generation)
	}
	return m, nil
}

// hasObserved: the verdict on the member object says whether its operator has seen its last generation, which rows do not carry.
func hasObserved(p part, generation int64) bool {
	if !p.current() || p.row.Generation != generation || len(p.observed) == 0 {
		return false
	}
	switch p.row.Reason {
	case health.ReasonGenerationNotObserved, health.ReasonStatusMissing, hubv1.ReasonPending, hubv1.ReasonContested: // the last hides the others
		return false
	}
	return true
}

// field is the allow-list: a field that no case names is left out.
func (m *merger) field(name string, n *node) (any, outcome) {
	switch {
	case name == conditionsField:
		return m.conditions(n)
	case name == observedGenerationField:
		return m.observedGeneration(n, m.before[name])
	case health.PerCluster(name):
		return nil, omitted
	case n.kind == "integer" && summed(name):
		return m.sum(name, n)
	case n.kind == "boolean":
		return m.boolean(name)
	case n.kind == "string" && (name == "phase" || name == "state"):
		return m.phase(name, n)
	case n.kind == "string" && health.IsExpiry(name):
		return m.time(name, n, time.Time.Before)
	case n.kind == "string" && health.IsFailureTime(name) && n.format == "date-time":
		return m.time(name, n, time.Time.After)
	case n.kind == "string" && n.format != "date-time":
		return m.equal(name)
	}
	return nil, omitted
}

// coreCounters are counters of the core workload kinds that custom resources imitate.
var coreCounters = []string{
	"replicas", "instances", "active", "succeeded", "failed", "ready",
	"currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled",
	"numberReady", "numberAvailable", "numberUnavailable", "numberMisscheduled",
}

func summed(name string) bool {
	return slices.Contains(coreCounters, name) || strings.HasSuffix(name, "Replicas") || strings.HasSuffix(name, "Instances")
}

func (m *merger) sum(name string, n *node) (any, outcome) {
	var total float64
	known := false
	for _, p := range m.parts {
		if v, ok := p.observed[name].(float64); ok {
			total, known = total+v, true
		}
	}
	switch {
	case !known:
		return nil, silent
	case total > n.maximum || math.Abs(total) >= 1<<53:
		return nil, omitted
	}
	return int64(total), merged
}

// boolean is the common value. Where members differ, or not all have reported, the hub's spec says what a required one is.
func (m *merger) boolean(name string) (any, outcome) {
	value, how := m.equal(name)
	if how == merged || !slices.Contains(m.schema.status.required, name) || !m.schema.specBooleans[name] {
		return value, how
	}
	asked, _ := m.spec[name].(bool)
	return asked, merged
}

// equal is the value that every target has.
func (m *merger) equal(name string) (any, outcome) {
	var common any
	known := 0
	for _, p := range m.parts {
		v, ok := p.observed[name]
		if !ok {
			continue
		}
		switch v.(type) {
		case string, bool:
		default:
			return nil, omitted
		}
		if known > 0 && v != common {
			return nil, omitted
		}
		common, known = v, known+1
	}
	switch {
	case known == 0:
		return nil, silent
	case known < len(m.parts):
		return nil, omitted // the others may say something else
	}
	return common, merged
}

// time is the first or last of the times that the members report.
func (m *merger) time(name string, n *node, wins func(a, b time.Time) bool) (any, outcome) {
	var (
		best time.Time
		text string
	)
	for _, p := range m.parts {
		s, ok := p.observed[name].(string)
		if !ok {
			continue
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			if n.format == "date-time" {
				return nil, omitted
			}
			return m.equal(name) // such as expires: never
		}
		if text == "" || wins(t, best) {
			best, text = t, s
		}
	}
	if text == "" {
		return nil, silent
	}
	return text, merged
}

// severities order the words of phases, the best first. Words on one line are equally bad.
var severities = map[string]int{
	"Ready": 0, "Running": 0, "Active": 0, "Available": 0, "Healthy": 0, "Bound": 0, "Succeeded": 0, "Complete": 0, "Completed": 0,
	"Updating": 1, "Upgrading": 1, "Scaling": 1, "Reconciling": 1, "Progressing": 1,
	"Pending": 2, "Creating": 2, "Initializing": 2, "Provisioning": 2, "Installing": 2, "Starting": 2,
	"Terminating": 3, "Deleting": 3,
	"Unknown":  4,
	"Degraded": 5, "Unavailable": 5,
	"Error": 6, "Failed": 6,
}

// phase is the worst word, if all words that the schema knows are in the table. One that has not reported counts as Unknown if the
// schema has that word, and hides the phase if not.
func (m *merger) phase(name string, n *node) (any, outcome) {
	if len(n.enum) == 0 {
		return nil, omitted
	}
	for _, word := range n.enum {
		if _, ok := severities[word]; !ok && word != "" {
			return nil, omitted
		}
	}
	words := map[string]bool{}
	known := false
	for _, p := range m.parts {
		word, _ := p.observed[name].(string)
		known = known || word != ""
		if word == "" || !p.current() {
			word = "Unknown"
		}
		words[word] = true
	}
	if !known {
		return nil, silent
	}
	worst := slices.MaxFunc(slices.Sorted(maps.Keys(words)), func(a, b string) int {
		return cmp.Or(cmp.Compare(severities[a], severities[b]), cmp.Compare(b, a))
	})
	if !n.allows(worst) {
		return nil, omitted
	}
	return worst, merged
}

// observedGeneration is the hub's generation once every target has it and its operator has seen it; until then what was said last.
func (m *merger) observedGeneration(n *node, before any) (any, outcome) {
	said, ok := generation(before)
	if ok && said > m.generation {
		ok = false // of an earlier object of that name
	}
	if m.observed && len(m.parts) > 0 {
		said, ok = m.generation, true
	}
	switch {
	case !ok:
		return nil, silent
	case n.kind == "string":
		return strconv.FormatInt(said, 10), merged
	case n.kind == "integer":
		return said, merged
	}
	return nil, omitted
}

func generation(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}
