package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ClusterFacts returns lines of text about a cluster. It leaves out a line if its data is unknown. A user who may see
// only one namespace gets few lines.
func ClusterFacts(m *hubv1.MemberCluster, now time.Time) []Line {
	nodes := ""
	if n := m.Status.Nodes; n.Total > 0 {
		nodes = fmt.Sprintf("%d ready of %d", n.Ready, n.Total)
	}
	served := 0
	for _, kind := range m.Status.APIResources {
		if len(kind.Versions) > 0 {
			served++
		}
	}
	kinds := ""
	if all := len(m.Status.APIResources); all > 0 {
		kinds = fmt.Sprintf("%d served of %d that placements select", served, all)
	}
	unclaimed := ""
	if n := m.Status.Unclaimed; n != nil {
		unclaimed = strconv.Itoa(int(*n)) + ": see hansectl prune --dry-run " + m.Name
	}
	return filled([]Line{
		{"Kubernetes", m.Status.Version.Kubernetes},
		{"Region", region(m)},
		{"Zones", strings.Join(m.Status.Topology.Zones, ", ")},
		{"Nodes", nodes},
		{"Kinds", kinds},
		{"Credentials", credentials(m, now)},
		{"Unclaimed copies", unclaimed},
		{"Cluster ID", m.Status.ClusterID},
	})
}

// credentials returns the time for which the hub's credentials for the cluster are valid, as text. It returns an empty
// text if the cluster's status has no credentials.
func credentials(m *hubv1.MemberCluster, now time.Time) string {
	c := m.Status.Credentials
	switch {
	case c == nil:
		return ""
	case c.ExpireTime == nil:
		return "no known expiry"
	}
	until := c.ExpireTime.UTC().Format("2006-01-02 15:04 UTC")
	if !now.Before(c.ExpireTime.Time) {
		return "expired at " + until
	}
	if days := int(c.ExpireTime.Sub(now).Hours() / 24); days > 1 {
		return fmt.Sprintf("valid for %d days, until %s", days, until)
	}
	return "valid until " + until
}

// CapacityRow has the amounts of one resource, such as cpu, on a cluster's nodes.
type CapacityRow struct {
	Resource string
	// Capacity is the capacity of all nodes. Allocatable is the allocatable capacity of the ready, schedulable nodes.
	Capacity, Allocatable string
}

// CapacityOf returns one row for each resource, sorted by the name of the resource.
func CapacityOf(m *hubv1.MemberCluster) []CapacityRow {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{m.Status.Capacity, m.Status.Allocatable} {
		for name := range list {
			names[name] = true
		}
	}
	quantity := func(list corev1.ResourceList, name corev1.ResourceName) string {
		q, known := list[name]
		if !known {
			return ""
		}
		return q.String()
	}
	var out []CapacityRow
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, CapacityRow{string(name), quantity(m.Status.Capacity, name), quantity(m.Status.Allocatable, name)})
	}
	return out
}
