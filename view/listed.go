package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// Listed are the objects of one kind on several clusters.
type Listed struct {
	Items []ListedObject `json:"items"`
	// NotAsked are the clusters whose objects could not be listed because the cluster did not answer, each with the
	// reason.
	NotAsked []ClusterNote `json:"notAsked,omitempty"`
	// Notes are notes about clusters that have more objects than the list shows, or that do not serve the kind.
	Notes []ClusterNote `json:"notes,omitempty"`

	kind schema.GroupKind
	// namespaces is true if the list may have objects of several namespaces.
	namespaces bool
	tables     []clusterTable
}

// ListedObject is an object of one cluster, without managedFields and without values of Secrets.
type ListedObject struct {
	Cluster string         `json:"cluster"`
	Object  map[string]any `json:"object"`
}

// clusterTable is the part of the printed table that comes from one cluster.
type clusterTable struct {
	cluster string
	member.Listed
}

// NewListed returns an empty list of a kind. namespaces is true if the list may have objects of several namespaces.
func NewListed(kind schema.GroupKind, namespaces bool) *Listed {
	return &Listed{Items: []ListedObject{}, kind: kind, namespaces: namespaces}
}

// Add adds the objects that a cluster has returned.
func (l *Listed) Add(cluster string, answer wire.ListAnswer) {
	if answer.NotServed {
		l.Notes = append(l.Notes, ClusterNote{Cluster: cluster, Note: fmt.Sprintf("the cluster does not serve %s at this version", l.kind)})
	}
	l.tables = append(l.tables, clusterTable{cluster, answer.Listed})
	for _, o := range answer.Objects {
		l.Items = append(l.Items, ListedObject{cluster, o})
	}
	if answer.More {
		shown := fmt.Sprintf("the cluster has more than the %d objects shown: narrow the request", len(answer.Objects)+len(answer.Rows))
		l.Notes = append(l.Notes, ClusterNote{Cluster: cluster, Note: shown})
	}
}

// Sort sorts the tables, the objects and the notes by cluster. The objects of a cluster keep the order of its API
// server.
func (l *Listed) Sort() {
	slices.SortStableFunc(l.Items, func(a, b ListedObject) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(l.tables, func(a, b clusterTable) int { return cmp.Compare(a.cluster, b.cluster) })
	for _, notes := range [][]ClusterNote{l.NotAsked, l.Notes} {
		slices.SortFunc(notes, func(a, b ClusterNote) int { return cmp.Compare(a.Cluster, b.Cluster) })
	}
}

// Names returns the names of the objects for -o name, each name once.
func (l *Listed) Names() []string {
	var names []string
	seen := map[string]bool{}
	for _, t := range l.tables {
		for _, row := range t.Rows {
			name := resourceName(hubv1.ObjectIdentity{Group: l.kind.Group, Kind: l.kind.Kind, Name: row.Name})
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Versions returns a text that changes if an object is added, changed or deleted, or if a cluster starts or stops
// answering.
func (l *Listed) Versions() string {
	var out strings.Builder
	for _, t := range l.tables {
		fmt.Fprintln(&out, t.cluster)
		for _, row := range t.Rows {
			fmt.Fprintln(&out, row.Namespace, row.Name, row.ResourceVersion)
		}
	}
	return out.String()
}

// Write writes one table for all clusters.
func (l *Listed) Write(w io.Writer, _ time.Time) { l.write(w, false) }

// WriteWide writes the table with all columns.
func (l *Listed) WriteWide(w io.Writer, _ time.Time) { l.write(w, true) }

func (l *Listed) write(w io.Writer, wide bool) {
	header, rows := l.table(wide)
	if len(rows) == 0 {
		fmt.Fprintf(w, "No objects of kind %s found\n", l.kind.Kind)
		return
	}
	table(w, header, rows)
}

// table merges the tables of the clusters. A column that a cluster does not have is empty in its rows.
func (l *Listed) table(wide bool) (header []string, rows [][]string) {
	header = []string{"CLUSTER"}
	if l.namespaces {
		header = append(header, "NAMESPACE")
	}
	fixed := len(header)
	index := map[string]int{}
	for _, t := range l.tables {
		for _, c := range t.Columns {
			name := strings.ToUpper(c.Name)
			if _, known := index[name]; !known && (wide || !c.Wide) {
				index[name] = len(header)
				header = append(header, name)
			}
		}
	}
	for _, t := range l.tables {
		for _, r := range t.Rows {
			row := make([]string, len(header))
			row[0] = t.cluster
			if fixed > 1 {
				row[1] = r.Namespace
			}
			for i := range min(len(r.Cells), len(t.Columns)) {
				if at, shown := index[strings.ToUpper(t.Columns[i].Name)]; shown {
					row[at] = r.Cells[i]
				}
			}
			rows = append(rows, row)
		}
	}
	return header, rows
}
