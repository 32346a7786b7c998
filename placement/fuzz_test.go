package placement

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// FuzzDecide uses the generator of the property tests to search for an input on which Decide panics.
func FuzzDecide(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := genInput(t)
		d, trace := Explain(in)
		if len(trace.Clusters) != len(in.Clusters) {
			t.Fatalf("%d clusters are told of, there are %d", len(trace.Clusters), len(in.Clusters))
		}
		if p := in.Placement; p.number > 0 && !d.Kept && len(d.Targets) > p.number {
			t.Fatalf("%d clusters, numberOfClusters is %d", len(d.Targets), p.number)
		}
	}))
}

// FuzzCompile searches for a spec on which Compile, or a decision with its result, panics. The API server refuses many
// of these specs; another version of the API server may accept them.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"clusters":{"labelSelector":{}},"spread":{"numberOfClusters":2,"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":1}]}}`))
	f.Add([]byte(`{"clusters":{"expression":"labels.exists(l, labels[l] == name) && nodes.ready > 1 && servedKinds.size() > 0"}}`))
	f.Add([]byte(`{"clusters":{"expression":"'a'.matches('(a*)*b')"},"spread":{"preferences":[{"weight":-100,"expression":"capacity.?cpu.hasValue()"}]}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		var spec hubv1.PlacementSpec
		if json.Unmarshal(raw, &spec) != nil {
			return
		}
		p, err := Compile(&spec)
		if err != nil {
			return
		}
		Decide(Input{Placement: p, Object: hubv1.HubObject{GVK: widget}, Clusters: fleet(7), Held: set([]string{"c0001", "c0003", "gone"})})
	})
}

func TestWithoutAPlacementNothingIsDecided(t *testing.T) {
	d := Decide(Input{Clusters: []Cluster{open("a")}, Held: set([]string{"a"})})
	if len(d.Targets)+len(d.Withdraw)+len(d.Rejected) > 0 || len(d.Missing) != 1 {
		t.Errorf("decided %+v", d)
	}
}
