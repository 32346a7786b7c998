package rollup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestNestedFieldsAreMerged(t *testing.T) {
	const pools = `
schema:
  pools:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], properties: {name: {type: string}, readyReplicas: {type: integer}, image: {type: string}}}
`
	tests := map[string]struct {
		in, want string
	}{
		"entries of a list meet by their keys": {
			in:   pools + "clusters: {a: {pools: [{name: x, readyReplicas: 1}, {name: v, readyReplicas: 2}]}, b: {pools: [{name: v, readyReplicas: 3}]}}",
			want: "{status: {pools: [{name: v, readyReplicas: 5}, {name: x, readyReplicas: 1}]}, leftOut: ['pools[].image']}",
		},
		"what cannot be merged of an entry is left out of it": {
			in: pools + "clusters: {a: {pools: [{name: x, readyReplicas: 1, image: v1}]}}", want: "{status: {pools: [{name: x, readyReplicas: 1}]}, leftOut: ['pools[].image']}",
		},
		"a key that is there twice makes a list unreadable": {
			in: pools + "clusters: {a: {pools: [{name: x, readyReplicas: 1}, {name: x, readyReplicas: 2}]}}", want: "{leftOut: [pools]}",
		},
		"a list that nobody reports is not left out": {in: pools + "clusters: {a: {b: 1}}", want: "{}"},
		"an entry that requires what has no value leaves out the list": {
			in: `
schema:
  pools:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name, image], properties: {name: {type: string}, readyReplicas: {type: integer}, image: {type: string}}}
clusters: {a: {pools: [{name: x, readyReplicas: 1, image: v1}]}}`,
			want: "{leftOut: [pools]}",
		},
		"a list whose order means something is left out": {
			in: `
schema: {pools: {type: array, items: {type: object, properties: {name: {type: string}, readyReplicas: {type: integer}}}}}
clusters: {a: {pools: [{name: x, readyReplicas: 1}]}}`,
			want: "{leftOut: [pools]}",
		},
		"a list that one cluster could not report whole is left out": {
			in:   pools + "clusters: {a: {pools: [{name: x, readyReplicas: 1}]}, b: {pools: [" + many("{name: a-pool-with-a-name-of-more-than-forty-letters-%d, readyReplicas: 1}", 16) + "]}}",
			want: "{leftOut: [pools]}",
		},
		"a list that is too long on one cluster is left out": {
			in:   pools + "clusters: {a: {pools: [{name: web, readyReplicas: 2}]}, b: {pools: [{name: web, readyReplicas: 30}, " + many("{name: p%d, readyReplicas: 1}", 16) + "]}}",
			want: "{leftOut: [pools]}",
		},
		"a list with an entry that has no short name on one cluster is left out": {
			in:   pools + "clusters: {a: {pools: [{name: web, readyReplicas: 2}]}, b: {pools: [{name: web, readyReplicas: 30}, {name: " + strings.Repeat("n", 65) + ", readyReplicas: 1}]}}",
			want: "{leftOut: [pools]}",
		},
		"a list in entries that is too long on one cluster is left out of them": {
			in: `
schema:
  pools:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      properties:
        name: {type: string}
        replicas: {type: integer}
        zones:
          type: array
          x-kubernetes-list-type: map
          x-kubernetes-list-map-keys: [zone]
          items: {type: object, properties: {zone: {type: string}, replicas: {type: integer}}}
clusters:
  a: {pools: [{name: x, replicas: 1, zones: [{zone: z0, replicas: 1}]}]}
  b: {pools: [{name: x, replicas: 30, zones: [` + many("{zone: z%d, replicas: 1}", 17) + `]}]}`,
			want: "{status: {pools: [{name: x, replicas: 31}]}, leftOut: ['pools[].zones']}",
		},
		"conditions of entries fold, without one of ours": {
			in: `
schema:
  pools:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      properties: {name: {type: string}, conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}}
clusters: {a: {pools: [{name: x, conditions: [{type: Ready, status: 'True'}]}]}, b: {pools: [{name: x, conditions: [{type: Ready, status: 'False'}]}]}}`,
			want: "{status: {pools: [{name: x, conditions: [{type: Ready, status: 'False'}]}]}}",
		},
		"counts of an object are summed, its strings are not taken though they are equal": {
			in: `
schema: {canary: {type: object, properties: {readyReplicas: {type: integer}, image: {type: string}}}}
clusters: {a: {canary: {readyReplicas: 1, image: v1}}, b: {canary: {readyReplicas: 2, image: v1}}}`,
			want: "{status: {canary: {readyReplicas: 3}}, leftOut: [canary.image]}",
		},
		"an object that requires what has no value is left out": {
			in: `
schema: {canary: {type: object, required: [image], properties: {readyReplicas: {type: integer}, image: {type: string}}}}
clusters: {a: {canary: {readyReplicas: 1, image: v1}}}`,
			want: "{leftOut: [canary]}",
		},
		"an object that belongs to one cluster is left out": {
			in: `
schema: {loadBalancer: {type: object, properties: {readyReplicas: {type: integer}}}}
clusters: {a: {loadBalancer: {readyReplicas: 1}}}`,
			want: "{leftOut: [loadBalancer]}",
		},
		"a map of counts is summed key by key": {
			in: `
schema: {readyReplicas: {type: object, additionalProperties: {type: integer}}}
clusters: {a: {readyReplicas: {x: 1, y: 2}}, b: {readyReplicas: {y: 3}}}`,
			want: "{status: {readyReplicas: {x: 1, y: 5}}}",
		},
		"a map of other numbers is left out": {
			in: `
schema: {temperatures: {type: object, additionalProperties: {type: integer}}}
clusters: {a: {temperatures: {x: 1}}}`,
			want: "{leftOut: [temperatures]}",
		},
		"a map of objects is merged key by key": {
			in: `
schema: {tiers: {type: object, additionalProperties: {type: object, properties: {replicas: {type: integer}}}}}
clusters: {a: {tiers: {web: {replicas: 1}}}, b: {tiers: {web: {replicas: 2}, db: {replicas: 3}}}}`,
			want: "{status: {tiers: {db: {replicas: 3}, web: {replicas: 3}}}}",
		},
		"the count of the scale subresource is summed, whatever it is called and wherever it is": {
			in: `
scale: .status.summary.current
schema: {summary: {type: object, properties: {current: {type: integer}, other: {type: integer}}}}
clusters: {a: {summary: {current: 1, other: 1}}, b: {summary: {current: 2, other: 1}}}`,
			want: "{status: {summary: {current: 3}}, leftOut: [summary.other]}",
		},
		"shards are no replicas, though the scale subresource counts them": {
			in:   "scale: .status.shards\nschema: {shards: {type: integer}}\nclusters: {a: {shards: 1}}",
			want: "{leftOut: [shards]}",
		},
		"numbers as text are summed where the schema has either": {
			in: `
schema: {replicas: {x-kubernetes-int-or-string: true}}
clusters: {a: {replicas: '2'}, b: {replicas: 3}}`,
			want: "{status: {replicas: 5}}",
		},
		"a share is no number": {
			in: `
schema: {replicas: {x-kubernetes-int-or-string: true}}
clusters: {a: {replicas: 25%}, b: {replicas: 3}}`,
			want: "{leftOut: [replicas]}",
		},
		"amounts are summed as counts are": {
			in: "schema: {replicas: {type: integer}, desiredCPU: {x-kubernetes-int-or-string: true}, usedMemory: {type: string}}\n" +
				"clusters: {a: {replicas: 2, desiredCPU: 500m, usedMemory: 40Gi}, b: {replicas: 2, desiredCPU: 2, usedMemory: 40Gi}}",
			want: "{status: {replicas: 4, desiredCPU: 2500m, usedMemory: 80Gi}}",
		},
		"the quantity of one cluster is left out beside sums, though it is equal": {
			in: "schema: {replicas: {type: integer}, maxSurge: {x-kubernetes-int-or-string: true}, limit: {type: string}}\n" +
				"clusters: {a: {replicas: 2, maxSurge: 25%, limit: 40Gi}, b: {replicas: 2, maxSurge: 25%, limit: 40Gi}}",
			want: "{status: {replicas: 4}, leftOut: [limit, maxSurge]}",
		},
		"numbers that are counted by their names are summed": {
			in: "schema: {numServeEndpoints: {type: integer}, pendingWorkloads: {type: integer}, numeral: {type: integer}}\n" +
				"clusters: {a: {numServeEndpoints: 2, pendingWorkloads: 1, numeral: 4}, b: {numServeEndpoints: 2, pendingWorkloads: 5, numeral: 4}}",
			want: "{status: {numServeEndpoints: 4, pendingWorkloads: 6}, leftOut: [numeral]}",
		},
		"a nested generation is the hub's": {
			in:   "schema: {last: {type: object, properties: {observedGeneration: {type: string}}}}\nclusters: {a: {last: {observedGeneration: '9'}}}",
			want: "{status: {last: {observedGeneration: '1'}}}",
		},
		"the phase of a kind without enum is known by the kind": {
			in: "kind: Rollout\ngroup: argoproj.io\nschema: {phase: {type: string}}\nclusters: {a: {phase: Paused}, b: {phase: Progressing}}", want: "{status: {phase: Paused}}",
		},
		"but not what an away cluster says if there is no word for it": {
			in: "kind: Rollout\ngroup: argoproj.io\nschema: {phase: {type: string}}\nclusters: {a: {phase: Paused}, b: {phase: Progressing}}\naway: [b]", want: "{leftOut: [phase]}",
		},
		"the health of Elasticsearch is a color": {
			in: "kind: Elasticsearch\ngroup: elasticsearch.k8s.elastic.co\nschema: {health: {type: string}}\nclusters: {a: {health: green}, b: {health: green}}\naway: [b]", want: "{status: {health: unknown}}",
		},
		"a value that the schema does not allow is left out": {
			in:   "schema: {version: {type: string, maxLength: 3}, replicas: {type: integer, maximum: 4}}\nclusters: {a: {version: v1.2.3, replicas: 5}}",
			want: "{leftOut: [replicas, version]}",
		},
		"a pattern that is none in Go allows nothing": {
			in: "schema: {version: {type: string, pattern: '^(?!v0).*$'}}\nclusters: {a: {version: v1}, b: {version: v1}}", want: "{leftOut: [version]}",
		},
		"a status that the schema does not allow as a whole is none": {
			in:   "schema: {a: {type: integer}, b: {type: string}, replicas: {type: integer}}\nrequired: [a]\nclusters: {x: {replicas: 1}}",
			want: "{leftOut: [a], error: 'merging the status: a required field has no merged value: status.a'}",
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

func TestAListIsReadOncePerCluster(t *testing.T) {
	allocations := func(entries int) float64 {
		s := readScenario(t, `
schema:
  pools:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [id]
    items: {type: object, required: [id], properties: {id: {type: integer}, replicas: {type: integer}}}
clusters: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}, h: {}}`)
		for cluster := range s.Clusters {
			var list []any
			for i := range entries {
				list = append(list, map[string]any{"id": i, "replicas": 1})
			}
			s.Clusters[cluster]["pools"] = list
		}
		schema, _, err := NewSchema(s.crd(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		rows, targets := s.rows()
		template := s.template()
		return testing.AllocsPerRun(10, func() {
			status, _, err := MergeStatus(schema, Rules{}, template, rows, targets, noon)
			if list, _ := status["pools"].([]any); len(list) != entries || err != nil {
				t.Errorf("%d of %d entries, %v", len(list), entries, err)
			}
		})
	}
	few, many := allocations(4), allocations(16)
	if most := 4.5 * few; many > most {
		t.Errorf("4 entries take %v allocations and 16 of them %v, which is more than %v", few, many, most)
	}
}
