package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/view/wire"
)

// askedBy sends a request about a namespace to a handler of this process.
func askedBy(ctx context.Context, handler http.HandlerFunc) (wire.FactsAnswer, error) {
	c := &Console{opts: Options{Views: handler}}
	var answer wire.FactsAnswer
	err := c.viewsOf("a-token").Ask(ctx, "", wire.Facts, "shop", wire.FactsRequest{}, &answer)
	return answer, err
}

func TestTheViewsAreAskedWithTheTokenOfTheUser(t *testing.T) {
	t.Parallel()
	answer, err := askedBy(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		if err := errors.Join(connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{})); err != nil {
			t.Error(err)
		}
		if r.Header.Get(wire.TokenHeader) != "a-token" || r.URL.Query().Get("namespace") != "shop" {
			t.Errorf("the views get %s with %v", r.URL, r.Header)
		}
		_ = json.NewEncoder(w).Encode(wire.FactsAnswer{Notes: []string{"hidden: 1"}})
	})
	if err != nil || len(answer.Notes) != 1 {
		t.Errorf("the views answer %v, %v", answer, err)
	}
}

func TestAnAnswerOfTheViewsIsBounded(t *testing.T) {
	t.Parallel()
	_, err := askedBy(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		for range maxViewBytes/1024 + 1 {
			_, _ = w.Write([]byte(strings.Repeat(" ", 1024)))
		}
	})
	if !errors.Is(err, errLargeAnswer) {
		t.Errorf("a large answer gives %v", err)
	}
}

func TestAFaultOfTheViewsIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := askedBy(t.Context(), func(http.ResponseWriter, *http.Request) { panic("broken") }); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a panic gives %v", err)
	}
	_, err := askedBy(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(apierrors.NewUnauthorized("no").ErrStatus)
	})
	if err == nil {
		t.Error("a refusal gives no error")
	}
}

func TestAHangingViewEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	asked, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := askedBy(ctx, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-end // the handler ignores its context
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a view that hangs gives %v", err)
	}
}
