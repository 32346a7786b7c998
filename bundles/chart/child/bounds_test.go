//go:build !race

package child

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
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

func TestRenderAcceptsAnArchiveAtAllLimits(t *testing.T) {
	noise := make([]byte, 7<<20) // does not compress
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(noise)
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\n", "files/noise": string(noise), "files/zeros": strings.Repeat("0", 10<<20),
	}
	for i := range 16 { // of 0.9 MB each
		files[fmt.Sprintf("crds/%d.yaml", i)] = strings.ReplaceAll(definition(8000), "widgets", fmt.Sprintf("widgets%d", i))
	}
	in := Input{Release: "web", Namespace: "shop", Archive: charttest.Archive("app", files)}
	unpacked := 0
	for _, text := range files {
		unpacked += len(text)
	}
	if len(in.Archive) < chart.MaxArchiveBytes*7/8 || len(in.Archive) > chart.MaxArchiveBytes || unpacked < chart.MaxUnpackedBytes*7/8 {
		t.Fatalf("the archive has %d bytes, and %d unpacked", len(in.Archive), unpacked)
	}
	got, err := Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Definitions) != 16 {
		t.Errorf("the chart has 16 definitions: got %d", len(got.Definitions))
	}
}
