package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view/wire"
)

// Copies are the live copies of hub objects of one kind.
type Copies struct {
	Items []MemberCopy `json:"items"`
	// NotAsked are the clusters whose copies could not be read because the cluster did not answer, each with the reason.
	NotAsked []ClusterNote `json:"notAsked,omitempty"`
	// More is the number of hub objects whose copies are not shown.
	More int `json:"more,omitempty"`
}

// MemberCopy is the copy of one object on one cluster.
type MemberCopy struct {
	Cluster string      `json:"cluster"`
	ID      wire.Object `json:"id"`
	// Health and the numbers of replicas are the last values of the copy that the hub received.
	Health   hubv1.Health `json:"health,omitempty"`
	Ready    *int64       `json:"ready,omitempty"`
	Replicas *int64       `json:"replicas,omitempty"`
	// Away is true while the hub does not observe the cluster. The health and the numbers of replicas of the copy may then
	// be out of date.
	Away bool `json:"away,omitempty"`
	// Object is the current copy on the cluster. If the hub returned no copy, it is absent, and Refused has the reason.
	Object  map[string]any `json:"object,omitempty"`
	Refused *wire.Reason   `json:"refused,omitempty"`
}

// CopyOf converts the hub's answer about one copy into a MemberCopy, without managedFields. observed is true while the
// hub observes the cluster.
func CopyOf(cluster string, b hubv1.BindingObject, answer wire.CopyAnswer, observed bool) MemberCopy {
	out := MemberCopy{
		Cluster: cluster, ID: wire.ObjectOf(hubv1.ObjectOf(b)), Object: answer.Object, Refused: answer.Refused,
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "managedFields")
	if row := b.BindingStatus().Row(cluster); row != nil {
		out.Health, out.Away = row.Health, !observed || row.LastObservedTime != nil
		out.Ready, out.Replicas = rollup.Replicas(row.Observed)
	}
	return out
}

// Sort orders the copies by cluster, namespace and name.
func (c Copies) Sort() {
	slices.SortFunc(c.Items, func(a, b MemberCopy) int {
		return cmp.Or(
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	slices.SortFunc(c.NotAsked, func(a, b ClusterNote) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

// Names returns the names of the objects for -o name, each once.
func (c Copies) Names() []string {
	var names []string
	for _, item := range c.Items {
		id := hubv1.ObjectIdentity{Group: item.ID.Group, Kind: item.ID.Kind, Name: item.ID.Name}
		if name := resourceName(id); item.Object != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Write writes a table with one row for each copy.
func (c Copies) Write(w io.Writer, now time.Time) {
	if len(c.Items) == 0 {
		fmt.Fprintln(w, "No copies found")
		return
	}
	var rows [][]string
	for _, item := range c.Items {
		how := Row{Report: Report{Ready: item.Ready, Replicas: item.Replicas, Health: item.Health}, Away: item.Away && item.Health != ""}
		created, reason := "", ""
		if item.Object != nil {
			u := unstructured.Unstructured{Object: item.Object}
			created = age(u.GetCreationTimestamp(), now)
		}
		if item.Refused != nil {
			reason = why(item.Refused.Reason, item.Refused.Message)
		}
		rows = append(rows, []string{
			item.Cluster, item.ID.Namespace, item.ID.Name, how.health(), how.ready(), created, reason,
		})
	}
	table(w, []string{"CLUSTER", "NAMESPACE", "NAME", "HEALTH", "READY", "AGE", "WHY"}, rows)
}
