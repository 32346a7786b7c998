package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// maxNested is the number of nested levels of a status that are searched, and maxVisited the number of nested objects
// and lists.
const (
	maxNested  = 3
	maxVisited = 256
)

// bygone are parts of the names of fields, in lower case, whose objects tell of past events. Their words say nothing of
// the object's health.
var bygone = []string{
	"history", "last", "previous", "target", "desired", "attempt", "record", "revision", "event", "operation", "backup", "snapshot", "restore", "job",
	"recent", "measurement", "migrationstate", "gracefulaction", "workloadsstatus",
}

// nestedResult is the result of reading the objects in a status.
type nestedResult struct {
	failure, progress, counts Verdict
	failed, underway, counted bool
}

// byNested reads the words, errors and counts in the objects and lists of a status. failure is the first word or text
// that means failure, and progress the first one that means Progressing. counts compares replicas with wanted replicas.
// Objects of a run are not read, nor those of an object that has ended: a run succeeds although one try of a step
// failed.
func (r reader) byNested(status map[string]any, ended bool) nestedResult {
	n := &nestedResult{counts: Verdict{Health: hubv1.HealthHealthy}}
	if ended || isRun(r.kind) {
		return *n
	}
	visited := 0
	var visit func(name string, value any, depth int)
	visit = func(name string, value any, depth int) {
		if visited++; depth > maxNested || visited > maxVisited {
			return
		}
		switch v := value.(type) {
		case map[string]any:
			n.read(name, v)
			for _, field := range slices.Sorted(maps.Keys(v)) {
				if hasParts(v[field]) && isCurrent(field) {
					visit(line(name+"."+field, maxMessage), v[field], depth+1)
				}
			}
		case []any:
			for i, item := range v {
				if hasParts(item) && visited <= maxVisited {
					visit(fmt.Sprintf("%s[%d]", name, i), item, depth)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if hasParts(status[name]) && isCurrent(name) {
			visit(line(name, maxMessage), status[name], 1)
		}
	}
	return *n
}

func hasParts(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// isCurrent reports whether the objects in a field may tell of the present state. Conditions are read elsewhere.
func isCurrent(name string) bool {
	name = strings.ToLower(name)
	return !strings.HasSuffix(name, "conditions") && !slices.ContainsFunc(bygone, func(part string) bool { return strings.Contains(name, part) })
}

// read reads the fields of one nested object.
func (n *nestedResult) read(name string, object map[string]any) {
	if v, failed := byErrorTexts(object); failed && !n.failed {
		v.Message = line(name+"."+v.Message, maxMessage)
		n.failure, n.failed = v, true
	}
	if object["type"] != nil && object["status"] != nil {
		return // a condition
	}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		h, word := nestedWord(field, object[field])
		if h == "" {
			continue
		}
		v := verdict(h, titled(word), fmt.Sprintf("%s.%s is %s", name, field, word))
		switch {
		case h == hubv1.HealthDegraded && !n.failed:
			n.failure, n.failed = v, true
		case h == hubv1.HealthProgressing && !n.underway:
			n.progress, n.underway = v, true
		}
	}
	if v, counted := compareCounts(object, wantedBeside(object, nil)); counted {
		n.counted = true
		if n.counts.Health == hubv1.HealthHealthy && v.Health != hubv1.HealthHealthy {
			v.Message = line(v.Message+" in "+name, maxMessage)
			n.counts = v
		}
	}
}

// nestedWord returns the health that a field of a nested object means, and its word. A field that ends in Ready or
// Available is read if its value is the status of a condition.
func nestedWord(field string, value any) (hubv1.Health, string) {
	switch value := value.(type) {
	case bool:
		if !value && slices.Contains([]string{"ready", "available", "healthy"}, field) {
			return hubv1.HealthProgressing, "false"
		}
	case string:
		isPhase := IsPhase(field) || namedLikePhase(field)
		switch {
		case len(value) > maxPhaseLength || value == "":
		case value == "False" && (isPhase || strings.HasSuffix(field, "Ready") || strings.HasSuffix(field, "Available") || strings.HasSuffix(field, "Healthy")):
			return hubv1.HealthProgressing, value
		case isPhase && value != "True":
			return judgeWord(value, true), value
		}
	}
	return "", ""
}
