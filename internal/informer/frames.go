package informer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/internal/answer"
)

// maxFrameBytes is the maximum size of a watch event, in bytes. The transport to a member also limits the number of
// JSON values in an event.
var maxFrameBytes = int(answer.Event.Bytes)

var errNoEvent = errors.New("reading a watch: the server sent lines that are not events")

// frames splits the response of a watch into events. API servers end an event with a newline, and write no other
// newline. The end of an event is therefore found without parsing its JSON.
type frames struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (frames) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frameReader{Closer: r, lines: bufio.NewReader(r)}
}

type frameReader struct {
	io.Closer
	lines *bufio.Reader
	frame []byte // the part of the current event that was not read yet
}

// Read copies the next event to data. If data is too small, it returns io.ErrShortBuffer, and the next call copies the
// rest of the event.
func (r *frameReader) Read(data []byte) (int, error) {
	if len(r.frame) == 0 {
		frame, err := r.next()
		if err != nil {
			return 0, err
		}
		r.frame = frame
	}
	n := copy(data, r.frame)
	if r.frame = r.frame[n:]; len(r.frame) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// next returns the next event. The bytes are valid until the next call.
func (r *frameReader) next() ([]byte, error) {
	var before []byte // earlier lines of an event that a proxy has split
	var count answer.Counter
	for {
		line, err := r.line()
		count.Add(line)
		whole := bytes.TrimSpace(line)
		if len(before) > 0 {
			whole = append(before, line...)
		}
		switch {
		case err == nil && len(whole) == 0:
		case len(whole) > maxFrameBytes:
			return nil, fmt.Errorf("reading a watch: %w", &answer.TooLargeError{What: "an event", Bound: fmt.Sprintf("%d bytes", maxFrameBytes)})
		case len(before) == 0 && bytes.HasPrefix(whole, []byte("{")) && bytes.HasSuffix(whole, []byte("}")), len(before) > 0 && count.Depth == 0 && json.Valid(whole):
			return whole, nil
		case len(before) > 0 && count.Depth == 0:
			return nil, errNoEvent
		case errors.Is(err, io.EOF) && len(whole) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(before) == 0:
			before = bytes.Clone(line)
		default:
			before = whole
		}
	}
}

// line returns the next line, including the newline. If a line is longer than maxFrameBytes, the result is cut, but
// still longer than maxFrameBytes, so that the caller can refuse it.
func (r *frameReader) line() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxFrameBytes {
		line, err = r.lines.ReadSlice('\n')
		long = append(long, line...)
	}
	if len(long) > maxFrameBytes {
		err = nil
	}
	return long, err
}

// events decodes watch events, but not the object in an event. The object is decoded later, if necessary.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder. The decoded event is valid until the next call.
func (s events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	kind, object, ok := split(data)
	if !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = string(kind), object
	gvk := metav1.SchemeGroupVersion.WithKind("WatchEvent")
	return event, &gvk, nil
}

// split splits a watch event into its type and its undecoded object. ok is false if the event does not have the form
// that API servers write.
func split(data []byte) (kind, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	if !ok {
		return nil, nil, false
	}
	kind, object, ok = bytes.Cut(rest, []byte(`"`))
	if !ok || bytes.IndexByte(kind, '\\') >= 0 {
		return nil, nil, false
	}
	object, ok = bytes.CutPrefix(object, []byte(`,"object":{`))
	if !ok || !bytes.HasSuffix(object, []byte("}}")) {
		return nil, nil, false
	}
	start := len(data) - len(object) - 1 // include the opening brace of the object
	return kind, data[start : len(data)-1], true
}
