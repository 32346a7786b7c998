package replicas

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// clusters parses a text such as "eu 3 min=1 max=4 room=9 held=2; us 1": each cluster has a name, a weight, and
// optional numbers. The word "fixed" has no number.
func clusters(t *testing.T, text string) []Cluster {
	t.Helper()
	var out []Cluster
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		c := Cluster{Name: words[0], Max: Unlimited, Room: Unlimited}
		if _, err := fmt.Sscan(words[1], &c.Weight); err != nil {
			t.Fatal(err)
		}
		for _, word := range words[2:] {
			var n int64
			key, value, _ := strings.Cut(word, "=")
			if key != "fixed" {
				if _, err := fmt.Sscan(value, &n); err != nil {
					t.Fatal(err)
				}
			}
			switch key {
			case "min":
				c.Min = n
			case "max":
				c.Max = n
			case "room":
				c.Room = n
			case "held":
				c.Held = &n
			case "fixed":
				c.Fixed = true
			default:
				t.Fatalf("what is %q?", word)
			}
		}
		out = append(out, c)
	}
	return out
}

func TestDivide(t *testing.T) {
	t.Parallel()
	const capacity, packed, kubeFed = hubv1.DivideByCapacity, hubv1.DivideByPack, hubv1.DivideByKubeFed
	tests := map[string]struct {
		by        hubv1.DivideBy
		total     int64
		clusters  string
		unsettled bool
		rebalance bool
		want      string
		rest      int64
	}{
		"10 over three equal clusters are 4, 3 and 3":                       {total: 10, clusters: "a 1; b 1; c 1", want: "a4 b3 c3"},
		"12 over seven equal clusters leave none without":                   {total: 12, clusters: "a 1; b 1; c 1; d 1; e 1; f 1; g 1", want: "a2 b2 c2 d2 e2 f1 g1"},
		"fewer than before are taken from all":                              {total: 6, clusters: "a 1 held=3; b 1 held=3; c 1 held=3", want: "a2 b2 c2"},
		"weights are followed":                                              {total: 12, clusters: "a 3; b 2; c 1", want: "a6 b4 c2"},
		"the largest remainder gets the odd one":                            {total: 10, clusters: "a 6; b 3; c 3", want: "a5 b3 c2"},
		"who has the odd one keeps it":                                      {total: 10, clusters: "a 1 held=3; b 1 held=3; c 1 held=4", want: "a3 b3 c4"},
		"a new cluster takes from all no more than it must":                 {total: 10, clusters: "a 1 held=5; b 1 held=5; c 1", want: "a4 b3 c3"},
		"a cluster that went leaves its share to the others":                {total: 10, clusters: "a 1 held=4; b 1 held=3", want: "a5 b5"},
		"a weight of nothing gets nothing":                                  {total: 10, clusters: "a 1; b 0", want: "a10 b0"},
		"a weight of nothing gets what it must":                             {total: 10, clusters: "a 1; b 0 min=2", want: "a8 b2"},
		"no weight at all leaves everything over":                           {total: 10, clusters: "a 0; b 0", want: "a0 b0", rest: 10},
		"nothing is divided between nobody":                                 {total: 10, clusters: "a 1 max=0", want: "a0", rest: 10},
		"nothing to divide":                                                 {total: 0, clusters: "a 1 held=4; b 1", want: "a0 b0"},
		"the least of one is taken from the others by weight":               {total: 10, clusters: "a 8 ; b 1; c 1 min=4", want: "a5 b1 c4"},
		"the most of one goes to the others by weight":                      {total: 12, clusters: "a 4 max=3; b 2; c 1", want: "a3 b6 c3"},
		"too few for the least of all are divided by weight":                {total: 6, clusters: "a 2 min=6; b 1 min=6; c 0 min=2", want: "a4 b2 c0"},
		"the least of a weight of nothing comes last":                       {total: 13, clusters: "a 2 min=6; b 1 min=6; c 0 min=2", want: "a6 b6 c1"},
		"what is over everybody's most is reported":                         {total: 10, clusters: "a 1 max=2; b 1 max=3", want: "a2 b3", rest: 5},
		"the most wins over the least":                                      {total: 10, clusters: "a 1 min=5 max=2; b 1", want: "a2 b8"},
		"a fixed share counts and stays":                                    {total: 10, clusters: "a 9 held=1 fixed; b 1; c 1", want: "a1 b5 c4"},
		"fixed shares of more than there is are not made up for":            {total: 3, clusters: "a 1 held=5 fixed; b 1", want: "a5 b0"},
		"numbers below nothing are nothing":                                 {total: -4, clusters: "a -1 min=-3 max=-2 held=-7; b 1", want: "a0 b0"},
		"numbers beyond counting are as many as can be":                     {total: math.MaxInt64, clusters: "a 9223372036854775807; b 9223372036854775807", want: "a1073741824 b1073741823"},
		"by capacity: in proportion to what fits":                           {by: capacity, total: 12, clusters: "a 1 room=30; b 1 room=10; c 1 room=20", want: "a6 b2 c4"},
		"by capacity: no more than fits":                                    {by: capacity, total: 12, clusters: "a 1 room=3; b 1 room=2", want: "a3 b2", rest: 7},
		"by capacity: a full cluster goes nowhere":                          {by: capacity, total: 5, clusters: "a 1 room=0; b 1 room=9", want: "a0 b5"},
		"by capacity: a limit moves the rest to the others":                 {by: capacity, total: 12, clusters: "a 1 room=30 max=4; b 1 room=10; c 1 room=10", want: "a4 b4 c4"},
		"by capacity: what is lost moves when it is believed":               {by: capacity, total: 12, clusters: "a 1 room=5 held=6; b 1 room=10 held=6", want: "a4 b8"},
		"by capacity: nothing moves while it is not":                        {by: capacity, total: 12, unsettled: true, clusters: "a 1 room=5 held=6; b 1 room=10 held=6", want: "a6 b6"},
		"by capacity: another total is divided all the same":                {by: capacity, total: 15, unsettled: true, clusters: "a 1 room=5 held=6; b 1 room=10 held=6", want: "a5 b10"},
		"by capacity: another cluster waits for its share":                  {by: capacity, total: 12, unsettled: true, clusters: "a 1 room=10 held=6; b 1 room=10 held=6; c 1 room=10", want: "a6 b6 c0"},
		"by capacity: another limit holds all the same":                     {by: capacity, total: 12, unsettled: true, clusters: "a 1 room=10 max=4 held=6; b 1 room=10 held=6", want: "a4 b8"},
		"packed: the largest comes first":                                   {by: packed, total: 12, clusters: "a 1 room=5; b 1 room=10; c 1 room=10", want: "a0 b10 c2"},
		"packed: who has some is filled before anybody else":                {by: packed, total: 12, clusters: "a 1 room=5 held=4; b 1 room=10; c 1 room=10", want: "a5 b7 c0"},
		"packed: nothing moves that fits":                                   {by: packed, total: 8, clusters: "a 1 room=10 held=4; b 1 room=10 held=4", want: "a4 b4"},
		"packed: the smallest is emptied first":                             {by: packed, total: 9, clusters: "a 1 room=10 held=8; b 1 room=10 held=4", want: "a8 b1"},
		"packed: what no longer fits moves":                                 {by: packed, total: 8, clusters: "a 1 room=3 held=8; b 1 room=10", want: "a3 b5"},
		"packed: everybody's least comes first":                             {by: packed, total: 8, clusters: "a 1 room=10; b 1 room=9 min=2; c 1 room=8 min=1", want: "a5 b2 c1"},
		"packed: too few for the least of all go to the first":              {by: packed, total: 5, clusters: "a 1 room=9 min=3; b 1 room=8 min=3; c 1 room=7 min=3", want: "a3 b2 c0"},
		"packed: what fits nowhere is reported":                             {by: packed, total: 20, clusters: "a 1 room=5; b 1 room=10", want: "a5 b10", rest: 5},
		"kubefed: parts are rounded up":                                     {by: kubeFed, total: 10, clusters: "a 1; b 1; c 1", want: "a2 b4 c4"},
		"kubefed: fewer than before are taken from one":                     {by: kubeFed, total: 6, clusters: "a 1 held=3; b 1 held=3; c 1 held=3", want: "a0 b3 c3"},
		"kubefed: unless it rebalances":                                     {by: kubeFed, total: 6, rebalance: true, clusters: "a 1 held=3; b 1 held=3; c 1 held=3", want: "a2 b2 c2"},
		"kubefed: a most below nothing is no share below nothing":           {by: kubeFed, total: 6, clusters: "a 1 max=-5; b 1", want: "a0 b6"},
		"kubefed: a least above the most does not take more than there are": {by: kubeFed, total: 6, clusters: "a 1 min=9 max=2; b 1", want: "a2 b4"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{By: tc.by, Total: tc.total, Clusters: clusters(t, tc.clusters), Unsettled: tc.unsettled, Rebalance: tc.rebalance}
			got, err := Divide(in)
			if err != nil {
				t.Fatal(err)
			}
			var shares []string
			for _, c := range in.Clusters {
				shares = append(shares, fmt.Sprintf("%s%d", c.Name, got.Shares[c.Name]))
			}
			if diff := cmp.Diff(tc.want, strings.Join(shares, " ")); diff != "" || got.Rest != tc.rest {
				t.Errorf("rest %d, want %d; shares (-want +got):\n%s", got.Rest, tc.rest, diff)
			}
		})
	}
}

func TestDivideRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   Input
		says string
	}{
		"a way that is not there": {Input{By: "Luck"}, `dividing replicas: unknown way to divide "Luck"`},
		"a cluster twice":         {Input{Clusters: []Cluster{{Name: "a"}, {Name: "a"}}}, `dividing replicas: cluster "a": named twice`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Divide(tc.in); err == nil || err.Error() != tc.says {
				t.Errorf("error %v, want %s", err, tc.says)
			}
		})
	}
}

// The expected shares in kubefed.json were computed by the planner of KubeFed v0.10.0 itself.
func TestKubeFedDividesAsKubeFedDid(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/kubefed.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Key       string
		Total     int64
		Rebalance bool
		Clusters  []struct {
			Name        string
			Weight, Min int64
			Max, Held   *int64
			Want        int64
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for i, tc := range cases {
		in := Input{By: hubv1.DivideByKubeFed, Total: tc.Total, Key: tc.Key, Rebalance: tc.Rebalance}
		want := map[string]int64{}
		for _, c := range tc.Clusters {
			maximum := int64(Unlimited)
			if c.Max != nil {
				maximum = *c.Max
			}
			in.Clusters = append(in.Clusters, Cluster{Name: c.Name, Weight: c.Weight, Min: c.Min, Max: maximum, Held: c.Held})
			want[c.Name] = c.Want
		}
		got, err := Divide(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Shares); diff != "" {
			t.Errorf("case %d (-want +got):\n%s", i, diff)
		}
	}
	if len(cases) < 50 {
		t.Errorf("only %d cases", len(cases))
	}
}
