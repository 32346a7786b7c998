package v1alpha1_test

import "strings"

func overridesSpec(rules string) string { return selectThings + "rules: [" + rules + "]\n" }

func patches(operations string) string {
	return overridesSpec("{name: r, patches: [" + operations + "]}")
}

// Parts of the messages of the CRD's validation rules.
const (
	closedToWrites = "apiVersion, kind, status and metadata other than single labels and annotations cannot be patched"
	closedToReads  = "from cannot be the status, or metadata other than name, namespace, labels and annotations"
	ours           = "labels and annotations of hanse.dev cannot be patched or copied"
	fromGoesWith   = "set from if and only if op is move or copy"
	changesNothing = "set exclude: true alone, or at least one of images, command, args, env, resources, labels, annotations, mergePatch, patches and edits"
)

var overridePolicyCases = withPaths(map[string]ruleCase{
	"the least that can be said": {spec: overridesSpec(`{name: r, mergePatch: {}}`)},
	"everything that can be said": {spec: overridesSpec(`
{
  name: shanghai-is-busy, priority: 7, clusters: {names: [a, b], labelSelector: {matchLabels: {a: b}}},
  mergePatch: {metadata: {labels: {x: null}}, spec: {list: [1, a, null, {}]}},
  patches: [
    {op: add, path: /spec/list/-, value: {a: [1]}}, {op: replace, path: /spec/replicas, value: 5}, {op: test, path: /spec/on, value: false},
    {op: remove, path: /metadata/annotations/example.com~1a}, {op: copy, from: /metadata/name, path: /spec/name}, {op: move, from: /spec/a, path: /spec/b},
    {op: add, path: /spec/region, expression: cluster.region}
  ],
  images: [{containers: [a], registry: "r.example.com:5000", repository: a/b, tag: v1, digest: "sha256:x"}, {path: /spec/image, tag: v2}],
  command: [{containers: [a], value: [a, b]}, {path: /spec/x, value: []}], args: [{value: ["--a"]}],
  env: [{containers: [a], set: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], remove: [C]}],
  resources: [{path: /spec, requests: {cpu: 500m, example.com/gpu: 1}, limits: {memory: 1.5Gi}}],
  labels: {a: b}, annotations: {example.com/a: "x y"},
  edits: [{path: /data/a.yaml, format: YAML, mergePatch: {a: null}, patches: [{op: add, path: /b, value: 1}, {op: copy, from: /b, path: /status}]}, {path: /metadata/annotations/a, format: JSON, mergePatch: {}}]
}`)},
	"a rule that excludes":                     {spec: overridesSpec(`{name: r, clusters: {expression: "region == 'eu'"}, exclude: true}`)},
	"a rule with a condition":                  {spec: overridesSpec(`{name: r, when: "object.spec.on", labels: {a: b}}`)},
	"a rule that excludes under a condition":   {spec: overridesSpec(`{name: r, exclude: true, when: "true"}`), says: "when cannot be combined with exclude: use clusters.expression"},
	"a condition without a change":             {spec: overridesSpec(`{name: r, when: "true"}`), says: changesNothing},
	"paths to items of lists":                  {spec: overridesSpec(`{name: r, images: [{path: "/spec/a/*/image", tag: v1}], resources: [{path: "/spec/[name=a]", limits: {cpu: 1}}], patches: [{op: remove, path: "/spec/a/[b=c]/*/d"}]}`)},
	"a variable by an expression":              {spec: overridesSpec(`{name: r, env: [{set: [{name: A, expression: cluster.name}, {name: B}]}]}`)},
	"a variable by an expression and a value":  {spec: overridesSpec(`{name: r, env: [{set: [{name: A, expression: cluster.name, value: b}]}]}`), says: "set expression, value or valueFrom, not several of them"},
	"a rule that excludes and changes":         {spec: overridesSpec(`{name: r, exclude: true, labels: {a: b}}`), says: changesNothing},
	"a rule that does not exclude or change":   {spec: overridesSpec(`{name: r, exclude: false}`), says: changesNothing},
	"an empty expression for clusters":         {spec: overridesSpec(`{name: r, clusters: {expression: ""}, labels: {a: b}}`), says: "clusters.expression in body should be at least 1 chars long"},
	"an image without a part":                  {spec: overridesSpec(`{name: r, images: [{path: /spec/image}]}`), says: "set at least one of registry, repository, tag and digest"},
	"an image of containers and a path":        {spec: overridesSpec(`{name: r, images: [{path: /spec/image, containers: [a], tag: v1}]}`), says: "set containers or path, not both"},
	"a command of containers and a path":       {spec: overridesSpec(`{name: r, command: [{path: /spec, containers: [a], value: [a]}]}`), says: "set containers or path, not both"},
	"args without a value":                     {spec: overridesSpec(`{name: r, args: [{containers: [a]}]}`), says: "args[0].value: Required value"},
	"env without a change":                     {spec: overridesSpec(`{name: r, env: [{containers: [a]}]}`), says: "set at least one of set and remove"},
	"a variable twice":                         {spec: overridesSpec(`{name: r, env: [{set: [{name: A}, {name: A}]}]}`), says: "env[0].set[1]: Duplicate value"},
	"resources without a change":               {spec: overridesSpec(`{name: r, resources: [{containers: [a]}]}`), says: "set at least one of requests and limits"},
	"resources that are no quantity":           {spec: overridesSpec(`{name: r, resources: [{requests: {cpu: much}}]}`), says: "requests.cpu"},
	"no labels":                                {spec: overridesSpec(`{name: r, labels: {}}`), says: "labels in body should have at least 1 properties"},
	"an edit without a change":                 {spec: overridesSpec(`{name: r, edits: [{path: /data/a, format: YAML}]}`), says: "edits[0]: Invalid value: set mergePatch or patches"},
	"an edit of a format that there is not":    {spec: overridesSpec(`{name: r, edits: [{path: /data/a, format: TOML, mergePatch: {}}]}`), says: `format: Unsupported value: "TOML"`},
	"an edit without a path":                   {spec: overridesSpec(`{name: r, edits: [{format: YAML, mergePatch: {}}]}`), says: "edits[0].path: Required value"},
	"an operation of an edit with a lone from": {spec: overridesSpec(`{name: r, edits: [{path: /data/a, format: YAML, patches: [{op: add, path: /a, from: /b, value: 1}]}]}`), says: fromGoesWith},
	"17 edits":  {spec: overridesSpec(`{name: r, edits: ` + many(17, "{path: /data/a%d, format: JSON, mergePatch: {}}") + `}`), says: "edits: Too many: 17"},
	"33 images": {spec: overridesSpec(`{name: r, images: ` + many(33, "{path: /spec/a%d, tag: v1}") + `}`), says: "images: Too many: 33"},

	"no selector":               {spec: "rules: [{name: r, mergePatch: {}}]", says: "spec.resourceSelectors: Required value"},
	"a rule for every selector": {spec: "resourceSelectors: [{kind: A, name: a, labelSelector: {}}]\nrules: [{name: r, mergePatch: {}}]", says: "set name or labelSelector, not both"},
	"65 selectors":              {spec: "resourceSelectors: " + many(65, "{kind: K%d}") + "\nrules: [{name: r, mergePatch: {}}]", says: "spec.resourceSelectors: Too many: 65"},
	"no rules":                  {spec: selectThings, says: "spec.rules: Required value"},
	"an empty list of rules":    {spec: overridesSpec(""), says: "spec.rules in body should have at least 1 items"},
	"64 rules":                  {spec: selectThings + "rules: " + many(64, "{name: r%d, mergePatch: {}}")},
	"65 rules":                  {spec: selectThings + "rules: " + many(65, "{name: r%d, mergePatch: {}}"), says: "spec.rules: Too many: 65"},
	"two rules of one name":     {spec: overridesSpec(`{name: a, mergePatch: {}}, {name: b, mergePatch: {}}, {name: a, mergePatch: {}}`), says: "spec.rules: Invalid value: rule names must be unique"},

	"a rule without a name":          {spec: overridesSpec(`{mergePatch: {}}`), says: "spec.rules[0].name: Required value"},
	"a rule's name of 63 characters": {spec: overridesSpec(`{name: ` + strings.Repeat("r", 63) + `, mergePatch: {}}`)},
	"a rule's name of 64 characters": {spec: overridesSpec(`{name: ` + strings.Repeat("r", 64) + `, mergePatch: {}}`), says: "spec.rules[0].name: Too long"},
	"a rule's name with a dot":       {spec: overridesSpec(`{name: a.b, mergePatch: {}}`), says: "spec.rules[0].name in body should match"},
	"a rule with an empty name":      {spec: overridesSpec(`{name: "", mergePatch: {}}`), says: "spec.rules[0].name in body should be at least 1 chars long"},
	"priority 1000":                  {spec: overridesSpec(`{name: r, priority: 1000, mergePatch: {}}`)},
	"priority -1000":                 {spec: overridesSpec(`{name: r, priority: -1000, mergePatch: {}}`)},
	"priority 1001":                  {spec: overridesSpec(`{name: r, priority: 1001, mergePatch: {}}`), says: "priority in body should be less than or equal to 1000"},
	"priority -1001":                 {spec: overridesSpec(`{name: r, priority: -1001, mergePatch: {}}`), says: "priority in body should be greater than or equal to -1000"},

	"a rule that changes nothing":        {spec: overridesSpec(`{name: r}`), says: "spec.rules[0]: Invalid value: " + changesNothing},
	"a rule whose patches were left out": {spec: overridesSpec(`{name: r, patches: null, mergePatch: null}`), says: changesNothing},
	"a rule for all clusters":            {spec: overridesSpec(`{name: r, clusters: {}, mergePatch: {}}`)},
	"a rule for an empty list of names":  {spec: overridesSpec(`{name: r, clusters: {names: []}, mergePatch: {}}`), says: "clusters.names in body should have at least 1 items"},
	"a rule for 256 names":               {spec: overridesSpec(`{name: r, clusters: {names: ` + many(256, "eu-%d") + `}, mergePatch: {}}`)},
	"a rule for 257 names":               {spec: overridesSpec(`{name: r, clusters: {names: ` + many(257, "eu-%d") + `}, mergePatch: {}}`), says: "clusters.names: Too many: 257"},
	"a rule for a name twice":            {spec: overridesSpec(`{name: r, clusters: {names: [a, a]}, mergePatch: {}}`), says: "clusters.names[1]: Duplicate value"},
	"a rule for a name of 64 characters": {spec: overridesSpec(`{name: r, clusters: {names: [` + strings.Repeat("a", 64) + `]}, mergePatch: {}}`), says: "clusters.names[0]: Too long"},
	"a mergePatch that is no object":     {spec: overridesSpec(`{name: r, mergePatch: [1]}`), says: "mergePatch in body must be of type object"},
	"an empty list of patches":           {spec: patches(""), says: "patches in body should have at least 1 items"},
	"64 patches":                         {spec: overridesSpec(`{name: r, patches: ` + many(64, "{op: remove, path: /spec/a%d}") + `}`)},
	"65 patches":                         {spec: overridesSpec(`{name: r, patches: ` + many(65, "{op: remove, path: /spec/a%d}") + `}`), says: "patches: Too many: 65"},

	"an operation that is not there":      {spec: patches(`{op: merge, path: /spec/a, value: 1}`), says: `op: Unsupported value: "merge"`},
	"an operation without op":             {spec: patches(`{path: /spec/a}`), says: "op: Required value"},
	"an operation without path":           {spec: patches(`{op: remove}`), says: "path: Required value"},
	"move without from":                   {spec: patches(`{op: move, path: /spec/a}`), says: fromGoesWith},
	"copy without from":                   {spec: patches(`{op: copy, path: /spec/a}`), says: fromGoesWith},
	"add with from":                       {spec: patches(`{op: add, path: /spec/a, from: /spec/b, value: 1}`), says: fromGoesWith},
	"remove with from":                    {spec: patches(`{op: remove, path: /spec/a, from: /spec/b}`), says: fromGoesWith},
	"a path of 512 characters":            {spec: patches(`{op: remove, path: /` + strings.Repeat("a", 511) + `}`)},
	"a path of 513 characters":            {spec: patches(`{op: remove, path: /` + strings.Repeat("a", 512) + `}`), says: "path: Too long"},
	"a from of 513 characters":            {spec: patches(`{op: copy, path: /spec/a, from: /` + strings.Repeat("a", 512) + `}`), says: "from: Too long"},
	"a path that is the whole object":     {spec: patches(`{op: remove, path: ""}`), says: "path in body should match"},
	"a path without a slash at the start": {spec: patches(`{op: remove, path: spec/a}`), says: "path in body should match"},
	"a path in the manner of JSONPath":    {spec: patches(`{op: remove, path: .spec.a}`), says: "path in body should match"},
	"a path with half an escape":          {spec: patches(`{op: remove, path: /spec/a~b}`), says: "path in body should match"},
	"a path with escapes":                 {spec: patches(`{op: remove, path: /spec/a~0b~1c}`)},
	"a from without a slash at the start": {spec: patches(`{op: copy, path: /spec/a, from: spec/b}`), says: "from in body should match"},
	"a rule for each operation":           {spec: patches(`{op: remove, path: /spec/a}, {op: remove, path: /status}`), says: "patches[1]: Invalid value: " + closedToWrites},
})

// withPaths adds a test case for each path and each operation on the path.
func withPaths(cases map[string]ruleCase) map[string]ruleCase {
	add := func(what, operation, says string) { cases[what] = ruleCase{spec: patches(operation), says: says} }
	for path, says := range map[string]string{
		"/":                                    closedToWrites,
		"/apiVersion":                          closedToWrites,
		"/kind":                                closedToWrites,
		"/kind/x":                              closedToWrites,
		"/status":                              closedToWrites,
		"/status/replicas":                     closedToWrites,
		"/metadata":                            closedToWrites,
		"/metadata/name":                       closedToWrites,
		"/metadata/namespace":                  closedToWrites,
		"/metadata/generateName":               closedToWrites,
		"/metadata/uid":                        closedToWrites,
		"/metadata/resourceVersion":            closedToWrites,
		"/metadata/ownerReferences":            closedToWrites,
		"/metadata/ownerReferences/0":          closedToWrites,
		"/metadata/finalizers/-":               closedToWrites,
		"/metadata/managedFields":              closedToWrites,
		"/metadata/labels":                     closedToWrites,
		"/metadata/annotations":                closedToWrites,
		"/metadata/labels/hanse.dev~1hub":      ours,
		"/metadata/annotations/hanse.dev~1x":   ours,
		"/metadata/labels/app":                 "",
		"/metadata/annotations/example.com~1x": "",
		"/metadata/labels/x.hanse.dev~1y":      "",
		"/spec":                                "",
		"/spec/metadata/name":                  "",
		"/spec/status":                         "",
		"/data/a":                              "",
		"/metadataOfOurs/name":                 "",
		"/statuses":                            "",
	} {
		add("adding "+path, `{op: add, path: "`+path+`", value: a}`, says)
		add("removing "+path, `{op: remove, path: "`+path+`"}`, says)
		add("testing "+path, `{op: test, path: "`+path+`", value: a}`, says)
		add("copying to "+path, `{op: copy, from: /spec/a, path: "`+path+`"}`, says)
		add("moving to "+path, `{op: move, from: /spec/a, path: "`+path+`"}`, says)
		add("moving from "+path, `{op: move, path: /spec/b, from: "`+path+`"}`, says)
	}
	for from, says := range map[string]string{
		"/metadata/name":                     "",
		"/metadata/namespace":                "",
		"/metadata/labels":                   "",
		"/metadata/labels/app":               "",
		"/kind":                              "",
		"/spec/status":                       "",
		"/status":                            closedToReads,
		"/status/phase":                      closedToReads,
		"/metadata/uid":                      closedToReads,
		"/metadata/finalizers/0":             closedToReads,
		"/metadata/annotations/hanse.dev~1x": ours,
	} {
		add("copying from "+from, `{op: copy, path: /spec/b, from: "`+from+`"}`, says)
	}
	return cases
}
