package faultproxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"strings"
)

// initialEventsEnd is an annotation in the bookmark that ends the initial events of a watch. Its text is the same in
// all encodings.
var initialEventsEnd = []byte("k8s.io/initial-events-end")

// watchWriter forwards a watch event by event, and holds the events while watches hang. Held events are late but not
// lost, as on a network that recovers.
type watchWriter struct {
	http.ResponseWriter
	ctx   context.Context
	proxy *Proxy

	listing bool // true until the initial events, which hang-watch does not hold, are over
	binary  bool // true if each event begins with its length; otherwise each event is a line
	rest    []byte
}

// WriteHeader sends the headers at once, because the client of a hanging watch must see that the API server accepted
// the watch.
func (w *watchWriter) WriteHeader(code int) {
	w.binary = strings.Contains(w.Header().Get("Content-Type"), "protobuf")
	w.ResponseWriter.WriteHeader(code)
	w.flush()
}

func (w *watchWriter) flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a broken connection shows at the next write
}

// Unwrap lets http.ResponseController flush.
func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		event, rest, whole := w.cut(w.rest)
		if !whole {
			return len(p), nil
		}
		if !w.listing && w.proxy.Fault().Mode == HangWatch {
			w.flush() // send earlier events of the same write before this one is held
			if err := w.proxy.awaitEnd(w.ctx, HangWatch); err != nil {
				return 0, err
			}
		}
		if _, err := w.ResponseWriter.Write(event); err != nil {
			return 0, err
		}
		if bytes.Contains(event, initialEventsEnd) {
			w.listing = false
		}
		w.rest = rest
	}
}

// cut splits the first event off the data. whole is false if the first event is not complete yet.
func (w *watchWriter) cut(data []byte) (event, rest []byte, whole bool) {
	end := bytes.IndexByte(data, '\n') + 1
	if w.binary {
		if len(data) < 4 {
			return nil, data, false
		}
		end = 4 + int(binary.BigEndian.Uint32(data))
	}
	if end == 0 || end > len(data) {
		return nil, data, false
	}
	return data[:end], data[end:], true
}
