package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Part is the contribution of one preference, taint or built-in score to the score of a cluster.
type Part struct {
	Name  string
	Score int64
	// Note says why the contribution is zero although the placement has the preference, for example because the expression
	// has no result.
	Note string
}

// scoring has the preferences of a placement, and the weights of its built-in scores.
type scoring struct {
	preferences []preference
	// capacity and objects are the weights of the built-in scores AvailableCapacity and FewestObjects. 0 means that the
	// placement does not use the score.
	capacity, objects int64
}

// preference is a parsed preference of a placement. It adds its weight to the score of each cluster that it selects.
type preference struct {
	weight       int64
	requirements []requirement
	expression   *condition
}

func readScoring(s *hubv1.SpreadPolicy) (scoring, error) {
	var out scoring
	for i, p := range s.Preferences {
		read := preference{weight: int64(p.Weight)}
		var err error
		if read.requirements, err = requirements(p.LabelSelector); err != nil {
			return out, fmt.Errorf("preferences[%d].labelSelector%w", i, err)
		}
		if p.Expression != "" {
			if read.expression, err = compileExpression(p.Expression); err != nil {
				return out, fmt.Errorf("preferences[%d].expression: %w", i, err)
			}
		}
		out.preferences = append(out.preferences, read)
	}
	for _, w := range s.Scores {
		switch w.Name {
		case hubv1.ScoreAvailableCapacity:
			out.capacity = int64(w.Weight)
		case hubv1.ScoreFewestObjects:
			out.objects = int64(w.Weight)
		default:
			return out, fmt.Errorf("scores[%s]: there is no such score", w.Name)
		}
	}
	return out, nil
}

// readsFacts reports whether scores depend on data of clusters that changes without an action of a user, such as the
// capacity.
func (s *scoring) readsFacts() bool {
	return s.capacity != 0 || slices.ContainsFunc(s.preferences, func(p preference) bool { return p.expression.readsFacts() })
}

// untoleratedScore is added to a cluster's score for each PreferNoSchedule taint that the placement does not tolerate.
const untoleratedScore = -100

// findings are the results for one cluster that depend only on the placement and the cluster, but not on the object.
// They can be cached.
type findings struct {
	revision string
	causes   []cause  // results of filters; zero for filters that are not cached
	tally             // score and its parts, without the built-in scores
	domains  []string // the cluster's domain, by constraint
	groups   []bool   // whether the cluster is in each group
}

// tally is a score and its parts.
type tally struct {
	parts []Part
	score int64
}

func (t *tally) add(p Part) {
	t.parts = append(t.parts, p)
	t.score += p.Score
}

// find returns the findings for a cluster. It takes them from the cache if the cluster's revision has not changed.
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
		f.add(part)
	}
	for _, t := range cl.Taints {
		if _, yes := tolerance(c.tolerations, t); t.Effect == corev1.TaintEffectPreferNoSchedule && !yes {
			f.add(Part{Name: "taint " + t.ToString(), Score: untoleratedScore})
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

// builtIn adds the built-in scores. They compare the capacity and the number of objects of each cluster with the other
// clusters.
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
		// Decisions share the parts of cached findings. The limited capacity of the slice makes append copy it, so that
		// append does not write into the shared array.
		d.tally.parts = d.tally.parts[:len(d.tally.parts):len(d.tally.parts)]
		if c.capacity != 0 {
			share := (shareOf(d.cluster.allocatable(corev1.ResourceCPU), cpu) + shareOf(d.cluster.allocatable(corev1.ResourceMemory), memory)) / 2
			d.tally.add(builtInPart(hubv1.ScoreAvailableCapacity, c.capacity, share))
		}
		if c.objects != 0 {
			d.tally.add(builtInPart(hubv1.ScoreFewestObjects, c.objects, 1-shareOf(float64(d.cluster.Objects), objects)))
		}
	}
}

// builtInPart returns the contribution of a built-in score. share says how well the cluster compares with the best
// cluster, from 0 to 1. It is rounded down to tenths, so that small changes move no object.
func builtInPart(name hubv1.ScoreName, weight int64, share float64) Part {
	const steps = 10
	return Part{Name: string(name), Score: weight * int64(share*steps+1e-9) / steps}
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
