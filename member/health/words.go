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

// maxPhaseLength is the maximum length of a text that is read as a phase. A longer text is a message for people, and is
// not judged.
const maxPhaseLength = 128

// judgeWord returns the health that a phase means. The result is empty if the phase is not known. If vocabulary.yaml
// lacks the phase, a part such as "failed" or "error" means Degraded, and so does a first word that means Degraded,
// such as in InvalidSpec. Otherwise the result is Progressing if the first or the last of several words means
// Progressing. If the spec stops the object, a phase such as Stopped means Healthy.
func judgeWord(text string, atRest bool) hubv1.Health {
	word := letters(text)
	health := healthOfWord(word)
	switch {
	case health == stopped && atRest:
		return hubv1.HealthHealthy
	case health == stopped:
		return hubv1.HealthProgressing
	case health != "":
		return health
	case describesFailure(word):
		return hubv1.HealthDegraded
	}
	parts := wordsIn(text)
	if len(parts) < 2 || slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(negations, part) }) {
		return ""
	}
	first, last := healthOfWord(parts[0]), healthOfWord(parts[len(parts)-1])
	sentence := strings.Contains(text, " ")
	switch {
	case first == hubv1.HealthDegraded && !sentence:
		return hubv1.HealthDegraded
	case first == hubv1.HealthProgressing, last == hubv1.HealthProgressing && !sentence:
		return hubv1.HealthProgressing
	}
	return ""
}

// negations are words that reverse the meaning of the words beside them.
var negations = []string{"not", "no", "non", "without", "never"}

// wordsIn returns the words of a phase or of a condition type, in lower case: BlockedByFailedLoad, PENDING_RERUN and
// "Setting up primary" have three, two and three.
func wordsIn(text string) []string {
	var spaced strings.Builder
	var before rune
	for _, r := range text {
		if r >= 'A' && r <= 'Z' && before >= 'a' && before <= 'z' {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(r)
		before = r
	}
	return strings.FieldsFunc(strings.ToLower(spaced.String()), func(r rune) bool { return r < 'a' || r > 'z' })
}

// endings are words and types of conditions, in lower case, of an object that has run to completion.
var endings = []string{"succeeded", "complete", "completed", "finished", "successful"}

func lastWord(text string) string {
	parts := wordsIn(text)
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1]
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

// describesFailure reports whether a word or a sentence describes a failure. Examples are UpdateFailed and
// PartiallyFailed.
func describesFailure(word string) bool {
	word = withoutHarmless(word)
	return strings.Contains(word, "failed") || strings.Contains(word, "failure") || strings.Contains(word, "error") || strings.Contains(word, "unrecoverable")
}

// stateValue is the value of a status field or a printer column that may show the health.
type stateValue struct {
	name  string // name of the field or of the column
	value any
	// guessed is true if the field was chosen only because its name resembles the name of a phase. If vocabulary.yaml
	// lacks the word in such a field, the field is ignored.
	guessed bool
	// means are the words that the kind of the object defines for this field, each with the health that it means.
	means map[string]hubv1.Health
}

// wordsResult is the result of reading the words of a status.
type wordsResult struct {
	verdict Verdict
	judged  bool
	// healthy is true if a word means Healthy. unread is a word that vocabulary.yaml lacks. It is empty if all words are
	// known.
	healthy bool
	unread  string
	// rests is true if a word such as Stopped tells that the object does not run, and ended if one such as Succeeded
	// tells that it has run to completion. underway is true if a word means Progressing, even if the verdict ignores it.
	rests, ended, underway bool
}

// byWords judges the words in a status: phases, states, healths, the printer columns of the kind, and fields with
// similar names. conditionsJudged is true if a condition affects the health. In this case a phase that means progress
// is ignored, except if the spec stops the object. A phase that means failure, and a field whose name contains health
// or sync, still count.
func (r reader) byWords(obj *unstructured.Unstructured, conditionsJudged bool) wordsResult {
	out := wordsResult{verdict: Verdict{Health: hubv1.HealthHealthy}}
	atRest := restWanted(obj)
	for _, s := range r.stateValues(obj) {
		h, reason := s.judge(atRest)
		text, _ := s.value.(string)
		out.rests = out.rests || s.means[text] == "" && healthOfWord(letters(text)) == stopped
		out.ended = out.ended || !s.guessed && slices.Contains(endings, letters(text))
		out.underway = out.underway || h == hubv1.HealthProgressing
		switch {
		case h == "" && text != "" && len(text) <= maxPhaseLength && !s.guessed && out.unread == "":
			out.unread = fmt.Sprintf("%s is %s", s.name, text)
		case h == "" || h == hubv1.HealthProgressing && conditionsJudged && !s.isHealth() && !atRest:
		default:
			out.judged = true
			out.healthy = out.healthy || h == hubv1.HealthHealthy
			if worse(h, out.verdict.Health) {
				out.verdict = verdict(h, reason, fmt.Sprintf("%s is %v", s.name, s.value))
			}
		}
	}
	return out
}

// stateValue returns the fields and printer columns whose words may show the object's health.
func (r reader) stateValues(obj *unstructured.Unstructured) []stateValue {
	status := statusOf(obj)
	if text, ok := obj.Object["status"].(string); ok {
		return []stateValue{{name: "status", value: text}}
	}
	var all []stateValue
	shown := map[string]bool{}
	own := words.meanings(r.kind)
	for _, field := range slices.Sorted(maps.Keys(own)) {
		s := stateValue{name: field, value: at(status, strings.Split(field, ".")), means: own[field]}
		if words.isIdle(r.kind, field, s.value) {
			return []stateValue{s}
		}
		all = append(all, s)
		shown[field] = true
	}
	for _, field := range []string{"phase", "state", "health"} {
		if !shown[field] {
			all = append(all, stateValue{name: field, value: status[field]})
			shown[field] = true
		}
	}
	for _, column := range r.Columns {
		if column.Path != nil && own[strings.Join(column.Path[1:], ".")] == nil {
			all = append(all, stateValue{name: column.Name, value: at(status, column.Path[1:])})
			shown[strings.Join(column.Path[1:], ".")] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if !shown[name] && namedLikePhase(name) {
			all = append(all, stateValue{name: name, value: status[name], guessed: true})
		}
	}
	return all
}

// namedLikePhase reports whether the name of a field resembles the name of a phase, such as updateStatus and
// readyToUse. It returns false for the state of a past event, such as lastBackupStatus.
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

// errorFields are fields of a status that are empty while the object has no error.
var errorFields = []string{"error", "errors", "errorMessage", "errorReason", "failureMessage", "failureReason"}

// noErrors are the values, in lower case, by which a field in errorFields says that there is no error.
var noErrors = []string{"", "false", "0", "none", "<none>", "nil", "null"}

// byErrorTexts judges the fields in errorFields. An object with a text in one of them is Degraded.
func byErrorTexts(status map[string]any) (v Verdict, judged bool) {
	for _, name := range errorFields {
		if isEmpty(status[name]) || slices.Contains(noErrors, strings.ToLower(fmt.Sprint(status[name]))) {
			continue
		}
		return verdict(hubv1.HealthDegraded, titled(name), fmt.Sprintf("%s is %v", name, status[name])), true
	}
	return Verdict{}, false
}

func (s stateValue) isHealth() bool {
	name := strings.ToLower(s.name)
	return strings.Contains(name, "health") || strings.Contains(name, "sync")
}

// judge returns the health that the value means, and the reason for the row in the binding.
func (s stateValue) judge(atRest bool) (h hubv1.Health, reason string) {
	switch value := s.value.(type) {
	case bool:
		return s.judgeFlag(value, atRest)
	case string:
		return s.judgeText(value, atRest)
	}
	return "", ""
}

func (s stateValue) judgeFlag(value, atRest bool) (h hubv1.Health, reason string) {
	switch {
	case atRest && !value:
		return "", ""
	case value && s.name == "failed":
		return hubv1.HealthDegraded, titled(s.name)
	case value || s.name == "failed":
		return hubv1.HealthHealthy, ""
	}
	return hubv1.HealthProgressing, titled(s.name) + "False"
}

func (s stateValue) judgeText(value string, atRest bool) (h hubv1.Health, reason string) {
	if own := s.means[value]; own != "" {
		return own, titled(value)
	}
	has, of, isRatio := ratio(value)
	switch {
	case len(value) > maxPhaseLength:
		return "", ""
	case value == "True" || value == "true":
		return hubv1.HealthHealthy, ""
	case atRest && (value == "False" || value == "false"):
		return "", ""
	case value == "False" || value == "false":
		return hubv1.HealthProgressing, titled(s.name) + "False"
	case isRatio && has < of:
		return hubv1.HealthProgressing, ReasonReplicas
	case isRatio:
		return hubv1.HealthHealthy, ""
	}
	return judgeWord(value, atRest), titled(value)
}

// titled joins the words of a sentence: "Setting up primary" becomes SettingUpPrimary.
func titled(text string) string {
	fields := strings.Fields(text)
	for i, word := range fields {
		fields[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(fields, "")
}

// ratio parses a text such as 1/3 into its two numbers.
func ratio(text string) (has, of int, ok bool) {
	before, after, ok := strings.Cut(text, "/")
	if !ok {
		return 0, 0, false
	}
	has, err := strconv.Atoi(before)
	of, errOf := strconv.Atoi(after)
	return has, of, err == nil && errOf == nil
}
