package content

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hanse-dev/hanse/internal/canonical"
)

// element is one path element of managedFields, with the path elements below it.
type element struct {
	raw    string         // text of the element in managedFields
	text   string         // as canonical writes it: f:spec, k:{"name":"main"}, v:"one" or i:0
	member bool           // whether the manager owns the element itself, not only fields below it
	below  map[string]any // the elements below; nil if there are none
}

// readElement reads one entry of the maps in fieldsV1. known is false if the entry is not a path element, such as ".",
// or has an unknown prefix. ok is false if the entry cannot be read.
func readElement(raw string, value any) (e element, known, ok bool) {
	if raw == "." {
		return element{}, false, true
	}
	if len(raw) < 2 || raw[1] != ':' {
		return element{}, false, false
	}
	if !isKnown(raw) {
		return element{}, false, true
	}
	e = element{raw: raw}
	if value != nil { // null is equivalent to an empty map
		if e.below, ok = value.(map[string]any); !ok {
			return element{}, false, false
		}
	}
	_, e.member = e.below["."]
	if !hasElements(e.below) {
		e.below, e.member = nil, true
	}
	e.text, ok = elementText(raw)
	return e, ok, ok
}

// appendElements appends the path elements of one map of fieldsV1, in the order of package fieldpath. ok is false if
// one of them cannot be parsed.
func appendElements(to []element, fields map[string]any) (all []element, ok bool) {
	from := len(to)
	for raw, value := range fields {
		e, known, ok := readElement(raw, value)
		if !ok {
			return to, false
		}
		if known {
			to = append(to, e)
		}
	}
	slices.SortFunc(to[from:], compareElements)
	return to, true
}

// kinds are the first letters of path elements in fieldsV1, in the order of package fieldpath: f for fields, k for
// keys, v for values and i for indices.
const kinds = "fkvi"

func isKnown(raw string) bool { return strings.IndexByte(kinds, raw[0]) >= 0 }

// hasElements reports whether a map of fieldsV1 has a path element, or an entry that cannot be parsed. If it has
// neither, the manager owns no field below the path of the map.
func hasElements(fields map[string]any) bool {
	for raw := range fields {
		if raw != "." && (len(raw) < 2 || raw[1] != ':' || isKnown(raw)) {
			return true
		}
	}
	return false
}

// elementText returns a path element in canonical form. API servers write nearly all path elements in this form.
func elementText(raw string) (text string, ok bool) {
	switch content := raw[2:]; raw[0] {
	case 'f':
		return raw, true
	case 'v':
		ok = isPlainScalar(content)
	case 'k':
		ok = isPlainKey(content)
	}
	if ok {
		return raw, true
	}
	pe, err := fieldpath.DeserializePathElement(raw)
	if err != nil {
		return "", false
	}
	return textOf(pe), true
}

// textOf returns the text of a path element.
func textOf(pe fieldpath.PathElement) string {
	switch {
	case pe.FieldName != nil:
		return "f:" + *pe.FieldName
	case pe.Index != nil:
		return "i:" + strconv.Itoa(*pe.Index)
	case pe.Value != nil:
		return "v:" + string(canonical.Bytes((*pe.Value).Unstructured()))
	case pe.Key != nil:
		key := make(map[string]any, len(*pe.Key))
		for _, f := range *pe.Key {
			key[f.Name] = f.Value.Unstructured()
		}
		return "k:" + string(canonical.Bytes(key))
	}
	return ""
}

// compareElements compares two path elements in the order of package fieldpath: first fields, then keys, values and
// indices. Two numbers are compared as numbers, not as texts.
func compareElements(a, b element) int {
	if c := cmp.Compare(strings.IndexByte(kinds, a.raw[0]), strings.IndexByte(kinds, b.raw[0])); c != 0 {
		return c
	}
	c := 0
	switch a.raw[0] {
	case 'f':
	case 'k':
		c = compareKeys(a.text[2:], b.text[2:])
	default:
		c = compareScalars(a.text[2:], b.text[2:])
	}
	return cmp.Or(c, strings.Compare(a.raw, b.raw))
}

func compareKeys(a, b string) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	for a != "" && b != "" {
		var nameA, nameB, valueA, valueB string
		nameA, valueA, a = cutField(a)
		nameB, valueB, b = cutField(b)
		if c := cmp.Or(compareScalars(nameA, nameB), compareScalars(valueA, valueB)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compareScalars compares JSON texts: numbers, then strings, booleans, lists, maps and null.
func compareScalars(a, b string) int {
	rankA, rankB := scalarRank(a), scalarRank(b)
	switch {
	case rankA != rankB:
		return cmp.Compare(rankA, rankB)
	case rankA == 0:
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y)
	}
	return strings.Compare(strings.TrimSuffix(a, `"`), strings.TrimSuffix(b, `"`))
}

func scalarRank(text string) int {
	return strings.IndexByte(`"ft[{n`, text[0]) + 1 // 0 stands for a number
}
