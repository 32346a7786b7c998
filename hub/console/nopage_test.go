package console

import (
	"net/http"
	"strings"
	"testing"
)

func TestAPathWithoutAPageIsAnsweredWithThePageOfAnError(t *testing.T) {
	w := newWorld(t)
	r := w.signedIn(w.token(nil, reads())).get("/no-such-page")
	if r.StatusCode != http.StatusNotFound || !strings.Contains(r.text, "the hub has no page /no-such-page") || !strings.Contains(r.text, "<nav") {
		t.Errorf("a path without a page: %s: %s", r.Status, r.text)
	}
}
