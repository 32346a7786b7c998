//go:build !race

package child

import (
	"strings"
	"testing"
)

const (
	greedy = `{{ $text := "0123456789" }}{{ range until 40 }}{{ $text = print $text $text }}{{ end }}`
	deep   = `{{ $_ := set .Values "again" "{{ tpl .Values.again . }}" }}{{ tpl .Values.again . }}`
)

func TestRenderRefusesATemplateThatNeedsTooMuch(t *testing.T) {
	refuses(t, map[string]refusal{
		"a template that needs too much memory": {input(greedy), ErrMemory, "needs more than 256 MiB of memory"},
		"a template that calls itself by tpl":   {input(deep), ErrStack, "needs more than 32 MiB of stack"},
		"a result that is too large as JSON": {input(`{{ range until 40 }}` + strings.Replace(head, "name: a", "name: a{{ . }}", 1) + `{{ repeat 150000 "<" | quote }}
---
{{ end }}`), ErrSize, "more than 32 MiB as JSON"},
	})
}
