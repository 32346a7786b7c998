package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// Adoption shows for each cluster who manages an object there, and whether Hanse adopts the object.
type Adoption struct {
	Object   wire.Object       `json:"object"`
	Clusters []ClusterAdoption `json:"clusters"`
}

// ClusterAdoption says who manages the object on one cluster, and whether Hanse adopts the object there.
type ClusterAdoption struct {
	Cluster string `json:"cluster"`
	wire.AdoptAnswer
	// Error says why the cluster did not answer the request of the command adopt. It is empty if the cluster answered.
	Error string `json:"error,omitempty"`
}

// Write writes a table with one row for each cluster.
func (a Adoption) Write(w io.Writer, _ time.Time) {
	var rows [][]string
	for _, c := range a.Clusters {
		rows = append(rows, []string{c.Cluster, c.state(), c.why(a.Object)})
	}
	table(w, []string{"CLUSTER", "STATE", "WHY"}, rows)
}

func (c ClusterAdoption) state() string {
	if c.Error != "" {
		return "Unknown"
	}
	return string(c.State)
}

func (c ClusterAdoption) why(object wire.Object) string {
	switch {
	case c.Error != "":
		return c.Error
	case c.Refused != nil:
		return strings.TrimSuffix(c.Refused.Reason+": "+c.Refused.Message, ": ")
	case c.State == wire.AdoptPossible && hubv1.IsSecret(schema.GroupKind{Group: object.Group, Kind: object.Kind}):
		return "values of a Secret are not compared"
	case c.State == wire.AdoptPossible && len(c.Changes) == 0:
		return "nothing would change"
	case c.State == wire.AdoptPossible:
		return "would change " + firstOf(c.Changes)
	}
	return ""
}

// firstOf returns the first three paths as text, and the number of the other paths: "a, b, c and 2 more".
func firstOf(paths []string) string {
	const maxPaths = 3
	text := strings.Join(paths[:min(len(paths), maxPaths)], ", ")
	if more := len(paths) - maxPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Left returns the number of objects that Hanse does not manage yet, and the number of clusters that did not answer.
func (a Adoption) Left() (objects, unknown int) {
	for _, c := range a.Clusters {
		switch {
		case c.Error != "":
			unknown++
		case c.State == wire.AdoptDiffers, c.State == wire.AdoptRefused:
			objects++
		}
	}
	return objects, unknown
}
