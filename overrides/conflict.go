package overrides

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// claim is what a policy says about one path. Claims of different policies and equal rank must agree.
type claim struct {
	kind  claimKind
	value any // of claimSet, claimText and claimParts
	claimant
}

// claimant is who claims.
type claimant struct {
	rule  RuleRef
	maybe bool // a test may still have the rule skipped
}

type claimKind int

const (
	claimRead    claimKind = iota // test, and the source of copy: nobody else may change it
	claimOrdered                  // what gives another result, or an error, before or after another change: nobody else may touch it
	claimSet                      // a value that holds whatever was there
	claimAbsent                   // null in a merge patch
	claimObject                   // {} in a merge patch: an object, whatever is in it
	claimText                     // a document of the format that is the value, whatever is in it; what is claimed below is in the document
	claimParts                    // parts of an image, in a map, whatever the others are
)

func (k claimKind) holds() bool { return k >= claimSet }

// container is true if the claim says nothing about what is below.
func (k claimKind) container() bool { return k == claimObject || k == claimText }

// node is a place in the tree of all claims. A tree rather than a map of pointers: its memory grows with the patches,
// not with the length of their paths.
type node struct {
	claims   []claim
	children map[string]*node
}

// claims are gathered for rules of equal rank.
type claims struct {
	root *node
	claimant
	earlier []*change // of the same policy, and of this rank
	current *change
	budget  *budget
}

// conflict finds two rules of different policies that disagree. The rules have equal rank, those of one policy stand
// together in their order, and state is what they will be applied to.
func conflict(rules []*rankedRule, state map[string]any, b *budget) *ConflictError {
	if !slices.ContainsFunc(rules, func(r *rankedRule) bool { return r.ref.Policy != rules[0].ref.Policy }) {
		return nil
	}
	c := claims{root: &node{}, budget: b}
	for _, r := range rules {
		c.enter(r)
		c.claim(state)
	}
	err := c.root.disagreement(nil, nil)
	if err != nil {
		err.Rank = rules[0].rank.String()
	}
	return err
}

// enter makes r the rule that claims from now on.
func (c *claims) enter(r *rankedRule) {
	switch {
	case c.current != nil && c.rule.Policy == r.ref.Policy:
		c.earlier = append(c.earlier, c.current)
	default:
		c.earlier = nil
	}
	c.claimant, c.current = claimant{rule: r.ref, maybe: r.change.late}, r.change
}

// claim puts in what the current rule does. One whose guards are not met does nothing, unless an earlier rule of its
// policy may let them be met.
func (c *claims) claim(state map[string]any) {
	certain := true
	for i := range c.current.guards {
		g := &c.current.guards[i]
		c.root.at(g.path).add(claim{kind: claimRead, claimant: c.claimant})
		certain = certain && !slices.ContainsFunc(c.earlier, func(o *change) bool { return o.touches(g.path) })
	}
	if certain && c.current.unmet(state) != nil {
		return
	}
	c.maybe = c.maybe || !certain
	c.current.each(func(a action) *fault {
		a.claim(c, state)
		return nil
	})
}

// ordered claims that nobody else touches what the path leads to.
func (c *claims) ordered(path pointer) {
	c.root.at(path).add(claim{kind: claimOrdered, claimant: c.claimant})
}

// reshaped says whether an earlier rule of the policy may have other containers in the list.
func (c *claims) reshaped(list pointer) bool {
	return slices.ContainsFunc(c.earlier, func(o *change) bool {
		return o.some(func(a action) bool {
			_, sameContainers := a.(*containerChange)
			return !sameContainers && a.touches(list)
		})
	})
}

// rewritten says whether the policy may have put another text there by the time of an edit.
func (c *claims) rewritten(path pointer) bool {
	return slices.ContainsFunc(append(slices.Clip(c.earlier), c.current), func(o *change) bool {
		return o.some(func(a action) bool {
			_, sameText := a.(*textEdit)
			return !sameText && a.touches(path)
		})
	})
}

func (n *node) at(path pointer) *node {
	for _, key := range path {
		n = n.child(key)
	}
	return n
}

func (n *node) child(key string) *node {
	c, ok := n.children[key]
	if !ok {
		c = &node{}
		if n.children == nil {
			n.children = map[string]*node{}
		}
		n.children[key] = c
	}
	return c
}

// add puts a claim in. Within a policy a later rule wins, so that it speaks for the policy, whose claims stand
// together; unless it may be skipped.
func (n *node) add(c claim) {
	if c.maybe {
		n.claims = append(n.claims, c)
		return
	}
	for i := len(n.claims) - 1; i >= 0 && n.claims[i].rule.Policy == c.rule.Policy; i-- {
		if o := n.claims[i]; o.kind == c.kind || o.kind.holds() && c.kind.holds() {
			n.claims[i] = c
			return
		}
	}
	n.claims = append(n.claims, c)
}

// claimedBy says whether the policy claims something here or below.
func (n *node) claimedBy(policy PolicyRef) bool {
	if slices.ContainsFunc(n.claims, func(c claim) bool { return c.rule.Policy == policy }) {
		return true
	}
	for _, c := range n.children {
		if c.claimedBy(policy) {
			return true
		}
	}
	return false
}

func (n *node) claimMerge(by claimant, patch map[string]any, state any) {
	for key, v := range patch {
		there, exists := child(state, key)
		_, isObject := there.(map[string]any)
		switch inner, ok := v.(map[string]any); {
		case v == nil:
			n.child(key).add(claim{kind: claimAbsent, claimant: by})
		case !ok, exists && !isObject: // it takes the place of a list or scalar
			n.child(key).add(claim{kind: claimSet, value: v, claimant: by})
		case len(inner) == 0:
			n.child(key).add(claim{kind: claimObject, claimant: by})
		default:
			n.child(key).claimMerge(by, inner, there)
		}
	}
}

func (o *operation) claim(c *claims, state map[string]any) {
	c.root.claimOperation(c.claimant, o, state)
}

func (n *node) claimOperation(by claimant, o *operation, state any) {
	switch o.op {
	case hubv1.PatchTest:
		n.at(o.path).add(claim{kind: claimRead, claimant: by})
	case hubv1.PatchReplace:
		n.at(o.path).add(claim{kind: claimSet, value: o.value, claimant: by})
	case hubv1.PatchAdd:
		if where := touched(o.path, state); len(where) == len(o.path) {
			n.at(where).add(claim{kind: claimSet, value: o.value, claimant: by})
		} else {
			n.at(where).add(claim{kind: claimOrdered, claimant: by})
		}
	case hubv1.PatchRemove:
		n.at(touched(o.path, state)).add(claim{kind: claimOrdered, claimant: by})
	case hubv1.PatchMove:
		n.at(touched(o.from, state)).add(claim{kind: claimOrdered, claimant: by})
		n.at(touched(o.path, state)).add(claim{kind: claimOrdered, claimant: by})
	case hubv1.PatchCopy:
		n.at(o.from).add(claim{kind: claimRead, claimant: by})
		n.at(touched(o.path, state)).add(claim{kind: claimOrdered, claimant: by})
	}
}

// touched is the list if the last step adds or removes an element of one, because all indexes behind it shift; else the
// path itself.
func touched(path pointer, state any) pointer {
	container, ok := path.parent().lookup(state)
	if _, isList := container.([]any); isList {
		return path.parent()
	}
	if _, isIndex := index(path.last()); !ok && (isIndex || path.last() == "-") {
		return path.parent() // made by the same rule, perhaps as a list
	}
	return path
}

// ancestor is a claim above a node, with what its value has there.
type ancestor struct {
	*claim
	value any
	found bool
}

func (n *node) disagreement(path pointer, above []ancestor) *ConflictError {
	var kept []*claim
	for i := range n.claims {
		c := &n.claims[i]
		for _, o := range kept {
			if o.rule.Policy != c.rule.Policy && !agreeAt(o, c) {
				return newConflict(o.rule, c.rule, path)
			}
		}
		for _, o := range above {
			if o.rule.Policy != c.rule.Policy && !agreeBelow(o, c) {
				return newConflict(o.rule, c.rule, path)
			}
		}
		// Two alike are enough: a third one agrees with both or is found out by the one of another policy.
		if same := func(o *claim) bool { return o.kind == c.kind && equal(o.value, c.value) }; count(kept, same) < 2 {
			kept = append(kept, c)
		}
	}
	for _, c := range kept {
		if !c.kind.container() {
			above = append(slices.Clip(above), ancestor{claim: c, value: c.value, found: c.kind == claimSet})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.children)) {
		if err := n.children[key].disagreement(append(slices.Clip(path), key), descend(above, key)); err != nil {
			return err
		}
	}
	return nil
}

func count(claims []*claim, f func(*claim) bool) int {
	n := 0
	for _, c := range claims {
		if f(c) {
			n++
		}
	}
	return n
}

func descend(above []ancestor, key string) []ancestor {
	if len(above) == 0 {
		return nil
	}
	out := slices.Clone(above)
	for i := range out {
		if out[i].found {
			out[i].value, out[i].found = child(out[i].value, key)
		}
	}
	return out
}

func agreeAt(a, b *claim) bool {
	return a.kind == b.kind && a.kind != claimOrdered && equal(a.value, b.value)
}

func agreeBelow(above ancestor, c *claim) bool {
	switch {
	case above.kind == claimRead:
		return c.kind == claimRead
	case above.kind != claimSet || !above.found:
		return false
	case c.kind == claimSet:
		return equal(above.value, c.value)
	case c.kind == claimObject:
		_, ok := above.value.(map[string]any)
		return ok
	}
	return false
}

func newConflict(a, b RuleRef, path pointer) *ConflictError {
	if comparePolicies(a.Policy, b.Policy) > 0 {
		a, b = b, a
	}
	return &ConflictError{Rules: [2]RuleRef{a, b}, Path: path.String()}
}
