package events

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

func TestASecretAuthenticatesByTheEntryOfTheFormat(t *testing.T) {
	t.Parallel()
	const key, hook = "R0123456789abcdefghijklmnopqrstu", "https://hooks.slack.com/services/T/B/X"
	for name, tc := range map[string]struct {
		format       hubv1.NotificationFormat
		entry, value string
		url          string // of the result
		says         string
	}{
		"Slack has its URL in the entry url":       {hubv1.FormatSlack, "url", hook, hook, ""},
		"Teams has its URL in the entry url":       {hubv1.FormatTeams, "url", hook, hook, ""},
		"PagerDuty has a key and a default URL":    {hubv1.FormatPagerDuty, "routingKey", key, format.DefaultPagerDutyURL, ""},
		"a URL without TLS":                        {hubv1.FormatSlack, "url", "http://hooks.slack.com/a", "", errURL.Error()},
		"a URL with a password":                    {hubv1.FormatSlack, "url", "https://a:b@hooks.slack.com/a", "", errURL.Error()},
		"a URL that is too long":                   {hubv1.FormatSlack, "url", hook + strings.Repeat("a", 1024), "", errURL.Error()},
		"a URL in another entry":                   {hubv1.FormatSlack, "signingKey", hook, "", errURL.Error()},
		"a key in another entry":                   {hubv1.FormatPagerDuty, "token", key, "", "must be an integration key of PagerDuty"},
		"a key that would change the JSON":         {hubv1.FormatPagerDuty, "routingKey", `R0123456789abcdefgh","a":"`, "", "must be an integration key of PagerDuty"},
		"a key with a line break at its end":       {hubv1.FormatPagerDuty, "routingKey", key + "\n", format.DefaultPagerDutyURL, ""},
		"a URL with a line break at its end":       {hubv1.FormatSlack, "url", hook + "\n", hook, ""},
		"a key of two lines":                       {hubv1.FormatPagerDuty, "routingKey", key + "\n" + key, "", "must be an integration key of PagerDuty"},
		"a URL in place of a signing key is a key": {hubv1.FormatCloudEvents, "signingKey", hook, "", errKey.Error()},
	} {
		to := target{format: tc.format}
		_, err := to.read(&corev1.Secret{Data: map[string][]byte{tc.entry: []byte(tc.value)}}, "")
		switch {
		case tc.says == "" && (err != nil || to.url != tc.url):
			t.Errorf("%s: got URL %q and error %v", name, to.url, err)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		case err != nil && strings.Contains(err.Error(), tc.value):
			t.Errorf("%s: the error quotes the Secret", name)
		}
	}
}

func TestAMessageOfAnEarlierFormatIsDropped(t *testing.T) {
	t.Parallel()
	c := sinkClient{within: quick.within}
	o := c.deliver(t.Context(), target{format: hubv1.FormatSlack}, &message{format: hubv1.FormatCloudEvents})
	if !o.refused || !errors.Is(o.failure, errFormat) {
		t.Errorf("got %+v", o)
	}
}
