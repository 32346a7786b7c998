package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestTheAuditLogGivesEachDeletionOfTheHubOnce writes a log in two parts, the first of which ends within a line.
func TestTheAuditLogGivesEachDeletionOfTheHubOnce(t *testing.T) {
	line := func(user, verb, resource, namespace, query string, code int) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","stageTimestamp":"2026-01-02T03:04:05.000006Z","verb":%q,"user":{"username":%q},"requestURI":"/x%s",`+
			`"objectRef":{"resource":%q,"namespace":%q,"name":"o-1"},"responseStatus":{"code":%d}}`+"\n", verb, user, query, resource, namespace, code)
	}
	deleted := line("hub", "delete", "widgets", everywhere, "", 200)
	others := line("admin", "delete", "widgets", everywhere, "", 200) + line("hub", "patch", "widgets", everywhere, "", 200) +
		line("hub", "delete", "widgets", everywhere, "", 404) + line("hub", "delete", "widgets", everywhere, "?dryRun=All", 200) +
		line("hub", "delete", "leases", everywhere, "", 200) + line("hub", "delete", "widgets", "kube-system", "", 200)
	path := filepath.Join(t.TempDir(), "audit.log")
	log := &auditLog{member: "member-1", path: path, user: "hub"}
	for _, step := range []struct {
		content string
		want    int
	}{
		{content: deleted + others + deleted[:40], want: 1},
		{content: deleted[40:] + "torn{" + "\n" + line("hub", "deletecollection", "secrets", kept, "", 200), want: 2},
		{content: "", want: 0},
	} {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(step.content); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		got, err := log.deletions()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != step.want {
			t.Errorf("%d deletions after %q, want %d", len(got), step.content, step.want)
		}
		for _, d := range got {
			if d.Member != "member-1" || d.Key.Name != "o-1" || d.At.IsZero() {
				t.Errorf("a deletion is %+v", d)
			}
		}
	}
}
