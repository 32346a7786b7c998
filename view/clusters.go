package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ClusterList is the output of the command clusters.
type ClusterList struct {
	Clusters []Cluster `json:"clusters"`
	// Facts are further lines of text about a single cluster.
	Facts []Line `json:"-"`
}

// Cluster is one member cluster in the list.
type Cluster struct {
	Name string `json:"name"`
	Readiness
	Region  string `json:"region,omitempty"`
	Version string `json:"version,omitempty"`
	// ClusterID is the UID of the cluster's namespace kube-system.
	ClusterID string `json:"clusterID,omitempty"`
	// LastObservedTime is the time at which the hub last observed the cluster. It is absent if the hub has not recorded
	// this time. Live is true while the hub observes the cluster.
	LastObservedTime *metav1.Time      `json:"lastObservedTime,omitempty"`
	Live             bool              `json:"live"`
	Nodes            hubv1.NodeSummary `json:"nodes"`
	// Objects is the number of hub objects that the cluster shall hold or still has. It is null if the objects could not
	// be counted.
	Objects *int        `json:"objects"`
	Created metav1.Time `json:"created"`
	Leaving bool        `json:"leaving,omitempty"`
	Scheduling
}

// Readiness is the condition Ready of a cluster.
type Readiness struct {
	Ready   string `json:"ready"` // True, False or Unknown
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Scheduling has the reasons why the scheduler does not choose a cluster.
type Scheduling struct {
	// Cordoned is true if the cluster gets no new objects. Draining is true if the objects on the cluster move to other
	// clusters.
	Cordoned bool `json:"cordoned,omitempty"`
	Draining bool `json:"draining,omitempty"`
	// Drain has the numbers of objects that a drain has not moved yet. It is nil without a drain, and before the hub's
	// first count.
	Drain *hubv1.DrainStatus `json:"drain,omitempty"`
	// Taints are the taints of spec and the taints that the hub has added.
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// Clusters returns the members, sorted by name. objects is the number of objects on each cluster, or nil if the numbers
// are not known. silence tells since when no hub runs. It is nil while a hub runs.
func Clusters(members []hubv1.MemberCluster, objects map[string]int, silence *Silence, now time.Time) ClusterList {
	list := ClusterList{Clusters: []Cluster{}}
	for i := range members {
		m := &members[i]
		c := Cluster{
			Name: m.Name, Readiness: Readiness{Ready: string(metav1.ConditionUnknown)}, Region: region(m), Version: m.Status.Version.Kubernetes,
			ClusterID: m.Status.ClusterID, Nodes: m.Status.Nodes, Created: m.CreationTimestamp, Leaving: m.DeletionTimestamp != nil,
			LastObservedTime: m.Status.LastObservedTime, Scheduling: schedulingOf(m),
		}
		if ready := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady); ready != nil {
			c.Readiness = Readiness{string(ready.Status), ready.Reason, ready.Message}
		}
		c.Live = silence == nil && m.IsObserved(now)
		if objects != nil {
			n := objects[m.Name]
			c.Objects = &n
		}
		list.Clusters = append(list.Clusters, c)
	}
	slices.SortFunc(list.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Observed returns a function that reports whether the hub observes a cluster. The function returns true for a cluster
// that is not in members, because the user may not be allowed to list this cluster. silence is nil while a hub runs;
// otherwise the function returns false for every cluster.
func Observed(members []hubv1.MemberCluster, silence *Silence, now time.Time) func(cluster string) bool {
	unobserved := sets.New[string]()
	for i := range members {
		if !members[i].IsObserved(now) {
			unobserved.Insert(members[i].Name)
		}
	}
	return func(cluster string) bool { return silence == nil && !unobserved.Has(cluster) }
}

func schedulingOf(m *hubv1.MemberCluster) Scheduling {
	s := Scheduling{Cordoned: m.Spec.Unschedulable, Draining: m.Spec.Drain != nil, Taints: slices.Concat(m.Spec.Taints, m.Status.Taints)}
	if s.Draining {
		s.Drain = m.Status.Drain
	}
	return s
}

// Names returns the names of the members for -o name.
func (l ClusterList) Names() []string {
	var names []string
	for _, c := range l.Clusters {
		names = append(names, "membercluster.hanse.dev/"+c.Name)
	}
	return names
}

// Write writes a table with one row for each cluster.
func (l ClusterList) Write(w io.Writer, now time.Time) {
	var rows [][]string
	for _, c := range l.Clusters {
		objects, nodes := "?", ""
		if c.Objects != nil {
			objects = strconv.Itoa(*c.Objects)
		}
		if c.Version != "" { // the hub has reached the cluster at least once
			nodes = fmt.Sprintf("%d/%d", c.Nodes.Ready, c.Nodes.Total)
		}
		ready := c.Ready
		if ready == string(metav1.ConditionTrue) && !c.Live {
			ready += "?" // a ? marks the last known state
		}
		switch {
		case c.Draining:
			ready += ",Draining"
		case c.Cordoned:
			ready += ",Cordoned"
		}
		reason := c.Reason
		if c.Drain != nil {
			reason += fmt.Sprintf("; %d of %d objects to drain", c.Drain.Remaining, max(c.Drain.Total, c.Drain.Remaining))
		}
		rows = append(rows, []string{
			c.Name, ready, asOf(c.Live, c.LastObservedTime, now), c.Region, c.Version, nodes, objects, age(c.Created, now), reason, taints(c.Taints),
		})
	}
	table(w, []string{"NAME", "READY", "AS OF", "REGION", "VERSION", "NODES", "OBJECTS", "AGE", "REASON", "TAINTS"}, rows)
	if len(l.Facts) == 0 {
		return
	}
	fmt.Fprintln(w)
	facts := slices.Clone(l.Facts)
	if message := l.Clusters[0].Message; message != "" {
		facts = append([]Line{{"Message", message}}, facts...)
	}
	for _, f := range facts {
		fmt.Fprintf(w, "%-18s %s\n", f.Name+":", printable(f.Text))
	}
}

// taints returns the taints in the syntax of kubectl taint, such as "maintenance=true:NoSchedule".
func taints(all []corev1.Taint) string {
	var texts []string
	for _, t := range all {
		texts = append(texts, t.ToString())
	}
	return strings.Join(texts, ",")
}

// asOf returns the age of the last observation as text, or "live" if live is true. It returns an empty text if the time
// of the observation is not known.
func asOf(live bool, at *metav1.Time, now time.Time) string {
	switch {
	case live:
		return "live"
	case at == nil:
		return ""
	}
	return age(*at, now)
}

func age(since metav1.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(since.Time), 0))
}

func region(m *hubv1.MemberCluster) string { return m.SelectableLabels()[hubv1.RegionLabel] }
