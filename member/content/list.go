package content

import (
	"encoding/json"
	"strconv"

	"github.com/hanse-dev/hanse/internal/canonical"
)

// list finds the items of one list by path elements. It indexes the items by the key fields of the first request,
// because all keys of a list have the same fields. A request with other key fields finds nothing. No input therefore
// needs more than one pass over the list.
type list struct {
	items  []any
	byKey  map[string]any // items of a keyed list, by the text of the key
	values map[string]any // items of a set, by the text of the item
}

func listOf(v any) *list {
	items, _ := v.([]any)
	return &list{items: items}
}

// find returns the item for the text of a key, a value or an index.
func (l *list) find(text string) (item any, ok bool) {
	if len(l.items) == 0 {
		return nil, false
	}
	switch content := text[2:]; text[0] {
	case 'i':
		if i, err := strconv.Atoi(content); err == nil && i >= 0 && i < len(l.items) {
			return l.items[i], true
		}
	case 'v':
		if l.values == nil {
			l.values = make(map[string]any, len(l.items))
			for _, item := range l.items {
				l.values[string(canonical.Bytes(item))] = item
			}
		}
		item, ok = l.values[content]
	case 'k':
		if l.byKey == nil {
			l.index(namesOf(content))
		}
		item, ok = l.byKey[content]
	}
	return item, ok
}

func (l *list) index(names []string) {
	l.byKey = make(map[string]any, len(l.items))
	for _, item := range l.items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		key := make(map[string]any, len(names))
		for _, name := range names {
			key[name] = m[name]
		}
		l.byKey[string(canonical.Bytes(key))] = item
	}
}

// namesOf returns the field names in the text of a key.
func namesOf(key string) []string {
	var names []string
	for rest := key[1 : len(key)-1]; rest != ""; {
		var token string
		token, _, rest = cutField(rest)
		name := token[1 : len(token)-1]
		if !isPlainString(token) {
			_ = json.Unmarshal([]byte(token), &name) // cannot fail: canonical wrote it
		}
		names = append(names, name)
	}
	return names
}
