package member

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnObjectThatNoServerStoresIsNotTaken(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	tests := map[string]struct {
		object metav1.ObjectMeta
		want   string // text in the error; empty if the object is accepted
	}{
		"an ordinary one":        {object: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "5f0c2a1e-8a55-4a51-9d4d-0a4ad6b7d1a0", ResourceVersion: "7"}},
		"a long uid":             {object: metav1.ObjectMeta{UID: types.UID(long)}, want: "metadata.uid of more than 128 characters"},
		"a long resourceVersion": {object: metav1.ObjectMeta{ResourceVersion: long}, want: "metadata.resourceVersion of more than 128 characters"},
		"a long name":            {object: metav1.ObjectMeta{Name: long}, want: "metadata.name of more than 253 characters"},
		"a long namespace":       {object: metav1.ObjectMeta{Namespace: long}, want: "metadata.namespace of more than 253 characters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckObject(&tc.object)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestALineIsShortAndValid(t *testing.T) {
	for _, text := range []string{"", "plain", strings.Repeat("😀", 300), strings.Repeat("\xff", 1<<16), "a\nb\x00c", strings.Repeat("é", 31) + "\xc3", strings.Repeat("x", 2<<20)} {
		line := Line(text, 64)
		if !utf8.ValidString(line) || utf8.RuneCountInString(line) > 64 || strings.ContainsAny(line, "\n\x00") {
			t.Errorf("%.80q became %q", text, line)
		}
	}
}
