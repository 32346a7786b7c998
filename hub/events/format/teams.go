package format

import "fmt"

// maxTeamsDetail is the maximum number of characters of an event's text. Teams takes at most 28 KiB for a card.
const maxTeamsDetail = 400

type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	Content     teamsCard `json:"content"`
}

type teamsCard struct {
	Schema  string      `json:"$schema"`
	Type    string      `json:"type"`
	Version string      `json:"version"`
	Body    []teamsText `json:"body"`
}

// teamsText is a RichTextBlock. Unlike a TextBlock, it has no Markdown, so that a text cannot become a link.
type teamsText struct {
	Type    string     `json:"type"`
	Inlines []teamsRun `json:"inlines"`
}

type teamsRun struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Weight   string `json:"weight,omitempty"`
	Size     string `json:"size,omitempty"`
	Color    string `json:"color,omitempty"`
	FontType string `json:"fontType,omitempty"`
	IsSubtle bool   `json:"isSubtle,omitempty"`
}

// Teams returns an adaptive card for a webhook of Workflows in Microsoft Teams. It has no entities, without which a
// card mentions nobody.
func (m Message) Teams() ([]byte, error) {
	color := "Good"
	if isWarning(m.main()) {
		color = "Attention"
	}
	body := []teamsText{line(run(m.title(), maxTitle, teamsRun{Weight: "Bolder", Size: "Medium", Color: color}))}
	listed, more := m.listed()
	for _, n := range listed {
		body = append(body, line(run(Clean(n.Reason)+" ", maxName, teamsRun{Weight: "Bolder"}), run(named(n.Regarding), maxName, teamsRun{FontType: "Monospace"})))
		if n.Detail != "" {
			body = append(body, line(run(Clean(n.Detail), maxTeamsDetail, teamsRun{})))
		}
	}
	if more > 0 {
		body = append(body, line(run(fmt.Sprintf("%d more: see kubectl get events -A", more), maxTitle, teamsRun{})))
	}
	body = append(body,
		line(run("Run: ", maxTitle, teamsRun{}), run(m.main().command(), MaxMessage, teamsRun{FontType: "Monospace"})),
		line(run(m.footer(), maxTitle, teamsRun{Size: "Small", IsSubtle: true})))
	card := teamsCard{Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.2", Body: body}
	return encode(teamsMessage{Type: "message", Attachments: []teamsAttachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: card}}})
}

func line(runs ...teamsRun) teamsText { return teamsText{Type: "RichTextBlock", Inlines: runs} }

func run(text string, limit int, style teamsRun) teamsRun {
	style.Type, style.Text = "TextRun", fit(text, limit, unmentioned)
	return style
}
