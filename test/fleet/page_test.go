package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSamples(t *testing.T) {
	const page = `# HELP puts_total Writes.
puts_total 12
puts_total_other 3
requests_total{verb="APPLY",resource="widgets"} 1.5e+03
requests_total{verb="GET",path="a,b=\"c\"}"} 2
`
	tests := map[string]struct {
		name string
		want []Sample
	}{
		"a sample without labels is told from a longer name": {
			name: "puts_total", want: []Sample{{Labels: map[string]string{}, Value: 12}},
		},
		"a label may hold commas, quotes and braces": {
			name: "requests_total", want: []Sample{
				{Labels: map[string]string{"verb": "APPLY", "resource": "widgets"}, Value: 1500},
				{Labels: map[string]string{"verb": "GET", "path": `a,b="c"}`}, Value: 2},
			},
		},
		"a name that is not there gives nothing": {name: "puts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Samples(page, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}
