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

	// All is true if the text has every entry, one object in each, with all names of clusters. Otherwise, the text has the
	// first entries of each section, and objects with the same change share an entry.
	All bool `json:"-"`
	// Colours turns on colours in diffs, for terminals.
	Colours bool `json:"-"`
}

// Changed reports whether the plan removes, creates, moves or changes anything, or has a problem. It is also true if an
// object follows another placement, or has a copy on a cluster that stops answering.
func (p Plan) Changed() bool {
	s := p.Summary
	return s.Removed+s.Moved+s.Created+s.Changed+s.Away+s.Problems+len(p.Placements) > 0
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
	if s.ReplicasMoved > 0 {
		parts = append(parts, counted(int(s.ReplicasMoved), "replica")+" moved")
	}
	if len(parts) == 0 {
		parts = append(parts, "no copy changes")
	}
	if n := len(p.Placements); n > 0 {
		also = append(also, counted(n, "object")+" with another placement")
	}
	if s.Away > 0 {
		also = append(also, counted(s.Away, "copy")+" stay on clusters that do not answer")
	}
	if s.Nowhere > 0 {
		also = append(also, counted(s.Nowhere, "object")+" on no cluster that answers")
	}
	if s.ReplicasWithoutRoom > 0 {
		also = append(also, counted(int(s.ReplicasWithoutRoom), "replica")+" without room")
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

// PlanSection is a section of the text of a plan.
type PlanSection struct {
	Title string
	Items []PlanItem
	// Rest says how many items the section leaves out. It is empty if the section has all items.
	Rest string

	all bool
}

// PlanItem is the text about one object, or about several objects with equal texts.
type PlanItem struct {
	// What names the object, such as "Deployment shop/web". Where names the clusters.
	What, Where string
	Lines       []string
	// Diff has the unified diffs of the object.
	Diff string

	more []string // further objects with the same text
}

// named returns the names of the item's objects as text: "Deployment shop/web, Deployment shop/api and 3 more".
func (i PlanItem) named() string {
	const maxMore = 2
	text := strings.Join(append([]string{i.What}, i.more[:min(len(i.more), maxMore)]...), ", ")
	if rest := len(i.more) - maxMore; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// Write writes the plan as text.
func (p Plan) Write(w io.Writer, _ time.Time) {
	for _, s := range p.Sections() {
		fmt.Fprintln(w, s.Title)
		for _, i := range s.Items {
			text := "  " + printable(i.What)
			if i.Where != "" {
				text = wide(text, 36) + "  " + printable(i.Where)
			}
			wrapped(w, text, "      ")
			for _, l := range i.Lines {
				wrapped(w, "    "+printable(l), "      ")
			}
			for _, l := range diffLines(i.Diff) {
				fmt.Fprintln(w, "    "+l.painted(p.Colours))
			}
		}
		if s.Rest != "" {
			fmt.Fprintln(w, "  "+s.Rest)
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
	for _, s := range p.Sections() {
		fmt.Fprintf(w, "\n**%s**\n\n", s.Title)
		for _, i := range s.Items {
			text := "- " + code(i.What)
			if i.Where != "" {
				text += ": " + code(i.Where)
			}
			fmt.Fprintln(w, text)
			for _, l := range i.Lines {
				fmt.Fprintln(w, "  - "+code(strings.TrimSpace(l)))
			}
			if i.Diff != "" {
				fence := fenceOf("```", i.Diff)
				fmt.Fprintln(w, "\n  "+fence+"diff")
				for _, l := range diffLines(i.Diff) {
					fmt.Fprintln(w, "  "+l.Text)
				}
				fmt.Fprintln(w, "  "+fence)
			}
		}
		if s.Rest != "" {
			fmt.Fprintln(w, "- "+s.Rest)
		}
	}
}

// fenceOf returns backquotes that delimit a text, at least those of the argument fence.
func fenceOf(fence, text string) string {
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// code returns a code span. If the text has backquotes, it uses longer delimiters.
func code(text string) string {
	text = printable(text)
	fence := fenceOf("`", text)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// add adds an item. If an item with the same text exists, add only adds the name of the object to that item.
func (s *PlanSection) add(i PlanItem) {
	for n, other := range s.Items {
		if !s.all && other.Where == i.Where && slices.Equal(other.Lines, i.Lines) && other.Diff == i.Diff {
			s.Items[n].more = append(s.Items[n].more, i.What)
			return
		}
	}
	s.Items = append(s.Items, i)
}

func (p Plan) section(title string) PlanSection { return PlanSection{Title: title, all: p.All} }

// list returns names as text. It leaves out names beyond the first, unless p.All is true.
func (p Plan) list(names []string) string {
	if p.All {
		return strings.Join(names, ", ")
	}
	return list(names)
}

// Sections returns the sections of the text that have items.
func (p Plan) Sections() []PlanSection {
	var out []PlanSection
	for _, s := range []PlanSection{
		p.moved(), p.textsOf("ASSUMED", p.Assumed), p.bundles(), p.removals(), p.moves(), p.creations(), p.changesOf("CHANGED", p.Summary.Changed, p.Changes),
		p.placements(), p.away(), p.clusters(), p.guard(), p.refusals(), p.problemsOf("PROBLEMS", p.Problems), p.live(), p.notAsked(), p.textsOf("NOTES", p.Notes),
	} {
		if len(s.Items) == 0 {
			continue
		}
		if n := len(s.Items) - maxPlanItems; n > 0 && !p.All {
			s.Items, s.Rest = s.Items[:maxPlanItems], fmt.Sprintf("and %s: hansectl plan --all lists them", counted(n, "more entry"))
		}
		for i := range s.Items {
			s.Items[i].What = s.Items[i].named()
		}
		out = append(out, s)
	}
	return out
}

// textsOf returns a section with one item for each text.
func (p Plan) textsOf(title string, texts []string) PlanSection {
	s := p.section(title)
	for _, text := range texts {
		s.Items = append(s.Items, PlanItem{What: text})
	}
	return s
}

func (p Plan) moved() PlanSection {
	s := p.section("OUTDATED: the hub has changed since the plan was made")
	if p.Made != nil {
		s.Title = fmt.Sprintf("OUTDATED: the hub has changed since the plan was made at %s", p.Made.UTC().Format(time.RFC3339))
	}
	for _, d := range p.MovedSince {
		s.Items = append(s.Items, PlanItem{What: d.Object.String(), Where: d.What})
	}
	return s
}

// bundles returns the section about bundles that change as a whole.
func (p Plan) bundles() PlanSection {
	s := p.section("BUNDLES: each changes as a whole, wave by wave")
	for _, b := range p.Bundles {
		i := PlanItem{What: b.Bundle}
		for _, of := range []struct {
			verb    string
			objects []preview.Object
		}{{"adds", b.Added}, {"changes", b.Changed}, {"removes", b.Removed}} {
			if len(of.objects) > 0 {
				i.Lines = append(i.Lines, fmt.Sprintf("%s %s: %s", of.verb, counted(len(of.objects), "object"), p.objectsText(of.objects)))
			}
		}
		for _, w := range b.Waves {
			i.Lines = append(i.Lines, p.waveText(w))
		}
		s.add(i)
	}
	return s
}

func (p Plan) removals() PlanSection {
	s := p.section("REMOVED: " + counted(p.Summary.Removed, "copy"))
	for _, r := range p.Removals {
		line := why(r.Reason, r.Message)
		if r.Policy == hubv1.RemovalOrphan {
			line += "; left there without marks of the hub"
		}
		if r.Last {
			line += "; afterwards no cluster holds the object"
		}
		s.add(PlanItem{What: r.Object.String(), Where: p.list(r.Clusters), Lines: []string{line}})
	}
	return s
}

func (p Plan) moves() PlanSection {
	s := p.section("MOVED: " + counted(p.Summary.Moved, "object"))
	for _, m := range p.Moves {
		i := PlanItem{What: m.Object.String()}
		switch {
		case len(m.From) > 0 && len(m.To) > 0:
			i.Where = p.list(m.From) + " -> " + p.list(m.To)
		case len(m.From) > 0:
			i.Where = "from " + p.list(m.From)
		case len(m.To) > 0:
			i.Where = "also to " + p.list(m.To)
		}
		if len(m.Shares) > 0 {
			i.Lines = []string{sharesText(m.Shares)}
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

func (p Plan) creations() PlanSection {
	s := p.section("CREATED: " + counted(p.Summary.Created, "copy"))
	for _, c := range p.Creations {
		i := PlanItem{What: c.Object.String(), Where: p.list(c.Clusters)}
		if len(c.Shares) > 0 {
			i.Lines = []string{sharesText(c.Shares)}
		}
		s.add(i)
	}
	return s
}

// changesOf returns the section about changed copies. An object's clusters are in groups with equal changes, the
// largest group first.
func (p Plan) changesOf(title string, copies int, changes []preview.Change) PlanSection {
	s := p.section(title + ": " + counted(copies, "copy"))
	for _, c := range changes {
		i := PlanItem{What: c.Object.String(), Where: p.spread(c.Groups)}
		if len(c.Shares) > 0 {
			i.Lines = append(i.Lines, sharesText(c.Shares))
		}
		for n, g := range c.Groups {
			if i.Diff += g.Diff; g.Diff != "" {
				continue
			}
			if n > 0 {
				i.Lines = append(i.Lines, p.list(g.Clusters)+":")
			}
			for _, f := range g.Fields {
				i.Lines = append(i.Lines, fieldText(f))
			}
		}
		for _, w := range c.Waves {
			i.Lines = append(i.Lines, p.waveText(w))
		}
		if len(c.Restarts) > 0 {
			i.Lines = append(i.Lines, "pods start anew: "+p.objectsText(c.Restarts))
		}
		s.add(i)
	}
	return s
}

func (p Plan) objectsText(objects []preview.Object) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.String())
	}
	return p.list(names)
}

func (p Plan) waveText(w preview.Wave) string {
	if w.Approval {
		return fmt.Sprintf("wave %s, after an approval: %s", w.Name, p.list(w.Clusters))
	}
	return fmt.Sprintf("wave %s: %s", w.Name, p.list(w.Clusters))
}

// spread describes groups of clusters as text: "the same on 11 clusters; cn-shanghai-2 differs".
func (p Plan) spread(groups []preview.Group) string {
	if len(groups) == 0 {
		return ""
	}
	first := groups[0].Clusters
	text := p.list(first)
	if len(first) > 1 {
		text = fmt.Sprintf("the same on %d clusters", len(first))
	}
	var others []string
	for _, g := range groups[1:] {
		others = append(others, g.Clusters...)
	}
	switch {
	case len(others) == 0 && len(first) > 1:
		return text + ": " + p.list(first)
	case len(others) == 0:
		return text
	case len(others) == 1:
		return text + "; " + others[0] + " differs"
	}
	slices.Sort(others)
	return text + "; " + p.list(others) + " differ"
}

const (
	// maxValueColumns is the maximum number of columns for a value in the text.
	maxValueColumns = 40
	// sameColumns are the columns that long values keep before their first difference.
	sameColumns = 16
)

// fieldText returns the values of a field. If two long values begin with the same text, such as the name of an image,
// "…" stands for this text, so that the cut values differ.
func fieldText(f preview.Field) string {
	before, after := valueText(f.Before), valueText(f.After)
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	if same >= maxValueColumns-1 {
		begin := same - sameColumns
		for !utf8.RuneStart(before[begin]) {
			begin++
		}
		before, after = "…"+before[begin:], "…"+after[begin:]
	}
	return fmt.Sprintf("%s: %s -> %s", f.Path, hubv1.CutMessage(before, maxValueColumns), hubv1.CutMessage(after, maxValueColumns))
}

func valueText(v any) string {
	if v == nil {
		return "(none)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}

func (p Plan) placements() PlanSection {
	s := p.section("PLACEMENT: " + counted(len(p.Placements), "object") + " with another placement")
	for _, c := range p.Placements {
		s.add(PlanItem{What: c.Object.String(), Where: c.Before + " -> " + c.After})
	}
	return s
}

func (p Plan) away() PlanSection {
	s := p.section("AWAY: " + counted(p.Summary.Away, "copy") + " stay on clusters that do not answer")
	for _, a := range p.Away {
		line := fmt.Sprintf("clusters that hold the object and answer: %d -> %d", a.RunningBefore, a.Running)
		s.add(PlanItem{What: a.Object.String(), Where: p.list(a.Clusters), Lines: []string{line}})
	}
	return s
}

// clusters returns the section about the numbers of objects and replicas. It is empty unless the state of a cluster is
// assumed.
func (p Plan) clusters() PlanSection {
	s := p.section("CLUSTERS")
	if len(p.Assumed) == 0 {
		return s
	}
	for _, c := range p.Clusters {
		text := fmt.Sprintf("objects %d -> %d", c.ObjectsBefore, c.Objects)
		if c.ReplicasBefore+c.Replicas > 0 {
			text += fmt.Sprintf(", replicas %d -> %d", c.ReplicasBefore, c.Replicas)
		}
		if c.Region != "" {
			text += ", region " + c.Region
		}
		if c.Away {
			text += ", away"
		}
		s.Items = append(s.Items, PlanItem{What: c.Cluster, Where: text})
	}
	return s
}

func (p Plan) guard() PlanSection {
	s := p.section(fmt.Sprintf("HELD: the hub holds %s until a user confirms: hansectl confirm", counted(p.Summary.Held, "removal")))
	for _, h := range p.Guard.Held {
		s.Items = append(s.Items, PlanItem{What: h.Owner, Where: counted(h.Copies, "copy"), Lines: h.Limits})
	}
	return s
}

func (p Plan) refusals() PlanSection {
	s := p.section("REFUSED: admission refuses " + counted(len(p.Refusals), "object"))
	for _, r := range p.Refusals {
		s.Items = append(s.Items, PlanItem{What: r.Object.String(), Where: r.File, Lines: []string{r.Message}})
	}
	return s
}

func (p Plan) problemsOf(title string, problems []preview.Problem) PlanSection {
	s := p.section(title)
	for _, problem := range problems {
		s.add(PlanItem{What: problem.Object.String(), Where: p.list(problem.Clusters), Lines: []string{why(problem.Reason, problem.Message)}})
	}
	return s
}

// live returns the section with the results of the dry runs on members. It is empty if no member was asked.
func (p Plan) live() PlanSection {
	if p.Live == nil {
		return PlanSection{}
	}
	copies := 0
	for _, c := range p.Live.Changes {
		for _, g := range c.Groups {
			copies += len(g.Clusters)
		}
	}
	s := p.changesOf("ON THE MEMBERS, by a dry run", copies, p.Live.Changes)
	s.Title += fmt.Sprintf(" of %d would change", p.Live.Asked)
	s.Items = append(s.Items, p.problemsOf("", p.Live.Refused).Items...)
	if len(s.Items) == 0 {
		s.Items = append(s.Items, PlanItem{What: "every copy is as the hub would write it"})
	}
	return s
}

func (p Plan) notAsked() PlanSection {
	s := p.section("NOT ASKED: " + counted(len(p.NotAsked), "cluster"))
	for _, c := range p.NotAsked {
		s.Items = append(s.Items, PlanItem{What: c.Cluster, Where: c.Why})
	}
	return s
}
