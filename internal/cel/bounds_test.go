//go:build !race

package cel

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Each expression is refused at compilation or fails at evaluation, within half a second and 64 MiB.
func TestHostileExpressionsEnd(t *testing.T) {
	long := strings.Repeat("a", 500<<10)
	list := make([]any, 20_000)
	for i := range list {
		list[i] = map[string]any{"k": "v"}
	}
	values := valuesOfTest()
	values["object"] = map[string]any{"text": long, "digits": strings.Repeat("1", 500<<10), "list": list, "million": int64(1_000_000_000), "one": []any{int64(1)}, "regex": strings.Repeat("a{1000}", 400), "format": "%.999999999f"}
	doubled := "object.one" + strings.Repeat(".map(a, [a, a])", 40)
	tests := map[string]string{
		"a comparison of what has doubled":        doubled + ".all(x, x == x)",
		"a difference of what has doubled":        doubled + ".all(x, x != x)",
		"what has doubled beside little":          doubled + ".all(x, object.list.all(y, x != [1] && !(x in [[1]]) && !(1 in [x])))",
		"sets of what is large, many times":       "[object.list.map(x, [x])].all(x, object.list.all(y, sets.contains([x], [x]) && [x, x].distinct().size() == 1 && [x].flatten().size() > 0))",
		"letters of a text, many times":           "object.list.all(y, object.text.charAt(3) == 'a' && object.text.size() > 0)",
		"a number of many digits, many times":     "object.list.all(y, double(object.digits) > 0.0)",
		"a search in what has doubled":            doubled + ".all(x, x in [x])",
		"an index in what has doubled":            doubled + ".all(x, [x].indexOf(x) == 0)",
		"a set of what has doubled":               doubled + ".all(x, sets.contains([x], [x]))",
		"distinct ones of what has doubled":       doubled + ".all(x, [x, x].distinct().size() == 1)",
		"what has doubled as a text":              doubled + ".all(x, '%s'.format([x]) == '')",
		"what has doubled, flat":                  doubled + ".all(x, x.flatten(100).size() == 0)",
		"what has doubled, in an optional value":  doubled + ".all(x, optional.of(x) == optional.of(x))",
		"what has doubled by its keys":            "object.one" + strings.Repeat(".map(a, {'a': a, 'b': a})", 40) + ".all(x, x == x)",
		"what has doubled by adding":              "object.one" + strings.Repeat(".map(a, [a, a] + [a, a])", 30) + ".all(x, x == x)",
		"the same large list compared many times": "object.list.all(x, object.list == object.list)",
		"a text replaced by itself":               "object.text.replace('a', object.text)",
		"nothing replaced by a text":              "object.text.replace('', object.text) == ''",
		"a text joined by itself":                 "object.list.map(x, object.text).join(object.text)",
		"a list out of nothing":                   "lists.range(object.million).size()",
		"a number with many digits":               "object.format.format([1.0])",
		"a regular expression with many states":   "object.text.matches(object.regex)",
		"a constant one":                          "object.text.matches('" + strings.Repeat("a{1000}", 500) + "b')",
		"all that it finds":                       "object.text.findAll('a*a*a*a*a*a*a*a*a*b')",
		"a text that doubles":                     "object.one.map(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')" + strings.Repeat(".map(a, a + a)", 40),
		"a text in pieces":                        "object.text.split('').map(x, object.text.split(''))",
		"a search for a text in a text":           "object.list.all(x, object.text.indexOf(object.text.substring(1) + 'b') < 0)",
		"a hidden failure":                        "object.million > 0 || lists.range(object.million).size() > 0 ? lists.range(object.million).size() > 0 || true : true",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes, took := cost(time.Second/2, func() {
				var x *Expression
				if x, err = environmentOfTest().CompileValue(text); err == nil {
					_, err = x.Value(values, nil)
				}
			})
			t.Logf("%d KiB, %s: %v", bytes>>10, took, err)
			if failure := (*EvaluationError)(nil); err == nil || errors.As(err, &failure) && failure.Reason == "the evaluation failed" {
				t.Errorf("error %v", err)
			}
			if bytes > 64<<20 || took > time.Second/2 {
				t.Errorf("took %d MiB and %s", bytes>>20, took)
			}
		})
	}
}

// cost returns the memory that f allocates and the least time that it takes in some tries, if that is not within the
// limit: others work on the machine, too.
func cost(limit time.Duration, f func()) (bytes uint64, took time.Duration) {
	took = time.Hour
	for i := 0; i < 20 && took > limit; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f()
		took = min(took, time.Since(start))
		runtime.ReadMemStats(&after)
		bytes = after.TotalAlloc - before.TotalAlloc
	}
	return bytes, took
}
