package overrides

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	adviceCreate = "correct the path, or use mergePatch, which creates missing fields"
	// adviceItem replaces the other advice for a path through a list.
	adviceItem   = "correct the path: select an item by its index or by a key such as [name=web], or use *, which skips items without the field (a mergePatch would replace the whole list)"
	adviceMap    = "* and keys such as [name=web] select items of a list, but this value is not a list: name the field"
	adviceFrom   = "correct the source of the operation or drop it"
	adviceRemove = "correct the path, or use null in a mergePatch, which accepts that the field is missing"
)

func (o *operation) apply(doc map[string]any, b *budget) *fault {
	if o.op != hubv1.PatchTest && o.selectsItems() {
		return o.applyToItems(doc, b)
	}
	return o.applyToOne(doc, b)
}

// applyToOne applies an operation whose paths have no steps that select items.
func (o *operation) applyToOne(doc map[string]any, b *budget) *fault {
	switch o.op {
	case hubv1.PatchRemove:
		return edit(doc, o.path, adviceRemove, remove)
	case hubv1.PatchReplace:
		return edit(doc, o.path, adviceCreate, replace(runtime.DeepCopyJSONValue(o.value)))
	case hubv1.PatchAdd:
		return edit(doc, o.path, adviceCreate, add(runtime.DeepCopyJSONValue(o.value)))
	case hubv1.PatchTest:
		return o.test(doc)
	}
	value, ok := o.from.lookup(doc)
	if !ok {
		return missing(o.from, adviceFrom)
	}
	if !o.accepts(value) {
		return &fault{path: o.path.String(), message: whyString}
	}
	switch o.op {
	case hubv1.PatchCopy:
		n, err := size(value, b.added, maxDepth)
		if errors.Is(err, errTooDeep) {
			return &fault{path: o.from.String(), message: fmt.Sprintf("nests deeper than %d levels: copy a smaller part", maxDepth)}
		}
		if err != nil {
			return &fault{path: o.from.String(), message: fmt.Sprintf(
				"does not fit: all rules together may add %d KiB to an object: copy a smaller part, or remove other copies and values", maxAdded>>10)}
		}
		b.added -= n
		value = runtime.DeepCopyJSONValue(value)
	case hubv1.PatchMove:
		if f := edit(doc, o.from, adviceFrom, remove); f != nil {
			return f
		}
	}
	return edit(doc, o.path, adviceCreate, add(value))
}

// step changes one key of a container, which is a map or a list, and returns the changed container. ok is false if the
// key cannot be changed, for example because it does not exist. message then has the reason. An empty message means
// that the key does not exist.
type step func(container any, key string) (changed any, message string, ok bool)

// edit changes the value at the path. It calls do with the map or list that contains this value, and with the last key
// of the path. It stores the changed map or list in its parent, because a changed list may be a new slice.
func edit(doc any, path pointer, advice string, do step) *fault {
	_, f := editAt(doc, path, 0, advice, do)
	return f
}

func editAt(node any, path pointer, depth int, advice string, do step) (any, *fault) {
	key := path[depth]
	if _, isList := node.([]any); isList {
		advice = adviceItem
	}
	if depth == len(path)-1 {
		changed, message, ok := do(node, key)
		switch {
		case ok:
			return changed, nil
		case message != "":
			return nil, &fault{path: path.String(), message: message}
		}
		return nil, missing(path, advice)
	}
	inner, ok := child(node, key)
	if !ok {
		return nil, missing(path, advice)
	}
	inner, f := editAt(inner, path, depth+1, advice, do)
	if f != nil {
		return nil, f
	}
	switch n := node.(type) {
	case map[string]any:
		n[key] = inner
	case []any:
		i, _ := index(key) // child has verified the index
		n[i] = inner
	}
	return node, nil
}

func missing(path pointer, advice string) *fault {
	return &fault{path: path.String(), message: "does not exist in the object: " + advice}
}

func remove(container any, key string) (any, string, bool) {
	switch c := container.(type) {
	case map[string]any:
		if _, ok := c[key]; ok {
			delete(c, key)
			return c, "", true
		}
	case []any:
		if i, message := place(key, len(c)-1, len(c)); message != "" {
			return nil, message, false
		} else if i < len(c) {
			return slices.Delete(c, i, i+1), "", true
		}
	}
	return nil, "", false
}

func replace(value any) step {
	return func(container any, key string) (any, string, bool) {
		switch c := container.(type) {
		case map[string]any:
			if _, ok := c[key]; ok {
				c[key] = value
				return c, "", true
			}
		case []any:
			if i, ok := index(key); ok && i < len(c) {
				c[i] = value
				return c, "", true
			}
			return nil, outside(len(c)), false
		}
		return nil, "", false
	}
}

// add returns a step that adds a value to a map or a list, which must exist.
func add(value any) step {
	return func(container any, key string) (any, string, bool) {
		switch c := container.(type) {
		case map[string]any:
			if c == nil { // null, which Go clients write for an empty map
				return nil, "", false
			}
			c[key] = value
			return c, "", true
		case []any:
			i, message := len(c), ""
			if key != "-" || len(c) > maxIndex {
				if i, message = place(key, len(c), len(c)); message != "" {
					return nil, message, false
				}
			}
			return slices.Insert(c, i, value), "", true
		}
		return nil, "", false
	}
}

// place parses an index at which an element is added to, or removed from, a list of n elements. It refuses long lists,
// because the cost of each change grows with the length. The second result is an error message, or empty.
func place(key string, last, n int) (int, string) {
	if n > maxIndex {
		return 0, fmt.Sprintf("is in a list of more than %d elements, to which a rule cannot add elements, and from which it cannot remove any: change the list on the hub, or replace single elements", maxIndex)
	}
	i, ok := index(key)
	if !ok || i > last {
		return 0, outside(n)
	}
	return i, ""
}

func outside(n int) string {
	return fmt.Sprintf("is outside the list, whose length is %d: correct the index, or use /- to append", n)
}
