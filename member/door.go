package member

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// CheckObject says which of the texts that tell a member's object from others is longer than API servers make it. Such an object is not taken: its
// uid goes into rows, and a part of it would be another one's.
func CheckObject(o metav1.Object) error {
	for _, text := range []struct {
		field, value string
		most         int
	}{
		{"name", o.GetName(), hubv1.MaxNameLength},
		{"namespace", o.GetNamespace(), hubv1.MaxNameLength},
		{"uid", string(o.GetUID()), hubv1.MaxUIDLength},
		{"resourceVersion", o.GetResourceVersion(), hubv1.MaxVersionLength},
	} {
		if len(text.value) > text.most {
			return &ObjectError{Field: "metadata." + text.field, Most: text.most}
		}
	}
	return nil
}

// ObjectError says that a member sent an object that no API server stores.
type ObjectError struct {
	Field string
	Most  int // bytes
}

// Error implements error.
func (e *ObjectError) Error() string {
	return fmt.Sprintf("the cluster answered with a %s of more than %d characters", e.Field, e.Most)
}

// Line makes one line of valid text of at most so many characters of a text that a member may have written. It is cloned, so that it holds no
// longer text in memory.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text[:min(len(text), utf8.UTFMax*most)])
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return strings.Clone(text)
}
