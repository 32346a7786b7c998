package openapi

import (
	"strings"
	"testing"
)

func TestWhichPatternsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, text string
		want          bool
	}{
		"a text that matches":        {`^[a-z]+$`, "web", true},
		"a text that does not match": {`^[a-z]+$`, "Web", false},
		"no pattern":                 {"", "Web", true},
		"an invalid pattern":         {"(", "Web", true},
		"a name of DNS":              {`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])\.){1,10}[a-z]{2,63}$`, "no name", false},
		"letters of all languages":   {`^[\p{L}\p{N}]([\p{L}\p{N} ._-]{0,10}[\p{L}\p{N}])?$`, "_", false},
		"a bound as large as can be": {`^[a-z]{1,1000}$`, "Web", false},
		"too many states":            {`^((x{100}){100}){10}$`, "Web", true},
		"too many nested repeats":    {`^((((x{9}){9}){9}){9}){9}$`, "Web", true},
		"a pattern that is too long": {"^" + strings.Repeat("x", maxPatternText) + "$", "Web", true},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from the cache
				if got := matches(tc.pattern, tc.text); got != tc.want {
					t.Errorf("matches returns %t", got)
				}
			}
		})
	}
}
