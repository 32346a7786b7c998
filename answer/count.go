package answer

// Counter counts the values of JSON that passes through it, piece by piece. The count of other text has no meaning.
type Counter struct {
	// Values is roughly the number of values since the last Reset.
	Values int64
	// Depth is how many objects and lists are open.
	Depth int

	text, escaped bool
}

// Add counts what comes next.
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
