package topology

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		yaml string
		want []string // texts that the error must contain
	}{
		"no clusters at all":        {"clusters: []", []string{"clusters: at least one"}},
		"a field that is not known": {"clusters: [{name: a, colour: red}]", []string{`unknown field "colour"`}},
		"text that is not YAML":     {"clusters: [", []string{"yaml"}},
		"a name that is there twice": {
			"clusters: [{name: a}, {name: b}, {name: a}]", []string{`clusters[2].name: "a" is already the name of clusters[0]`},
		},
		"names that are no DNS labels": {
			"clusters: [{name: A}, {name: a.b}, {name: ''}, {name: -a}]",
			[]string{"clusters[0].name", "clusters[1].name", "clusters[2].name", "clusters[3].name"},
		},
		"a second hub":                             {"clusters: [{name: a, hub: true}, {name: b, hub: true}]", []string{"clusters[1].hub: clusters[0] is the hub already"}},
		"a negative number of nodes":               {"clusters: [{name: a, nodes: -1}]", []string{"clusters[0].nodes: -1"}},
		"nodes that are neither a number nor real": {"clusters: [{name: a, nodes: many}]", []string{`nodes: "many" is neither a number nor real`}},
		"a real node that no controller uses":      {"clusters: [{name: a, nodes: real}]", []string{"clusters[0].nodes: a real node needs controllers: true"}},
		"a region that is no label value": {
			"clusters: [{name: a, region: 'no spaces', zones: [ok, '/']}]", []string{"clusters[0].region", "clusters[0].zones[1]"},
		},
		"an operator that is not known": {"clusters: [{name: a, controllers: true, operators: [x]}]", []string{`clusters[0].operators[0]: "x" is unknown`}},
		"an operator that nobody could run": {
			"clusters: [{name: a, operators: [prometheus-operator]}]", []string{"clusters[0].operators: an operator needs controllers: true"},
		},
		"an operator twice": {
			"clusters: [{name: a, controllers: true, operators: [prometheus-operator, prometheus-operator]}]", []string{"clusters[0].operators[1]"},
		},
		"a deployed operator that is not known": {
			"clusters: [{name: a, controllers: true, deployedOperators: [x]}]", []string{`clusters[0].deployedOperators[0]: "x" is unknown`},
		},
		"a deployed operator whose pods nobody starts": {
			"clusters: [{name: a, deployedOperators: [prometheus-operator]}]", []string{"clusters[0].deployedOperators: an operator needs controllers: true"},
		},
		"an operator that runs with and without a Deployment": {
			"clusters: [{name: a, controllers: true, operators: [prometheus-operator], deployedOperators: [prometheus-operator]}]",
			[]string{`clusters[0].deployedOperators[0]: "prometheus-operator" is also in operators`},
		},
		"a deployed operator on a real node": {
			"clusters: [{name: a, nodes: real, controllers: true, deployedOperators: [prometheus-operator]}]",
			[]string{"clusters[0].deployedOperators: a real node runs the pods"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.yaml))
			if err == nil {
				t.Fatal("Parse accepted it")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
		})
	}
}

func TestShippedTopologiesAreValid(t *testing.T) {
	files, err := filepath.Glob("../topologies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no topologies: %v", err)
	}
	for _, file := range files {
		if _, err := Load(file); err != nil {
			t.Error(err)
		}
	}
}

func TestNodesAreDealtToZonesInTurn(t *testing.T) {
	c := Cluster{Name: "eu-1", Region: "eu", Zones: []string{"a", "b"}, Nodes: 3}
	var zones []string
	for _, node := range c.NodeObjects() {
		if got := node.Labels["topology.kubernetes.io/region"]; got != "eu" {
			t.Errorf("node %s is in region %q", node.Name, got)
		}
		if node.Labels["kubernetes.io/hostname"] != node.Name {
			t.Errorf("node %s has host name %q", node.Name, node.Labels["kubernetes.io/hostname"])
		}
		zones = append(zones, node.Labels["topology.kubernetes.io/zone"])
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, zones); diff != "" {
		t.Error(diff)
	}
}

func TestARealNodeIsWrittenAndReadAsAWord(t *testing.T) {
	given, err := Parse([]byte("clusters: [{name: a, nodes: real, controllers: true}, {name: b, nodes: 2}, {name: c}]"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := yaml.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written), "nodes: real") {
		t.Errorf("the topology is written as\n%s", written)
	}
	again, err := Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, again); diff != "" {
		t.Error(diff)
	}
	if !given.Real() || given.Clusters[0].Nodes.Count() != 1 || given.Clusters[1].Nodes.Count() != 2 || given.Clusters[2].Nodes.Count() != 0 {
		t.Errorf("the topology is %+v", given)
	}
}

func TestDifferenceNamesTheField(t *testing.T) {
	base := Cluster{Name: "a", Zones: []string{"z"}, Nodes: 1}
	tests := map[string]struct {
		other Cluster
		want  string
	}{
		"equal clusters do not differ":         {Cluster{Name: "a", Zones: []string{"z"}, Nodes: 1}, ""},
		"a different number of nodes is named": {Cluster{Name: "a", Zones: []string{"z"}, Nodes: 2}, "nodes"},
		"different zones are named":            {Cluster{Name: "a", Nodes: 1}, "zones"},
		"no operators equal an empty list":     {Cluster{Name: "a", Zones: []string{"z"}, Nodes: 1, Operators: []string{}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := base.Difference(test.other); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
