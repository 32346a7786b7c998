package health

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Words of phases, states and healths, in lower case and of letters alone. A word in no list says nothing.
var (
	wordsFailed = []string{
		"failed", "failure", "error", "degraded", "crashloopbackoff", "unhealthy", "unavailable", "red", "healtherr", "invalid", "rejected",
		"aborted", "lost", "broken", "stalled", "unrecoverable", "imagepullbackoff", "expired", "crashed", "unschedulable", "faulted",
	}
	wordsOnTheirWay = []string{
		"pending", "creating", "updating", "provisioning", "initializing", "starting", "progressing", "installing", "upgrading",
		"reconciling", "scaling", "scalingup", "scalingdown", "deleting", "terminating", "stopping", "unknown", "inprogress", "new", "waiting",
		"bootstrap", "bootstrapping", "expanding", "rolling", "rollingout", "migrating", "migratingdata", "applyingchanges", "configuring",
		"restoring", "resizing", "restarting", "recovering", "connecting", "deploying", "missing", "outofsync", "yellow", "healthwarn",
		"maintenance", "queued", "preparing", "rollingback", "setting",
	}
	// Words of objects that stand still. They do so as they should if their spec asks for it.
	wordsStopped = []string{"paused", "suspended", "stopped", "hibernated"}
)

// longestPhase is the longest text that is taken for a phase; what is longer is prose.
const longestPhase = 128

// judgeWord says what a phase means; empty if nothing. It may be a short sentence: then its first word counts, and words of failure
// wherever they are.
func judgeWord(text string, paused bool) hubv1.Health {
	word := letters(text)
	first, _, sentence := strings.Cut(text, " ")
	switch {
	case slices.Contains(wordsFailed, word), tellsFailure(word):
		return hubv1.HealthDegraded
	case slices.Contains(wordsStopped, word) && !paused, slices.Contains(wordsOnTheirWay, word):
		return hubv1.HealthProgressing
	case sentence && slices.Contains(wordsOnTheirWay, letters(first)):
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
	for _, harmless := range []string{"noerror", "withouterror", "nofailure"} {
		if strings.Contains(word, harmless) {
			return false
		}
	}
	return strings.Contains(word, "failed") || strings.Contains(word, "failure") || strings.Contains(word, "error") || strings.Contains(word, "unrecoverable")
}

// said is what a field or a column of the status says.
type said struct {
	name  string // of the field or the column
	value any
}

// byWords judges phases, states, healths and the columns of the kind. While conditions speak for the whole, a phase that is on its way
// says nothing new; one of failure does, and so does a health.
func byWords(status map[string]any, c Conventions, conditionsSpeak, paused bool) (v Verdict, judged bool) {
	all := []said{{"phase", status["phase"]}, {"state", status["state"]}, {"health", status["health"]}}
	for _, column := range c.Columns {
		if column.Path != nil {
			all = append(all, said{column.Name, at(status, column.Path[1:])})
		}
	}
	v = Verdict{Health: hubv1.HealthHealthy}
	for _, s := range all {
		h, reason := s.judge(paused)
		if h == "" || h == hubv1.HealthProgressing && conditionsSpeak && !s.isHealth() {
			continue
		}
		if judged = true; worse(h, v.Health) {
			v = verdict(h, reason, fmt.Sprintf("%s is %v", s.name, s.value))
		}
	}
	return v, judged
}

func (s said) isHealth() bool {
	name := strings.ToLower(s.name)
	return strings.Contains(name, "health") || strings.Contains(name, "sync")
}

// judge says what the value means, and the word for it that is fit for a reason.
func (s said) judge(paused bool) (h hubv1.Health, reason string) {
	switch value := s.value.(type) {
	case bool:
		if !value {
			return hubv1.HealthProgressing, titled(s.name) + "False"
		}
	case string:
		switch {
		case len(value) > longestPhase:
			return "", ""
		case value == "False" || value == "false":
			return hubv1.HealthProgressing, titled(s.name) + "False"
		case lacking(value):
			return hubv1.HealthProgressing, ReasonReplicas
		}
		return judgeWord(value, paused), titled(value)
	}
	return "", ""
}

// titled makes one word of a sentence: "Setting up primary" is SettingUpPrimary.
func titled(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// lacking is true for a text such as 1/3.
func lacking(text string) bool {
	has, of, ok := strings.Cut(text, "/")
	if !ok {
		return false
	}
	n, err := strconv.Atoi(has)
	m, errOf := strconv.Atoi(of)
	return err == nil && errOf == nil && n < m
}
