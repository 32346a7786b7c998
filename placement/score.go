package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Part is the part of a cluster's score from one preference or property.
type Part struct {
	Name  string
	Score int64
	// Note is the reason why a requested part is zero, such as an expression without a result.
	Note string
}

// untoleratedWish is added to the score for each PreferNoSchedule taint that is not tolerated.
const untoleratedWish = -100

// findings depend only on the placement and one cluster.
type findings struct {
	revision string
	causes   []cause // by filter; zero for filters that are not cached
	parts    []Part  // parts of the score, except the built-in ones
	score    int64
	domains  []string // by constraint
	groups   []bool   // by group: whether the cluster is in it
}

// find evaluates a cluster, or returns the cached findings for its revision.
func (c *Compiled) find(in *Input, cl *Cluster) *findings {
	if cl.Revision != "" {
		if known, ok := c.seen.Load(cl.Name); ok && known.(*findings).revision == cl.Revision {
			return known.(*findings)
		}
	}
	f := &findings{revision: cl.Revision, causes: make([]cause, len(filters))}
	for i, filter := range filters {
		if filter.remembered {
			f.causes[i] = filter.check(in, cl)
		}
	}
	c.prefer(f, cl)
	for _, t := range c.constraints {
		f.domains = append(f.domains, cl.Labels[t.key])
	}
	for _, g := range c.groups {
		f.groups = append(f.groups, g.has(cl))
	}
	if cl.Revision != "" {
		c.seen.Store(cl.Name, f)
	}
	return f
}

func (c *Compiled) prefer(f *findings, cl *Cluster) {
	for i, p := range c.preferences {
		part := Part{Name: fmt.Sprintf("preferences[%d]", i)}
		switch holds, err := p.selects(cl); {
		case err != nil:
			part.Note = "expression fails: " + short(err.Error())
		case holds:
			part.Score = p.weight
		}
		f.parts = append(f.parts, part)
		f.score += part.Score
	}
	for _, t := range cl.Taints {
		if _, yes := tolerance(c.tolerations, t); t.Effect == corev1.TaintEffectPreferNoSchedule && !yes {
			f.parts = append(f.parts, Part{Name: "taint " + t.ToString(), Score: untoleratedWish})
			f.score += untoleratedWish
		}
	}
}

func (p preference) selects(c *Cluster) (bool, error) {
	if p.expression != nil {
		return p.expression.holds(c)
	}
	return failing(p.requirements, c.Labels) == "", nil
}

func (g group) has(c *Cluster) bool {
	named := len(g.names) == 0
	for _, n := range g.names {
		named = named || n == c.Name
	}
	return named && failing(g.requirements, c.Labels) == ""
}

// builtIn adds the scores that compare a cluster with the others.
func (c *Compiled) builtIn(all []*contender) {
	if c.capacity == 0 && c.objects == 0 {
		return
	}
	var cpu, memory, objects float64
	for _, d := range all {
		cpu = max(cpu, d.cluster.allocatable(corev1.ResourceCPU))
		memory = max(memory, d.cluster.allocatable(corev1.ResourceMemory))
		objects = max(objects, float64(d.cluster.Objects))
	}
	for _, d := range all {
		// The parts of the findings are shared: they must not grow in place.
		d.parts = d.parts[:len(d.parts):len(d.parts)]
		if c.capacity != 0 {
			share := (shareOf(d.cluster.allocatable(corev1.ResourceCPU), cpu) + shareOf(d.cluster.allocatable(corev1.ResourceMemory), memory)) / 2
			d.add(string(hubv1.ScoreAvailableCapacity), c.capacity, share)
		}
		if c.objects != 0 {
			d.add(string(hubv1.ScoreFewestObjects), c.objects, 1-shareOf(float64(d.cluster.Objects), objects))
		}
	}
}

// add rounds the share to tenths, so that small changes move nothing.
func (d *contender) add(name string, weight int64, share float64) {
	const steps = 10
	part := Part{Name: name, Score: weight * int64(share*steps+1e-9) / steps}
	d.parts = append(d.parts, part)
	d.score += part.Score
}

func shareOf(part, whole float64) float64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(part/whole, 1)
}

func (c *Cluster) allocatable(name corev1.ResourceName) float64 {
	q := c.Allocatable[name]
	return q.AsApproximateFloat64()
}
