package health

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Explanation is a Verdict with the parts of the status that it is from.
type Explanation struct {
	Verdict
	// ByKind is true if the rules for a kind of Kubernetes itself judge the object. Read and Ignored are then empty.
	ByKind bool
	// Read are the conditions and fields of the status that a convention understands.
	Read []Reading
	// Ignored are the names of the conditions and fields that no convention understands.
	Ignored []string
}

// Reading is a condition or field of a status, and its meaning if the status had nothing else.
type Reading struct {
	Name, Value string
	Means       hubv1.Health
}

// Explain judges an object by the conventions of its kind, and tells what they understand. It judges each condition and
// field alone, with several values. If all values give the same Unknown health, the condition or field is ignored.
func Explain(obj *unstructured.Unstructured, c Conventions) Explanation {
	out := Explanation{Verdict: Assess(obj, c)}
	if obj == nil || obj.Object == nil {
		return out
	}
	if out.ByKind = status.GetLegacyConditionsFn(obj) != nil; out.ByKind {
		return out
	}
	for _, cond := range conditionsOf(obj) {
		out.add(Reading{Name: "condition " + cond.kind, Value: cond.status}, obj, c, conditionProbes(cond))
	}
	fields := statusOf(obj)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if list, _ := fields[name].([]any); name == "conditions" || slices.Contains(perReader, name) && len(list) > 0 {
			continue
		}
		out.add(Reading{Name: name, Value: shortly(fields[name])}, obj, c, fieldProbes(obj, name))
	}
	return out
}

// add adds a condition or field to Read or Ignored. The first probe is a status that has it alone, with its own value.
func (e *Explanation) add(r Reading, obj *unstructured.Unstructured, c Conventions, probes []map[string]any) {
	// An object of a kind whose status no controller writes is Healthy whatever it has, so that only a worse health shows
	// that a value is read.
	silent := isSilent(obj.GroupVersionKind().GroupKind())
	understood := false
	for i, probe := range probes {
		alone := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
		alone.Object["status"] = probe
		v := Assess(alone, c)
		if i == 0 {
			r.Means = v.Health
		}
		read := v.Health != hubv1.HealthUnknown && v.Reason != ReasonStatusMissing && !(silent && v.Health == hubv1.HealthHealthy)
		understood = understood || read
	}
	if understood {
		e.Read = append(e.Read, r)
		return
	}
	e.Ignored = append(e.Ignored, r.Name)
}

func conditionProbes(c condition) []map[string]any {
	var out []map[string]any
	for _, value := range []string{c.status, "True", "False"} {
		entry := map[string]any{"type": c.kind, "status": value}
		if value == c.status && c.reason != "" {
			entry["reason"] = c.reason
		}
		out = append(out, map[string]any{"conditions": []any{entry}})
	}
	return out
}

// fieldProbes returns statuses with one field. If the field has the object's generation, the last of them has an older
// one: if the conventions read the field as a generation, the object is then Progressing.
func fieldProbes(obj *unstructured.Unstructured, name string) []map[string]any {
	value := statusOf(obj)[name]
	out := []map[string]any{{name: value}}
	if g, ok := integer(value); ok && g == obj.GetGeneration() && g > 0 {
		out = append(out, map[string]any{name: g - 1})
	}
	return out
}

// shortly returns the text of a value in a status. Of a list or an object, it returns the size.
func shortly(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return fmt.Sprintf("(%d fields)", len(v))
	case []any:
		return fmt.Sprintf("(%d entries)", len(v))
	}
	return line(fmt.Sprint(value), maxString)
}
