package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

// Plan is a plan with the data that `plan` and `plan show` print.
type Plan struct {
	preview.Plan
	// Made is the creation time of a stored plan.
	Made *metav1.Time `json:"made,omitempty"`
	// MovedSince lists the hub objects that have changed since the stored plan was made. It is empty for a plan that is
	// not stored.
	MovedSince []preview.Difference `json:"movedSince,omitempty"`
}

// Changed reports whether the plan removes, creates, moves or changes anything, or has a problem.
func (p Plan) Changed() bool {
	s := p.Summary
	return s.Removed+s.Moved+s.Created+s.Changed+s.Problems > 0
}

// Line returns the summary in one line.
func (p Plan) Line() string {
	s := p.Summary
	var parts, also []string
	for _, part := range []struct {
		n          int
		what, done string
	}{{s.Removed, "copy", "removed"}, {s.Moved, "object", "moved"}, {s.Created, "copy", "created"}, {s.Changed, "copy", "changed"}} {
		if part.n > 0 {
			parts = append(parts, counted(part.n, part.what)+" "+part.done)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no copy changes")
	}
	if s.Held > 0 {
		also = append(also, "the hub holds "+counted(s.Held, "removal"))
	}
	if s.Refused > 0 {
		also = append(also, "admission refuses "+counted(s.Refused, "object"))
	}
	if s.Problems > 0 {
		also = append(also, counted(s.Problems, "problem"))
	}
	return "Plan: " + strings.Join(append([]string{strings.Join(parts, ", ")}, also...), "; ")
}

// planWidth is the number of columns to which the text of a plan is wrapped.
const planWidth = 100

// maxPlanItems is the maximum number of items that the text shows in each section.
const maxPlanItems = 20

// planSection is a section of the text of a plan.
type planSection struct {
	title string
	items []planItem
}

// planItem is the text about one object, or about several objects with equal texts.
type planItem struct {
	// what names the object, such as "Deployment shop/web". where names the clusters.
	what, where string
	lines       []string
	more        []string // further objects with the same text
}

// named returns the names of the item's objects as text: "Deployment shop/web, Deployment shop/api and 3 more".
func (i planItem) named() string {
	const maxMore = 2
	text := strings.Join(append([]string{i.what}, i.more[:min(len(i.more), maxMore)]...), ", ")
	if rest := len(i.more) - maxMore; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// Write writes the plan as text.
func (p Plan) Write(w io.Writer, _ time.Time) {
	for _, s := range p.sections() {
		fmt.Fprintln(w, s.title)
		items, rest := s.shown()
		for _, i := range items {
			text := "  " + printable(i.named())
			if i.where != "" {
				text = wide(text, 36) + "  " + printable(i.where)
			}
			wrapped(w, text, "      ")
			for _, l := range i.lines {
				wrapped(w, "    "+printable(l), "      ")
			}
		}
		if rest != "" {
			fmt.Fprintln(w, "  "+rest)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, p.Line())
}

func wide(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-utf8.RuneCountInString(text)))
}

// wrapped writes a text in lines of at most planWidth columns.
func wrapped(w io.Writer, text, indent string) {
	for utf8.RuneCountInString(text) > planWidth {
		runes := []rune(text)
		at := planWidth
		for i := planWidth; i > len(indent)+20; i-- {
			if runes[i] == ' ' {
				at = i
				break
			}
		}
		fmt.Fprintln(w, strings.TrimRight(string(runes[:at]), " "))
		text = indent + strings.TrimLeft(string(runes[at:]), " ")
	}
	fmt.Fprintln(w, text)
}

// WriteMarkdown writes the plan for a pull request. It puts all text that users have written in code spans.
func (p Plan) WriteMarkdown(w io.Writer) {
	fmt.Fprintf(w, "### %s\n", p.Line())
	for _, s := range p.sections() {
		fmt.Fprintf(w, "\n**%s**\n\n", s.title)
		items, rest := s.shown()
		for _, i := range items {
			text := "- " + code(i.named())
			if i.where != "" {
				text += ": " + code(i.where)
			}
			fmt.Fprintln(w, text)
			for _, l := range i.lines {
				fmt.Fprintln(w, "  - "+code(strings.TrimSpace(l)))
			}
		}
		if rest != "" {
			fmt.Fprintln(w, "- "+rest)
		}
	}
}

// code returns a code span. If the text has backquotes, it uses longer delimiters.
func code(text string) string {
	text = printable(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// shown returns the first items of the section. If it leaves out items, rest is a text with their number.
func (s planSection) shown() (items []planItem, rest string) {
	items = s.items[:min(len(s.items), maxPlanItems)]
	if n := len(s.items) - len(items); n > 0 {
		rest = fmt.Sprintf("and %s: -o json has all", counted(n, "more entry"))
	}
	return items, rest
}

// add adds an item. If an item with the same text exists, add only adds the name of the object to that item.
func (s *planSection) add(i planItem) {
	for n, other := range s.items {
		if other.where == i.where && slices.Equal(other.lines, i.lines) {
			s.items[n].more = append(s.items[n].more, i.what)
			return
		}
	}
	s.items = append(s.items, i)
}

func (p Plan) sections() []planSection {
	var out []planSection
	for _, s := range []planSection{
		p.moved(), p.removals(), p.moves(), p.creations(), changesOf("CHANGED", p.Summary.Changed, p.Changes), p.guard(), p.refusals(),
		problemsOf("PROBLEMS", p.Problems), p.live(), p.notAsked(), p.notes(),
	} {
		if len(s.items) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func (p Plan) moved() planSection {
	s := planSection{title: "NOT AS IT WAS: the hub has changed since the plan was made"}
	if p.Made != nil {
		s.title = fmt.Sprintf("NOT AS IT WAS: the hub has changed since the plan was made at %s", p.Made.UTC().Format(time.RFC3339))
	}
	for _, d := range p.MovedSince {
		s.items = append(s.items, planItem{what: d.Object.String(), where: d.What})
	}
	return s
}

func (p Plan) removals() planSection {
	s := planSection{title: "REMOVED: " + counted(p.Summary.Removed, "copy")}
	for _, r := range p.Removals {
		line := why(r.Reason, r.Message)
		if r.Policy == hubv1.RemovalOrphan {
			line += "; left there without marks of the hub"
		}
		if r.Last {
			line += "; no cluster holds it then"
		}
		s.add(planItem{what: r.Object.String(), where: list(r.Clusters), lines: []string{line}})
	}
	return s
}

func (p Plan) moves() planSection {
	s := planSection{title: "MOVED: " + counted(p.Summary.Moved, "object")}
	for _, m := range p.Moves {
		i := planItem{what: m.Object.String()}
		switch {
		case len(m.From) > 0 && len(m.To) > 0:
			i.where = list(m.From) + " -> " + list(m.To)
		case len(m.From) > 0:
			i.where = "from " + list(m.From)
		case len(m.To) > 0:
			i.where = "also to " + list(m.To)
		}
		if len(m.Shares) > 0 {
			i.lines = []string{sharesText(m.Shares)}
		}
		s.add(i)
	}
	return s
}

func sharesText(shares []preview.Share) string {
	texts := make([]string, 0, len(shares))
	for _, s := range shares {
		texts = append(texts, fmt.Sprintf("%s %d -> %d", s.Cluster, s.Before, s.After))
	}
	return "replicas: " + strings.Join(texts, ", ")
}

func (p Plan) creations() planSection {
	s := planSection{title: "CREATED: " + counted(p.Summary.Created, "copy")}
	for _, c := range p.Creations {
		i := planItem{what: c.Object.String(), where: list(c.Clusters)}
		if len(c.Shares) > 0 {
			i.lines = []string{sharesText(c.Shares)}
		}
		s.add(i)
	}
	return s
}

// changesOf returns the section about changed copies. An object's clusters are in groups with equal changes, the
// largest group first.
func changesOf(title string, copies int, changes []preview.Change) planSection {
	s := planSection{title: title + ": " + counted(copies, "copy")}
	for _, c := range changes {
		i := planItem{what: c.Object.String(), where: spread(c.Groups)}
		if len(c.Shares) > 0 {
			i.lines = append(i.lines, sharesText(c.Shares))
		}
		for n, g := range c.Groups {
			if n > 0 {
				i.lines = append(i.lines, list(g.Clusters)+":")
			}
			for _, f := range g.Fields {
				i.lines = append(i.lines, fieldText(f))
			}
		}
		for _, w := range c.Waves {
			i.lines = append(i.lines, waveText(w))
		}
		if len(c.Restarts) > 0 {
			i.lines = append(i.lines, "pods start anew: "+objectsText(c.Restarts))
		}
		s.add(i)
	}
	return s
}

func objectsText(objects []preview.Object) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.String())
	}
	return list(names)
}

func waveText(w preview.Wave) string {
	if w.Approval {
		return fmt.Sprintf("wave %s, after an approval: %s", w.Name, list(w.Clusters))
	}
	return fmt.Sprintf("wave %s: %s", w.Name, list(w.Clusters))
}

// spread describes groups of clusters as text: "the same on 11 clusters; cn-shanghai-2 differs".
func spread(groups []preview.Group) string {
	if len(groups) == 0 {
		return ""
	}
	first := groups[0].Clusters
	text := list(first)
	if len(first) > 1 {
		text = fmt.Sprintf("the same on %d clusters", len(first))
	}
	var others []string
	for _, g := range groups[1:] {
		others = append(others, g.Clusters...)
	}
	switch {
	case len(others) == 0 && len(first) > 1:
		return text + ": " + list(first)
	case len(others) == 0:
		return text
	case len(others) == 1:
		return text + "; " + others[0] + " differs"
	}
	slices.Sort(others)
	return text + "; " + list(others) + " differ"
}

// maxValueColumns is the maximum number of columns for a value in the text.
const maxValueColumns = 40

func fieldText(f preview.Field) string {
	return fmt.Sprintf("%s: %s -> %s", f.Path, valueText(f.Before), valueText(f.After))
}

func valueText(v any) string {
	if v == nil {
		return "(none)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return hubv1.CutMessage(string(text), maxValueColumns)
}

func (p Plan) guard() planSection {
	s := planSection{title: fmt.Sprintf("HELD: the hub holds %s until a user confirms: hansectl confirm", counted(p.Summary.Held, "removal"))}
	for _, h := range p.Guard.Held {
		s.items = append(s.items, planItem{what: h.Owner, where: counted(h.Copies, "copy"), lines: h.Limits})
	}
	return s
}

func (p Plan) refusals() planSection {
	s := planSection{title: "REFUSED: admission refuses " + counted(len(p.Refusals), "object")}
	for _, r := range p.Refusals {
		s.items = append(s.items, planItem{what: r.Object.String(), where: r.File, lines: []string{r.Message}})
	}
	return s
}

func problemsOf(title string, problems []preview.Problem) planSection {
	s := planSection{title: title}
	for _, problem := range problems {
		s.add(planItem{what: problem.Object.String(), where: list(problem.Clusters), lines: []string{why(problem.Reason, problem.Message)}})
	}
	return s
}

// live returns the section with the results of the dry runs on members. It is empty if no member was asked.
func (p Plan) live() planSection {
	if p.Live == nil {
		return planSection{}
	}
	copies := 0
	for _, c := range p.Live.Changes {
		for _, g := range c.Groups {
			copies += len(g.Clusters)
		}
	}
	s := changesOf("ON THE MEMBERS, by a dry run", copies, p.Live.Changes)
	s.title += fmt.Sprintf(" of %d would change", p.Live.Asked)
	s.items = append(s.items, problemsOf("", p.Live.Refused).items...)
	if len(s.items) == 0 {
		s.items = append(s.items, planItem{what: "every copy is as the hub would have it"})
	}
	return s
}

func (p Plan) notAsked() planSection {
	s := planSection{title: "NOT ASKED: " + counted(len(p.NotAsked), "cluster")}
	for _, c := range p.NotAsked {
		s.items = append(s.items, planItem{what: c.Cluster, where: c.Why})
	}
	return s
}

func (p Plan) notes() planSection {
	s := planSection{title: "NOTES"}
	for _, n := range p.Notes {
		s.items = append(s.items, planItem{what: n})
	}
	return s
}
