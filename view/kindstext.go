package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Write writes a table with one row for each kind.
func (k Kinds) Write(w io.Writer, _ time.Time) {
	if len(k.Kinds) == 0 {
		fmt.Fprintln(w, "No kind")
		return
	}
	var rows [][]string
	for _, s := range k.Kinds {
		rows = append(rows, []string{
			s.name(), strconv.Itoa(s.Objects), strconv.Itoa(s.Copies), s.Wanted.text(), s.versions(), s.Hub.text(), s.problems(),
		})
	}
	table(w, []string{"KIND", "OBJECTS", "COPIES", "SERVED", "VERSIONS", "HUB", "PROBLEMS"}, rows)
}

func (s KindSummary) name() string { return schema.GroupKind{Group: s.Group, Kind: s.Kind}.String() }

func (c WantedClusters) text() string {
	text := fmt.Sprintf("%d/%d", c.Serving, c.Count)
	if len(c.Unknown) > 0 {
		text += fmt.Sprintf(" (%d unknown)", len(c.Unknown))
	}
	return text
}

// versions returns the versions as text. If not all clusters serve all versions, the text has the number of clusters
// for each version.
func (s KindSummary) versions() string {
	differ := slices.ContainsFunc(s.Versions, func(v VersionCount) bool { return v.Clusters != s.Serving })
	var parts []string
	for _, v := range s.Versions {
		text := v.Version
		if differ {
			text += fmt.Sprintf(" (%d)", v.Clusters)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func (h KindOnHub) text() string {
	switch h.Serving {
	case ServingNo:
		return "not on the hub"
	case ServingUnknown:
		return "unknown"
	}
	return h.Version
}

func (s KindSummary) problems() string {
	var texts []string
	for _, p := range s.Problems {
		texts = append(texts, p.Message)
	}
	return strings.Join(texts, "; ")
}

// Write writes a line about the kind, its problems, and a row for each cluster.
func (k KindClusters) Write(w io.Writer, now time.Time) {
	fmt.Fprintln(w, strings.Join([]string{
		printable(k.name()), "hub: " + printable(k.Hub.text()), fmt.Sprintf("objects %d", k.Objects), fmt.Sprintf("copies %d", k.Copies), "served " + k.Wanted.text(),
	}, gap))
	for _, p := range k.Problems {
		line(w, "Problem", p.Message)
	}
	if len(k.Clusters) == 0 {
		return
	}
	var rows [][]string
	for _, c := range k.Clusters {
		rows = append(rows, []string{
			c.Cluster, c.versions(), wanted(c.Wanted), strconv.Itoa(c.Objects), strconv.Itoa(c.Applied), strconv.Itoa(c.Healthy), strconv.Itoa(c.Problems),
			asOf(c.Live, c.LastObservedTime, now),
		})
	}
	table(w, []string{"CLUSTER", "VERSIONS", "WANTED", "OBJECTS", "APPLIED", "HEALTHY", "PROBLEMS", "AS OF"}, rows)
}

func wanted(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (c KindCluster) versions() string {
	switch c.Serving {
	case ServingNo:
		return "not served"
	case ServingUnknown:
		return "unknown"
	}
	return strings.Join(c.Versions, ", ")
}
