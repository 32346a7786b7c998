package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/view/wire"
)

// LogReader prints the lines of logs. It prints each line once.
type LogReader struct {
	// printed has for each log the time of the last printed line. from has for each log the time from which the next
	// request asks for lines.
	printed, from map[logName]time.Time
}

type logName struct{ cluster, pod, container string }

// NewLogReader returns a LogReader that has printed no lines.
func NewLogReader() *LogReader {
	return &LogReader{printed: map[logName]time.Time{}, from: map[logName]time.Time{}}
}

// Print writes the lines of a log that are newer than the last printed line, with a prefix. It escapes control
// characters, because with them a container could change the user's terminal. skips is true if some lines will never be
// printed. This happens if one second has more lines than fit into one answer, because a request names its start only
// in whole seconds.
func (r *LogReader) Print(w io.Writer, cluster string, log wire.ContainerLog) (skips bool) {
	name := logName{cluster, log.Pod, log.Container}
	prefix := fmt.Sprintf("[%s %s %s] ", cluster, printable(log.Pod), printable(log.Container))
	text := log.Text
	if end := strings.LastIndexByte(text, '\n'); log.Cut && end >= 0 {
		text = text[:end] // drop the last line, which is incomplete
	}
	last := r.printed[name]
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		stamp, rest, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		switch {
		case err != nil: // the member has sent no time
			rest = line
		case !at.After(last):
			continue
		default:
			r.printed[name], r.from[name] = at, at
		}
		fmt.Fprintln(w, prefix+escaped(rest))
	}
	if now := r.printed[name]; log.Cut && !last.IsZero() && now.Equal(last) {
		// A request for the same second would return the same lines again. The next request therefore asks from the next
		// second.
		r.from[name] = r.from[name].Truncate(time.Second).Add(time.Second)
		return true
	}
	return false
}

// Since returns the containers of a cluster whose logs were printed, each with the time from which the next request
// asks for lines.
func (r *LogReader) Since(cluster string) (out []wire.LogSince) {
	for name, at := range r.from {
		if name.cluster == cluster {
			out = append(out, wire.LogSince{Pod: name.pod, Container: name.container, Time: metav1.NewTime(at)})
		}
	}
	return out
}

// escaped returns a line whose control characters are replaced, such as \x1b.
func escaped(line string) string {
	if !strings.ContainsFunc(line, hidden) {
		return line
	}
	var out strings.Builder
	for _, r := range line {
		if hidden(r) {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func hidden(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
