package faultproxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"strings"
)

// initialEventsEnd is in the bookmark that ends the initial events of a watch, whatever its encoding.
var initialEventsEnd = []byte("k8s.io/initial-events-end")

// watchWriter passes a watch on event by event and holds the events while watches hang. Held events arrive late but are
// not lost, as with a network that recovers.
type watchWriter struct {
	http.ResponseWriter
	ctx   context.Context
	proxy *Proxy

	listing bool // the initial events, which hang-watch passes on, are not over
	binary  bool // events have a length before them; otherwise each is a line
	rest    []byte
}

// WriteHeader sends the headers at once: a hanging watch is one that was accepted.
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
			w.flush() // earlier data of the same write is not held
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

// cut splits the first event from the data, if it is complete.
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
