package v1alpha1

import "testing"

func TestOlder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"a lower number is older":                   {"9", "10", true},
		"a higher number is not":                    {"10", "9", false},
		"a version is not older than itself":        {"10", "10", false},
		"nothing is known of a version that is not": {"", "10", false},
		"nothing is older than an empty version":    {"10", "", false},
		"other texts cannot be compared":            {"a", "b", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Older(tc.a, tc.b); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
