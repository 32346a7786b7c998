package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// maxListed is the maximum number of events in a message.
	maxListed = 8
	// maxTitle and maxName are the maximum numbers of characters in a title and in the name of an object.
	maxTitle, maxName = 150, 150
)

// Message has the notices of one cause for a chat.
type Message struct {
	// Hub is the UID of the hub.
	Hub string
	// Notices has at least one notice, in the order in which they were recorded.
	Notices []Notice
	// Left is the number of further notices.
	Left int
}

var urgency = map[hubv1.NotificationSeverity]int{hubv1.SeverityNormal: 0, hubv1.SeverityWarning: 1, hubv1.SeverityCritical: 2}

// AtLeast reports whether a severity is as urgent as another one.
func AtLeast(severity, than hubv1.NotificationSeverity) bool {
	return urgency[severity] >= urgency[than]
}

// main returns the most urgent notice. Among equal ones, it is one about a placement as a whole, and then the first.
func (m Message) main() Notice {
	best := m.Notices[0]
	for _, n := range m.Notices[1:] {
		switch a, b := urgency[n.Severity()], urgency[best.Severity()]; {
		case a > b, a == b && IsPlacement(&n.Regarding) && !IsPlacement(&best.Regarding):
			best = n
		}
	}
	return best
}

// title returns one line, such as "Critical: Placement shop/web: RemovalHeld (and 3 more events)".
func (m Message) title() string {
	n := m.main()
	out := fmt.Sprintf("%s: %s: %s", n.Severity(), named(n.Regarding), Clean(n.Reason))
	if more := len(m.Notices) + m.Left - 1; more == 1 {
		out += " (and 1 more event)"
	} else if more > 1 {
		out += fmt.Sprintf(" (and %d more events)", more)
	}
	return out
}

// listed returns the notices that a message shows, with the most urgent one first, and the number of the others.
func (m Message) listed() ([]Notice, int) {
	first := m.main()
	out := []Notice{first}
	for _, n := range m.Notices {
		if n.ID != first.ID && len(out) < maxListed {
			out = append(out, n)
		}
	}
	return out, len(m.Notices) + m.Left - len(out)
}

// footer names the hub and the time.
func (m Message) footer() string {
	return fmt.Sprintf("hub %s, %s", m.Hub, m.main().At.UTC().Format(time.RFC3339))
}

// command returns the command by which a user sees more about a notice, or decides.
func (n Notice) command() string {
	r := n.Regarding
	kind := kindOf(r)
	if isOurs(r) {
		kind = strings.ToLower(r.Kind)
	}
	namespace := ""
	if r.Namespace != "" {
		namespace = " -n " + word(r.Namespace)
	}
	object := word(kind) + "/" + word(r.Name) + namespace
	switch {
	case n.Reason == hubv1.ReasonRemovalHeld:
		return "hansectl confirm " + object
	case strings.HasPrefix(n.Action, "RollOut"):
		return "hansectl rollout status " + object
	case isOurs(r) && (r.Kind == "MemberCluster" || r.Kind == sinkKind):
		return "kubectl describe " + object
	case isOurs(r) && r.Kind == hubv1.FederatedOperatorKind:
		return "hansectl operators " + word(r.Name)
	}
	return "hansectl status " + object
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)

// word returns a text as one word for a shell, or NAME for one that a shell might read in another way. Names of some
// kinds, such as ClusterRoles, may have any characters, and users paste the command.
func word(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "NAME"
}

// fit escapes a text, and shortens it before until the result has at most the given number of characters.
func fit(text string, limit int, escape func(string) string) string {
	for n := limit; ; n -= max(1, n/10) {
		if out := escape(hubv1.CutMessage(text, n)); utf8.RuneCountInString(out) <= limit {
			return out
		}
	}
}

// encode returns JSON in which < and > stay, because each format escapes them in its own way.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func isWarning(n Notice) bool { return n.Type == corev1.EventTypeWarning }
