package canonical

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Compress returns the text compressed by gzip. Equal texts give the same bytes.
func Compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compressing %d bytes: %w", len(text), err)
	}
	return out.Bytes(), nil
}

// Decompress returns the text that Compress has compressed. It returns an error if the text is longer than maxBytes.
func Decompress(compressed []byte, maxBytes int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("decompressing %d bytes: %w", len(compressed), err)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(maxBytes)+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing %d bytes: %w", len(compressed), err)
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("the text has more than %d bytes when it is decompressed", maxBytes)
	}
	return text, nil
}
