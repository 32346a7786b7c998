package content

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Yielded returns the managedFields of the live object without the hub's ownership of fields that the hub gives up. ok
// is false if there are no such fields. Without this step, an apply that lacks a field would remove it if only the hub
// owned it.
//
// whole is the manifest with the fields that the manifest leaves out. A field is given up if the live value is the one
// in whole: an earlier version of the hub has sent it, or its value would stay the same. A field with another value is
// not given up: the hub had sent that value for another reason, which is gone.
func Yielded(live, manifest, whole *unstructured.Unstructured) (managed []any, ok bool) {
	metadata, _ := live.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for i, item := range list {
		e, readable := readEntry(item)
		if !readable || !e.isOurs() {
			continue
		}
		kept, gone := yield(e.fields, manifest.Object, whole.Object, live.Object)
		if len(gone) == 0 {
			return nil, false
		}
		managed = append(managed, list...)
		entry := maps.Clone(item.(map[string]any))
		entry["fieldsV1"] = kept
		managed[i] = entry
		return managed, true
	}
	return nil, false
}

// Keeping returns the manifest with the values of the fields that Yielded gives up. A dry run of an apply of this
// manifest shows what a write changes after the hub has given up the fields.
func Keeping(live, manifest, whole *unstructured.Unstructured) *unstructured.Unstructured {
	_, gone := yield(oursRaw(live), manifest.Object, whole.Object, live.Object)
	if len(gone) == 0 {
		return manifest
	}
	out := manifest.DeepCopy()
	restore(out.Object, gone, whole.Object)
	return out
}

// yield divides the fields of a managedFields entry. kept are the fields that the hub continues to own. gone are the
// fields that the hub gives up.
func yield(fields map[string]any, manifest, whole, live any) (kept, gone map[string]any) {
	sent, filled, there := partsOf(manifest), partsOf(whole), partsOf(live)
	kept, gone = map[string]any{}, map[string]any{}
	for raw, value := range fields {
		e, known, ok := readElement(raw, value)
		if !ok || !known {
			kept[raw] = value
			continue
		}
		f, isFilled := filled.find(e)
		s, isSent := sent.find(e)
		l, isThere := there.find(e)
		switch {
		case !isFilled || !isThere:
			kept[raw] = value
		case e.below == nil && !isSent && covers(l, f):
			gone[raw] = value
		case e.below == nil:
			kept[raw] = value
		default:
			stays, goes := yield(e.below, s, f, l)
			if len(goes) > 0 {
				gone[raw] = goes
			}
			if hasElements(stays) || isSent || len(goes) == 0 {
				kept[raw] = stays
			}
		}
	}
	return kept, gone
}

// parts finds the parts of a value by the elements of managedFields.
type parts struct {
	fields map[string]any
	items  *list
}

func partsOf(value any) parts {
	fields, _ := value.(map[string]any)
	return parts{fields: fields, items: listOf(value)}
}

func (p parts) find(e element) (any, bool) {
	if e.raw[0] == 'f' {
		v, ok := p.fields[e.raw[2:]]
		return v, ok
	}
	return p.items.find(e.text)
}

// restore sets the given fields of a manifest to their values in whole. The manifest is changed.
func restore(manifest map[string]any, fields map[string]any, whole any) {
	from := partsOf(whole)
	for raw, value := range fields {
		e, known, ok := readElement(raw, value)
		v, there := from.find(e)
		if !ok || !known || !there || raw[0] != 'f' {
			continue
		}
		name := raw[2:]
		switch v := v.(type) {
		case map[string]any:
			if inner, ok := manifest[name].(map[string]any); ok && e.below != nil {
				restore(inner, e.below, v)
				continue
			}
		case []any:
			if inner, ok := manifest[name].([]any); ok && e.below != nil {
				restoreItems(inner, e.below, v)
				continue
			}
		}
		if _, sent := manifest[name]; !sent {
			manifest[name] = copied(v)
		}
	}
}

// restoreItems sets the given fields in items of a list, which is changed.
func restoreItems(items []any, fields map[string]any, whole any) {
	from, to := listOf(whole), listOf(items)
	for raw, value := range fields {
		e, known, ok := readElement(raw, value)
		if !ok || !known || e.below == nil {
			continue
		}
		v, _ := from.find(e.text)
		item, _ := to.find(e.text)
		if inner, ok := item.(map[string]any); ok {
			restore(inner, e.below, v)
		}
	}
}
