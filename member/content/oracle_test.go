package content_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hanse-dev/hanse/member/content"
)

// odd is an object with rare content: a set with numbers, managedFields without a value, and text that JSON escapes.
const odd = `
apiVersion: v1
kind: Odd
metadata:
  name: odd
  managedFields:
  - manager: hanse
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        .: {}
        f:ports:
          .: {}
          k:{"port":443,"protocol":"TCP"}: {".": {}, "f:port": {}, "f:target": {}}
          k:{"port":80,"protocol":"TCP"}: {".": {}, "f:port": {}}
          k:{"port":8080,"protocol":"UDP"}: {".": {}, "f:port": {}}
        f:set: {'v:"b"': {}, 'v:"a"': {}, 'v:"gone"': {}}
        f:numbers: {'v:10': {}, 'v:9': {}, 'v:true': {}}
        f:text: {}
        f:ratio: {}
        f:whole: {}
        f:none: {}
        f:gone: {"f:below": {}}
spec:
  ports:
  - {port: 80, protocol: TCP}
  - {port: 443, protocol: TCP, target: {b: [1, 2.5, null, true], a: {}}}
  - {port: 8080, protocol: UDP}
  set: [a, b]
  numbers: [9, 10, true]
  text: "<tab\tnew\nline \"quoted\" \\ & ünïcode \u2028 \u0001>"
  ratio: 0.25
  whole: {z: 1, a: [x, {k: v}], e: 1.0e+30, s: 1.0e-9, l: []}
  none: null
`

// Rows store hashes. If one of these hashes changes, the hub writes every copy again after its upgrade.
func TestHashIsTheOneThatRowsHave(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"widget":     {widget(t), "2d76d28385246cb2fed4738e1afe873f"},
		"deployment": {live, "8714827f82c45442bb02c6f38239044f"},
		"two owners": {shared, "c7347714b219ff26f835ecef24664c46"},
		"odd values": {odd, "877791099ffe90d1daa8922ff311c2ee"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ours := content.Hash(nil, object(t, tc.object)); got != tc.want || !ours {
				t.Errorf("hash %s, ours %v, want %s", got, ours, tc.want)
			}
		})
	}
}

// FuzzHash compares Hash with a slow and simple computation by fieldpath.Set and encoding/json.
func FuzzHash(f *testing.F) {
	for _, text := range []string{widget(f), live, shared, odd} {
		u := object(f, text)
		fields, _ := json.Marshal(u.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["fieldsV1"])
		body, _ := json.Marshal(u.Object)
		f.Add(fields, body)
	}
	f.Add([]byte(`{"f:a":{"v:null":{},"v:1.5":{},"v:\"ü\"":{},"v:-3":{},"k:{}":{},"i:1":{},"z:":7}}`), []byte(`{"a":[null,1.5,"ü",-3,{}]}`))
	f.Add([]byte(`{"f:a":{"k:{\"b\":1,\"a\":\"x y\"}":{".":{},"f:c":{}},"k:{\"b\":1}":{"f:c":null}}}`), []byte(`{"a":[{"b":1,"a":"x y","c":"\u2029"},{"b":1}]}`))
	f.Fuzz(func(t *testing.T, fields, body []byte) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(append([]byte(`{"kind":"X","o":`), append(body, '}')...)) != nil {
			return
		}
		parsed := &unstructured.Unstructured{}
		if parsed.UnmarshalJSON(append([]byte(`{"kind":"X","f":`), append(fields, '}')...)) != nil {
			return
		}
		if o, ok := u.Object["o"].(map[string]any); ok {
			u.Object = o
		}
		u.Object["metadata"] = map[string]any{"managedFields": []any{map[string]any{
			"manager": "hanse", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": parsed.Object["f"],
		}}}
		got, ours := content.Hash(nil, u)
		if applied := content.Applied(u); applied != ours {
			t.Errorf("ours %v, applied %v", ours, applied)
		}
		want, wantOurs, comparable := expected(t, u, parsed.Object["f"])
		if ours != wantOurs || comparable && got != want {
			t.Errorf("hash %s, ours %v, want %s, %v", got, ours, want, wantOurs)
		}
	})
}

// expected computes the hash from a fieldpath.Set of the managedFields. comparable is false if Hash may order the paths
// differently, because two paths are equal or a path is odd. API servers do not write equal or odd paths.
func expected(t *testing.T, u *unstructured.Unstructured, fields any) (text string, ours, comparable bool) {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	set := &fieldpath.Set{}
	if fields == nil || set.FromJSON(bytes.NewReader(raw)) != nil {
		return "", false, false
	}
	var o oracle
	o.write(set, u.Object)
	sum := sha256.Sum256([]byte(o.text.String()))
	return hex.EncodeToString(sum[:16]), true, !o.odd && o.elements == countElements(fields)
}

// countElements counts the path elements in the JSON of managedFields. A fieldpath.Set has fewer elements if two of
// them are equal.
func countElements(fields any) int {
	m, _ := fields.(map[string]any)
	n := 0
	for name, below := range m {
		if name != "." && len(name) > 1 && strings.ContainsRune("fkvi", rune(name[0])) {
			n += 1 + countElements(below)
		}
	}
	return n
}

// oracle builds the text that the expected hash is computed from.
type oracle struct {
	text     strings.Builder
	elements int  // number of path elements in the set
	odd      bool // a key or value has an escaped character, or is a list or an object
}

func (o *oracle) put(parts ...string) {
	for _, p := range parts {
		o.text.WriteString(strconv.Itoa(len(p)) + ":" + p)
	}
}

func (o *oracle) write(set *fieldpath.Set, live any) {
	var keys []string // the key fields of this list, from its first path element
	for pe := range set.Members.All() {
		o.elements++
		if _, ok := set.Children.Get(pe); ok {
			o.put("member", o.element(pe))
			continue
		}
		if value, ok := find(live, pe, &keys); ok {
			o.put("value", o.element(pe), text(value))
		} else {
			o.put("missing", o.element(pe))
		}
	}
	for pe := range set.Children.All() {
		if !set.Members.Has(pe) {
			o.elements++
		}
		below, _ := set.Children.Get(pe)
		value, ok := find(live, pe, &keys)
		o.put("into", o.element(pe), fmt.Sprint(ok))
		o.write(below, value)
		o.put("out")
	}
}

func (o *oracle) element(pe fieldpath.PathElement) string {
	if pe.FieldName != nil {
		return "f:" + *pe.FieldName
	}
	s, err := fieldpath.SerializePathElement(pe)
	if err != nil {
		panic(err)
	}
	o.odd = o.odd || strings.ContainsAny(s[2:], `\[<>&`) || pe.Key != nil && strings.Contains(s[3:], "{") || pe.Value != nil && strings.Contains(s, "{")
	return s
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func find(live any, pe fieldpath.PathElement, keys *[]string) (any, bool) {
	m, _ := live.(map[string]any)
	items, _ := live.([]any)
	switch {
	case pe.FieldName != nil:
		value, ok := m[*pe.FieldName]
		return value, ok
	case pe.Index != nil:
		if i := *pe.Index; i >= 0 && i < len(items) {
			return items[i], true
		}
	case pe.Value != nil:
		i := slices.IndexFunc(items, func(item any) bool { return text(item) == text((*pe.Value).Unstructured()) })
		return (*pe.Value).Unstructured(), i >= 0
	case pe.Key != nil:
		return findByKey(items, pe, keys)
	}
	return nil, false
}

// findByKey returns the last item with the given key. It finds nothing for a key whose fields differ from those of the
// list's first key.
func findByKey(items []any, pe fieldpath.PathElement, keys *[]string) (any, bool) {
	names := []string{}
	for _, f := range *pe.Key {
		names = append(names, f.Name)
	}
	if *keys == nil {
		*keys = names
	}
	if !slices.Equal(names, *keys) {
		return nil, false
	}
	for _, item := range slices.Backward(items) {
		m, ok := item.(map[string]any)
		for _, f := range *pe.Key {
			ok = ok && text(m[f.Name]) == text(f.Value.Unstructured())
		}
		if ok {
			return m, true
		}
	}
	return nil, false
}
