package revisions

import (
	"fmt"
	"testing"
)

func TestACacheKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	c := weighted{max: 10}
	c.add("a", 1, 4)
	c.add("b", 2, 4)
	c.get("a")
	c.add("c", 3, 4) // b was used longest ago
	c.add("whole", 4, 11)
	if got := fmt.Sprint(c.get("a"), c.get("b"), c.get("c"), c.get("whole")); got != "1 <nil> 3 <nil>" {
		t.Errorf("the cache has %s", got)
	}
	c.add("a", 5, 6)
	c.add("c", 6, 4)
	if got := fmt.Sprint(c.get("a"), c.get("c"), c.sum); got != "5 6 10" {
		t.Errorf("after values have changed, the cache has %s", got)
	}
}
