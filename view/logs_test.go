package view

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/view/wire"
)

func TestALogThatIsCutWithinOneSecondGoesOn(t *testing.T) {
	var out bytes.Buffer
	r := NewLogReader()
	log := wire.ContainerLog{Pod: "web-0", Text: "2026-01-01T00:00:01.1Z one\n2026-01-01T00:00:01.2Z two\n2026-01-01T00:00:01.3Z cu", Cut: true}
	if skips := r.Print(&out, "a", log); skips || r.Since("a")[0].Time.Second() != 1 {
		t.Errorf("at first: skips %v, goes on at %v", skips, r.Since("a"))
	}
	if skips := r.Print(&out, "a", log); !skips || r.Since("a")[0].Time.Second() != 2 {
		t.Errorf("the same answer: skips %v, goes on at %v", skips, r.Since("a"))
	}
	log.Text, log.Cut = "2026-01-01T00:00:02Z three\n", false
	if skips := r.Print(&out, "a", log); skips {
		t.Error("skips lines of an answer that is not cut")
	}
	if want := "[a web-0 -] one\n[a web-0 -] two\n[a web-0 -] three\n"; out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestAnEventOfTheHubHasTheCountOfItsSeries(t *testing.T) {
	var e Events
	last := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e.AddHub(corev1.Event{Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(last)}})
	if got := e.Items[0]; got.Count != 7 || !got.Last.Time.Equal(last) {
		t.Errorf("got %+v", got)
	}
}

func FuzzLinesOfALogArePrintable(f *testing.F) {
	f.Add("2026-01-01T00:00:00Z plain\n\x1b[2J\u202e\r\n\xff", false)
	f.Add("", true)
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		var out bytes.Buffer
		NewLogReader().Print(&out, "eu-fra-1", wire.ContainerLog{Pod: "web-0", Container: "main", Text: text, Cut: cut})
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "[eu-fra-1 web-0 main] ") || !strings.HasSuffix(line, "\n") {
				t.Errorf("got %q", line)
			}
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
				t.Errorf("got %q", line)
			}
		}
	})
}
