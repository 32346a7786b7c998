package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxContinueLength is the maximum length, in bytes, of the token with which the next page of a list is requested.
const maxContinueLength = 8 << 10

var errNoList = errors.New("the answer is not a list")

// ListBounds are the bounds of a list that is read object by object.
type ListBounds struct {
	Items     int   // maximum number of objects
	ItemBytes int64 // maximum length of an object, and of the data between objects
}

// List reads a list object by object. items is the name of the field with the objects. An answer without this field is
// an error and no empty list, because API servers never omit it. List calls each with the JSON of every object, which
// is valid until each returns. next is the token with which the next page is requested. It is empty if there are no
// more objects.
func List(r io.Reader, items string, bounds ListBounds, each func(item []byte) error) (next string, err error) {
	l := &listReader{from: r, bounds: bounds}
	l.decoder = json.NewDecoder(l)
	if err := l.open('{'); err != nil {
		return "", err
	}
	found := false
	for l.decoder.More() {
		name, err := l.decoder.Token()
		if err != nil {
			return "", l.cause(err)
		}
		switch name {
		case items:
			found = true
			err = l.items(each)
		case "metadata":
			var metadata struct {
				Continue string `json:"continue"`
			}
			if err = l.decode(&metadata); err == nil && len(metadata.Continue) > maxContinueLength {
				err = tooManyBytes("the continue token of the list", maxContinueLength)
			}
			next = metadata.Continue
		default:
			err = l.decode(&json.RawMessage{})
		}
		if err != nil {
			return "", err
		}
	}
	if _, err := l.decoder.Token(); err != nil {
		return "", l.cause(err)
	}
	if !found {
		return "", fmt.Errorf("the answer has no field %s: %w", items, errNoList)
	}
	return next, nil
}

type listReader struct {
	from    io.Reader
	decoder *json.Decoder
	bounds  ListBounds
	read    int   // number of objects read
	bytes   int64 // bytes read since the last value
	failed  error
}

// Read implements io.Reader. It limits the length of a JSON value, because a json.Decoder holds a whole value in
// memory.
func (l *listReader) Read(p []byte) (int, error) {
	if l.bytes > l.bounds.ItemBytes {
		l.failed = tooManyBytes("an object of the list", l.bounds.ItemBytes)
		return 0, l.failed
	}
	n, err := l.from.Read(p)
	l.bytes += int64(n)
	return n, err
}

// cause returns the reason why the decoder has failed. This is the error of Read if Read has refused a value that is
// too long. Otherwise it is err, the error of the decoder.
func (l *listReader) cause(err error) error {
	if l.failed != nil {
		return l.failed
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (l *listReader) decode(into any) error {
	l.bytes = 0
	if err := l.decoder.Decode(into); err != nil {
		return l.cause(err)
	}
	return nil
}

func (l *listReader) open(delimiter json.Delim) error {
	token, err := l.decoder.Token()
	switch {
	case err != nil:
		return l.cause(err)
	case token != delimiter:
		return errNoList
	}
	return nil
}

func (l *listReader) items(each func(item []byte) error) error {
	token, err := l.decoder.Token()
	switch {
	case err != nil:
		return l.cause(err)
	case token == nil: // null, which Go servers send for an empty list
		return nil
	case token != json.Delim('['):
		return errNoList
	}
	var item json.RawMessage
	for l.decoder.More() {
		if l.read++; l.read > l.bounds.Items {
			return &TooLargeError{What: "the list", Bound: fmt.Sprintf("%d objects", l.bounds.Items)}
		}
		if err := l.decode(&item); err != nil {
			return err
		}
		if err := each(item); err != nil {
			return err
		}
	}
	if _, err := l.decoder.Token(); err != nil {
		return l.cause(err)
	}
	return nil
}
