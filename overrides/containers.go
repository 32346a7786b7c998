package overrides

import (
	"fmt"
	"slices"
	"strconv"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// containerChange changes one field, such as env, in some containers of the object. If path is set, it changes this
// field in the objects at path instead. When it is applied, it is converted to a list of actions: merge patches, patch
// operations and image changes.
type containerChange struct {
	field    string   // name of the field in the container
	names    []string // names of containers; nil: all
	withInit bool     // if names is nil: also the init containers
	path     pointer  // path of the objects to change; nil: the containers of the pod template
	lower    func(container any, at pointer) ([]action, *fault)
	// evaluated returns the change with the values of its expressions for one object and cluster. It is nil if the change
	// has no expressions.
	evaluated func(e *evaluation, budget *int) (containerChange, *fault)
}

// podPlaces are the paths of the pod spec in Kubernetes' workload kinds, and in most other kinds that run pods.
var podPlaces = []pointer{
	{"spec", "template", "spec"},
	{"spec", "jobTemplate", "spec", "template", "spec"},
}

var containerLists = []string{"containers", "initContainers"}

// containerPlaces are all paths at which an object may have a list of containers.
var containerPlaces = func() (out []pointer) {
	for _, place := range append([]pointer{{"spec"}, {"template", "spec"}}, podPlaces...) {
		for _, list := range containerLists {
			out = append(out, slices.Concat(place, pointer{list}))
		}
	}
	return out
}()

// podSpec returns the path of the object's pod spec. It is nil if the object has none.
func podSpec(doc map[string]any) pointer {
	if doc["apiVersion"] == "v1" {
		switch doc["kind"] {
		case "Pod":
			return pointer{"spec"}
		case "PodTemplate":
			return pointer{"template", "spec"}
		}
	}
	for _, place := range podPlaces {
		spec, _ := place.lookup(doc)
		if containers, ok := child(spec, "containers"); ok {
			if _, ok := containers.([]any); ok {
				return place
			}
		}
	}
	return nil
}

const adviceContainers = "set path to the object that has the field, or select only kinds that have a pod template"

// locate returns the paths of the containers or other objects to change.
func (c *containerChange) locate(doc map[string]any) ([]pointer, *fault) {
	if c.path != nil {
		return c.locatePath(doc)
	}
	place := podSpec(doc)
	if place == nil {
		return nil, &fault{message: fmt.Sprintf("changes the %s of containers, but the object has no pod template at a known path: %s", c.field, adviceContainers)}
	}
	var out []pointer
	left := slices.Clone(c.names)
	for _, list := range containerLists {
		at := slices.Concat(place, pointer{list})
		v, _ := at.lookup(doc)
		containers, _ := v.([]any)
		if len(containers) > maxListed {
			return nil, &fault{path: at.String(), message: fmt.Sprintf("has more than %d containers: set path in the rule to the index of one of them", maxListed)}
		}
		for i, container := range containers {
			name, _ := child(container, "name")
			switch j := slices.IndexFunc(left, func(n string) bool { return n == name }); {
			case j >= 0:
				left = slices.Delete(left, j, j+1)
			case c.names != nil || list == "initContainers" && !c.withInit:
				continue
			}
			out = append(out, slices.Concat(at, pointer{strconv.Itoa(i)}))
		}
	}
	if len(left) > 0 {
		return nil, &fault{path: place.String(), message: fmt.Sprintf("has no container %q: correct the name or remove it from the rule", printable(left[0]))}
	}
	return out, nil
}

// locatePath returns the paths of the objects that c.path selects. Each must exist, unless the path has *.
func (c *containerChange) locatePath(doc map[string]any) ([]pointer, *fault) {
	found, _, f := c.path.items(doc)
	if f != nil {
		return nil, f
	}
	out := make([]pointer, 0, len(found))
	for _, path := range found {
		if _, ok := path.lookup(doc); ok {
			out = append(out, path)
		} else if !c.path.optional() {
			return nil, missing(c.path, "correct the path")
		}
	}
	return out, nil
}

// lowered converts the change to actions for each container, and calls f with the path of the container and these
// actions. It stops at the first error and returns it.
func (c *containerChange) lowered(doc map[string]any, f func(at pointer, actions []action) *fault) *fault {
	places, bad := c.locate(doc)
	if bad != nil {
		return bad
	}
	for _, at := range places {
		container, _ := at.lookup(doc)
		actions, bad := c.lower(container, at)
		if bad == nil {
			bad = f(at, actions)
		}
		if bad != nil {
			return bad
		}
	}
	return nil
}

func (c *containerChange) apply(doc map[string]any, b *budget) *fault {
	return c.lowered(doc, func(_ pointer, actions []action) *fault {
		for _, a := range actions {
			if !b.spend(addedBy(a), 1) {
				return &fault{message: b.exceeded()}
			}
			if f := a.apply(doc, b); f != nil {
				return f
			}
		}
		return nil
	})
}

// addedBy returns the approximate number of bytes that an action adds to the object.
func addedBy(a action) int {
	var v any
	switch a := a.(type) {
	case *mergeChange:
		v = a.patch
	case *operation:
		v = a.value
	case *imageChange:
		return a.parts.size()
	}
	n, err := size(v, maxAdded, maxManifestDepth)
	if err != nil {
		return maxAdded + 1
	}
	return n
}

// claim adds to the claims the fields that the change sets, and the names by which it finds containers. If an earlier
// rule of the same policy may move containers or list items, claim adds the whole list instead of single fields.
func (c *containerChange) claim(to *claims, state map[string]any) {
	for _, list := range containerPlaces {
		if c.path == nil && to.reshaped(list) {
			to.ordered(list)
		}
	}
	if c.path.selectsItems() {
		found, read, _ := c.path.items(state)
		for _, path := range found {
			if _, ok := path.lookup(state); !ok {
				read = append(read, path)
			}
		}
		to.root.reads(to.claimant, read)
		if list := c.path.beforeItems(); to.reshaped(list) {
			to.ordered(list)
		}
	}
	if c.names != nil {
		for _, list := range containerLists {
			to.readsNames(slices.Concat(podSpec(state), pointer{list}), state)
		}
	}
	f := c.lowered(state, func(at pointer, actions []action) *fault {
		field := slices.Concat(at, pointer{c.field})
		listed := c.field == "env" && to.root.at(field).claimedBy(to.rule.Policy)
		if c.field == "env" {
			to.readsNames(field, state)
		}
		for _, a := range actions {
			a.claim(to, state)
		}
		if listed { // other rules may change the indexes before this rule is applied
			to.ordered(field)
		}
		return nil
	})
	if f != nil { // the container may exist when the rule is applied
		for _, place := range c.unsure(state) {
			to.ordered(place)
		}
	}
}

// readsNames adds claims to read the names of the items of a list, by which a change finds its items.
func (c *claims) readsNames(list pointer, state map[string]any) {
	key := list.String()
	if c.named[key] {
		return
	}
	c.named[key] = true
	v, _ := list.lookup(state)
	items, _ := v.([]any)
	for i, item := range items {
		name, _ := child(item, "name")
		n, readers := c.root.at(list).child(strconv.Itoa(i)).child("name"), 0
		for _, o := range n.claims {
			if o.kind == claimRead && equal(o.value, name) && o.rule.Policy != c.rule.Policy {
				readers++
			}
		}
		if readers < 2 { // as in disagreement, the claims of two policies stand for all equal claims
			n.add(claim{kind: claimRead, value: name, claimant: c.claimant})
		}
	}
}

// unsure returns the paths that the change may affect. It is used if the containers cannot be found in the object
// state, because an earlier rule may add them.
func (c *containerChange) unsure(state map[string]any) []pointer {
	if c.path != nil {
		return []pointer{c.path.beforeItems()}
	}
	if place := podSpec(state); place != nil {
		return []pointer{place}
	}
	return containerPlaces
}

func (c *containerChange) touches(path pointer) bool {
	if c.path != nil {
		field := slices.Concat(c.path, pointer{c.field})
		return path.isAtOrBelow(field) || field.isAtOrBelow(path)
	}
	return slices.ContainsFunc(containerPlaces, func(list pointer) bool {
		return list.isAtOrBelow(path) || path.isAtOrBelow(list) && (len(path) < len(list)+2 || path[len(list)+1] == c.field)
	})
}

// addContainers compiles the container overrides of a rule, in the order of application.
func (c *compiler) addContainers(rule *hubv1.OverrideRule) {
	for i := range rule.Images {
		c.addContainer("images", i, func() (containerChange, *fault) { return compileImage(&rule.Images[i]) })
	}
	for i := range rule.Command {
		c.addContainer("command", i, func() (containerChange, *fault) { return compileCommand("command", &rule.Command[i]) })
	}
	for i := range rule.Args {
		c.addContainer("args", i, func() (containerChange, *fault) { return compileCommand("args", &rule.Args[i]) })
	}
	for i := range rule.Env {
		c.addContainer("env", i, func() (containerChange, *fault) { return compileEnv(&rule.Env[i]) })
	}
	for i := range rule.Resources {
		c.addContainer("resources", i, func() (containerChange, *fault) { return compileResources(&rule.Resources[i]) })
	}
}

func (c *compiler) addContainer(field string, index int, compile func() (containerChange, *fault)) {
	change, f := compile()
	if !c.fault(field, index, f) {
		c.change.containers = append(c.change.containers, change)
		c.change.expressions = c.change.expressions || change.evaluated != nil
	}
}

// compileTarget compiles the part of a rule that says which containers, or which one object, the rule changes.
func compileTarget(field string, t *hubv1.ContainerTarget) (containerChange, *fault) {
	c := containerChange{field: field}
	if f := c.setNames(t.Containers, t.Path); f != nil || t.Path == "" {
		return c, f
	}
	var message string
	if c.path, message = parsePointer(t.Path); message == "" {
		message = slices.Concat(c.path, pointer{field}).closedToWrites()
	}
	if message != "" {
		return c, &fault{leaf: "path", path: printable(t.Path), message: message}
	}
	return c, nil
}

func (c *containerChange) setNames(names []string, path string) *fault {
	switch {
	case len(names) > 0 && path != "":
		return &fault{leaf: "path", path: printable(path), message: "cannot be combined with containers: remove one of the two"}
	case len(names) > maxTyped:
		return &fault{leaf: "containers", message: fmt.Sprintf("has more than %d names: remove the list to select all, or split the rule", maxTyped)}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return &fault{leaf: "containers", message: fmt.Sprintf("names container %q twice", printable(name))}
		}
	}
	c.names = names
	return nil
}
