package answer

// Counter counts the JSON values in a stream of bytes. If the stream is not JSON, the count has no meaning.
type Counter struct {
	// Values is the approximate number of values since the last Reset.
	Values int64
	// Depth is the number of objects and lists that have begun and not ended.
	Depth int

	text, escaped bool
}

// Add counts the JSON values in the next bytes of the stream.
func (c *Counter) Add(data []byte) {
	for _, b := range data {
		c.add(b)
	}
}

func (c *Counter) add(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case c.text:
		c.escaped, c.text = b == '\\', b != '"'
	case b == '"':
		c.text = true
	case b == '{' || b == '[':
		c.Values++
		c.Depth++
	case b == '}' || b == ']':
		c.Depth = max(c.Depth-1, 0)
	case b == ',':
		c.Values++
	}
}
