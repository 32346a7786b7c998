package answer

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Bound replaces the body of a response. The new body unpacks gzip, fails when a bound is exceeded, and charges its
// memory to share, the budget of the server. The transport of the request must not unpack the body itself. If watch is
// true, the bounds apply to each event. A response that is not JSON is refused, because values of another format cannot
// be counted.
func Bound(response *http.Response, share *Budget, watch bool) error {
	if err := checkFormat(response); err != nil {
		return err
	}
	ctx := response.Request.Context()
	b := &body{ctx: ctx, what: "the answer", bounds: Whole, watch: watch, expense: newExpense(ctx, share)}
	if watch {
		b.bounds, b.what = Event, "an event of the watch"
	}
	if bounds, set := ctx.Value(boundsKey).(Bounds); set {
		b.bounds, b.streamed = bounds, bounds.Values == 0
	}
	b.from, b.closer = response.Body, response.Body
	if strings.EqualFold(response.Header.Get("Content-Encoding"), "gzip") {
		packed := &packedBody{from: response.Body, bounds: b.bounds, watch: watch}
		b.from = &unpacker{packed: packed}
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		response.Uncompressed = true
	}
	response.Body = b
	return nil
}

func checkFormat(response *http.Response) error {
	header := response.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	format, _, err := mime.ParseMediaType(header)
	if err == nil && (format == "application/json" || strings.HasPrefix(format, "text/")) {
		return nil
	}
	return fmt.Errorf("the server answered with the content type %.64q, which the hub did not request", header)
}

// body is the body that Bound puts into a response.
type body struct {
	ctx      context.Context
	what     string
	from     io.Reader
	closer   io.Closer
	bounds   Bounds
	watch    bool
	streamed bool

	bytes   int64 // bytes read of the answer, or of the current event
	count   Counter
	failed  error
	expense expense
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if limit := b.bounds.Bytes + 1 - b.bytes; !b.watch && int64(len(p)) > limit {
		p = p[:limit]
	}
	n, err := b.from.Read(p)
	if b.failed = b.take(p[:n]); b.failed != nil {
		return 0, b.failed
	}
	return n, err
}

func (b *body) take(data []byte) error {
	if b.watch {
		return b.takeEvents(data)
	}
	b.bytes += int64(len(data))
	if !b.streamed {
		b.count.Add(data)
	}
	if err := b.check(); err != nil || b.streamed {
		return err
	}
	return b.expense.raise(b.ctx, b.bytes+valueCost*b.count.Values)
}

func (b *body) check() error {
	switch {
	case b.bytes > b.bounds.Bytes:
		return tooManyBytes(b.what, b.bounds.Bytes)
	case !b.streamed && b.count.Values > b.bounds.Values:
		return tooManyValues(b.what, b.bounds.Values)
	}
	return nil
}

// takeEvents counts the bytes and values of each event of a watch separately. Events are not charged to a budget,
// because a watch has only one event in memory at a time.
func (b *body) takeEvents(data []byte) error {
	for _, c := range data {
		if b.count.add(c); b.count.Depth == 0 && !b.count.text {
			b.bytes, b.count.Values = 0, 0
			continue
		}
		if b.bytes++; b.bytes > b.bounds.Bytes || b.count.Values > b.bounds.Values {
			return b.check()
		}
	}
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.expense.end()
	return b.closer.Close()
}

// packedBody reads a gzipped body, and fails if its packed size exceeds the bound.
type packedBody struct {
	from   io.Reader
	bounds Bounds
	watch  bool
	bytes  int64
}

// Read implements io.Reader.
func (b *packedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.bytes += int64(n); b.bytes > b.bounds.Bytes && !b.watch {
		return 0, tooManyBytes("the packed answer", b.bounds.Bytes)
	}
	return n, err
}

// unpacker unpacks a gzipped body. It reads the gzip header only at its first Read, because reading may wait for the
// server.
type unpacker struct {
	packed io.Reader
	plain  *gzip.Reader
	failed error
}

// Read implements io.Reader.
func (u *unpacker) Read(p []byte) (int, error) {
	if u.plain == nil && u.failed == nil {
		u.plain, u.failed = gzip.NewReader(u.packed)
	}
	if u.failed != nil {
		return 0, u.failed
	}
	return u.plain.Read(p)
}
