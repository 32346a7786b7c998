package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// appearLater has the metrics in alerts that have no series before their first event. No alert HanseMetricMissing
// watches these metrics, because the alert would fire on a new hub. If the hub serves no metrics at all, the alert
// HanseHubDown fires.
var appearLater = []string{"hanse_kind_apply_duration_seconds", "hanse_drift_corrected_total", "hanse_notifications_total"}

// ruleSpec is the spec of a PrometheusRule, which is also the content of a rule file of Prometheus.
type ruleSpec struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (s ruleSpec) rules() []rule {
	var all []rule
	for _, g := range s.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// tool returns the path of a tool that hack/tool.sh pins.
func tool(t *testing.T, name string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "tool.sh"), "--path", name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// rendered returns the objects of a kind that helm renders from the chart.
func rendered(t *testing.T, kind string, args ...string) []map[string]any {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), tool(t, "helm"), append([]string{"template", "release", filepath.Join(root, "charts", "hanse-hub"),
		"--namespace", "hanse-system", "--show-only", "templates/metrics.yaml"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rendering the chart: %v: %s", err, stderr.Bytes())
	}
	var objects []map[string]any
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o["kind"] == kind {
			objects = append(objects, o)
		}
	}
	return objects
}

func renderedRules(t *testing.T, args ...string) ruleSpec {
	t.Helper()
	objects := rendered(t, "PrometheusRule", append([]string{"--set", "metrics.prometheusRule.enabled=true"}, args...)...)
	if len(objects) != 1 {
		t.Fatalf("helm rendered %d PrometheusRules", len(objects))
	}
	text, err := yaml.Marshal(objects[0]["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var spec ruleSpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachAlertSaysWhatItMeansAndWhereItsRunbookIs(t *testing.T) {
	for _, r := range renderedRules(t, "--set", "metrics.prometheusRule.runbookURL=https://example.com/runbook").rules() {
		if r.Alert == "" {
			continue
		}
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s needs a summary, a description and a time", r.Alert)
		}
		if got, want := r.Annotations["runbook_url"], "https://example.com/runbook#"+strings.ToLower(r.Alert); got != want {
			t.Errorf("%s links to %s, want %s", r.Alert, got, want)
		}
	}
}

func TestTheRunbookHasASectionForEachAlertAndNoOther(t *testing.T) {
	parts := []string{"**Meaning:** ", "**Impact:** ", "**Diagnosis:**\n\n```console\n$ ", "**Mitigation:** "}
	sections := map[string]bool{}
	for _, section := range strings.Split(read(t, root, "docs", "runbook.md"), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = true
		at := 0
		for _, part := range parts {
			i := strings.Index(text[at:], "\n"+part)
			if i < 0 {
				t.Errorf("the section %s has no %q at its place", name, part)
				break
			}
			at += i
		}
	}
	alerts := map[string]bool{}
	for _, r := range renderedRules(t).rules() {
		if r.Alert == "" {
			continue
		}
		alerts[r.Alert] = true
		if !sections[r.Alert] {
			t.Errorf("docs/runbook.md has no section %s", r.Alert)
		}
	}
	for name := range sections {
		if !alerts[name] {
			t.Errorf("docs/runbook.md has a section %s, and no alert has this name", name)
		}
	}
}

// TestCommandsOfAlertsAndRunbookExist requires that each subcommand of hansectl in the alerts and the runbook has a
// section in docs/hansectl.md.
func TestCommandsOfAlertsAndRunbookExist(t *testing.T) {
	known := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(read(t, root, "docs", "hansectl.md"), -1) {
		for _, word := range regexp.MustCompile(`[a-z-]+`).FindAllString(heading[1], -1) {
			known[word] = true
		}
	}
	for _, file := range []string{"docs/runbook.md", "charts/hanse-hub/files/rules.yaml"} {
		commands := regexp.MustCompile(`hansectl ([a-z-]+)`).FindAllStringSubmatch(read(t, root, file), -1)
		if len(commands) == 0 {
			t.Errorf("%s names no command", file)
		}
		for _, command := range commands {
			if !known[command[1]] {
				t.Errorf("%s names %s, which docs/hansectl.md does not have", file, command[0])
			}
		}
	}
}

func TestEachThresholdIsUsedAndFilledIn(t *testing.T) {
	var values struct {
		Metrics struct {
			PrometheusRule struct {
				Thresholds map[string]float64 `json:"thresholds"`
			} `json:"prometheusRule"`
		} `json:"metrics"`
	}
	if err := yaml.Unmarshal([]byte(read(t, root, "charts", "hanse-hub", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	file := read(t, root, "charts", "hanse-hub", "files", "rules.yaml")
	for name := range values.Metrics.PrometheusRule.Thresholds {
		if !strings.Contains(file, "${"+name+"}") {
			t.Errorf("no rule uses the threshold %s", name)
		}
	}
	for _, r := range renderedRules(t, "--set", "metrics.prometheusRule.thresholds.queueDepth=2000000").rules() {
		if strings.Contains(r.Expr+r.Annotations["runbook_url"], "${") {
			t.Errorf("%s%s is not filled in: %s", r.Alert, r.Record, r.Expr)
		}
		if r.Alert == "HanseMemberQueueLong" && !strings.Contains(r.Expr, "> 2000000 ") && !strings.Contains(r.Expr, "> 2e+06 ") {
			t.Errorf("the threshold of %s is not that of the values: %s", r.Alert, r.Expr)
		}
	}
}

// TestPromtool runs the tests in testdata/ against the rules that the chart renders. It removes the texts of the
// alerts, which each test would have to repeat.
func TestPromtool(t *testing.T) {
	spec := renderedRules(t)
	for _, g := range spec.Groups {
		for i, r := range g.Rules {
			if r.Alert != "" {
				g.Rules[i].Annotations = map[string]string{"summary": r.Annotations["summary"]}
			}
		}
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "rules"}
	for _, name := range promtoolTests(t) {
		args = append(args, filepath.Base(name))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(read(t, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, args} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func promtoolTests(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata has no tests of promtool: %v", err)
	}
	return names
}

func TestEachAlertHasATestInWhichItFiresAndOneInWhichItDoesNot(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	missing := map[string]bool{} // metrics for which HanseMetricMissing fires
	for _, name := range promtoolTests(t) {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string `json:"alertname"`
					ExpAlerts []struct {
						ExpLabels map[string]string `json:"exp_labels"`
					} `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal([]byte(read(t, name)), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, alert := range test.AlertRuleTest {
				fires[alert.Alertname] = fires[alert.Alertname] || len(alert.ExpAlerts) > 0
				silent[alert.Alertname] = silent[alert.Alertname] || len(alert.ExpAlerts) == 0
				for _, expected := range alert.ExpAlerts {
					missing[expected.ExpLabels["metric"]] = true
				}
			}
		}
	}
	for _, r := range renderedRules(t).rules() {
		if r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s fires in a test: %t, is silent in one: %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		if metric := r.Labels["metric"]; metric != "" && !missing[metric] {
			t.Errorf("no test has %s missing", metric)
		}
	}
}

// reasonsAppearLater has metrics with the label reason. An alert reads only one value of this label. The absent() of
// such a metric does not select this value. The series of a reason appears only with the first copy that has this
// reason.
var reasonsAppearLater = []string{"hanse_cluster_copies_by_reason"}

// TestEachMetricOfAnAlertIsPairedWithAnAbsent requires an absent() in HanseMetricMissing or HanseHubDown for each
// metric in an alert, because an alert without its metric never fires. If an alert uses a recording rule, the test
// checks the metrics in that rule.
func TestEachMetricOfAnAlertIsPairedWithAnAbsent(t *testing.T) {
	spec := renderedRules(t)
	records, watched, told := map[string]string{}, map[string]bool{}, map[string]*regexp.Regexp{}
	for _, r := range spec.rules() {
		if r.Record != "" {
			records[r.Record] = r.Expr
		}
		if r.Alert == "HanseHubDown" || r.Alert == "HanseMetricMissing" {
			absent := regexp.MustCompile(`^absent\(((\w+)[^)]*)\)`).FindStringSubmatch(r.Expr)
			if metric := r.Labels["metric"]; metric != "" && absent[2] != metric {
				t.Errorf("the rule for %s is %s", metric, r.Expr)
			}
			watched[absent[2]] = true
			told[absent[2]] = regexp.MustCompile(regexp.QuoteMeta(absent[1]) + `([^\w{]|$)`)
		}
	}
	used := map[string]bool{}
	var follow func(expr string)
	follow = func(expr string) {
		for _, s := range selectors(t, expr) {
			if record, ok := records[s.metric]; ok {
				follow(record)
				continue
			}
			used[s.metric] = true
		}
	}
	for _, r := range spec.rules() {
		if r.Alert != "" && r.Alert != "HanseMetricMissing" {
			follow(r.Expr)
		}
	}
	for metric := range used {
		if watched[metric] == slices.Contains(appearLater, metric) {
			t.Errorf("alerts read %s, and its absence is told: %t", metric, watched[metric])
		}
	}
	for metric, selector := range told {
		if !slices.Contains(reasonsAppearLater, metric) && !slices.ContainsFunc(spec.rules(), func(r rule) bool {
			return r.Alert != "HanseMetricMissing" && r.Alert != "HanseHubDown" && selector.MatchString(r.Expr)
		}) {
			t.Errorf("the absence of %s is told by a selector that no alert has: an alert may miss its series unnoticed", metric)
		}
	}
	for metric := range watched {
		if !used[metric] {
			t.Errorf("the absence of %s is told, and no alert reads it", metric)
		}
	}
}
