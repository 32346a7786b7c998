package placement

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// spread chooses among the clusters that passed the filters, or hold the object already.
type spread struct {
	*Compiled
	object   string // Input.ObjectName
	divided  bool
	trace    *Trace
	decision *Decision
	compared int
}

// choose sets the field chosen of each cluster that shall hold the object. For each other cluster, it records why the
// cluster is not chosen.
func (s *spread) choose(selected []*contender) {
	s.builtIn(selected)
	s.order(selected)
	s.evict(selected)
	group := s.group(selected)
	if group >= 0 {
		s.decision.Group = s.groups[group].name
	}
	a := s.attempt(s.members(group, selected, eligible), kept(selected)...)
	s.decision.Shortfalls = a.shortfalls()
	if a.breaks() {
		s.decision.Kept = true
		s.restore(selected, a)
		return
	}
	for _, c := range selected {
		switch {
		case c.chosen:
		case c.eviction.evict, c.eviction.takenAway:
			c.cause = c.eviction.due
		case group >= 0 && !c.findings.groups[group]:
			if eligible(c) {
				c.cause = cause{hubv1.ReasonOtherAffinityGroup, "affinity group " + s.decision.Group + " holds the object"}
			}
		case eligible(c):
			c.cause = a.cause(c)
		}
		if c.held && !c.chosen {
			s.trace.step("Drop", c.cluster.Name, "%s", c.cause.message)
		}
	}
}

// eligible reports whether the spread may choose the cluster. The cluster must pass every filter, or hold the object
// already. A cluster that the decision replaces, or from which a drain removes the object, is not eligible.
func eligible(c *contender) bool {
	return !c.eviction.evict && !c.eviction.takenAway && (c.held || c.open())
}

// order sorts clusters by score and sets their rank. Among equal scores, clusters that hold the object come first, and
// clusters with an Evicting entry come second. After that, a hash of the object and the cluster decides (see draw).
func (s *spread) order(all []*contender) {
	if s.object != "" {
		for _, c := range all {
			c.draw = draw(s.object, c.cluster.Name)
		}
	}
	slices.SortFunc(all, func(a, b *contender) int {
		s.compared++
		return cmp.Or(cmp.Compare(b.tally.score, a.tally.score), cmp.Compare(first(b.held), first(a.held)), cmp.Compare(first(b.evicting), first(a.evicting)),
			cmp.Compare(a.draw, b.draw), cmp.Compare(a.cluster.Name, b.cluster.Name))
	})
	for i, c := range all {
		c.rank = i
	}
}

// draw returns a hash of the object and the cluster. It decides among clusters of equal score, so that many objects do
// not all land on the same clusters. The result depends on no other cluster: a cluster that joins or leaves does not
// change the order of the others.
func draw(object, cluster string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, object+"\x00"+cluster)
	x := h.Sum64()
	// In FNV, the last bytes of a text hardly affect the highest bits, so that clusters with similar names would come
	// next to each other. The finalizer of MurmurHash3 lets each byte affect all bits.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func first(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// group returns the index of the affinity group whose clusters shall hold the object. It is -1 if the placement has no
// affinity groups.
func (s *spread) group(selected []*contender) int {
	if len(s.groups) == 0 {
		return -1
	}
	if holding := s.holding(selected); holding >= 0 && !s.rebalance {
		// The object leaves its affinity group only if the group would have too few clusters even if all selected clusters
		// could be chosen. An outage therefore does not move the object to another group, unless failover evicts the object
		// from a cluster.
		would := func(*contender) bool { return true }
		if slices.ContainsFunc(selected, func(c *contender) bool { return c.eviction.evict }) {
			would = eligible
		}
		if a := s.attempt(s.members(holding, selected, would)); a.satisfied() {
			s.undo(selected)
			s.trace.step("Group", s.groups[holding].name, "the group holds the object, and its clusters can satisfy the spread")
			return holding
		}
		s.undo(selected)
		s.trace.step("Group", s.groups[holding].name, "the group holds the object, but its clusters cannot satisfy the spread")
	}
	fullest, most := 0, -1
	for i, g := range s.groups {
		a := s.attempt(s.members(i, selected, eligible))
		chosen, satisfied := a.chosen, a.satisfied()
		s.undo(selected)
		if satisfied {
			s.trace.step("Group", g.name, "the first group whose clusters satisfy the spread")
			return i
		}
		s.trace.step("Group", g.name, "not satisfied with %d clusters: %s", chosen, strings.Join(messages(a.shortfalls()), "; "))
		if chosen > most {
			fullest, most = i, chosen
		}
	}
	if holding := s.holding(selected); holding >= 0 {
		return holding
	}
	return fullest
}

// holding returns the index of the affinity group in which the most clusters hold the object. If several groups have
// the same number, it returns the first. It is -1 if no cluster of a group holds the object.
func (s *spread) holding(selected []*contender) int {
	best, most := -1, 0
	for i := range s.groups {
		held := 0
		for _, c := range selected {
			if c.held && !c.eviction.evict && !c.keep && c.findings.groups[i] {
				held++
			}
		}
		if held > most {
			best, most = i, held
		}
	}
	return best
}

// members returns the clusters of the affinity group for which the given function returns true. If group is negative,
// members considers all clusters. It leaves out clusters with keep, because these are chosen in any case.
func (s *spread) members(group int, all []*contender, which func(*contender) bool) []*contender {
	var out []*contender
	for _, c := range all {
		if (group < 0 || c.findings.groups[group]) && !c.keep && which(c) {
			out = append(out, c)
		}
	}
	return out
}

// kept returns the clusters that keep the object for now (see Input.Keep), except the clusters that the decision
// replaces.
func kept(all []*contender) []*contender {
	var out []*contender
	for _, c := range all {
		if c.keep && !c.eviction.evict {
			out = append(out, c)
		}
	}
	return out
}

func (s *spread) undo(all []*contender) {
	for _, c := range all {
		c.chosen = false
	}
}

// restore replaces the choice of the attempt a, because this choice violates a required constraint. restore chooses the
// clusters that already hold the object, and no new cluster. It does not choose a cluster that the decision replaces,
// or from which a drain removes the object.
func (s *spread) restore(all []*contender, a *attempt) {
	why := cause{hubv1.ReasonSpreadUnsatisfied, strings.Join(messages(a.shortfalls()), "; ")}
	for _, c := range all {
		switch {
		case c.eviction.evict, c.eviction.takenAway:
			c.cause = c.eviction.due
		case c.held:
			c.chosen = true
			s.trace.step("Restore", c.cluster.Name, "the cluster holds the object, and no choice of clusters satisfies the spread")
		case c.open():
			c.chosen, c.cause = false, why
		}
	}
}

func messages(all []Shortfall) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.Message)
	}
	return out
}

// attempt chooses clusters of the pool, which is sorted by rank. It also chooses the clusters in kept, which keep the
// object for now (see Input.Keep): after all clusters of the pool that hold the object, and before new clusters.
func (s *spread) attempt(pool []*contender, kept ...*contender) *attempt {
	a := &attempt{spread: s, pool: pool}
	for i, t := range s.constraints {
		d := &domains{constraint: t, count: map[string]int{}}
		for _, c := range pool {
			d.count[c.findings.domains[i]] = 0
		}
		a.domains = append(a.domains, d)
	}
	held := func(c *contender) bool { return c.held }
	away := func(c *contender) bool { return c.held && !c.open() }
	any := func(*contender) bool { return true }
	holding := 0
	for _, c := range pool {
		holding += first(c.held)
	}
	switch {
	case len(kept) > 0:
		a.pick(held, rules{})
		a.keep(kept)
	case !s.rebalance:
		// Clusters that hold the object are chosen first. No cluster loses the object only because the domains have unequal
		// numbers of clusters.
		a.pick(held, rules{spare: true})
	case s.number == 0 || holding <= s.number:
		a.pick(away, rules{})
	}
	a.pick(any, rules{skew: true, preferred: true})
	if s.number > 0 {
		a.pick(any, rules{skew: true}) // too few clusters are worse than a violated preference
	}
	return a
}

// attempt is the state and the result of one call of the method attempt of spread.
type attempt struct {
	*spread
	pool    []*contender
	domains []*domains // counts of the domains, by constraint
	chosen  int
}

// keep chooses the clusters that keep the object for now (see Input.Keep), even if constraints forbid it.
func (a *attempt) keep(kept []*contender) {
	for _, c := range kept {
		c.chosen = true
		a.chosen++
		for i, d := range a.domains {
			if domain := c.findings.domains[i]; domain != "" {
				d.add(domain)
			}
		}
		a.trace.step("Keep", c.cluster.Name, "the removal of its copy waits: %s", c.cause.message)
	}
}

// rules says which constraints apply in one call of pick.
type rules struct {
	// skew is true if the maxSkew of constraints applies. preferred is true if constraints apply that are not required but
	// only preferred.
	skew, preferred bool
	// spare is true if pick must leave room for the domains that still need a cluster.
	spare bool
}

// domains counts the chosen clusters for each value of one topologyKey. Such a value is a domain, for example a zone.
type domains struct {
	constraint
	count  map[string]int
	used   int
	with   []int // with[n] is the number of domains with n chosen clusters
	lowest int   // the lowest number of chosen clusters in a domain
}

func (d *domains) add(domain string) {
	n := d.count[domain]
	d.count[domain] = n + 1
	for len(d.with) < n+2 {
		d.with = append(d.with, 0)
	}
	d.with[n+1]++
	if n == 0 {
		d.used, d.lowest = d.used+1, 1
		return
	}
	if d.with[n]--; d.lowest == n && d.with[n] == 0 {
		d.lowest = n + 1
	}
}

// least returns the lowest number of chosen clusters in any domain. Domains without a chosen cluster count only if
// maxDomains allows another domain.
func (d *domains) least() int {
	if d.used < len(d.count) && (d.maximum == 0 || d.used < d.maximum) {
		return 0
	}
	return d.lowest
}

// most returns the highest number of chosen clusters in a domain, and the domain. If several domains have this number,
// it returns the first by name.
func (d *domains) most() (count int, domain string) {
	for name, n := range d.count {
		if n > count || (n == count && name < domain) {
			count, domain = n, name
		}
	}
	return count, domain
}

// bars reports whether the constraint forbids another cluster in a domain.
func (d *domains) bars(domain string, r rules) bool {
	if d.anyway && !r.preferred {
		return false
	}
	n := d.count[domain]
	return (d.maximum > 0 && n == 0 && d.used >= d.maximum) || (d.perDomain > 0 && n >= d.perDomain) || (r.skew && d.skew > 0 && n+1-d.least() > d.skew)
}

// why returns a text that says why the constraint forbids another cluster in a domain.
func (d *domains) why(domain string) string {
	n := d.count[domain]
	switch name := subject(d.key) + " " + domain; {
	case d.maximum > 0 && n == 0 && d.used >= d.maximum:
		return fmt.Sprintf("%s would exceed maxDomains %d", name, d.maximum)
	case d.perDomain > 0 && n >= d.perDomain:
		return fmt.Sprintf("%s has %d already, and clustersPerDomain is %d", name, n, d.perDomain)
	default:
		return fmt.Sprintf("%s has %d already and another domain has %d, but maxSkew is %d", name, n, d.least(), d.skew)
	}
}

// shortfalls returns the requirements of the spread that the chosen clusters do not meet.
func (a *attempt) shortfalls() []Shortfall {
	var out []Shortfall
	for _, d := range a.domains {
		if d.used < d.minimum {
			out = append(out, Shortfall{fmt.Sprintf("%s: %d of at least %d domains", subject(d.key), d.used, d.minimum), !d.anyway})
		}
		if d.maximum > 0 && d.used > d.maximum {
			out = append(out, Shortfall{fmt.Sprintf("%s: %d of at most %d domains", subject(d.key), d.used, d.maximum), false})
		}
		most, domain := d.most()
		if d.perDomain > 0 && most > d.perDomain {
			out = append(out, Shortfall{fmt.Sprintf("%s: %d clusters in %s, but clustersPerDomain is %d", subject(d.key), most, domain, d.perDomain), false})
		}
		if least := d.least(); d.skew > 0 && most-least > d.skew {
			out = append(out, Shortfall{fmt.Sprintf("%s: %d clusters in %s and %d in another domain, but maxSkew is %d", subject(d.key), most, domain, least, d.skew), false})
		}
	}
	if a.number > 0 && a.chosen < a.number {
		out = append(out, Shortfall{fmt.Sprintf("numberOfClusters: %d of %d", a.chosen, a.number), true})
	}
	return out
}

func (a *attempt) satisfied() bool {
	return a.chosen > 0 && !slices.ContainsFunc(a.shortfalls(), func(s Shortfall) bool { return s.Serious })
}

// breaks reports whether a required constraint has too few domains: the chosen clusters are in fewer domains than its
// minDomains.
func (a *attempt) breaks() bool {
	return slices.ContainsFunc(a.domains, func(d *domains) bool { return d.used < d.minimum && !d.anyway })
}

// cause returns the reason why the attempt did not choose a cluster.
func (a *attempt) cause(c *contender) cause {
	if a.number > 0 && a.chosen >= a.number {
		return cause{hubv1.ReasonNotChosen, fmt.Sprintf("numberOfClusters is %d, and other clusters come first", a.number)}
	}
	for i, d := range a.domains {
		if d.bars(c.findings.domains[i], rules{skew: true, preferred: a.number == 0}) {
			return cause{hubv1.ReasonSpreadConstraint, d.why(c.findings.domains[i])}
		}
	}
	return cause{hubv1.ReasonNotChosen, "other clusters come first"}
}
