// Package receiver is an example of a receiver of notifications, which tests use. It checks the signature by the rules
// of Standard Webhooks, and handles each notification once.
package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Event is a notification of the hub, as a CloudEvent.
type Event struct {
	ID, Source, Type, Subject, Severity string
	Time                                time.Time
	Data                                struct {
		Type, Reason, Action, Message string
		Regarding                     Object
		Related                       *Object
	}
}

// Object is the object that an event is about.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

// Handler handles notifications that are signed with Key, which has the form whsec_....
type Handler struct {
	Key string
	// Take is called once for each notification. If it returns an error, the hub sends the notification again.
	Take func(Event) error

	mu   sync.Mutex
	seen map[string]bool // IDs of handled notifications; a real receiver would forget them after a day
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return
	}
	if err := verify(h.Key, r.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil || e.ID != r.Header.Get("Webhook-Id") {
		http.Error(w, "this is no notification", http.StatusBadRequest) // the hub does not send the notification again
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[e.ID] {
		return
	}
	if err := h.Take(e); err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	if h.seen == nil {
		h.seen = map[string]bool{}
	}
	h.seen[e.ID] = true
}

// verify returns an error unless one signature in the header is valid and at most five minutes old.
func verify(key string, header http.Header, body []byte, now time.Time) error {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	if err != nil {
		return errors.New("the key is no base64")
	}
	seconds, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("the notification is too old")
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("Webhook-Id"), seconds, body)
	for signed := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signed, "v1,"))
		if err == nil && hmac.Equal(got, mac.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature is right")
}
