package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Objects is the output of the command status for a namespace or a placement: one line per object.
type Objects struct {
	// Placement is the placement whose objects are shown. It is nil if the command was not asked for the objects of one
	// placement.
	Placement *PlacementSummary `json:"placement,omitempty"`
	// Bundle is the bundle whose objects are shown. It is nil if the command was not asked for the objects of one bundle.
	Bundle  *BundleSummary  `json:"bundle,omitempty"`
	Objects []ObjectSummary `json:"objects"`
}

// PlacementSummary summarises a placement.
type PlacementSummary struct {
	Kind       string              `json:"kind"`
	Name       string              `json:"name"`
	Namespace  string              `json:"namespace,omitempty"`
	Generation int64               `json:"generation"`
	Suspend    hubv1.SuspendPolicy `json:"suspend,omitzero"`
	// Clusters is the number of clusters that hold at least one object of the placement.
	Clusters   int32              `json:"clusters"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ObjectSummary is the summary of an object, with the numbers of its clusters.
type ObjectSummary struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Bundle is the bundle that contains the object, such as "Bundle shop/web". It is empty for an object of the hub.
	Bundle    string `json:"bundle,omitempty"`
	Placement string `json:"placement"`
	// Desired is the number of clusters that shall hold the object.
	Desired int32 `json:"desired"`
	Applied int32 `json:"applied"`
	Healthy int32 `json:"healthy"`
	// Reason and Message are those of the first of the conditions Scheduled, Applied and Healthy that is not True. If all
	// are True, Message names the selected clusters without the object.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (s ObjectSummary) id() hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}

// SummaryOf returns the summary of a binding's object.
func SummaryOf(b hubv1.BindingObject) ObjectSummary {
	sum := b.BindingStatus().Summary
	id := hubv1.ObjectOf(b)
	s := ObjectSummary{
		Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Bundle: BundleOf(b.BindingSpec().ObjectRef),
		Placement: followedBy(b.BindingSpec()), Applied: sum.Applied, Healthy: sum.Healthy,
	}
	for _, t := range b.BindingSpec().Clusters {
		if t.State == hubv1.TargetPresent {
			s.Desired++
		}
	}
	for _, kind := range []string{hubv1.ConditionScheduled, hubv1.ConditionApplied, hubv1.ConditionHealthy} {
		c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind)
		if c == nil {
			s.Reason, s.Message = hubv1.ReasonPending, "the hub has not reported "+kind+" yet"
			return s
		}
		if c.Status != metav1.ConditionTrue {
			s.Reason, s.Message = c.Reason, c.Message
			return s
		}
	}
	if u := unplacedOf(b); u != nil {
		s.Message = u.text()
	}
	return s
}

// SummaryOfPlacement returns the summary of a placement.
func SummaryOfPlacement(kind string, p hubv1.PlacementObject) *PlacementSummary {
	status := p.PlacementStatus()
	return &PlacementSummary{
		Kind: kind, Name: p.GetName(), Namespace: p.GetNamespace(), Generation: p.GetGeneration(), Suspend: p.PlacementSpec().Suspend,
		Clusters: status.SelectedClusters, Conditions: status.Conditions,
	}
}

// Sort orders the objects by kind and name.
func (o Objects) Sort() {
	slices.SortFunc(o.Objects, func(a, b ObjectSummary) int { return cmp.Compare(a.id().String(), b.id().String()) })
}

// Names returns the names of the objects for -o name.
func (o Objects) Names() []string {
	var names []string
	for _, s := range o.Objects {
		names = append(names, resourceName(s.id()))
	}
	return names
}

// Names returns the name of the object for -o name.
func (s Status) Names() []string {
	return []string{resourceName(hubv1.ObjectIdentity{Group: s.Object.Group, Kind: s.Object.Kind, Name: s.Object.Name})}
}

// resourceName returns a name such as "deployment.apps/web".
func resourceName(id hubv1.ObjectIdentity) string {
	return strings.ToLower(id.GroupKind().String()) + "/" + id.Name
}

// Write writes the lines about the placement, and then the table.
func (o Objects) Write(w io.Writer, _ time.Time) {
	if p := o.Placement; p != nil {
		p.write(w, len(o.Objects))
	}
	if o.Bundle != nil {
		o.Bundle.write(w)
		if len(o.Objects) == 0 {
			fmt.Fprintln(w, "The bundle has no objects, or its manifests cannot be read")
			return
		}
	}
	if len(o.Objects) == 0 {
		fmt.Fprintln(w, "No object follows a placement here")
		return
	}
	var rows [][]string
	for _, s := range o.Objects {
		name := s.id().String()
		if o.Bundle == nil {
			name += bundleIn(s.Bundle)
		}
		rows = append(rows, []string{
			name, s.Placement, fmt.Sprintf("%d/%d", s.Applied, s.Desired), fmt.Sprintf("%d/%d", s.Healthy, s.Desired), why(s.Reason, s.Message),
		})
	}
	table(w, []string{"OBJECT", "PLACEMENT", "APPLIED", "HEALTHY", "WHY"}, rows)
}

func (p *PlacementSummary) write(w io.Writer, objects int) {
	name := strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
	fmt.Fprintf(w, "%s %s   generation %d   objects %d   clusters %d\n", p.Kind, name, p.Generation, objects, p.Clusters)
	for _, c := range p.Conditions {
		fmt.Fprintln(w, printable(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, why(c.Reason, c.Message))))
	}
	if s := p.Suspend; s.Scheduling || s.Dispatching {
		fmt.Fprintf(w, "Suspended: scheduling %t, dispatching %t; hansectl resume ends it\n", s.Scheduling, s.Dispatching)
	} else if clusters := SuspendedClusters(&s); clusters != "" {
		fmt.Fprintf(w, "Suspended: nothing is written to %s; hansectl resume ends it\n", printable(clusters))
	}
}

// SuspendedClusters lists the clusters to which a placement suspends writes, by name and by labels. It is empty if
// there are none, or if writes to all members are suspended.
func SuspendedClusters(s *hubv1.SuspendPolicy) string {
	if s.Dispatching {
		return ""
	}
	clusters := slices.Clone(s.Clusters)
	if selected := s.SelectedClusters(); selected != "" {
		clusters = append(clusters, selected)
	}
	return strings.Join(clusters, ", ")
}
