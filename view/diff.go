package view

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
	"github.com/hanse-dev/hanse/view/wire"
)

// Diff contains the changes that the hub would make to the copies of one object.
type Diff struct {
	Object   wire.Object   `json:"object"`
	Clusters []ClusterDiff `json:"clusters"`
	// Colours turns on colours in the printed differences, for terminals.
	Colours bool `json:"-"`
}

// ClusterDiff contains the changes on one cluster.
type ClusterDiff struct {
	Cluster string `json:"cluster"`
	Differs bool   `json:"differs"`
	// Unadopted is true if Hanse does not manage the object on the cluster. The difference shows what adoption would
	// change.
	Unadopted bool `json:"unadopted,omitempty"`
	// Diff is a unified diff of the copy on the cluster and the copy that the hub would write. It is empty if nothing
	// differs.
	Diff string `json:"diff,omitempty"`
	// Changed names the fields that the cluster's admission changes in each write of the hub, such as `.spec.replicas 2
	// for 4`. They count as differences, although the hub cannot change them. It is empty if the cluster changes none.
	Changed string `json:"changed,omitempty"`
	// Refused is the reason why the hub does not write the copy now. It is nil if the hub would write it.
	Refused *wire.Reason `json:"refused,omitempty"`
	// Error is the reason why the copy on the cluster could not be compared with the copy that the hub would write. It is
	// empty if they were compared.
	Error string `json:"error,omitempty"`
}

// contextLines is the number of unchanged lines that a diff shows before and after each change.
const contextLines = 3

// DiffOf compares the copy on a cluster with the copy that the hub would write. answer has both copies. If err is not
// nil, the result has only the error.
func DiffOf(cluster string, id hubv1.ObjectIdentity, answer wire.DiffAnswer, err error) ClusterDiff {
	out := ClusterDiff{Cluster: cluster, Unadopted: answer.Unadopted, Changed: answer.Changed, Refused: answer.Refused, Differs: answer.Changed != ""}
	switch {
	case err != nil:
		out.Error = err.Error()
		return out
	case answer.After == nil && answer.Refused != nil && answer.Refused.Reason == hubv1.ReasonIsTemplate:
		return out
	case answer.After == nil && answer.Refused != nil:
		out.Error, out.Refused = answer.Refused.Reason+": "+answer.Refused.Message, nil
		return out
	}
	if len(preview.FieldsOf(&unstructured.Unstructured{Object: answer.Before}, &unstructured.Unstructured{Object: answer.After})) == 0 {
		return out
	}
	there := "on the cluster"
	if answer.Unadopted {
		there = "on the cluster, not Hanse's"
	}
	if out.Diff, err = unified(cluster, id, answer.Before, answer.After, there, asWritten); err != nil {
		out.Error = err.Error()
	}
	out.Differs = out.Differs || out.Diff != ""
	return out
}

const asWritten = "as the hub would write it"

// unified returns a unified diff of two states of a copy on a cluster. was and is describe the states.
func unified(cluster string, id hubv1.ObjectIdentity, before, after map[string]any, was, is string) (string, error) {
	a, err := lines(before)
	if err != nil {
		return "", err
	}
	b, err := lines(after)
	if err != nil {
		return "", err
	}
	name := cluster + "/" + id.Kind + "/" + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: a, B: b, Context: contextLines, FromFile: name, FromDate: was, ToFile: name, ToDate: is})
}

// AddDiffs adds unified diffs to the changed copies of a plan. It leaves out Secrets, whose values are not shown.
func AddDiffs(p *preview.Plan) error {
	if err := addDiffs(p.Changes, "now", "with the change"); err != nil || p.Live == nil {
		return err
	}
	return addDiffs(p.Live.Changes, "on the cluster", asWritten)
}

func addDiffs(changes []preview.Change, was, is string) error {
	for _, c := range changes {
		id := c.Object.Identity()
		if hubv1.IsSecret(id.GroupKind()) {
			continue
		}
		for i := range c.Groups {
			g, is := &c.Groups[i], is
			if len(g.Clusters) > 1 {
				is += ", the same on " + list(g.Clusters)
			}
			var err error
			if g.Diff, err = unified(g.Clusters[0], id, g.Before, g.After, was, is); err != nil {
				return fmt.Errorf("comparing %s: %w", c.Object, err)
			}
		}
	}
	return nil
}

// lines returns the YAML lines of an object. It returns no lines for a missing object.
func lines(object map[string]any) ([]string, error) {
	if object == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return difflib.SplitLines(strings.TrimSuffix(string(text), "\n")), nil
}

const (
	bold, red, green, cyan, plain = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
)

// Write writes the differences of all clusters, one after the other.
func (d Diff) Write(w io.Writer, _ time.Time) {
	for _, c := range d.Clusters {
		for _, l := range c.Lines() {
			fmt.Fprintln(w, l.painted(d.Colours))
		}
	}
}

// DiffLine is a line of a unified diff, without control characters. Its Sign is "+", "-", "@" for the position in the
// file, "=" for the names of both sides, or empty for a line without a change.
type DiffLine struct{ Sign, Text string }

// Lines returns the lines of the diff. If the cluster changes fields, the first line names them.
func (c ClusterDiff) Lines() []DiffLine {
	all := c.Diff
	if c.Changed != "" {
		all = "# " + c.Cluster + " changes what the hub sends: it stores " + c.Changed + "\n" + all
	}
	return diffLines(all)
}

func diffLines(all string) []DiffLine {
	var out []DiffLine
	for text := range strings.Lines(all) {
		text = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) || r == '\t' {
				return r
			}
			return -1
		}, strings.TrimSuffix(text, "\n"))
		out = append(out, DiffLine{signOf(text), text})
	}
	return out
}

func signOf(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return "="
	case strings.HasPrefix(line, "@@"):
		return "@"
	case strings.HasPrefix(line, "-"):
		return "-"
	case strings.HasPrefix(line, "+"):
		return "+"
	}
	return ""
}

// painted returns the text of the line, in the colour of its sign if colours is true.
func (l DiffLine) painted(colours bool) string {
	if colour := map[string]string{"=": bold, "@": cyan, "-": red, "+": green}[l.Sign]; colours && colour != "" {
		return colour + l.Text + plain
	}
	return l.Text
}
