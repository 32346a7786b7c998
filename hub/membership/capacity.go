package membership

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// growthWindow is the time in which the capacity of a cluster that counts grows at most twofold.
const growthWindow = time.Hour

// count sets the capacity of a cluster that counts in decisions, and the limit of its growth, from the facts that the
// cluster has reported. now is the time.
//
//   - The first amount of a resource counts at once, and so does each smaller amount.
//   - Up to twice the base counts. When no resource has grown beyond the base for a growthWindow, the amounts that
//     count become the base, so that less than twofold growth is possible in any shorter time.
//   - The base never becomes smaller. A cluster whose nodes were away counts at once with the amounts that it had
//     before.
//
// The limit changes only together with the amounts that count, so it costs no further write of the status.
func count(c *hubv1.MemberCluster, facts member.Facts, now time.Time) {
	was, reported := merged(c.Status.Capacity, c.Status.Allocatable), merged(facts.Capacity, facts.Allocatable)
	next := &hubv1.CapacityGrowth{Base: corev1.ResourceList{}, Since: metav1.NewTime(now)}
	if before := c.Status.CapacityGrowth; before != nil {
		next.Base, next.Since = merged(before.Base, nil), before.Since
	}
	over := now.Sub(next.Since.Time) >= growthWindow
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		base, known := next.Base[name]
		counts, amount := was[name], reported[name]
		switch {
		case known && over && amount.Cmp(base) > 0 && counts.Cmp(base) > 0:
			next.Base[name] = counts
		case !known && counts.Sign() > 0 && len(next.Base) < hubv1.MaxResources:
			next.Base[name] = counts // an older version of the hub wrote the status
		case !known && len(next.Base) < hubv1.MaxResources:
			next.Base[name] = amount
		}
	}
	capacity, allocatable := limited(facts.Capacity, c.Spec.Capacity, next.Base), limited(facts.Allocatable, c.Spec.Capacity, next.Base)
	counts := merged(capacity, allocatable)
	next.Reported = beyond(reported, counts)
	if len(beyond(beyond(counts, next.Base), was)) > 0 {
		next.Since = metav1.NewTime(now)
	}
	c.Status.Capacity, c.Status.Allocatable, c.Status.CapacityGrowth = capacity, allocatable, next
}

// limited returns the amounts of the reported resources that count. own are the limits in the spec of the
// MemberCluster, and base is CapacityGrowth.Base. The result is nil only if the list is nil.
func limited(reported, own, base corev1.ResourceList) corev1.ResourceList {
	if reported == nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name, amount := range reported {
		limit, set := own[name]
		if !set {
			limit = base[name].DeepCopy()
			limit.Add(base[name])
		}
		if out[name] = amount; amount.Cmp(limit) > 0 {
			out[name] = limit
		}
	}
	return out
}

// beyond returns the resources whose amount in the list is larger than in the other list, by name at most
// MaxResources. It is nil if there are none.
func beyond(list, other corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		if amount.Cmp(other[name]) <= 0 || len(out) == hubv1.MaxResources {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = amount
	}
	return out
}

// merged returns the larger amount of each resource in the two lists. It leaves out zero and negative amounts.
func merged(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, amount := range list {
			if amount.Cmp(out[name]) > 0 {
				out[name] = amount
			}
		}
	}
	return out
}
