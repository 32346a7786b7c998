package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestThePageOfNotificationsNamesTheCriticalEvents requires that each Critical reason is the reason of an event, and is
// in its row of docs/notifications.md.
func TestThePageOfNotificationsNamesTheCriticalEvents(t *testing.T) {
	root := filepath.Join("..", "..")
	known := reasonConstants(t, filepath.Join(root, "api", "v1alpha1", "conditions.go"))
	recorded := map[string]bool{}
	for _, row := range reasonRows(chapters(t, filepath.Join(root, "docs", "conditions.md"), "Events")) {
		for _, reason := range row.reasons {
			recorded[reason], known[reason] = true, true
		}
	}
	page := chapters(t, filepath.Join(root, "docs", "notifications.md"), "Severity and filters")
	row := regexp.MustCompile("(?m)^\\| `Critical` \\|(.*)$").FindString(page)
	for reason := range known {
		critical := hubv1.SeverityOf(corev1.EventTypeWarning, reason) == hubv1.SeverityCritical
		if critical && !recorded[reason] {
			t.Errorf("%s is Critical, and is the reason of no event in docs/conditions.md", reason)
		}
		if named := strings.Contains(row, "`"+reason+"`"); named != critical {
			t.Errorf("%s is Critical: %v; in the row of docs/notifications.md: %v", reason, critical, named)
		}
	}
}
