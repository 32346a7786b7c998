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
	before, err := lines(answer.Before)
	if err == nil {
		var after []string
		if after, err = lines(answer.After); err == nil {
			name := cluster + "/" + id.Kind + "/" + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
			there := "on the cluster"
			if answer.Unadopted {
				there = "on the cluster, not Hanse's"
			}
			out.Diff, err = difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
				A: before, B: after, Context: contextLines,
				FromFile: name, FromDate: there, ToFile: name, ToDate: "as the hub would have it",
			})
		}
	}
	if err != nil {
		out.Error = err.Error()
	}
	out.Differs = out.Differs || out.Diff != ""
	return out
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
			text := l.Text
			if colour := colourOf(l.Sign); d.Colours && colour != "" {
				text = colour + text + plain
			}
			fmt.Fprintln(w, text)
		}
	}
}

// DiffLine is a line of a unified diff, without control characters. Its Sign is "+", "-", "@" for the position in the
// file, "=" for the names of both sides, or empty for a line without a change.
type DiffLine struct{ Sign, Text string }

// Lines returns the lines of the diff. If the cluster changes fields, the first line names them.
func (c ClusterDiff) Lines() []DiffLine {
	var out []DiffLine
	all := c.Diff
	if c.Changed != "" {
		all = "# " + c.Cluster + " changes what the hub sends, and stores " + c.Changed + "\n" + all
	}
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

func colourOf(sign string) string {
	return map[string]string{"=": bold, "@": cyan, "-": red, "+": green}[sign]
}
