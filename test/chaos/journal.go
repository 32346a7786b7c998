package chaos

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// journal has a line for each step with its time and result.
type journal struct {
	mu    sync.Mutex
	file  io.Writer
	lines []string
}

func (j *journal) log(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	j.lines = append(j.lines, line)
	_, _ = fmt.Fprintln(j.file, line)
}

// last returns the last n lines.
func (j *journal) last(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[max(0, len(j.lines)-n):], "\n")
}
