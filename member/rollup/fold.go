package rollup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// These are reasons of merged conditions. The hub itself sets them.
const (
	// ReasonMembersDisagree is the reason of a condition that has different statuses on members, if the hub does not know
	// which status is better.
	ReasonMembersDisagree = "MembersDisagree"
	// ReasonFromMembers is the reason of a condition for which the members have different reasons, or none.
	ReasonFromMembers = "FromMembers"
	// ReasonNotReported is the reason of a condition that is missing in the status of at least one copy.
	ReasonNotReported = "NotReported"
)

// polarityOf returns which status of a condition type is good: True, False or neither. A rule of the placement takes
// precedence over what package health knows about the type.
func (m *merger) polarityOf(kind string) health.Polarity {
	if p, ok := m.rules.polarity[kind]; ok {
		return p
	}
	return health.PolarityOf(m.schema.kind, kind)
}

// badness returns a number for the status of a condition; a higher number is worse. From the best to the worst: the
// good status, Unknown, any other text such as Degraded, and the bad status.
func badness(p health.Polarity, status string) int {
	good, bad := "True", "False"
	if p == health.GoodWhenFalse {
		good, bad = bad, good
	}
	switch status {
	case good:
		return 0
	case "Unknown":
		return 1
	case bad:
		return 3
	}
	return 2
}

// clusterCondition has the status and reason of one condition type on one target.
type clusterCondition struct {
	cluster, status, reason string
	away                    bool // whether the status is Unknown because the target is unreachable
	implied                 bool // whether the target lacks the condition, which then counts as False
}

// folded is one condition type, merged from all clusters of the binding.
type folded struct {
	kind, status, reason, message string
}

// conditions merges every condition type that at least one copy has. At the top level of the status, it adds the
// condition hanse.dev/Healthy.
func (m *merger) conditions(n *node) (any, outcome) {
	item := n.items
	if n.kind != "array" || item == nil || item.properties["type"] == nil || item.properties["status"] == nil || !writable(item) {
		return nil, omitted
	}
	all := m.foldAll(item)
	if m.place.path == "" {
		all = append(all, m.healthy())
	}
	out := []any{}
	for _, f := range all {
		if n.maxItems >= 0 && len(out) == n.maxItems {
			break
		}
		if entry, ok := m.entry(item, f); ok && item.refuses(entry) == nil {
			out = append(out, entry)
		}
	}
	switch {
	case len(all) == 0:
		return nil, m.absent(conditionsField, lostTypes)
	case len(out) == 0:
		return nil, omitted
	}
	return out, merged
}

// lostTypes are the groups of conditions that a report loses completely.
const lostTypes = health.LostParts | health.LostConditions

// foldAll merges every condition type that a report has. If a report has lost conditions because of the size limit, a
// type that is missing there is left out, unless another cluster says that it is bad. foldAll records the names of the
// fields that the limit has removed as left out.
func (m *merger) foldAll(item *node) []folded {
	kinds := m.conditionTypes()
	out := make([]folded, 0, len(kinds))
	for _, kind := range kinds {
		f := m.fold(kind)
		lost := slices.ContainsFunc(m.parts, func(p part) bool { return p.lost.Has(lostTypes) && findOrOpposite(p.observed, kind) == nil })
		if lost && badness(m.polarityOf(kind), f.status) <= badness(m.polarityOf(kind), "Unknown") {
			m.leaveOut(conditionsField + "[" + kind + "]")
			continue
		}
		out = append(out, f)
	}
	loses := func(groups health.Loss) bool {
		return slices.ContainsFunc(m.parts, func(p part) bool { return p.lost.Has(groups) })
	}
	if loses(lostTypes) {
		m.leaveOut(conditionsField + "[other types]")
	}
	if loses(health.LostReasons) {
		for _, name := range []string{"reason", observedGenerationField} {
			if item.properties[name] != nil {
				m.leaveOut(conditionsField + "[]." + name)
			}
		}
	}
	return out
}

// writable reports whether the merge can set every field that the schema requires in a condition.
func writable(item *node) bool {
	for _, name := range item.required {
		switch name {
		case "type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime":
		default:
			return false
		}
	}
	return true
}

// maxConditions is the maximum number of merged condition types. It prevents that a member fills the hub object with
// invented types. If there are more types, the hub keeps those that most copies have.
const maxConditions = 64

func (m *merger) conditionTypes() []string {
	seen := map[string]int{}
	for _, p := range m.parts {
		for _, c := range entries(p.observed) {
			if kind, _ := c["type"].(string); kind != "" && kind != hubv1.ConditionObjectHealthy {
				seen[kind]++
			}
		}
	}
	kinds := slices.Sorted(maps.Keys(seen))
	if len(kinds) > maxConditions {
		slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(seen[b], seen[a]) })
		kinds = kinds[:maxConditions]
		slices.Sort(kinds)
	}
	return kinds
}

func entries(status map[string]any) []map[string]any {
	list, _ := status[conditionsField].([]any)
	var out []map[string]any
	for _, e := range list {
		if c, ok := e.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

func find(status map[string]any, kind string) map[string]any {
	for _, c := range entries(status) {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

// findOrOpposite returns the condition of the given type. If Ready is missing, it returns Ready with the opposite
// status of NotReady, which Strimzi uses. It is nil if both are missing.
func findOrOpposite(status map[string]any, kind string) map[string]any {
	c := find(status, kind)
	if c != nil || kind != health.ConditionReady {
		return c
	}
	opposite := map[string]any{"True": "False", "False": "True"}
	c = find(status, health.ConditionNotReady)
	notReady, _ := c["status"].(string)
	if opposite[notReady] == nil {
		return nil
	}
	return map[string]any{"status": opposite[notReady], "reason": c["reason"]}
}

// fold merges one condition type of all clusters; the result is the worst status. If it is not known which status is
// good, the result is the status that all clusters have. If their statuses differ, the result is Unknown.
func (m *merger) fold(kind string) folded {
	p := m.polarityOf(kind)
	all := make([]clusterCondition, 0, len(m.parts))
	for _, part := range m.parts {
		all = append(all, conditionOn(part, kind, p))
	}
	if p == health.Neither {
		return common(kind, all)
	}
	worst := all[0]
	for _, s := range all[1:] {
		if badness(p, s.status) > badness(p, worst.status) {
			worst = s
		}
	}
	if badness(p, worst.status) == 0 {
		return goodEverywhere(kind, all)
	}
	if partiallyUnknown(all, func(s clusterCondition) bool { return badness(p, s.status) == 0 }) {
		worst.reason = hubv1.ReasonPartiallyUnknown
	}
	return naming(kind, worst.status, worst.reason, all, func(s clusterCondition) bool { return s.status == worst.status })
}

// conditionOn returns the condition of one cluster. The condition's status is Unknown while the cluster is unreachable,
// and while the copy on it does not have the wanted content.
func conditionOn(part part, kind string, p health.Polarity) clusterCondition {
	s := clusterCondition{cluster: part.row.Name, status: "Unknown", reason: part.row.Reason}
	if !part.current() {
		s.away = part.row.Applied == metav1.ConditionUnknown && part.row.Reason != hubv1.ReasonPending
		return s
	}
	c := findOrOpposite(part.observed, kind)
	switch {
	case c == nil && p == health.GoodWhenFalse && len(part.observed) > 0 && !part.lost.Has(lostTypes):
		s.status, s.reason, s.implied = "False", "", true
	case c == nil:
		s.reason = ReasonNotReported
	default:
		s.status, _ = c["status"].(string)
		s.reason, _ = c["reason"].(string)
	}
	return s
}

// partiallyUnknown reports whether some clusters are unreachable, some are reachable, and the condition is good on all
// reachable ones. The function isGood reports whether the condition is good on one cluster.
func partiallyUnknown(all []clusterCondition, isGood func(clusterCondition) bool) bool {
	away := 0
	for _, s := range all {
		switch {
		case s.away:
			away++
		case !isGood(s):
			return false
		}
	}
	return 0 < away && away < len(all)
}

func common(kind string, all []clusterCondition) folded {
	if i := slices.IndexFunc(all, func(s clusterCondition) bool { return !s.away }); i >= 0 && partiallyUnknown(all, func(s clusterCondition) bool { return s.status == all[i].status }) {
		return naming(kind, "Unknown", hubv1.ReasonPartiallyUnknown, all, func(s clusterCondition) bool { return s.away })
	}
	for _, s := range all[1:] {
		if s.status != all[0].status {
			return naming(kind, "Unknown", ReasonMembersDisagree, all, func(clusterCondition) bool { return true })
		}
	}
	return everywhere(kind, all)
}

// goodEverywhere returns the merged condition of a type that is good on all clusters. If some copies do not have the
// condition, the message says so.
func goodEverywhere(kind string, all []clusterCondition) folded {
	has := slices.DeleteFunc(slices.Clone(all), func(s clusterCondition) bool { return s.implied })
	if len(has) == 0 || len(has) == len(all) {
		return everywhere(kind, all)
	}
	out := naming(kind, has[0].status, everywhere(kind, has).reason, all, func(s clusterCondition) bool { return !s.implied })
	out.message += "; the other clusters do not have the condition"
	return out
}

func everywhere(kind string, all []clusterCondition) folded {
	reason := all[0].reason
	for _, s := range all[1:] {
		if s.reason != reason {
			reason = ""
		}
	}
	return folded{kind: kind, status: all[0].status, reason: reason, message: fmt.Sprintf("%s on %d of %d clusters", all[0].status, len(all), len(all))}
}

// naming returns a condition with a message about the clusters for which the function `is` returns true. The message
// names at most three of these clusters.
func naming(kind, status, reason string, all []clusterCondition, is func(clusterCondition) bool) folded {
	var named []string
	count := 0
	for _, s := range all {
		if !is(s) {
			continue
		}
		if count++; count > maxNamed {
			continue
		}
		why := s.reason
		if reason == ReasonMembersDisagree || why == "" {
			why = s.status
		}
		named = append(named, fmt.Sprintf("%s (%s)", s.cluster, why))
	}
	message := fmt.Sprintf("%s on %d of %d clusters: %s", status, count, len(all), strings.Join(named, ", "))
	if reason == ReasonMembersDisagree {
		message = "members disagree: " + strings.Join(named, ", ")
	}
	if more := count - maxNamed; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return folded{kind: kind, status: status, reason: reason, message: message}
}

// healthy returns the condition Healthy as a condition of the hub object, for tools that read only the hub object.
// While a copy does not have the wanted content, or its cluster is unreachable, its health counts as Unknown unless it
// is Degraded.
func (m *merger) healthy() folded {
	rows := make([]hubv1.ClusterRow, 0, len(m.parts))
	targets := make([]hubv1.BindingTarget, 0, len(m.parts))
	for _, p := range m.parts {
		row := p.row
		if !p.current() && row.Health != hubv1.HealthDegraded {
			row.Health = hubv1.HealthUnknown
		}
		rows = append(rows, row)
		targets = append(targets, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	c := healthy(rows, targets)
	return folded{kind: hubv1.ConditionObjectHealthy, status: string(c.Status), reason: c.Reason, message: c.Message}
}

// entry returns a condition with the fields that the schema declares, as an item of the list of conditions. ok is false
// if the schema does not allow the condition.
func (m *merger) entry(item *node, f folded) (entry map[string]any, ok bool) {
	if !item.properties["status"].allows(f.status) {
		// The schema may allow only True, False and Unknown. Any other status is then replaced by the bad status of the
		// condition type.
		if f.status = "False"; m.polarityOf(f.kind) == health.GoodWhenFalse {
			f.status = "True"
		}
	}
	if !item.properties["type"].allows(f.kind) || !item.properties["status"].allows(f.status) {
		return nil, false
	}
	before := find(m.place.before, f.kind)
	entry = map[string]any{"type": f.kind, "status": f.status}
	if n := item.properties["reason"]; n != nil {
		needed := slices.Contains(item.required, "reason")
		if f.reason == "" && needed || f.reason != "" && !n.allows(f.reason) {
			f.reason = ReasonFromMembers
		}
		switch {
		case f.reason != "" && n.allows(f.reason):
			entry["reason"] = f.reason
		case needed:
			return nil, false
		}
	}
	if item.properties["message"] != nil {
		entry["message"] = f.message
	}
	for _, name := range []string{"lastTransitionTime", "lastUpdateTime"} {
		if n := item.properties[name]; n != nil && (name == "lastTransitionTime" || slices.Contains(item.required, name)) {
			entry[name] = m.since(before, f.status, name)
		}
	}
	if g, how := m.generationOf(item, f.kind, before); how == merged {
		entry[observedGenerationField] = g
	}
	return entry, true
}

// generationOf returns the observedGeneration of a merged condition. The merged condition has this field if the
// condition has it in all reports, or if the hub itself sets the condition. A report is the part of a copy's status in
// its row.
func (m *merger) generationOf(item *node, kind string, before map[string]any) (any, outcome) {
	n := item.properties[observedGenerationField]
	dated := func(p part) bool {
		return find(p.observed, kind)[observedGenerationField] != nil
	}
	if n == nil || kind != hubv1.ConditionObjectHealthy && !m.everyPart(dated) {
		return nil, silent
	}
	return m.generationIn(n, before[observedGenerationField])
}

// everyPart reports whether the function `is` returns true for every target whose report (the part of a copy's status
// in its row) is not empty. It returns false if all reports are empty.
func (m *merger) everyPart(is func(part) bool) bool {
	reported := 0
	for _, p := range m.parts {
		if len(p.whole) == 0 {
			continue
		}
		if reported++; !is(p) {
			return false
		}
	}
	return reported > 0
}

// since returns the transition time of a merged condition. If the status has not changed, this is the time in the given
// field of the previous condition; otherwise, the current time.
func (m *merger) since(before map[string]any, status, field string) string {
	if at, ok := before[field].(string); ok && before["status"] == status {
		return at
	}
	return m.now.UTC().Format(time.RFC3339)
}
