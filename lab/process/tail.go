package process

import (
	"bytes"
	"io"
	"os"
	"strings"
)

const tailBytes = 64 << 10

// Tail returns the last lines of a log, indented. It returns an empty text if the log cannot be read.
func Tail(log string, lines int) string {
	file, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}
