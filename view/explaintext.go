package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Write writes the explanation as text, for the requested cluster or for all.
func (e Explanation) Write(w io.Writer, _ time.Time) {
	subject, rows := e.subject(), e.Clusters
	if e.cluster != "" {
		rows = slices.DeleteFunc(slices.Clone(rows), func(c ExplainedCluster) bool { return c.Cluster != e.cluster })
		result := "NOT DECIDED"
		if len(rows) > 0 {
			result = strings.ToUpper(rows[0].Result)
		}
		subject = e.cluster + ": " + result
		if e.Object.Bundle != "" {
			subject += " (in " + e.Object.Bundle + ")"
		}
	}
	fmt.Fprintln(w, printable(subject+e.by()))
	for _, l := range e.about() {
		line(w, l.Name, l.Text)
	}
	if e.cluster == "" {
		e.writeAll(w)
	} else if len(rows) > 0 {
		e.writeOne(w, rows[0])
	}
	if e.Fields != nil {
		e.Fields.write(w)
	}
	for _, l := range e.below() {
		line(w, l.Name, l.Text)
	}
}

// Headline returns the first line of the explanation.
func (e Explanation) Headline() string { return e.subject() + e.by() }

// Lines returns the lines about the decision, without the lines about single clusters.
func (e Explanation) Lines() []Line {
	replicas := Line{Name: "Replicas"}
	if e.Division != nil {
		replicas.Text = e.Division.heading()
	}
	return filled(slices.Concat(e.about(), []Line{replicas}, e.below()))
}

// about returns the lines above the table of clusters.
func (e Explanation) about() []Line {
	var out []Line
	for _, n := range e.NotFollowed {
		out = append(out, Line{"Also", n.Placement + " - not followed: " + n.Why})
	}
	out = append(out, Line{"Fleet", e.Scheduled.Reason + ": " + e.Scheduled.Message})
	if r := e.Recorded; r != nil && *r != e.Scheduled {
		out = append(out, Line{"Hub said", r.Reason + ": " + r.Message})
	}
	for _, d := range e.Differences {
		out = append(out, Line{"Differs", d})
	}
	if len(e.Missing) > 0 {
		out = append(out, Line{"Missing", strings.Join(e.Missing, ", ") + ": in the binding, but without a MemberCluster"})
	}
	return out
}

// below returns the lines below the table of clusters.
func (e Explanation) below() []Line {
	var out []Line
	switch {
	case e.BundleRollout != nil:
		out = append(out, Line{"Rollout", e.BundleRollout.text()})
	case e.Rollout != nil:
		out = append(out, Line{"Rollout", inShort(e.Rollout)})
	}
	for _, n := range e.Notes {
		out = append(out, Line{"Note", n})
	}
	return out
}

func line(w io.Writer, name, text string) {
	if text != "" {
		fmt.Fprintf(w, "%-10s %s\n", name+":", printable(text))
	}
}

func (e Explanation) subject() string {
	name := e.Object.Name
	if e.Object.Namespace != "" {
		name = e.Object.Namespace + "/" + name
	}
	clusters := "clusters"
	if e.Selected == 1 {
		clusters = "cluster"
	}
	if e.Object.Bundle != "" {
		name += " in " + e.Object.Bundle
	}
	text := fmt.Sprintf("%s %s: %d %s selected", e.Object.Kind, name, e.Selected, clusters)
	if n := e.unplaced(); len(n) > 0 {
		text = fmt.Sprintf("%s %s: %d of %d selected clusters (%s)", e.Object.Kind, name, e.Selected, e.Selected+len(n), list(n))
	}
	if w := withdrawing(e.Withdrawing, e.Selected+e.Withdrawing); w != "" {
		text += ", " + w
	}
	return text
}

// unplaced returns the clusters that the placement selects and that do not get the object. It returns none if the
// placement limits the number of clusters.
func (c Choice) unplaced() []string {
	if len(c.Spread) > 0 {
		return nil
	}
	var out []string
	for _, e := range c.Clusters {
		if e.Result == Rejected && keptAway[e.Reason] != "" {
			out = append(out, e.Cluster+" "+keptAway[e.Reason])
		}
	}
	return out
}

// by returns the second part of the first line: the placement, and whether hansectl came to the same decision as the
// hub. An example is " by Placement shop/web (generation 4, priority 0), Scheduled=True since 2026-03-01T11:58:02Z,
// hansectl computes the same decision as the hub".
func (e Explanation) by() string {
	text := ", the object follows no placement"
	if p := e.Placement; p != nil {
		name := p.Name
		if p.Namespace != "" {
			name = p.Namespace + "/" + name
		}
		text = fmt.Sprintf(" by %s %s (generation %d, priority %d", p.Kind, name, p.Generation, p.Priority)
		if p.Enforced {
			text += ", enforced"
		}
		text += ")"
	}
	if e.Recorded != nil {
		text += fmt.Sprintf(", Scheduled=%s since %s", e.Recorded.Status, e.since.UTC().Format(time.RFC3339))
	}
	if e.Same {
		return text + ", hansectl computes the same decision as the hub"
	}
	return text + ", hansectl computes another decision than the hub: see Differs"
}

func (e Explanation) writeAll(w io.Writer) {
	if len(e.Clusters) > 0 {
		fmt.Fprintln(w)
		var rows [][]string
		for _, c := range e.Clusters {
			rows = append(rows, []string{c.Cluster, c.Region, c.Result, yes(c.Held), c.score(), replicasOf(c.Replicas), c.Passed(), c.Why()})
		}
		table(w, []string{"CLUSTER", "REGION", "RESULT", "HELD", "SCORE", "REPLICAS", "FILTERS", "WHY"}, rows)
	}
	e.writeScores(w)
	e.writeSpread(w, e.Spread)
	if d := e.Division; d != nil {
		fmt.Fprintln(w)
		line(w, "Replicas", d.heading())
		d.write(w, d.Shares)
	}
}

func (e Explanation) writeOne(w io.Writer, c ExplainedCluster) {
	line(w, "Filter", strings.Join(c.Answers(), " > "))
	line(w, "Why", c.Why())
	var parts []string
	for _, p := range c.Parts {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %d %s", p.Part, p.Score, p.Note)))
	}
	if len(parts) > 0 {
		line(w, "Score", fmt.Sprintf("%d = %s", c.Score, strings.Join(parts, " + ")))
	}
	e.writeSpread(w, slices.DeleteFunc(slices.Clone(e.Spread), func(s SpreadStep) bool { return s.Action != "Group" && s.Cluster != c.Cluster }))
	if d := e.Division; d != nil {
		line(w, "Replicas", d.heading())
		d.write(w, slices.DeleteFunc(slices.Clone(d.Shares), func(s Share) bool { return s.Cluster != c.Cluster }))
	}
}

// writeScores writes the parts of each score, if a score has parts.
func (c Choice) writeScores(w io.Writer) {
	var rows [][]string
	for _, e := range c.Clusters {
		for _, p := range e.Parts {
			rows = append(rows, []string{e.Cluster, p.Part, strconv.FormatInt(p.Score, 10), p.Note})
		}
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		table(w, []string{"CLUSTER", "SCORED BY", "SCORE", "NOTE"}, rows)
	}
}

func (c Choice) writeSpread(w io.Writer, steps []SpreadStep) {
	if len(steps) == 0 {
		return
	}
	var rows [][]string
	for _, s := range steps {
		rows = append(rows, []string{strconv.Itoa(1 + slices.Index(c.Spread, s)), s.Action, s.Cluster, s.Why})
	}
	fmt.Fprintln(w)
	table(w, []string{"STEP", "SPREAD", "CLUSTER", "WHY"}, rows)
	for _, s := range c.Shortfalls {
		line(w, "Lacking", s)
	}
}

// Answers returns the answer of each filter as text, in the order of evaluation.
func (c ExplainedCluster) Answers() []string {
	var out []string
	for _, f := range c.Filters {
		out = append(out, f.answer())
	}
	return out
}

// Passed returns the number of filters that the cluster passes, and the number of all filters.
func (c ExplainedCluster) Passed() string {
	if len(c.Filters) == 0 {
		return ""
	}
	passed := 0
	for _, f := range c.Filters {
		if f.Reason == "" {
			passed++
		}
	}
	return fmt.Sprintf("%d/%d", passed, len(c.Filters))
}

// Why returns why the cluster was selected or rejected. If all filters accept the cluster, this is the decision's
// reason. Otherwise Why returns the answers of the filters that reject the cluster. It puts the decision's reason
// before them if this reason is Scheduled, or if it is not the answer of a filter.
func (c ExplainedCluster) Why() string {
	var against []string
	for _, f := range c.Filters {
		if f.Reason != "" {
			against = append(against, f.answer())
		}
	}
	decided := c.Reason
	if c.Message != "" {
		decided += ": " + c.Message
	}
	if len(against) == 0 {
		return decided
	}
	if c.Reason == hubv1.ReasonScheduled || !c.filtered() {
		against = append([]string{decided}, against...)
	}
	return strings.Join(against, "; ")
}

// filtered reports whether the decision's reason for the cluster comes from a filter.
func (c ExplainedCluster) filtered() bool {
	return slices.ContainsFunc(c.Filters, func(f Filter) bool { return f.Reason == c.Reason && f.Message == c.Message })
}

func (c ExplainedCluster) score() string {
	if len(c.Parts) == 0 {
		return ""
	}
	return strconv.FormatInt(c.Score, 10)
}

func (f Filter) answer() string {
	if f.Reason == "" {
		return f.Filter + " ok"
	}
	return fmt.Sprintf("%s %s: %s", f.Filter, f.Reason, f.Message)
}

func (d ExplainedDivision) heading() string {
	number := strconv.FormatInt(d.Total, 10)
	if strings.HasSuffix(d.Path, "/replicas") {
		number = counted(int(d.Total), "replica")
	}
	text := fmt.Sprintf("%s (%s), shared among the clusters by %s", number, d.Path, d.By)
	if d.Rest > 0 {
		text += fmt.Sprintf("; no cluster has room for %d", d.Rest)
	}
	return text
}

func (d ExplainedDivision) write(w io.Writer, shares []Share) {
	if len(shares) == 0 {
		return
	}
	var rows [][]string
	for _, s := range shares {
		rows = append(rows, []string{
			s.Cluster, strconv.FormatInt(s.Weight, 10), strconv.FormatInt(s.Min, 10), number(s.Max), number(s.Room), number(s.Held), yes(s.Fixed), strconv.FormatInt(s.Share, 10),
		})
	}
	table(w, []string{"CLUSTER", "WEIGHT", "MIN", "MAX", "ROOM", "HELD", "FIXED", "SHARE"}, rows)
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func replicasOf(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
