package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// ofEveryProcess has the metrics that libraries in the hub serve, with their labels. The end-to-end tests show that
// these metrics have values.
var ofEveryProcess = map[string][]string{
	"process_resident_memory_bytes": nil,
	"process_cpu_seconds_total":     nil,
	"go_goroutines":                 nil,
	"workqueue_depth":               {"name", "controller", "priority"},
}

// ofEveryScrape has the labels that Prometheus adds.
var ofEveryScrape = []string{"job", "instance"}

// selector is one metric in a query, with the labels of the metric that the query uses.
type selector struct {
	metric string
	labels []string
}

// selectors returns the metrics of a query with the labels that the query uses. A label may be used in a matcher, or in
// an aggregation or an operator around the metric.
func selectors(t *testing.T, expr string) []selector {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var all []selector
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		vector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		s := selector{metric: vector.Name}
		for i, around := range path {
			switch around := around.(type) {
			case *parser.AggregateExpr:
				s.labels = append(s.labels, around.Grouping...)
			case *parser.BinaryExpr:
				below := append(path[i+1:len(path):len(path)], node)[0]
				if below == around.RHS && (around.Op == parser.LAND || around.Op == parser.LUNLESS) {
					s.labels = nil // the result has only the labels of the left side
				}
				if around.VectorMatching != nil && around.VectorMatching.On {
					s.labels = append(s.labels, around.VectorMatching.MatchingLabels...)
				}
			}
		}
		for _, matcher := range vector.LabelMatchers {
			if matcher.Name != "__name__" {
				s.labels = append(s.labels, matcher.Name)
			}
		}
		all = append(all, s)
		return nil
	})
	return all
}

// served returns the labels of each metric that the hub serves. It reads docs/metrics.md, which is generated from the
// hub's registry.
func served(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| *`?(hanse_\\w+)`? *\\|([^|]*)\\|([^|]*)\\|").FindAllStringSubmatch(read(t, root, "docs", "metrics.md"), -1) {
		metrics[row[1]] = regexp.MustCompile(`\w+`).FindAllString(row[3], -1)
		if strings.Contains(row[2], "histogram") {
			metrics[row[1]+"_bucket"] = append(metrics[row[1]], "le")
		}
		if strings.Contains(row[2], "summary") {
			metrics[row[1]+"_sum"], metrics[row[1]+"_count"] = metrics[row[1]], metrics[row[1]]
		}
	}
	if len(metrics) == 0 {
		t.Fatal("docs/metrics.md has no rows of metrics")
	}
	for metric, of := range ofEveryProcess {
		metrics[metric] = of
	}
	return metrics
}

// check fails the test if the query uses a metric that does not exist, or a label that the metric does not have.
func check(t *testing.T, where, expr string, metrics map[string][]string) {
	t.Helper()
	for _, s := range selectors(t, expr) {
		of, ok := metrics[s.metric]
		if !ok {
			t.Errorf("%s reads %s, which does not exist: %s", where, s.metric, expr)
			continue
		}
		for _, label := range s.labels {
			if !slices.Contains(of, label) && !slices.Contains(ofEveryScrape, label) {
				t.Errorf("%s reads the label %s of %s, which has %v: %s", where, label, s.metric, of, expr)
			}
		}
	}
}

func TestRulesReadMetricsThatExist(t *testing.T) {
	metrics := served(t)
	rules := renderedRules(t).rules()
	for _, r := range rules {
		if r.Record == "" {
			continue
		}
		check(t, r.Record, r.Expr, metrics)
		level, _, _ := strings.Cut(r.Record, ":") // the name of a recording rule contains its labels
		metrics[r.Record] = map[string][]string{"placement": {"namespace", "placement"}, "cluster": {"cluster"}, "kind": {"kind"}}[level]
	}
	for _, r := range rules {
		if r.Alert != "" {
			check(t, r.Alert, r.Expr, metrics)
		}
	}
}

// board has the part of a dashboard that contains its queries.
type board struct {
	UID        string `json:"uid"`
	Panels     []boardPanel
	Templating struct {
		List []struct {
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

type boardPanel struct {
	Title       string `json:"title"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Targets     []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// boards returns the dashboards of the chart by the key in their ConfigMap.
func boards(t *testing.T) map[string]board {
	t.Helper()
	all := map[string]board{}
	for _, o := range rendered(t, "ConfigMap", "--set", "metrics.dashboards.enabled=true") {
		for key, text := range o["data"].(map[string]any) {
			var b board
			if err := json.Unmarshal([]byte(text.(string)), &b); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			all[key] = b
		}
	}
	return all
}

func TestDashboardsReadMetricsThatExist(t *testing.T) {
	metrics := served(t)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$cluster", ".*", "$kind", ".*")
	for key, b := range boards(t) {
		for _, p := range b.Panels {
			for _, target := range p.Targets {
				check(t, key+", "+p.Title, variables.Replace(target.Expr), metrics)
			}
		}
		for _, v := range b.Templating.List {
			query, _ := v.Query.(string)
			if choice := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(query); choice != nil {
				check(t, key, "count by ("+choice[2]+") ("+choice[1]+")", metrics)
			} else if v.Type == "query" {
				t.Errorf("%s has the variable %v", key, v.Query)
			}
		}
	}
}

func TestThereAreFourDashboardsOfPanelsWithQueries(t *testing.T) {
	all := boards(t)
	for _, name := range []string{"fleet", "cluster", "kinds", "hub"} {
		b, ok := all["hanse-"+name+".json"]
		if !ok || b.UID != "hanse-"+name {
			t.Errorf("the dashboard %s is %q", name, b.UID)
		}
		for _, p := range b.Panels {
			if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
				t.Errorf("the panel %q of %s has no query or no description", p.Title, name)
			}
		}
	}
	if len(all) != 4 {
		t.Errorf("the chart has %d dashboards", len(all))
	}
}

func TestTheDashboardsOfTheChartAreGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	inChart := filepath.Join(root, "charts", "hanse-hub", "files", "dashboards")
	files, err := os.ReadDir(inChart)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		generated, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil || !bytes.Equal(generated, []byte(read(t, inChart, file.Name()))) {
			t.Errorf("%s is not what is generated: run make generate (%v)", file.Name(), err)
		}
	}
}
