package v1alpha1_test

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const setSpec = `
bundle: {kind: FederatedOperator, name: rotors}
bundleUID: u
newest: {list: a, generation: 1, time: "2026-01-01T12:00:00Z"}
`

var setCases = map[string]ruleCase{
	"the least that can be said": {spec: setSpec},
	"a bundle without a uid":     {spec: "bundle: {kind: ClusterBundle, name: web}", says: "spec.bundleUID: Required value"},
	"a revision without a list":  {spec: setSpec + `revisions: [{number: 1, time: "2026-01-01T12:00:00Z"}]`, says: "spec.revisions[0].list: Required value"},
	"a cluster without revision": {spec: setSpec + "clusters: [{name: eu}]", says: "spec.clusters[0].revision: Required value"},
	"a cluster twice":            {spec: setSpec + "clusters: [{name: eu, revision: 1}, {name: eu, revision: 1}]", says: "spec.clusters[1]: Duplicate value"},
	"the most clusters":          {spec: setSpec + "clusters: " + many(hubv1.MaxEntries, "{name: eu-%d, revision: 1}")},
	"one cluster more":           {spec: setSpec + "clusters: " + many(hubv1.MaxEntries+1, "{name: eu-%d, revision: 1}"), says: fmt.Sprintf("spec.clusters: Too many: %d", hubv1.MaxEntries+1)},
}
