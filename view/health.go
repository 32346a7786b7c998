package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// Judgements is the output of the command health.
type Judgements struct {
	Objects []Judgement `json:"objects"`
}

// Judgement is the health of an object in a file, with the parts of its status that it is from.
type Judgement struct {
	Object  string       `json:"object"`
	Health  hubv1.Health `json:"health"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	// ByKind is true if the rules for a kind of Kubernetes itself judge the object. Read and Ignored are then empty.
	ByKind bool `json:"byKind,omitempty"`
	// Defined is true if the files have the definition of the object's kind.
	Defined bool `json:"defined"`
	// Read are the conditions and fields of the status that a convention understands. Ignored are the names of all others.
	Read    []Reading `json:"read"`
	Ignored []string  `json:"ignored"`
}

// Reading is a condition or field of a status. Means is the health of the object if its status had nothing else.
type Reading struct {
	Name  string       `json:"name"`
	Value string       `json:"value"`
	Means hubv1.Health `json:"means"`
}

// Judged returns the result of a judgement. defined is true if the kind's definition is known.
func Judged(object string, e health.Explanation, defined bool) Judgement {
	out := Judgement{
		Object: object, Health: e.Health, Reason: e.Reason, Message: e.Message, ByKind: e.ByKind, Defined: defined,
		Read: []Reading{}, Ignored: append([]string{}, e.Ignored...),
	}
	for _, r := range e.Read {
		out.Read = append(out.Read, Reading(r))
	}
	return out
}

// Write prints the health of each object, and the conditions and fields from which the health follows.
func (j Judgements) Write(w io.Writer, _ time.Time) {
	for i, o := range j.Objects {
		if i > 0 {
			fmt.Fprintln(w)
		}
		o.write(w)
	}
}

func (j Judgement) write(w io.Writer) {
	fmt.Fprintln(w, printable(j.Object))
	line(w, "Health", string(j.Health))
	line(w, "Why", why(j.Reason, j.Message))
	switch {
	case j.ByKind:
		line(w, "Read", "by the rules for this kind alone")
		return
	case !j.Defined:
		line(w, "Note", "no --definition has this kind: printer columns and the scale subresource are not read")
	}
	line(w, "Ignored", cmp.Or(strings.Join(j.Ignored, ", "), "nothing"))
	if len(j.Read) == 0 {
		line(w, "Read", "nothing")
		return
	}
	rows := make([][]string, 0, len(j.Read))
	for _, r := range j.Read {
		means := string(r.Means)
		if r.Means == hubv1.HealthUnknown {
			means = "nothing" // it is read beside others, such as a generation
		}
		rows = append(rows, []string{r.Name, r.Value, means})
	}
	table(w, []string{"READ", "VALUE", "ALONE IT MEANS"}, rows)
}
