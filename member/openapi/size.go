package openapi

// These are upper bounds of the memory of the parts of a schema, in bytes, without their texts and lists.
const (
	schemaSize = 128
	rulesSize  = 96
	boundsSize = 192 // with the numbers to which it points
	othersSize = 96
	textSize   = 24 // a text with its place in a list, and the rounding of its size
)

// Size returns an upper bound of the memory of the schema, in bytes. Each part counts once, as it is stored once.
// Compiled patterns do not count: all schemas share a bounded number of them, see matches.
func (s *Schema) Size() int64 {
	z := sizer{schemas: map[*Schema]struct{}{}, rules: map[*rules]struct{}{}}
	z.schema(s)
	return z.size
}

type sizer struct {
	schemas map[*Schema]struct{}
	rules   map[*rules]struct{}
	size    int64
}

func (z *sizer) schema(s *Schema) {
	if _, known := z.schemas[s]; known || s == nil {
		return
	}
	z.schemas[s] = struct{}{}
	z.size += schemaSize
	z.texts(s.names)
	z.texts(s.fallbacks)
	z.list(s.parts)
	z.schema(s.values)
	z.schema(s.items)
	z.of(s.rules)
}

func (z *sizer) list(all []*Schema) {
	z.size += 10 * int64(len(all)) // pointers, and the rounding of the list's size
	for _, s := range all {
		z.schema(s)
	}
}

func (z *sizer) texts(all []string) {
	for _, text := range all {
		z.size += int64(textSize + len(text) + len(text)/8)
	}
}

func (z *sizer) of(r *rules) {
	if _, known := z.rules[r]; known || r == nil {
		return
	}
	z.rules[r] = struct{}{}
	z.size += rulesSize
	z.texts(r.required)
	z.texts(r.enum)
	if r.pattern != "" {
		z.texts([]string{r.pattern})
	}
	if r.bounds != nil {
		z.size += boundsSize
	}
	if o := r.others; o != nil {
		z.size += othersSize
		z.list(o.all)
		z.list(o.any)
		z.list(o.one)
		z.schema(o.not)
	}
	if r.identity != nil {
		z.size += textSize
		for _, k := range r.identity.keys {
			z.texts([]string{k.name, k.fallback})
		}
	}
}
