package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// auditedWrites returns the hub's writes in the audit log of a member, in order: patches, and deletions of single
// objects. It leaves dry runs out.
func auditedWrites(t *testing.T, path string, keep func(auditEvent) bool) []auditEvent {
	t.Helper()
	return auditedRequests(t, path, func(e auditEvent) bool {
		return e.ObjectRef.Subresource == "" && (e.Verb == "patch" || e.Verb == "delete") && keep(e)
	})
}

// auditedRequests returns the hub's requests in the audit log of a cluster, in order. It leaves dry runs out.
func auditedRequests(t *testing.T, path string, keep func(auditEvent) bool) []auditEvent {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	defer func() { _ = file.Close() }()
	var out []auditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Stage != "ResponseComplete" {
			continue
		}
		if strings.HasPrefix(e.UserAgent, "hanse-hub") && !strings.Contains(e.RequestURI, "dryRun") && keep(e) {
			out = append(out, e)
		}
	}
	must(t, lines.Err())
	return out
}
