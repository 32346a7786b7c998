package overrides

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hanse-dev/hanse/internal/canonical"
)

// ownership tells how certain it is that a user of the hub has asked for a value.
type ownership int

const (
	// isFilled: no client has written the value. The hub's API server has filled it in.
	isFilled ownership = iota
	// isSent: a client has written the value, perhaps only because it sent the whole object.
	isSent
	// isInside: the value is in a list or map that a user has asked for as a whole, so that the hub's API server may
	// have filled it in there.
	isInside
	// isRequested: a user has asked for this value.
	isRequested
)

// cover is the part of a fieldSet for one value of an object.
type cover struct {
	tree fieldSet // nil if the set has neither the value nor a part of it
	// whole is true if the value is inside a value that is owned as a whole. exact is true if it is inside everything.
	whole, exact bool
	keys         []string // the key fields of the value, which is an item of a list
}

// none reports whether the set has neither the value nor a part of it.
func (c cover) none() bool { return c.tree == nil && !c.whole && !c.exact }

// isWhole reports whether the value is owned as a whole.
func (c cover) isWhole() bool { return c.whole || c.exact || c.tree != nil && isLeaf(c.tree) }

// inParts reports whether single parts of the value are owned.
func (c cover) inParts() bool { return !c.none() && !c.isWhole() }

// coverOf returns the cover of a field of an object.
func coverOf(set fieldSet, field string) cover {
	tree, there := set["f:"+field]
	return coverBy(tree, there)
}

func coverBy(value any, there bool) cover {
	if !there {
		return cover{}
	}
	tree, _ := value.(map[string]any)
	if tree[everything] != nil {
		return cover{exact: true}
	}
	if tree == nil { // null is equivalent to an empty map
		tree = fieldSet{}
	}
	return cover{tree: tree}
}

// below returns the cover of a part of the value. tree is the part of the set for it, if the set has one.
func (c cover) below(tree any, there bool) cover {
	switch {
	case c.exact:
		return c
	case c.isWhole():
		return cover{whole: true}
	}
	return coverBy(tree, there)
}

func (c cover) field(name string) cover {
	tree, there := c.tree["f:"+name]
	return c.below(tree, there)
}

// items returns the covers of the items of a list.
func (c cover) items(list []any) []cover {
	out := make([]cover, len(list))
	if !c.inParts() {
		for i := range list {
			out[i] = c.below(nil, false)
		}
		return out
	}
	index := c.index()
	for i, item := range list {
		out[i] = index.of(i, item)
	}
	return out
}

// itemIndex has the covers of the items of a list by position, by key fields and by value, as managedFields names
// items.
type itemIndex struct {
	byPosition map[int]cover
	byKey      map[string]cover // by keyText
	byValue    map[string]cover // by canonical JSON
	keys       [][]string       // the sets of key fields in byKey
}

// index reads the elements of the tree that name items. It ignores other elements, and malformed ones.
func (c cover) index() itemIndex {
	x := itemIndex{byPosition: map[int]cover{}, byKey: map[string]cover{}, byValue: map[string]cover{}}
	for element, tree := range c.tree {
		of := c.below(tree, true)
		switch kind, text, _ := strings.Cut(element, ":"); kind {
		case "i":
			if i, err := strconv.Atoi(text); err == nil {
				x.byPosition[i] = of
			}
		case "k", "v":
			var v any
			if utiljson.Unmarshal([]byte(text), &v) == nil {
				x.add(v, kind == "k", of)
			}
		}
	}
	return x
}

func (x *itemIndex) add(v any, byKey bool, of cover) {
	key, isMap := v.(map[string]any)
	if !byKey || !isMap {
		x.byValue[string(canonical.Bytes(v))] = of
		return
	}
	of.keys = slices.Sorted(maps.Keys(key))
	x.byKey[keyText(key, of.keys)] = of
	if !slices.ContainsFunc(x.keys, func(known []string) bool { return slices.Equal(known, of.keys) }) {
		x.keys = append(x.keys, of.keys)
	}
}

// of returns the cover of the item at position i. It is empty if the tree does not name the item.
func (x *itemIndex) of(i int, item any) cover {
	out := x.byPosition[i]
	if m, isMap := item.(map[string]any); isMap {
		for _, keys := range x.keys {
			if of, ok := x.byKey[keyText(m, keys)]; ok {
				out = of
			}
		}
	}
	if len(x.byValue) > 0 {
		if of, ok := x.byValue[string(canonical.Bytes(item))]; ok {
			out = of
		}
	}
	return out
}

// of returns the ownership of a value without parts.
func of(requested, sent cover) ownership {
	switch {
	case requested.exact || requested.tree != nil:
		return isRequested
	case requested.whole:
		return isInside
	case !sent.none():
		return isSent
	}
	return isFilled
}

// each calls f for each value in a value of an object that has no parts: a scalar, or an empty map or list. It leaves
// out nulls, and the key fields of list items.
func each(value any, at pointer, requested, sent cover, f func(pointer, any, ownership)) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		if len(v) == 0 {
			f(at, value, of(requested, sent))
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(requested.keys, name) && !slices.Contains(sent.keys, name) {
				each(v[name], append(slices.Clip(at), name), requested.field(name), sent.field(name), f)
			}
		}
	case []any:
		if len(v) == 0 {
			f(at, value, of(requested, sent))
		}
		w, s := requested.items(v), sent.items(v)
		for i, item := range v {
			each(item, append(slices.Clip(at), strconv.Itoa(i)), w[i], s[i], f)
		}
	default:
		f(at, value, of(requested, sent))
	}
}

// filled returns the fields of an object that its API server has filled in. If everything in a map or list was filled
// in, the result has the map or list itself.
func (o owners) filled(object map[string]any) []pointer {
	if !o.known {
		return nil
	}
	var out []pointer
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !identifying[name] {
			addFilled(object[name], pointer{name}, coverOf(o.requested, name), coverOf(o.sent, name), &out)
		}
	}
	return out
}

// addFilled adds the fields in a value that the API server has filled in. It reports whether it has filled in the whole
// value.
func addFilled(value any, at pointer, requested, sent cover, out *[]pointer) (all bool) {
	if requested.isWhole() || sent.isWhole() || isScaled(value, at) {
		return false
	}
	before := len(*out)
	all = requested.none() && sent.none()
	switch v := value.(type) {
	case nil:
		return all
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(requested.keys, name) || slices.Contains(sent.keys, name) {
				all = false
				continue
			}
			all = addFilled(v[name], append(slices.Clip(at), name), requested.field(name), sent.field(name), out) && all
		}
	case []any:
		w, s := requested.items(v), sent.items(v)
		for i, item := range v {
			all = addFilled(item, append(slices.Clip(at), strconv.Itoa(i)), w[i], s[i], out) && all
		}
	}
	if all {
		*out = append((*out)[:before], at)
	}
	return all
}

// isScaled reports whether a client has set these replicas by the subresource scale. After such a write of 0, the API
// server records no manager of the replicas, also for later numbers. The API server itself fills in 1.
func isScaled(value any, at pointer) bool {
	return len(at) == 2 && at[0] == "spec" && at[1] == "replicas" && value != nil && fmt.Sprint(value) != "1"
}

// ownershipAt returns the ownership of the value at a path of an object. inside is true if the path leads into a list
// that is owned as a whole.
func (o owners) ownershipAt(object map[string]any, path pointer) (found ownership, inside bool) {
	if !o.known {
		return isRequested, false
	}
	requested, sent := coverOf(o.requested, path[0]), coverOf(o.sent, path[0])
	value := object[path[0]]
	for _, step := range path[1:] {
		switch list, isList := value.([]any); {
		case isList:
			i, ok := index(step)
			if !ok || i >= len(list) {
				return isRequested, false
			}
			inside = inside || !requested.inParts() && !sent.inParts()
			requested, sent = requested.items(list)[i], sent.items(list)[i]
		case slices.Contains(requested.keys, step), slices.Contains(sent.keys, step):
			return isRequested, false
		default:
			requested, sent = requested.field(step), sent.field(step)
		}
		value, _ = child(value, step)
	}
	return of(requested, sent), inside
}

// restValues are values of built-in kinds that an API server sets if a client does not, and that a controller or an
// admission plugin of a member sets otherwise. They are not sent if a client may have sent them only with the whole
// object.
var restValues = map[schema.GroupKind]func(o owners, object map[string]any) []pointer{
	// A queue on the member suspends a new Job, and starts it when there is room.
	{Group: "batch", Kind: "Job"}: func(o owners, object map[string]any) []pointer {
		suspend := pointer{"spec", "suspend"}
		if v, _ := suspend.lookup(object); v == false && o.hasOnlySent(suspend) {
			return []pointer{suspend}
		}
		return nil
	},
	// A client that has sent an address of the hub's range has sent an object that it had read from the hub.
	{Kind: "Service"}: func(o owners, object map[string]any) []pointer {
		families, policy, address := pointer{"spec", "ipFamilies"}, pointer{"spec", "ipFamilyPolicy"}, pointer{"spec", "clusterIP"}
		ip, _ := address.lookup(object)
		if v, _ := policy.lookup(object); v != "SingleStack" || ip == "None" || !o.hasOnlySent(address) || !o.hasOnlySent(policy) {
			return nil
		}
		return []pointer{families, policy}
	},
}

// hasOnlySent reports whether clients have sent the field of an object, and no user is known to have asked for it.
func (o owners) hasOnlySent(path pointer) bool {
	requested, sent := coverOf(o.requested, path[0]), coverOf(o.sent, path[0])
	for _, step := range path[1:] {
		requested, sent = requested.field(step), sent.field(step)
	}
	return of(requested, sent) == isSent
}

// HasOwners reports whether the object tells who owns its fields.
func (p *Prepared) HasOwners() bool { return p.owners.known }

// Unsure reports whether a client may have sent the value at a path of the template only because the hub's API server
// had filled it in. inside is true if the value is in a list or map that the client has sent as a whole. The steps of
// the path are the names of fields and the indexes of list items.
func (p *Prepared) Unsure(path []string) (unsure, inside bool) {
	switch found, inList := p.owners.ownershipAt(p.manifest.Object, path); found {
	case isSent:
		return true, inList
	case isInside:
		return true, true
	case isFilled, isRequested:
	}
	return false, false
}

// Leaving returns the template without further fields, in the way in which the fields are left out that the hub's API
// server has filled in. The steps of a path are the names of fields and the indexes of list items.
func (p *Prepared) Leaving(paths [][]string) *Prepared {
	if len(paths) == 0 {
		return p
	}
	filled := slices.Clone(p.filled)
	for _, path := range paths {
		filled = append(filled, path)
	}
	return newPrepared(p.manifest, p.owners, filled)
}

// atRest returns the fields of a hub object that have one of the restValues.
func (o owners) atRest(object map[string]any) []pointer {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if find := restValues[gv.WithKind(kind).GroupKind()]; err == nil && find != nil {
		return find(o, object)
	}
	return nil
}

// leftOut returns the fields of a rendered object that are not sent, because the hub's API server has filled them in. A
// field that a rule or the division of replicas sets is sent. touched reports whether one of them changes the value at
// a path, or a part of it.
func (p *Prepared) leftOut(rendered map[string]any, touched func(pointer) bool) []pointer {
	var out []pointer
	var add func(at pointer)
	add = func(at pointer) {
		was, is, there := p.both(rendered, at)
		switch m, isMap := was.(map[string]any); {
		case there == nil:
		case !touched(at):
			if equal(was, is) {
				out = append(out, there)
			}
		case isMap:
			for _, name := range slices.Sorted(maps.Keys(m)) {
				add(append(slices.Clip(at), name))
			}
		}
	}
	for _, at := range p.filled {
		add(at)
	}
	return out
}

// both returns the values at a path in the template and in the rendered object, and the path of the value in the
// rendered object. This path is nil if one of the values is missing.
func (p *Prepared) both(rendered map[string]any, at pointer) (was, is any, there pointer) {
	was, is = p.manifest.Object, rendered
	for _, step := range at {
		if list, inList := was.([]any); inList {
			other, _ := is.([]any)
			i, _ := index(step)
			i = counterpart(list, other, i)
			if i < 0 {
				return nil, nil, nil
			}
			was, _ = child(was, step)
			is, there = other[i], append(there, strconv.Itoa(i))
			continue
		}
		var known, also bool
		was, known = child(was, step)
		is, also = child(is, step)
		if !known || !also {
			return nil, nil, nil
		}
		there = append(there, step)
	}
	return was, is, there
}

// counterpart returns the index of item i of the template's list in the rendered list. It is -1 if a rule has removed
// the item, or if the item has no name of its own and a rule has changed the number of items.
func counterpart(was, is []any, i int) int {
	if i >= len(was) {
		return -1
	}
	name := nameOf(was[i])
	if len(was) == len(is) && equal(name, nameOf(is[i])) {
		return i
	}
	if name == nil {
		return -1
	}
	named := func(item any) bool { return equal(name, nameOf(item)) }
	found := slices.IndexFunc(is, named)
	if found >= 0 && slices.ContainsFunc(is[found+1:], named) {
		return -1
	}
	return found
}

func nameOf(item any) any {
	m, _ := item.(map[string]any)
	return m["name"]
}

// cut returns a value without the fields at the pointers. The result shares all other parts with the value.
func cut(value any, at []pointer) any {
	if len(at) == 0 {
		return value
	}
	below := map[string][]pointer{}
	gone := map[string]bool{}
	for _, p := range at {
		if len(p) == 1 {
			gone[p[0]] = true
		} else {
			below[p[0]] = append(below[p[0]], p[1:])
		}
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			if !gone[name] {
				out[name] = cut(field, below[name])
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			if step := strconv.Itoa(i); !gone[step] {
				out = append(out, cut(item, below[step]))
			}
		}
		return out
	}
	return value
}
