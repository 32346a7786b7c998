package overrides

import (
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// claim records what a rule does with the value at one path of the object: it reads, sets, removes or otherwise changes
// the value. If the claims of two policies of equal rank do not agree, the policies conflict.
type claim struct {
	kind claimKind
	// value is the value of claimSet, claimText and claimParts. It is also the value that a claimRead has read, which
	// another policy may set again; nil: no other policy may set any value.
	value any
	claimant
}

// claimant is the rule to which a claim belongs. A claim records what the rule does with the value at one path.
type claimant struct {
	rule  RuleRef
	maybe bool // whether a test may still skip the rule
}

type claimKind int

const (
	claimRead    claimKind = iota // a test, or the source of copy: no other policy may change the value
	claimOrdered                  // the result depends on the order: no other policy may read or change the value
	claimSet                      // a value that replaces any previous value
	claimAbsent                   // null in a merge patch, which removes the value
	claimObject                   // {} in a merge patch: an object with any content
	claimText                     // value is the format of a document, and the claims below it are inside the document
	claimParts                    // value is a map of image parts; the missing parts may have any value
)

func (k claimKind) holds() bool { return k >= claimSet }

// container reports whether other rules may set fields below the path of a claim of this kind. This is so if the claim
// sets an object with any content, or edits the document in a string field.
func (k claimKind) container() bool { return k == claimObject || k == claimText }

// node has the claims on one path of the object. The nodes form a tree: each key of a path leads to a child. A map with
// full paths as keys would need more memory, because each key would contain a whole path.
type node struct {
	claims   []claim
	children map[string]*node
}

// claims collects what rules of equal rank do with each path of the object, to find policies that conflict.
type claims struct {
	root *node
	claimant
	earlier []*change // earlier rules of the same policy and rank
	current *change
	named   map[string]bool // lists of which the current policy has claimed to read the names
	budget  *budget
}

// conflict looks for two rules of different policies that contradict each other. All rules have equal rank. The rules
// of one policy follow each other in the list. state is the object before these rules are applied. The result is nil if
// there is no conflict.
func conflict(rules []*rankedRule, state map[string]any, b *budget) *ConflictError {
	if !slices.ContainsFunc(rules, func(r *rankedRule) bool { return r.ref.Policy != rules[0].ref.Policy }) {
		return nil
	}
	c := claims{root: rootFor(state), budget: b}
	for _, r := range rules {
		c.begin(r)
		c.claim(state)
	}
	err := c.root.disagreement(nil, nil)
	if err != nil {
		err.Rank = rules[0].rank.String()
	}
	return err
}

// begin makes r the current rule: the rule to which the next claims belong.
func (c *claims) begin(r *rankedRule) {
	switch {
	case c.current != nil && c.rule.Policy == r.ref.Policy:
		c.earlier = append(c.earlier, c.current)
	default:
		c.earlier, c.named = nil, map[string]bool{}
	}
	c.claimant, c.current = claimant{rule: r.ref, maybe: r.change.late}, r.change
}

// claim adds the claims of the current rule. A guard is a test that stands before all other patches of the rule. A rule
// with an unmet guard changes nothing, so that it adds only the claims to read the guarded fields. But if an earlier
// rule of the policy may change a guarded field, the guard may be met later, and all claims are added.
func (c *claims) claim(state map[string]any) {
	certain := true
	for i := range c.current.guards {
		g := &c.current.guards[i]
		c.root.claimOperation(c.claimant, g, state)
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

// ordered adds a claim of the current rule: no rule of another policy may read or change the value at the path.
// Otherwise the result would depend on the order of the two rules.
func (c *claims) ordered(path pointer) {
	c.root.at(path).add(claim{kind: claimOrdered, claimant: c.claimant})
}

// reshaped reports whether an earlier rule of the same policy may add containers to the list of containers at this
// path, or remove containers from it.
func (c *claims) reshaped(list pointer) bool {
	return slices.ContainsFunc(c.earlier, func(o *change) bool {
		return o.some(func(a action) bool {
			_, sameContainers := a.(*containerChange)
			return !sameContainers && a.touches(list)
		})
	})
}

// rewritten reports whether the current rule, or an earlier rule of the same policy, may replace the whole text of the
// string field at the path.
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

// add adds a claim to the node. A later claim of the same policy replaces an earlier one of the same kind, unless a
// test may skip the later rule. All claims that set or remove a value count as one kind here. n.claims has all claims
// of one policy next to each other.
func (n *node) add(c claim) {
	if c.maybe {
		n.claims = append(n.claims, c)
		return
	}
	for i := len(n.claims) - 1; i >= 0 && n.claims[i].rule.Policy == c.rule.Policy; i-- {
		if o := n.claims[i]; o.kind == c.kind || o.kind.holds() && c.kind.holds() {
			if c.kind == claimRead && !equal(o.value, c.value) {
				c.value = nil
			}
			n.claims[i] = c
			return
		}
	}
	n.claims = append(n.claims, c)
}

// claimedBy reports whether a rule of the policy has a claim at the node or below it.
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
		case !ok, exists && !isObject: // the patch replaces a list or a scalar
			n.child(key).add(claim{kind: claimSet, value: v, claimant: by})
		case len(inner) == 0:
			n.child(key).add(claim{kind: claimObject, claimant: by})
		default:
			n.child(key).claimMerge(by, inner, there)
		}
	}
}

func (o *operation) claim(c *claims, state map[string]any) {
	for _, p := range []pointer{o.path, o.from} {
		if list := p.beforeItems(); p.selectsItems() && c.reshaped(list) {
			c.ordered(list)
		}
	}
	c.root.claimOperation(c.claimant, o, state)
}

func (n *node) claimOperation(by claimant, o *operation, state any) {
	if !o.selectsItems() {
		n.claimOne(by, o, state)
		return
	}
	ops, read, f := o.located(state)
	n.reads(by, read)
	if f != nil && !f.unmet { // an earlier rule may add the items
		n.at(o.path.beforeItems()).add(claim{kind: claimOrdered, claimant: by})
	}
	for i := range ops {
		n.claimOne(by, &ops[i], state)
	}
}

// reads adds claims to read the values at these paths.
func (n *node) reads(by claimant, paths []pointer) {
	for _, path := range paths {
		n.at(path).add(claim{kind: claimRead, claimant: by})
	}
}

// claimOne adds the claims of an operation whose paths have no steps that select items.
func (n *node) claimOne(by claimant, o *operation, state any) {
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

// touched returns the path of the value that an operation changes. If the operation adds or removes an item of a list,
// this is the path of the list, because the indexes of all later items change.
func touched(path pointer, state any) pointer {
	container, ok := path.parent().lookup(state)
	if _, isList := container.([]any); isList {
		return path.parent()
	}
	if _, isIndex := index(path.last()); !ok && (isIndex || path.last() == "-") {
		return path.parent() // the same rule created the parent, perhaps as a list
	}
	return path
}

// ancestor is a claim on a node above the current node. value is the part of the claimed value that lies at the path of
// the current node.
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
		// Equal claims conflict with the same other claims, so that not all of them are kept. Two are kept, because a claim
		// conflicts only with claims of other policies.
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
	switch {
	case a.kind == claimRead && b.kind == claimRead:
		return true
	case a.kind == claimRead && b.kind == claimSet, a.kind == claimSet && b.kind == claimRead:
		return a.value != nil && b.value != nil && equal(a.value, b.value)
	}
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
	case c.kind == claimRead:
		return c.value != nil && equal(above.value, c.value)
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
