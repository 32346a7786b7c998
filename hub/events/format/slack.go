package format

import (
	"fmt"
	"strings"
)

// Limits of Slack, in characters after the escape.
const (
	maxSlackHeader  = 150
	maxSlackSection = 3000
)

type slackMessage struct {
	Text        string       `json:"text"` // what notifications of the operating system show
	UnfurlLinks bool         `json:"unfurl_links"`
	UnfurlMedia bool         `json:"unfurl_media"`
	Blocks      []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim keeps Slack from turning names and addresses in mrkdwn into mentions and links.
	Verbatim *bool `json:"verbatim,omitempty"`
	Emoji    *bool `json:"emoji,omitempty"`
}

// Slack returns a message for an incoming webhook of Slack.
func (m Message) Slack() ([]byte, error) {
	no := false
	title := fit(m.title(), min(maxTitle, maxSlackHeader), slackEscaped)
	out := slackMessage{Text: title, Blocks: []slackBlock{{Type: "header", Text: &slackText{Type: "plain_text", Text: title, Emoji: &no}}}}
	listed, more := m.listed()
	for _, n := range listed {
		head := fmt.Sprintf("*%s* `%s`\n", fit(Clean(n.Reason), maxName, slackEscaped), fit(named(n.Regarding), maxName, slackEscaped))
		detail := fit(Clean(n.Detail), min(MaxMessage, maxSlackSection-2*maxName-20), slackEscaped)
		if detail != "" {
			detail = "```" + detail + "```"
		}
		out.Blocks = append(out.Blocks, section(head+detail))
	}
	if more > 0 {
		out.Blocks = append(out.Blocks, section(fmt.Sprintf("%d more: see `kubectl get events -A`", more)))
	}
	out.Blocks = append(out.Blocks,
		section("Run: `"+fit(m.main().command(), MaxMessage, slackEscaped)+"`"),
		slackBlock{Type: "context", Elements: []slackText{*section(fit(m.footer(), maxTitle, slackEscaped)).Text}})
	return encode(out)
}

func section(text string) slackBlock {
	yes := true
	return slackBlock{Type: "section", Text: &slackText{Type: "mrkdwn", Text: text, Verbatim: &yes}}
}

var slackSpecial = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'")

// slackEscaped returns a text for a code span of mrkdwn. Slack reads mentions and links only between < and >, also in
// code. A backtick would end the code.
func slackEscaped(text string) string { return slackSpecial.Replace(unmentioned(text)) }
