package v1alpha1_test

import "strings"

const (
	sinkSpec = "url: https://chat.example.com/hooks/hanse\nsecretRef: {name: chat}\n"
	sinkURL  = "url is https://HOST/PATH, without user, password and fragment"

	needsBoth  = "the format CloudEvents needs url, and secretRef with the signing key"
	needsOne   = "the formats Slack and Teams need either url, or secretRef with an entry url"
	otherEntry = "secretRef.key is for the format CloudEvents alone: Slack and Teams use the entry url, PagerDuty the entry routingKey"
)

var sinkCases = map[string]ruleCase{
	"an address and a Secret": {spec: sinkSpec},
	"everything that can be said": {spec: `
url: https://chat.example.com:8443/hooks/hanse?channel=ops
secretRef: {name: chat, key: key}
caBundle: aGFuc2U=
filter:
  minSeverity: Critical
  kinds: [MemberCluster, Prometheus.monitoring.coreos.com]
  placements: [{namespace: shop, name: widgets}, {name: everywhere}]`},
	"CloudEvents by name":          {spec: sinkSpec + "format: CloudEvents"},
	"Slack with a URL":             {spec: "format: Slack\nurl: https://hooks.slack.com/services/T/B/X"},
	"Teams with a URL":             {spec: "format: Teams\nurl: https://prod.logic.azure.com:443/workflows/a?sig=b"},
	"Slack with a URL in a Secret": {spec: "format: Slack\nsecretRef: {name: chat}"},
	"Teams with a URL in a Secret": {spec: "format: Teams\nsecretRef: {name: chat}"},
	"PagerDuty with a key":         {spec: "format: PagerDuty\nsecretRef: {name: pager}"},
	"PagerDuty in Europe":          {spec: "format: PagerDuty\nurl: https://events.eu.pagerduty.com/v2/enqueue\nsecretRef: {name: pager}"},
	"Slack with two URLs":          {spec: "format: Slack\n" + sinkSpec, says: needsOne},
	"Teams with two URLs":          {spec: "format: Teams\n" + sinkSpec, says: needsOne},
	"Slack without a URL":          {spec: "format: Slack", says: needsOne},
	"Teams without a URL":          {spec: "format: Teams", says: needsOne},
	"PagerDuty without a key":      {spec: "format: PagerDuty", says: "the format PagerDuty needs secretRef with an entry routingKey"},
	"PagerDuty with a URL alone":   {spec: "format: PagerDuty\nurl: https://events.pagerduty.com/v2/enqueue", says: "the format PagerDuty needs secretRef with an entry routingKey"},
	"Slack with another entry":     {spec: "format: Slack\nsecretRef: {name: chat, key: kubeconfig}", says: otherEntry},
	"PagerDuty with another entry": {spec: "format: PagerDuty\nsecretRef: {name: chat, key: kubeconfig}", says: otherEntry},
	"another format":               {spec: "format: Email\n" + sinkSpec, says: `spec.format: Unsupported value: "Email"`},
	"Slack without TLS":            {spec: "format: Slack\nurl: http://hooks.slack.com/services/T/B/X", says: sinkURL},
	"an IPv6 address":              {spec: sinkAt("https://[fd00::1]:8443/")},
	"no URL":                       {spec: "secretRef: {name: chat}", says: needsBoth},
	"no TLS":                       {spec: sinkAt("http://chat.example.com/"), says: sinkURL},
	"another scheme":               {spec: sinkAt("file:///etc/passwd"), says: sinkURL},
	"no host":                      {spec: sinkAt("https:///hooks"), says: sinkURL},
	"no address":                   {spec: sinkAt("chat"), says: sinkURL},
	"a password":                   {spec: sinkAt("https://a:b@chat.example.com/"), says: sinkURL},
	"a fragment":                   {spec: sinkAt("https://chat.example.com/#a"), says: sinkURL},
	"a control character":          {spec: `url: "https://chat.example.com/a\nb"` + "\nsecretRef: {name: chat}", says: sinkURL},
	"a long URL":                   {spec: sinkAt("https://chat.example.com/" + strings.Repeat("a", 1024)), says: "spec.url: Too long"},
	"no Secret":                    {spec: "url: https://chat.example.com/", says: needsBoth},
	"a Secret without a name":      {spec: "url: https://chat.example.com/\nsecretRef: {name: ''}", says: "spec.secretRef.name"},
	"a long name of a Secret":      {spec: "url: https://chat.example.com/\nsecretRef: {name: " + strings.Repeat("a", 254) + "}", says: "spec.secretRef.name: Too long"},
	"an empty key":                 {spec: "url: https://chat.example.com/\nsecretRef: {name: chat, key: ''}", says: "spec.secretRef.key"},
	"an empty CA bundle":           {spec: sinkSpec + "caBundle: ''", says: "spec.caBundle"},
	"a CA bundle that is too long": {spec: sinkSpec + "caBundle: " + strings.Repeat("aaaa", 16385), says: "spec.caBundle"},
	"a CA bundle in PEM": {
		spec: sinkSpec + "caBundle: |\n  -----BEGIN CERTIFICATE-----\n" + strings.Repeat("  MIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn\n", 40) + "  -----END CERTIFICATE-----\n",
		says: `spec.caBundle: Invalid value: want PEM encoded in base64, as base64 -w0 ca.crt prints it`,
	},
	"a CA bundle with lines of base64": {spec: sinkSpec + "caBundle: |\n  aGFuc2U\n  aGFuc2U=\n"},
	"another severity":                 {spec: sinkSpec + "filter: {minSeverity: Error}", says: `spec.filter.minSeverity: Unsupported value: "Error"`},
	"no kinds":                         {spec: sinkSpec + "filter: {kinds: []}", says: "spec.filter.kinds"},
	"101 kinds":                        {spec: sinkSpec + "filter: {kinds: " + many(101, "A%d") + "}", says: "spec.filter.kinds: Too many: 101"},
	"a kind twice":                     {spec: sinkSpec + "filter: {kinds: [A, A]}", says: "spec.filter.kinds[1]: Duplicate value"},
	"a resource as a kind":             {spec: sinkSpec + "filter: {kinds: [placements]}", says: "spec.filter.kinds[0]"},
	"a kind with a version":            {spec: sinkSpec + "filter: {kinds: [apps/v1/Deployment]}", says: "spec.filter.kinds[0]"},
	"no placements":                    {spec: sinkSpec + "filter: {placements: []}", says: "spec.filter.placements"},
	"101 placements":                   {spec: sinkSpec + "filter: {placements: " + many(101, "{name: a%d}") + "}", says: "spec.filter.placements: Too many: 101"},
	"a placement without a name":       {spec: sinkSpec + "filter: {placements: [{namespace: shop}]}", says: "spec.filter.placements[0].name: Required value"},
	"an empty namespace":               {spec: sinkSpec + "filter: {placements: [{namespace: '', name: a}]}", says: "spec.filter.placements[0].namespace"},
}

func sinkAt(url string) string { return "url: '" + url + "'\nsecretRef: {name: chat}" }
