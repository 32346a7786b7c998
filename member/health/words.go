package health

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// longestPhase is the longest text that counts as a phase; longer texts are prose.
const longestPhase = 128

// judgeWord says what a phase means; empty if nothing. It may be a short sentence: then its first word counts if it
// says that something is on its way, and words of failure wherever they are.
func judgeWord(text string, paused bool) hubv1.Health {
	word := letters(text)
	says := wordSays(word)
	first, _, sentence := strings.Cut(text, " ")
	switch {
	case says == stopped && paused:
		return hubv1.HealthHealthy
	case says == stopped:
		return hubv1.HealthProgressing
	case says != "":
		return says
	case tellsFailure(word):
		return hubv1.HealthDegraded
	case sentence && wordSays(letters(first)) == hubv1.HealthProgressing:
		return hubv1.HealthProgressing
	}
	return ""
}

func letters(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, text)
}

// tellsFailure is true for words such as UpdateFailed and PartiallyFailed, and for sentences that tell of a failure.
func tellsFailure(word string) bool {
	for _, harmless := range words.Reasons.Harmless.Words {
		if strings.Contains(word, harmless) {
			return false
		}
	}
	return strings.Contains(word, "failed") || strings.Contains(word, "failure") || strings.Contains(word, "error") || strings.Contains(word, "unrecoverable")
}

// said is the value of a field or a column of the status.
type said struct {
	name  string // of the field or the column
	value any
	// guessed says that the field only has a name like those of phases. A word of it that is not known says nothing.
	guessed bool
	// means are the words of the field that the kind has of its own.
	means map[string]hubv1.Health
}

// wordsSay is the joint verdict of the words of a status.
type wordsSay struct {
	verdict Verdict
	judged  bool
	// well is true if a word says so, and unread is one that is not known; empty if there is none.
	well   bool
	unread string
}

// byWords judges phases, states, healths, the columns of the kind, and fields with names like these. While conditions
// speak for the whole, a phase that is on its way says nothing new; one of failure does, and so does a health.
func (r reader) byWords(obj *unstructured.Unstructured, conditionsSpeak bool) wordsSay {
	out := wordsSay{verdict: Verdict{Health: hubv1.HealthHealthy}}
	for _, s := range r.said(obj) {
		h, reason := s.judge(paused(obj))
		text, _ := s.value.(string)
		switch {
		case h == "" && text != "" && len(text) <= longestPhase && !s.guessed && out.unread == "":
			out.unread = fmt.Sprintf("%s is %s", s.name, text)
		case h == "" || h == hubv1.HealthProgressing && conditionsSpeak && !s.isHealth():
		default:
			out.judged = true
			out.well = out.well || h == hubv1.HealthHealthy
			if worse(h, out.verdict.Health) {
				out.verdict = verdict(h, reason, fmt.Sprintf("%s is %v", s.name, s.value))
			}
		}
	}
	return out
}

// said lists what may tell in words how the object fares.
func (r reader) said(obj *unstructured.Unstructured) []said {
	status := statusOf(obj)
	if text, ok := obj.Object["status"].(string); ok {
		return []said{{name: "status", value: text}}
	}
	var all []said
	shown := map[string]bool{}
	own := words.meanings(r.kind)
	for _, field := range slices.Sorted(maps.Keys(own)) {
		all = append(all, said{name: field, value: at(status, strings.Split(field, ".")), means: own[field]})
		shown[field] = true
	}
	for _, field := range []string{"phase", "state", "health"} {
		if !shown[field] {
			all = append(all, said{name: field, value: status[field]})
			shown[field] = true
		}
	}
	for _, column := range r.Columns {
		if column.Path != nil && own[strings.Join(column.Path[1:], ".")] == nil {
			all = append(all, said{name: column.Name, value: at(status, column.Path[1:])})
			shown[strings.Join(column.Path[1:], ".")] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if !shown[name] && namedLikePhase(name) {
			all = append(all, said{name: name, value: status[name], guessed: true})
		}
	}
	return all
}

// namedLikePhase is true for updateStatus and readyToUse, and false for the states of what is over, such as
// lastBackupStatus.
func namedLikePhase(name string) bool {
	for _, over := range []string{"last", "previous", "desired", "target"} {
		if strings.HasPrefix(name, over) {
			return false
		}
	}
	switch name {
	case "status", "result", "ready", "healthy", "available", "readyToUse", "failed":
		return true
	}
	for _, end := range []string{"Phase", "State", "Status", "Health"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// errorFields are fields of a status that are empty while all is well.
var errorFields = []string{"error", "errors", "errorMessage", "errorReason", "failureMessage", "failureReason"}

// byErrorTexts judges texts of errors that stand in fields of their own.
func byErrorTexts(status map[string]any) (v Verdict, judged bool) {
	for _, name := range errorFields {
		if isEmpty(status[name]) || status[name] == "" || status[name] == false {
			continue
		}
		return verdict(hubv1.HealthDegraded, titled(name), fmt.Sprintf("%s is %v", name, status[name])), true
	}
	return Verdict{}, false
}

func (s said) isHealth() bool {
	name := strings.ToLower(s.name)
	return strings.Contains(name, "health") || strings.Contains(name, "sync")
}

// judge returns the meaning of the value, and a word for the reason.
func (s said) judge(paused bool) (h hubv1.Health, reason string) {
	switch value := s.value.(type) {
	case bool:
		switch {
		case value && s.name == "failed":
			return hubv1.HealthDegraded, titled(s.name)
		case value || s.name == "failed":
			return hubv1.HealthHealthy, ""
		}
		return hubv1.HealthProgressing, titled(s.name) + "False"
	case string:
		if own := s.means[value]; own != "" {
			return own, titled(value)
		}
		has, of, isRatio := ratio(value)
		switch {
		case len(value) > longestPhase:
			return "", ""
		case value == "True" || value == "true":
			return hubv1.HealthHealthy, ""
		case value == "False" || value == "false":
			return hubv1.HealthProgressing, titled(s.name) + "False"
		case isRatio && has < of:
			return hubv1.HealthProgressing, ReasonReplicas
		case isRatio:
			return hubv1.HealthHealthy, ""
		}
		return judgeWord(value, paused), titled(value)
	}
	return "", ""
}

// titled makes one word of a sentence: "Setting up primary" is SettingUpPrimary.
func titled(text string) string {
	fields := strings.Fields(text)
	for i, word := range fields {
		fields[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(fields, "")
}

// ratio reads a text such as 1/3.
func ratio(text string) (has, of int, ok bool) {
	before, after, ok := strings.Cut(text, "/")
	if !ok {
		return 0, 0, false
	}
	has, err := strconv.Atoi(before)
	of, errOf := strconv.Atoi(after)
	return has, of, err == nil && errOf == nil
}
