package rollup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// many repeats a YAML item n times, each time with its number.
func many(item string, n int) string {
	items := make([]string, 0, n)
	for i := range n {
		items = append(items, fmt.Sprintf(item, i))
	}
	return strings.Join(items, ", ")
}

// wired returns the outcome after it was encoded as YAML and decoded again.
func wired(t *testing.T, o outcomeOf) outcomeOf {
	t.Helper()
	data, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out outcomeOf
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReducers(t *testing.T) {
	// reduce returns a scenario with a field x that three clusters report.
	reduce := func(reducer, schema, a, b, c string) string {
		return fmt.Sprintf("schema: {x: %s}\nstatusAggregation: {reducers: [{path: /status/x, %s}]}\nclusters: {a: {x: %s}, b: {x: %s}, c: {x: %s}}\n", schema, reducer, a, b, c)
	}
	const (
		integer, number, text, boolean = "{type: integer}", "{type: number}", "{type: string}", "{type: boolean}"
		texts                          = "{type: array, items: {type: string}}"
	)
	tests := map[string]struct {
		in, want string
	}{
		"a sum of any numbers":                            {in: reduce("reducer: Sum", integer, "1", "2", "4"), want: "{status: {x: 7}}"},
		"a sum of fractions":                              {in: reduce("reducer: Sum", number, "1.5", "2.25", "0"), want: "{status: {x: 3.75}}"},
		"a sum of fractions that shall be whole":          {in: reduce("reducer: Sum", integer, "1.5", "2.25", "0"), want: "{leftOut: [x]}"},
		"a sum of quantities":                             {in: reduce("reducer: Sum", text, "1Gi", "512Mi", "512Mi"), want: "{status: {x: 2Gi}}"},
		"a sum of quantities and large numbers":           {in: reduce("reducer: Sum", text, "1Gi", "2097152", "1Gi"), want: "{status: {x: 2050Mi}}"},
		"a sum of quantities and small numbers":           {in: reduce("reducer: Sum", text, "1m", "0.00001", "1"), want: "{status: {x: 1001010u}}"},
		"a number with too many digits":                   {in: reduce("reducer: Sum", text, "1Gi", "1e300", "1Gi"), want: "{leftOut: [x]}"},
		"no sum of words":                                 {in: reduce("reducer: Sum", text, "1Gi", "lots", "1Gi"), want: "{leftOut: [x]}"},
		"a number with a long exponent is no quantity":    {in: reduce("reducer: Sum", text, "1e999999999", "1Gi", "1Gi"), want: "{leftOut: [x]}"},
		"the last of an away cluster counts":              {in: reduce("reducer: Sum", integer, "1", "2", "4") + "away: [c]", want: "{status: {x: 7}}"},
		"the least number":                                {in: reduce("reducer: Min", integer, "3", "2", "4"), want: "{status: {x: 2}}"},
		"the greatest number":                             {in: reduce("reducer: Max", integer, "3", "2", "4"), want: "{status: {x: 4}}"},
		"the least quantity":                              {in: reduce("reducer: Min", text, "1Gi", "1000Mi", "2Gi"), want: "{status: {x: 1000Mi}}"},
		"the first time":                                  {in: reduce("reducer: Min", text, "'2026-01-02T00:00:00Z'", "'2026-01-01T23:30:00-01:00'", "'2026-01-03T00:00:00Z'"), want: "{status: {x: '2026-01-02T00:00:00Z'}}"},
		"the last time":                                   {in: reduce("reducer: Latest", text, "'2026-01-02T00:00:00Z'", "'2026-01-01T23:30:00-01:00'", "'2026-01-01T00:00:00Z'"), want: "{status: {x: '2026-01-01T23:30:00-01:00'}}"},
		"no last time of words":                           {in: reduce("reducer: Latest", text, "never", "'2026-01-01T23:30:00-01:00'", "'2026-01-01T00:00:00Z'"), want: "{leftOut: [x]}"},
		"true on all":                                     {in: reduce("reducer: All", boolean, "true", "true", "true"), want: "{status: {x: true}}"},
		"false on one is not true on all":                 {in: reduce("reducer: All", boolean, "true", "false", "true") + "away: [c]", want: "{status: {x: false}}"},
		"with one away nobody knows whether all are true": {in: reduce("reducer: All", boolean, "true", "true", "true") + "away: [c]", want: "{leftOut: [x]}"},
		"true on one is true on any":                      {in: reduce("reducer: Any", boolean, "true", "false", "false") + "away: [c]", want: "{status: {x: true}}"},
		"false on all is not true on any":                 {in: reduce("reducer: Any", boolean, "false", "false", "false"), want: "{status: {x: false}}"},
		"the worst word":                                  {in: reduce("reducer: Worst", text, "Ready", "Pending", "Ready"), want: "{status: {x: Pending}}"},
		"the worst word with one away":                    {in: reduce("reducer: Worst", text, "Ready", "Pending", "Ready") + "away: [c]", want: "{status: {x: Unknown}}"},
		"a word that nobody can weigh":                    {in: reduce("reducer: Worst", text, "Ready", "Sideways", "Ready"), want: "{leftOut: [x]}"},
		"the first by name":                               {in: reduce("reducer: First", text, "null", "two", "three"), want: "{status: {x: two}}"},
		"different values as one text":                    {in: reduce("reducer: Join", text, "v2", "v1", "v2"), want: "{status: {x: 'v1, v2'}}"},
		"different values as a list":                      {in: reduce("reducer: Join", texts, "[b, a]", "[a]", "[c]"), want: "{status: {x: [a, b, c]}}"},
		"an expression over what is reported":             {in: reduce("reducer: CEL, expression: 'values.map(v, v.value).max() - values.map(v, v.value).min()'", integer, "1", "null", "4"), want: "{status: {x: 3}}"},
		"an expression over clusters":                     {in: reduce("reducer: CEL, expression: 'values.filter(v, v.value > 1).map(v, v.cluster)'", texts, "1", "2", "4"), want: "{status: {x: [b, c]}}"},
		"an expression that fails leaves the field out":   {in: reduce("reducer: CEL, expression: 'values[7].value'", integer, "1", "2", "4"), want: "{leftOut: [x]}"},
		"an expression that cannot be read is an error":   {in: reduce("reducer: CEL, expression: 'value'", integer, "1", "2", "4"), want: "{error: \"statusAggregation.reducers[0].expression: line 1, column 1: undeclared reference to 'value'\"}"},
		"what the schema does not have is left out":       {in: strings.Replace(reduce("reducer: Sum", integer, "1", "2", "4"), "/status/x", "/status/z", 1), want: "{leftOut: [x, z]}"},
		"what nobody reports is not there":                {in: reduce("reducer: Sum", integer, "null", "null", "null"), want: "{}"},
		"a cluster that was not asked yet holds it back":  {in: reduce("reducer: Join", texts, "[a]", "[b]", "[c]") + "unasked: [b]", want: "{leftOut: [x]}"},
		"but not what it reports anyway":                  {in: reduce("reducer: Sum", integer, "1", "2", "4") + "unasked: [b]", want: "{status: {x: 7}}"},
		"a value that is too large on one cluster takes nothing else with it": {
			in: `
schema:
  x: {type: string}
  replicas: {type: integer}
  conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}
statusAggregation: {reducers: [{path: /status/x, reducer: First}]}
clusters:
  a: {x: ` + strings.Repeat("v", 300) + `, replicas: 1, conditions: [{type: Ready, status: 'True'}]}
  b: {x: two, conditions: [{type: Ready, status: 'True'}, {type: Stalled, status: 'False'}]}`,
			want: "{status: {replicas: 1, conditions: [{type: Ready, status: 'True'}, {type: Stalled, status: 'False'}, {type: hanse.dev/Healthy, status: 'True'}]}, leftOut: [x]}",
		},
		"a map that is too large is left out though some of it is reported": {
			in:   "schema: {x: {type: object, x-kubernetes-preserve-unknown-fields: true}}\nstatusAggregation: {reducers: [{path: /status/x, reducer: First}]}\nclusters: {a: {x: {replicas: 1, text: " + strings.Repeat("v", 300) + "}}}",
			want: "{leftOut: [x]}",
		},
		"a large value is all that a cluster reports": {
			in:   "schema: {x: {type: string}}\nstatusAggregation: {reducers: [{path: /status/x, reducer: First}]}\nclusters: {a: {x: " + strings.Repeat("v", 300) + "}, b: {x: two}}",
			want: "{leftOut: [x]}",
		},
		"a nested field": {
			in: `
schema: {disk: {type: object, properties: {used: {type: string}, free: {type: string}}}}
statusAggregation: {reducers: [{path: /status/disk/used, reducer: Sum}]}
clusters: {a: {disk: {used: 1Gi, free: 1Gi}}, b: {disk: {used: 2Gi, free: 1Gi}}}`,
			want: "{status: {disk: {used: 3Gi}}, leftOut: [disk.free]}",
		},
		"a count that belongs to one cluster can be summed if that is asked for": {
			in:   "schema: {shards: {type: integer}}\nstatusAggregation: {reducers: [{path: /status/shards, reducer: Sum}]}\nclusters: {a: {shards: 1}, b: {shards: 2}}",
			want: "{status: {shards: 3}}",
		},
		"but an address is never said of all": {
			in:   "schema: {url: {type: string}}\nstatusAggregation: {reducers: [{path: /status/url, reducer: First}]}\nclusters: {a: {url: 'http://a'}, b: {url: 'http://b'}}",
			want: "{leftOut: [url]}",
		},
		"a name with a slash": {
			in:   "schema: {a/b: {type: integer}}\nstatusAggregation: {reducers: [{path: /status/a~1b, reducer: Sum}]}\nclusters: {a: {a/b: 1}, b: {a/b: 2}}",
			want: "{status: {a/b: 3}}",
		},
		"a polarity that the hub does not know": {
			in: `
schema: {conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string, enum: ['True', 'False', Unknown]}}}}}
statusAggregation: {conditionPolarity: [{type: Serving, polarity: Positive}, {type: Slow, polarity: Negative}]}
clusters: {a: {conditions: [{type: Serving, status: 'True'}, {type: Slow, status: 'False'}]}, b: {conditions: [{type: Serving, status: 'False'}, {type: Slow, status: 'True'}]}}`,
			want: "{status: {conditions: [{type: Serving, status: 'False'}, {type: Slow, status: 'True'}, {type: hanse.dev/Healthy, status: 'True'}]}}",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var want outcomeOf
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, wired(t, readScenario(t, tc.in).merge(t))); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// A row without a UID may still have a status: the watch can show a copy before the hub's write of this copy is
// confirmed.
func TestAReducerWaitsForWhatACopyWithoutUIDMayHave(t *testing.T) {
	s := readScenario(t, `
schema: {x: {type: string}, replicas: {type: integer}}
statusAggregation: {reducers: [{path: /status/x, reducer: First}]}
clusters: {a: {x: `+strings.Repeat("v", 300)+`, replicas: 1}, b: {x: two, replicas: 1}}`)
	schema, _, err := NewSchema(s.crd(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := NewRules(s.StatusAggregation)
	if err != nil {
		t.Fatal(err)
	}
	rows, targets := s.rows()
	rows[0].UID = ""
	status, leftOut, err := MergeStatus(schema, rules, s.template(), rows, targets, noon)
	if diff := cmp.Diff(map[string]any{"replicas": int64(2)}, status) + cmp.Diff([]string{"x"}, leftOut); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
