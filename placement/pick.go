package placement

import "fmt"

// pick chooses clusters of the pool for which meant returns true. It stops when numberOfClusters is reached, or when
// the constraints in r permit no further cluster.
//
// A domain is a value of a constraint's topologyKey, such as a zone. First, pick chooses clusters in new domains until
// each constraint has its minDomains. It prefers clusters in new domains of the earliest constraints, and among these
// the clusters with the best score. After that, pick repeatedly takes the domain whose best cluster has the best score,
// and among equal scores the domain with fewer chosen clusters. Within this domain, pick takes a domain of the next
// constraint in the same way, and finally a cluster.
func (a *attempt) pick(meant func(*contender) bool, r rules) {
	if !a.room() {
		return
	}
	t := tree{attempt: a, rules: r, root: &node{}}
	for _, c := range a.pool {
		if !c.chosen && meant(c) {
			t.insert(c)
		}
	}
	for a.room() && a.lacksDomains() {
		leaf := t.opening()
		if leaf == nil {
			break
		}
		t.take(leaf)
	}
	for t.turn = 1; a.room() && (!r.spare || a.spare()); t.turn++ {
		leaf := t.next(t.root, 0)
		if leaf == nil {
			break
		}
		t.take(leaf)
	}
}

func (a *attempt) room() bool { return a.number == 0 || a.chosen < a.number }

// spare reports whether another cluster may be chosen. numberOfClusters must leave room for one cluster in each domain
// that a constraint still needs.
func (a *attempt) spare() bool {
	for _, d := range a.domains {
		if lacking := min(d.minimum, len(d.count)) - d.used; a.number > 0 && !d.anyway && a.number-a.chosen <= lacking {
			return false
		}
	}
	return true
}

func (a *attempt) lacksDomains() bool {
	for _, d := range a.domains {
		if d.used < d.minimum {
			return true
		}
	}
	return false
}

// tree groups the clusters that may be chosen (candidates) by their domains. The tree has one level for each
// constraint, in the order of the constraints.
type tree struct {
	*attempt
	rules  rules
	root   *node
	leaves []*node
	turn   int
}

type node struct {
	domain   string
	parent   *node
	children []*node
	byDomain map[string]*node
	// pool contains the candidates of a leaf that are not chosen yet, by rank.
	pool []*contender
	// best is the best candidate by rank of all leaves below the node, or of the node itself if it is a leaf. It is nil if
	// there are no candidates.
	best *contender
	// barren is the last turn in which no candidate below the node could be chosen. In one turn, pick chooses one cluster,
	// and does not search such a node a second time.
	barren int
}

// insert adds a candidate to the tree. The candidates must be inserted in the order of their rank.
func (t *tree) insert(c *contender) {
	n := t.root
	for _, domain := range c.findings.domains {
		child := n.byDomain[domain]
		if child == nil {
			child = &node{domain: domain, parent: n, best: c}
			if n.byDomain == nil {
				n.byDomain = map[string]*node{}
			}
			n.byDomain[domain] = child
			n.children = append(n.children, child)
		}
		if n.best == nil {
			n.best = c
		}
		n = child
	}
	if len(n.pool) == 0 {
		n.best = c
		t.leaves = append(t.leaves, n)
	}
	n.pool = append(n.pool, c)
}

// opening returns the leaf whose best candidate opens a new domain that a constraint still needs: no cluster of this
// domain is chosen yet. It is nil if there is no such candidate.
func (t *tree) opening() *node {
	var found *node
	for _, leaf := range t.leaves {
		t.compared++
		if leaf.best == nil || !t.opens(leaf.best) || t.barred(leaf.best) {
			continue
		}
		if found == nil || t.opensBefore(leaf.best, found.best) {
			found = leaf
		}
	}
	return found
}

// helps reports whether the constraint still needs more domains, and no cluster of this domain is chosen yet.
func (d *domains) helps(domain string) bool { return d.used < d.minimum && d.count[domain] == 0 }

func (t *tree) opens(c *contender) bool {
	for i, d := range t.domains {
		if d.helps(c.findings.domains[i]) {
			return true
		}
	}
	return false
}

func (t *tree) barred(c *contender) bool {
	for i, d := range t.domains {
		if d.bars(c.findings.domains[i], t.rules) {
			return true
		}
	}
	return false
}

func (t *tree) opensBefore(c, other *contender) bool {
	t.compared++
	for i, d := range t.domains {
		if a, b := d.helps(c.findings.domains[i]), d.helps(other.findings.domains[i]); a != b {
			return a
		}
	}
	if c.tally.score != other.tally.score {
		return c.tally.score > other.tally.score
	}
	for i, d := range t.domains {
		if a, b := d.count[c.findings.domains[i]], d.count[other.findings.domains[i]]; a != b {
			return a < b
		}
	}
	return c.rank < other.rank
}

// next returns the leaf below n from which pick takes the next candidate. It is nil if no candidate below n may be
// chosen.
func (t *tree) next(n *node, level int) *node {
	if level == len(t.domains) {
		if n.best == nil {
			return nil
		}
		return n
	}
	for {
		var best *node
		for _, child := range n.children {
			t.compared++
			if child.best == nil || child.barren == t.turn || t.domains[level].bars(child.domain, t.rules) {
				continue
			}
			if best == nil || t.before(t.domains[level], child, best) {
				best = child
			}
		}
		if best == nil {
			return nil
		}
		if leaf := t.next(best, level+1); leaf != nil {
			return leaf
		}
		best.barren = t.turn
	}
}

func (t *tree) before(d *domains, n, other *node) bool {
	if n.best.tally.score != other.best.tally.score {
		return n.best.tally.score > other.best.tally.score
	}
	if a, b := d.count[n.domain], d.count[other.domain]; a != b {
		return a < b
	}
	return n.best.rank < other.best.rank
}

// take chooses the best candidate of a leaf, and updates the tree.
func (t *tree) take(leaf *node) {
	c := leaf.best
	c.chosen = true
	t.chosen++
	for i, d := range t.domains {
		d.add(c.findings.domains[i])
	}
	t.traceChoice(c)
	leaf.pool = leaf.pool[1:]
	leaf.best = nil
	if len(leaf.pool) > 0 {
		leaf.best = leaf.pool[0]
	}
	for n := leaf.parent; n != nil; n = n.parent {
		n.best = nil
		for _, child := range n.children {
			t.compared++
			if child.best != nil && (n.best == nil || child.best.rank < n.best.rank) {
				n.best = child.best
			}
		}
	}
}

func (t *tree) traceChoice(c *contender) {
	if t.trace == nil {
		return
	}
	action, why := "Choose", fmt.Sprintf("score %d", c.tally.score)
	if c.held {
		action, why = "Keep", "it holds the object, score "+fmt.Sprint(c.tally.score)
	}
	for i, d := range t.domains {
		why += fmt.Sprintf(", %s %s now has %d", subject(d.key), c.findings.domains[i], d.count[c.findings.domains[i]])
	}
	t.trace.step(action, c.cluster.Name, "%s", why)
}
