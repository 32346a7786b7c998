package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are limits for a text in which one line describes a group of objects.
const (
	maxGroups       = 20
	maxGroupObjects = 3
)

// Write writes the simulation as text. All objects with the same placement and the same change share one line.
func (s Simulation) Write(w io.Writer, _ time.Time) {
	fmt.Fprintln(w, s.Headline())
	for _, c := range s.Changes {
		line(w, "If", c)
	}
	for _, n := range s.Notes {
		line(w, "Note", n)
	}
	one := func(cell func(SimulatedObject) string) func([]SimulatedObject) string {
		return func(group []SimulatedObject) string { return cell(group[0]) }
	}
	placement := column{"PLACEMENT", true, one(func(o SimulatedObject) string { return o.Follows() })}
	names := column{"WHICH", false, which}
	s.writeGroups(w, s.Objects, placement,
		column{"GAINED", true, one(func(o SimulatedObject) string { return s.list(o.Gained) })},
		column{"LOST", true, one(func(o SimulatedObject) string { return s.list(o.Lost) })},
		column{"AWAY", true, one(func(o SimulatedObject) string { return s.list(o.Away) })},
		column{"REPLICAS", false, s.shifts}, names)
	problems := slices.DeleteFunc(slices.Clone(s.Objects), func(o SimulatedObject) bool { return o.Problem() == "" })
	s.writeGroups(w, problems, placement,
		column{"RUNS ON", true, one(func(o SimulatedObject) string { return fmt.Sprintf("%d -> %d", o.RunningBefore, o.Running) })},
		column{"NO ROOM", true, one(func(o SimulatedObject) string { return o.noRoom() })},
		names, column{"PROBLEM", true, one(func(o SimulatedObject) string { return o.Problem() })})
	s.writeClusters(w)
}

// Headline returns the summary as text: "412 objects: 31 change, 3 would run nowhere; 120 replicas move, 14 have no
// room".
func (s Simulation) Headline() string {
	sum := s.Summary
	text := counted(sum.Objects, "object")
	if sum.Changed == 0 {
		return text + ": nothing changes"
	}
	text += fmt.Sprintf(": %d change, %d would run nowhere", sum.Changed, sum.Nowhere)
	if sum.TooFew > 0 {
		text += fmt.Sprintf(", %d would be on too few clusters", sum.TooFew)
	}
	var numbers []string
	if sum.ReplicasMoved > 0 {
		numbers = append(numbers, fmt.Sprintf("%d replicas move", sum.ReplicasMoved))
	}
	if sum.ReplicasWithoutRoom > 0 {
		numbers = append(numbers, fmt.Sprintf("%d replicas have no room", sum.ReplicasWithoutRoom))
	}
	if sum.CopiesAway > 0 {
		away := counted(sum.CopiesAway, "copy")
		if sum.ReplicasAway > 0 {
			away += " with " + counted(int(sum.ReplicasAway), "replica")
		}
		numbers = append(numbers, away+" left on clusters that are away")
	}
	if len(numbers) > 0 {
		text += "; " + strings.Join(numbers, ", ")
	}
	return text
}

// counted returns a count with its noun, such as "1 copy" or "3 copies".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// column is a column of a table. One line of the table describes several similar objects.
type column struct {
	header string
	// same is true if objects with different cells in this column must not share a line.
	same bool
	cell func(group []SimulatedObject) string
}

// writeGroups writes one line for each group of similar objects.
func (s Simulation) writeGroups(w io.Writer, objects []SimulatedObject, columns ...column) {
	if len(objects) == 0 {
		return
	}
	groups := s.groups(objects, columns)
	shown := groups
	if !s.all {
		shown = groups[:min(len(groups), maxGroups)]
	}
	header := []string{"OBJECTS"}
	for _, c := range columns {
		header = append(header, c.header)
	}
	var rows [][]string
	for _, group := range shown {
		row := []string{strconv.Itoa(len(group))}
		for _, c := range columns {
			row = append(row, c.cell(group))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	dense(w, header, rows)
	if rest := groups[len(shown):]; len(rest) > 0 {
		left := 0
		for _, group := range rest {
			left += len(group)
		}
		fmt.Fprintf(w, "and %s about %s: see --all\n", counted(len(rest), "more line"), counted(left, "object"))
	}
}

// groups returns groups of similar objects, the largest group first. If s.all is true, each object is a group of its
// own.
func (s Simulation) groups(objects []SimulatedObject, columns []column) [][]SimulatedObject {
	var out [][]SimulatedObject
	places := map[string]int{}
	for i, o := range objects {
		var key strings.Builder
		if s.all {
			fmt.Fprint(&key, i)
		}
		for _, c := range columns {
			if c.same {
				key.WriteString(c.cell(objects[i:i+1]) + "\x00")
			}
		}
		place, ok := places[key.String()]
		if !ok {
			place = len(out)
			places[key.String()] = place
			out = append(out, nil)
		}
		out[place] = append(out[place], o)
	}
	slices.SortStableFunc(out, func(a, b []SimulatedObject) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// dense writes a table without its empty columns.
func dense(w io.Writer, header []string, rows [][]string) {
	for i := len(header) - 1; i >= 0; i-- {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		header = slices.Delete(header, i, i+1)
		for j := range rows {
			rows[j] = slices.Delete(rows[j], i, i+1)
		}
	}
	table(w, header, rows)
}

// which returns the names of the first objects of a group. It repeats the kind only if the kind differs from that of
// the object before.
func which(group []SimulatedObject) string {
	var names []string
	kind := ""
	for _, o := range group[:min(len(group), maxGroupObjects)] {
		name := o.Object.Name
		if o.Object.Namespace != "" {
			name = o.Object.Namespace + "/" + name
		}
		if o.Object.Kind != kind {
			kind = o.Object.Kind
			name = kind + " " + name
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(group) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (s Simulation) list(names []string) string {
	if s.all {
		return strings.Join(names, ", ")
	}
	return list(names)
}

// Follows returns the placement as text, or "OLD -> NEW" if the placement changes.
func (o *SimulatedObject) Follows() string {
	if o.PlacementBefore == "" {
		return cmp.Or(o.Placement, "none")
	}
	return o.PlacementBefore + " -> " + cmp.Or(o.Placement, "none")
}

// shifts lists as text the clusters whose total number of replicas changes, with the numbers: "eu-1 4 -> 6".
func (s Simulation) shifts(objects []SimulatedObject) string {
	before, after := map[string]int64{}, map[string]int64{}
	all := map[string]bool{}
	for _, o := range objects {
		for _, t := range o.Before {
			before[t.Cluster] += shareOf(t.Replicas)
			all[t.Cluster] = true
		}
		for _, t := range o.After {
			after[t.Cluster] += shareOf(t.Replicas)
			all[t.Cluster] = true
		}
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(all)) {
		if before[c] != after[c] {
			out = append(out, fmt.Sprintf("%s %d -> %d", c, before[c], after[c]))
		}
	}
	return s.list(out)
}

func (o *SimulatedObject) noRoom() string {
	if o.NoRoom == 0 && o.NoRoomBefore == 0 {
		return ""
	}
	return fmt.Sprintf("%d -> %d", o.NoRoomBefore, o.NoRoom)
}

// Problem describes the problem of an object for a user. It is empty if the object has no problem.
func (o *SimulatedObject) Problem() string {
	switch {
	case o.Scheduled.Reason != hubv1.ReasonScheduled && (o.Scheduled.Status != metav1.ConditionTrue || len(o.Away) > 0):
		return o.Scheduled.Reason + ": " + o.Scheduled.Message
	case o.nowhere():
		return "every cluster that holds it is away"
	case o.NoRoom > o.NoRoomBefore:
		return o.Scheduled.Message
	}
	return ""
}

// writeClusters writes a table of the clusters whose number of objects or replicas changes, and of the clusters that do
// not answer and have objects.
func (s Simulation) writeClusters(w io.Writer) {
	var rows [][]string
	for _, c := range s.Clusters {
		if c.Objects == c.ObjectsBefore && c.Replicas == c.ReplicasBefore && (!c.Away || c.Objects == 0) {
			continue
		}
		state := ""
		if c.Away {
			state = "away"
		}
		replicas := ""
		if c.Replicas > 0 || c.ReplicasBefore > 0 {
			replicas = fmt.Sprintf("%d -> %d", c.ReplicasBefore, c.Replicas)
		}
		rows = append(rows, []string{c.Cluster, c.Region, state, fmt.Sprintf("%d -> %d", c.ObjectsBefore, c.Objects), replicas})
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		dense(w, []string{"CLUSTER", "REGION", "STATE", "OBJECTS", "REPLICAS"}, rows)
	}
}
