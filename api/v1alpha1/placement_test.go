package v1alpha1_test

import (
	"fmt"
	"strings"
)

const (
	selectThings  = "resourceSelectors: [{apiGroup: example.com, kind: Thing}]\n"
	toEU          = "clusters: {names: [eu-1]}\n"
	placementSpec = selectThings + toEU
)

func dividing(replicas string) string {
	return placementSpec + "replicas: {type: Divide, " + replicas + "}\n"
}

func spreading(spread string) string { return placementSpec + "spread: {" + spread + "}\n" }

func constrained(constraints string) string {
	return spreading("topologySpreadConstraints: [" + constraints + "]")
}

func rolling(rollout string) string { return placementSpec + "rollout: {" + rollout + "}\n" }

func reducing(reducers string) string {
	return placementSpec + "statusAggregation: {reducers: [" + reducers + "]}"
}

func resources(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("example.com/r%d: 1", i)
	}
	return strings.Join(names, ", ")
}

func referring(references string) string { return placementSpec + "references: [" + references + "]\n" }

func selecting(selector string) string { return "resourceSelectors: [" + selector + "]\n" + toEU }

var placementCases = map[string]ruleCase{
	"the least that can be said": {spec: placementSpec},
	"everything that can be said": {spec: selectThings + `
priority: 7
preemption: Always
hubExecution: Allowed
clusters:
  names: [eu-1, eu-2]
  excludedNames: [eu-2]
  labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: In, values: [eu-central-1]}]}
  expression: nodes.ready > 0
  tolerations: [{key: maintenance, operator: Exists, effect: NoExecute}]
spread:
  numberOfClusters: 3
  topologySpreadConstraints:
  - {topologyKey: topology.kubernetes.io/region, minDomains: 2, maxDomains: 3, clustersPerDomain: 2, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}
  preferences: [{weight: -100, labelSelector: {matchLabels: {a: b}}}, {weight: 100, expression: nodes.ready > 9}]
  scores: [{name: AvailableCapacity, weight: 50}, {name: FewestObjects, weight: -50}]
  affinityGroups: [{name: first, names: [eu-1]}, {name: second, labelSelector: {}}]
  rebalance: Always
references:
- {apiGroup: example.com, kind: Thing, path: /spec/things/*/name}
- {path: /spec/template, restart: OnChange}
- {path: /spec/other, restart: Never}
replicas:
  type: Divide
  path: /spec/instances
  divide:
    by: KubeFed
    weights: [{clusters: {names: [eu-1]}, weight: 3}, {weight: 1}]
    limits: [{clusters: {labelSelector: {}}, minReplicas: 1, maxReplicas: 9}]
    rebalance: true
apply:
  mode: ReportOnly
  adoption: IfNoDiff
  fieldConflict: Report
  unknownFields: Drop
  memberOwnedFields: [/spec/replicas, /metadata/labels/example.com~1tier, /data/8080, /spec/v1/10m]
  recreate: Never
  createNamespace: false
deletion: {whenDeleted: Orphan, whenUnselected: Delete, adopted: Delete, propagationPolicy: Foreground}
failover: {evictAfterSeconds: 300}
suspend: {scheduling: true, dispatching: true, clusters: [eu-2], clusterSelector: {matchLabels: {tier: test}}}
statusAggregation:
  mode: BindingOnly
  healthExpression: object.status.state == 'running'
  reducers: [{path: /status/storage/used, reducer: Sum}, {path: /status/a~1b, reducer: CEL, expression: values.size()}]
  conditionPolarity: [{type: Serving, polarity: Positive}, {type: example.com/Slow, polarity: Negative}]
`},

	"no selector":                        {spec: toEU, says: "spec.resourceSelectors: Required value"},
	"an empty list of selectors":         {spec: "resourceSelectors: []\n" + toEU, says: "spec.resourceSelectors in body should have at least 1 items"},
	"64 selectors":                       {spec: "resourceSelectors: " + many(64, "{kind: K%d}") + "\n" + toEU},
	"65 selectors":                       {spec: "resourceSelectors: " + many(65, "{kind: K%d}") + "\n" + toEU, says: "spec.resourceSelectors: Too many: 65"},
	"a kind of the core group":           {spec: selecting(`{kind: ConfigMap}`)},
	"a reference without a path":         {spec: referring(`{kind: Secret}`), says: "references[0].path: Required value"},
	"a reference with a path of dots":    {spec: referring(`{kind: Secret, path: spec.tls}`), says: "references[0].path in body should match"},
	"a pod template with an API group":   {spec: referring(`{apiGroup: apps, path: /spec/template}`), says: "references[0]: Invalid value: set apiGroup only together with kind"},
	"a name that restarts pods":          {spec: referring(`{kind: Secret, path: /spec/tls, restart: OnChange}`), says: "references[0]: Invalid value: set restart only if kind is unset and path leads to a pod template"},
	"a restart that is not known":        {spec: referring(`{path: /spec/template, restart: Always}`), says: "references[0].restart: Unsupported value"},
	"a reference to an object of Hanse":  {spec: referring(`{apiGroup: hanse.dev, kind: Placement, path: /spec/a}`), says: "references[0]: Invalid value: objects of hanse.dev stay on the hub"},
	"a reference to a role":              {spec: referring(`{apiGroup: rbac.authorization.k8s.io, kind: Role, path: /spec/a}`), says: "references[0]: Invalid value: an object that gives rights is sent only if resourceSelectors select it"},
	"17 references":                      {spec: referring(many(17, "{kind: K%d, path: /a}")[1 : len(many(17, "{kind: K%d, path: /a}"))-1]), says: "spec.references: Too many: 17"},
	"no kind":                            {spec: selecting(`{apiGroup: example.com}`), says: "resourceSelectors[0].kind: Required value"},
	"an empty kind":                      {spec: selecting(`{kind: ""}`), says: "kind in body should be at least 1 chars long"},
	"a kind in the plural of its URL":    {spec: selecting(`{kind: configmaps}`), says: "kind in body should match"},
	"a kind of 63 characters":            {spec: selecting(`{kind: ` + strings.Repeat("K", 63) + `}`)},
	"a kind of 64 characters":            {spec: selecting(`{kind: ` + strings.Repeat("K", 64) + `}`), says: "kind: Too long"},
	"a group of 254 characters":          {spec: selecting(`{apiGroup: ` + strings.Repeat("g", 254) + `, kind: A}`), says: "apiGroup: Too long"},
	"one object by its name":             {spec: selecting(`{kind: ConfigMap, name: a}`)},
	"a name in the manner of RBAC":       {spec: selecting(`{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:x"}`)},
	"an empty name":                      {spec: selecting(`{kind: ConfigMap, name: ""}`), says: "name in body should be at least 1 chars long"},
	"a name of 254 characters":           {spec: selecting(`{kind: ConfigMap, name: ` + strings.Repeat("n", 254) + `}`), says: "name: Too long"},
	"objects by their labels":            {spec: selecting(`{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}}`)},
	"a name and labels":                  {spec: selecting(`{kind: ConfigMap, name: a, labelSelector: {matchLabels: {a: b}}}`), says: "resourceSelectors[0]: Invalid value: set name or labelSelector, not both"},
	"a name and an empty labelSelector":  {spec: selecting(`{kind: ConfigMap, name: a, labelSelector: {}}`), says: "set name or labelSelector, not both"},
	"every kind of a group":              {spec: selecting(`{apiGroup: example.com, kind: "*"}`)},
	"every kind of a group, by labels":   {spec: selecting(`{apiGroup: example.com, kind: "*", labelSelector: {matchLabels: {a: b}}}`)},
	"every kind of the core group":       {spec: selecting(`{kind: "*"}`), says: "kind '*' needs an apiGroup other than the core group"},
	"every kind of the empty group":      {spec: selecting(`{apiGroup: "", kind: "*"}`), says: "kind '*' needs an apiGroup other than the core group"},
	"a name of whatever kind":            {spec: selecting(`{apiGroup: example.com, kind: "*", name: a}`), says: "kind '*' cannot be combined with name"},
	"a rule holds for each selector":     {spec: selecting(`{kind: ConfigMap}, {kind: "*"}`), says: "resourceSelectors[1]: Invalid value: kind '*' needs"},
	"every broken rule is named at once": {spec: selecting(`{kind: "*"}, {kind: A, name: a, labelSelector: {}}`), says: "resourceSelectors[1]: Invalid value: set name or labelSelector"},

	"a failover that says nothing": {spec: placementSpec + "failover: {}"},
	"a failover at once":           {spec: placementSpec + "failover: {evictAfterSeconds: 0}"},
	"a failover before its time":   {spec: placementSpec + "failover: {evictAfterSeconds: -1}", says: "evictAfterSeconds in body should be greater than or equal to 0"},
	"a failover after a week":      {spec: placementSpec + "failover: {evictAfterSeconds: 604801}", says: "evictAfterSeconds in body should be less than or equal to 604800"},

	"priority 1000":                    {spec: placementSpec + "priority: 1000"},
	"priority -1000":                   {spec: placementSpec + "priority: -1000"},
	"priority 1001":                    {spec: placementSpec + "priority: 1001", says: "spec.priority in body should be less than or equal to 1000"},
	"priority -1001":                   {spec: placementSpec + "priority: -1001", says: "spec.priority in body should be greater than or equal to -1000"},
	"a preemption that is not there":   {spec: placementSpec + "preemption: Sometimes", says: `spec.preemption: Unsupported value: "Sometimes"`},
	"a hubExecution that is not there": {spec: placementSpec + "hubExecution: Ignored", says: `spec.hubExecution: Unsupported value: "Ignored"`},

	"no clusters":                                 {spec: selectThings, says: "spec.clusters: Required value"},
	"clusters that say nothing":                   {spec: selectThings + "clusters: {}", says: "set names, labelSelector or expression; 'labelSelector: {}' selects every cluster"},
	"clusters with exclusions alone":              {spec: selectThings + "clusters: {excludedNames: [eu-1]}", says: "set names, labelSelector or expression"},
	"clusters with tolerations alone":             {spec: selectThings + "clusters: {tolerations: [{operator: Exists}]}", says: "set names, labelSelector or expression"},
	"clusters whose labelSelector was left empty": {spec: selectThings + "clusters: {labelSelector: null}", says: "set names, labelSelector or expression"},
	"clusters whose names were left empty":        {spec: selectThings + "clusters: {names: null}", says: "set names, labelSelector or expression"},
	"clusters that are null":                      {spec: selectThings + "clusters: null", says: "spec.clusters: Required value"},
	"every cluster, said so":                      {spec: selectThings + "clusters: {labelSelector: {}}"},
	"clusters by names and labels":                {spec: selectThings + "clusters: {names: [a], labelSelector: {matchLabels: {a: b}}}"},
	"an empty list of names":                      {spec: selectThings + "clusters: {names: []}", says: "spec.clusters.names in body should have at least 1 items"},
	"1000 names":                                  {spec: selectThings + "clusters: {names: " + many(1000, "eu-%d") + "}"},
	"1001 names":                                  {spec: selectThings + "clusters: {names: " + many(1001, "eu-%d") + "}", says: "spec.clusters.names: Too many: 1001"},
	"a name twice":                                {spec: selectThings + "clusters: {names: [a, b, a]}", says: `spec.clusters.names[2]: Duplicate value: "a"`},
	"a cluster's name of 64 characters":           {spec: selectThings + "clusters: {names: [" + strings.Repeat("a", 64) + "]}", says: "spec.clusters.names[0]: Too long"},
	"1001 excludedNames":                          {spec: selectThings + "clusters: {names: [a], excludedNames: " + many(1001, "eu-%d") + "}", says: "spec.clusters.excludedNames: Too many: 1001"},
	"an excluded name twice":                      {spec: selectThings + "clusters: {names: [a], excludedNames: [a, a]}", says: "spec.clusters.excludedNames[1]: Duplicate value"},
	"an excluded name of 64 characters":           {spec: selectThings + "clusters: {names: [a], excludedNames: [" + strings.Repeat("a", 64) + "]}", says: "spec.clusters.excludedNames[0]: Too long"},
	"32 tolerations":                              {spec: selectThings + "clusters: {names: [a], tolerations: " + many(32, "{operator: Exists}") + "}"},
	"33 tolerations":                              {spec: selectThings + "clusters: {names: [a], tolerations: " + many(33, "{operator: Exists}") + "}", says: "spec.clusters.tolerations: Too many: 33"},

	"clusters by an expression":             {spec: selectThings + "clusters: {expression: nodes.ready > 2}"},
	"an empty expression":                   {spec: selectThings + "clusters: {expression: ''}", says: "spec.clusters.expression in body should be at least 1 chars long"},
	"a long expression":                     {spec: selectThings + "clusters: {expression: " + strings.Repeat("a", 4097) + "}", says: "spec.clusters.expression: Too long"},
	"a spread over no cluster":              {spec: spreading("numberOfClusters: 0"), says: "spec.spread.numberOfClusters in body should be greater than or equal to 1"},
	"a spread over 2001 clusters":           {spec: spreading("numberOfClusters: 2001"), says: "spec.spread.numberOfClusters in body should be less than or equal to 2000"},
	"a constraint without a key":            {spec: constrained("{maxSkew: 1}"), says: "topologyKey: Required value"},
	"a constraint that bounds nothing":      {spec: constrained("{topologyKey: a}"), says: "set minDomains, maxDomains, clustersPerDomain or maxSkew"},
	"more domains at least than at most":    {spec: constrained("{topologyKey: a, minDomains: 3, maxDomains: 2}"), says: "minDomains must not exceed maxDomains"},
	"more domains than clusters":            {spec: spreading("numberOfClusters: 2, topologySpreadConstraints: [{topologyKey: a, minDomains: 3}]"), says: "minDomains must not exceed numberOfClusters"},
	"a topologyKey twice":                   {spec: constrained("{topologyKey: a, maxSkew: 1}, {topologyKey: a, minDomains: 1}"), says: "topologyKeys must be unique"},
	"8 constraints":                         {spec: constrained(strings.Trim(many(8, "{topologyKey: a%d, maxSkew: 1}"), "[]"))},
	"9 constraints":                         {spec: constrained(strings.Trim(many(9, "{topologyKey: a%d, maxSkew: 1}"), "[]")), says: "topologySpreadConstraints: Too many: 9"},
	"a skew of nothing":                     {spec: constrained("{topologyKey: a, maxSkew: 0}"), says: "maxSkew in body should be greater than or equal to 1"},
	"a whenUnsatisfiable that is not there": {spec: constrained("{topologyKey: a, maxSkew: 1, whenUnsatisfiable: Panic}"), says: `Unsupported value: "Panic"`},
	"a preference of nothing":               {spec: spreading("preferences: [{weight: 1}]"), says: "set labelSelector or expression"},
	"a preference of two things":            {spec: spreading("preferences: [{weight: 1, labelSelector: {}, expression: 'true'}]"), says: "set labelSelector or expression"},
	"a preference that weighs too much":     {spec: spreading("preferences: [{weight: 101, labelSelector: {}}]"), says: "weight in body should be less than or equal to 100"},
	"a score that is not there":             {spec: spreading("scores: [{name: Beauty, weight: 1}]"), says: `Unsupported value: "Beauty"`},
	"a rollout in waves": {spec: rolling(`waves: [{name: canary, clusters: {labelSelector: {matchLabels: {tier: canary}}}, soakSeconds: 600, approval: Manual}, {name: rest, maxConcurrent: "25%"}],
	onFailure: Rollback, windows: [{schedule: "0 2 * * 1-5", durationSeconds: 14400, timeZone: Asia/Shanghai}], maxObjectsMoving: 10, healthGate: {timeoutSeconds: 900, unreachable: Skip}`)},
	"a rollout without waves":         {spec: rolling("waves: []"), says: "spec.rollout.waves in body should have at least 1 items"},
	"21 waves":                        {spec: rolling("waves: " + many(21, "{name: w%d}")), says: "spec.rollout.waves: Too many: 21"},
	"two waves of one name":           {spec: rolling("waves: [{name: a, clusters: {names: [b]}}, {name: a}]"), says: "names of waves are unique"},
	"a wave whose name is no label":   {spec: rolling("waves: [{name: Canary}]"), says: "spec.rollout.waves[0].name in body should match"},
	"a soak of more than 30 days":     {spec: rolling("waves: [{name: a, soakSeconds: 2592001}]"), says: "soakSeconds in body should be less than or equal to 2592000"},
	"a concurrency of 101 percent":    {spec: rolling(`waves: [{name: a, maxConcurrent: "101%"}]`), says: "maxConcurrent in body should match"},
	"a concurrency by number":         {spec: rolling("waves: [{name: a, maxConcurrent: 3}]")},
	"an approval that is not there":   {spec: rolling("waves: [{name: a, approval: Perhaps}]"), says: `Unsupported value: "Perhaps"`},
	"a rollback without history":      {spec: rolling("waves: [{name: a}], onFailure: Rollback, revisionHistoryLimit: 0"), says: "onFailure: Rollback needs a revision to return to: set revisionHistoryLimit to at least 1"},
	"a pause without history":         {spec: rolling("waves: [{name: a}], onFailure: Pause, revisionHistoryLimit: 0")},
	"a history of 11":                 {spec: rolling("waves: [{name: a}], revisionHistoryLimit: 11"), says: "revisionHistoryLimit in body should be less than or equal to 10"},
	"a window of less than a minute":  {spec: rolling(`waves: [{name: a}], windows: [{schedule: "* * * * *", durationSeconds: 59}]`), says: "durationSeconds in body should be greater than or equal to 60"},
	"a score twice":                   {spec: spreading("scores: [{name: FewestObjects, weight: 1}, {name: FewestObjects, weight: 2}]"), says: "Duplicate value"},
	"an affinity group of nothing":    {spec: spreading("affinityGroups: [{name: a}]"), says: "set names or labelSelector; 'labelSelector: {}' is every cluster"},
	"two affinity groups of one name": {spec: spreading("affinityGroups: [{name: a, labelSelector: {}}, {name: a, names: [b]}]"), says: "names of affinityGroups must be unique"},
	"a rebalance that is not there":   {spec: spreading("rebalance: Sometimes"), says: `spec.spread.rebalance: Unsupported value: "Sometimes"`},

	"an adoption that is not there":          {spec: placementSpec + "apply: {adoption: Sometimes}", says: `spec.apply.adoption: Unsupported value: "Sometimes"`},
	"a mode that is not there":               {spec: placementSpec + "apply: {mode: Dream}", says: `spec.apply.mode: Unsupported value: "Dream"`},
	"unknownFields that are not there":       {spec: placementSpec + "apply: {unknownFields: Guess}", says: `spec.apply.unknownFields: Unsupported value: "Guess"`},
	"a recreate that is not there":           {spec: placementSpec + "apply: {recreate: Twice}", says: `spec.apply.recreate: Unsupported value: "Twice"`},
	"a member-owned field without a slash":   {spec: placementSpec + "apply: {memberOwnedFields: [spec.replicas]}", says: "spec.apply.memberOwnedFields[0] in body should match"},
	"all of spec is the member's":            {spec: placementSpec + "apply: {memberOwnedFields: [/spec]}", says: "name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"},
	"the status is the member's anyway":      {spec: placementSpec + "apply: {memberOwnedFields: [/status/phase]}", says: "name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"},
	"the name is not the member's":           {spec: placementSpec + "apply: {memberOwnedFields: [/metadata/name]}", says: "name fields of the object such as /spec/replicas, not apiVersion, kind, status, all of spec, or metadata other than single labels and annotations"},
	"an item of a list is the member's":      {spec: placementSpec + "apply: {memberOwnedFields: [/webhooks/0/failurePolicy]}", says: "a pointer must not name an item of a list: name the list, such as /webhooks instead of /webhooks/0/failurePolicy"},
	"a new item of a list is the member's":   {spec: placementSpec + "apply: {memberOwnedFields: [/spec/args/-]}", says: "a pointer must not name an item of a list"},
	"the same member-owned field twice":      {spec: placementSpec + "apply: {memberOwnedFields: [/spec/a, /spec/a]}", says: "spec.apply.memberOwnedFields[1]: Duplicate value"},
	"33 member-owned fields":                 {spec: placementSpec + "apply: {memberOwnedFields: " + many(33, "/spec/f%d") + "}", says: "spec.apply.memberOwnedFields: Too many: 33"},
	"a fieldConflict that is not there":      {spec: placementSpec + "apply: {fieldConflict: Ignore}", says: `spec.apply.fieldConflict: Unsupported value: "Ignore"`},
	"a whenDeleted that is not there":        {spec: placementSpec + "deletion: {whenDeleted: Keep}", says: `spec.deletion.whenDeleted: Unsupported value: "Keep"`},
	"a whenUnselected that is not there":     {spec: placementSpec + "deletion: {whenUnselected: Keep}", says: `spec.deletion.whenUnselected: Unsupported value: "Keep"`},
	"a propagation that leaves the children": {spec: placementSpec + "deletion: {propagationPolicy: Orphan}", says: `spec.deletion.propagationPolicy: Unsupported value: "Orphan"`},
	"a thousand suspended clusters":          {spec: placementSpec + "suspend: {clusters: " + many(1000, "eu-%d") + "}"},
	"1001 suspended clusters":                {spec: placementSpec + "suspend: {clusters: " + many(1001, "eu-%d") + "}", says: "spec.suspend.clusters: Too many: 1001"},
	"a suspended cluster twice":              {spec: placementSpec + "suspend: {clusters: [a, a]}", says: "spec.suspend.clusters[1]: Duplicate value"},
	"every cluster is suspended by labels":   {spec: placementSpec + "suspend: {clusterSelector: {}}"},
	"a selector of suspended clusters without an operator": {
		spec: placementSpec + "suspend: {clusterSelector: {matchExpressions: [{key: tier}]}}",
		says: "spec.suspend.clusterSelector.matchExpressions[0].operator: Required value",
	},
	"a suspended name of 64 characters": {spec: placementSpec + "suspend: {clusters: [" + strings.Repeat("a", 64) + "]}", says: "spec.suspend.clusters[0]: Too long"},
	"a status mode that is not there":   {spec: placementSpec + "statusAggregation: {mode: Nowhere}", says: `spec.statusAggregation.mode: Unsupported value: "Nowhere"`},

	"16 reducers":                             {spec: reducing(strings.Trim(many(16, "{path: /status/f%d, reducer: Sum}"), "[]"))},
	"17 reducers":                             {spec: reducing(strings.Trim(many(17, "{path: /status/f%d, reducer: Sum}"), "[]")), says: "spec.statusAggregation.reducers: Too many: 17"},
	"a reducer that is not there":             {spec: reducing("{path: /status/a, reducer: Median}"), says: `reducers[0].reducer: Unsupported value: "Median"`},
	"two reducers of one path":                {spec: reducing("{path: /status/a, reducer: Sum}, {path: /status/a, reducer: Min}"), says: "reducers[1]: Duplicate value"},
	"a reducer below another one":             {spec: reducing("{path: /status/a, reducer: First}, {path: /status/a/b, reducer: Min}"), says: "no path may be below another one"},
	"a reducer beside another one":            {spec: reducing("{path: /status/a, reducer: First}, {path: /status/ab, reducer: Min}")},
	"a reducer of the spec":                   {spec: reducing("{path: /spec/a, reducer: First}"), says: "reducers[0].path in body should match"},
	"a reducer of all of the status":          {spec: reducing("{path: /status, reducer: First}"), says: "reducers[0].path in body should match"},
	"a reducer of conditions":                 {spec: reducing("{path: /status/conditions, reducer: First}"), says: "conditions and observedGeneration are merged by their own rules; see conditionPolarity"},
	"a reducer of a generation further down":  {spec: reducing("{path: /status/a/observedGeneration, reducer: Min}"), says: "conditions and observedGeneration are merged by their own rules; see conditionPolarity"},
	"a reducer of what is called alike":       {spec: reducing("{path: /status/conditionsMet, reducer: Sum}")},
	"a reducer of a path of 257 characters":   {spec: reducing("{path: /status/" + strings.Repeat("a", 249) + ", reducer: Sum}"), says: "reducers[0].path: Too long"},
	"an expression that no reducer evaluates": {spec: reducing("{path: /status/a, reducer: Sum, expression: 'true'}"), says: "set expression if and only if reducer is CEL"},
	"a reducer that lacks its expression":     {spec: reducing("{path: /status/a, reducer: CEL}"), says: "set expression if and only if reducer is CEL"},
	"a reducer's expression that is too long": {spec: reducing("{path: /status/a, reducer: CEL, expression: " + strings.Repeat("a", 4097) + "}"), says: "reducers[0].expression: Too long"},
	"an empty health expression":              {spec: placementSpec + "statusAggregation: {healthExpression: ''}", says: "spec.statusAggregation.healthExpression in body should be at least 1 chars long"},
	"a health expression that is too long":    {spec: placementSpec + "statusAggregation: {healthExpression: " + strings.Repeat("a", 4097) + "}", says: "spec.statusAggregation.healthExpression: Too long"},
	"33 polarities":                           {spec: placementSpec + "statusAggregation: {conditionPolarity: " + many(33, "{type: T%d, polarity: Positive}") + "}", says: "spec.statusAggregation.conditionPolarity: Too many: 33"},
	"two polarities of one type":              {spec: placementSpec + "statusAggregation: {conditionPolarity: [{type: A, polarity: Positive}, {type: A, polarity: Negative}]}", says: "conditionPolarity[1]: Duplicate value"},
	"a polarity that is not there":            {spec: placementSpec + "statusAggregation: {conditionPolarity: [{type: A, polarity: Both}]}", says: `conditionPolarity[0].polarity: Unsupported value: "Both"`},
	"a polarity of no type":                   {spec: placementSpec + "statusAggregation: {conditionPolarity: [{type: '', polarity: Positive}]}", says: "conditionPolarity[0].type in body should be at least 1 chars long"},

	"replicas are divided by capacity":          {spec: dividing("divide: {by: Capacity}, requests: {cpu: 500m}")},
	"replicas are packed":                       {spec: dividing("divide: {by: Pack, limits: [{maxReplicas: 3}]}")},
	"replicas are duplicated in no other way":   {spec: placementSpec + "replicas: {type: Duplicate, path: /spec/replicas}", says: "set path, requests and divide only if type is Divide"},
	"replicas are not divided unless asked for": {spec: placementSpec + "replicas: {divide: {}}", says: "set path, requests and divide only if type is Divide"},
	"a type of replicas that is not there":      {spec: placementSpec + "replicas: {type: Multiply}", says: `spec.replicas.type: Unsupported value: "Multiply"`},
	"a way to divide that is not there":         {spec: dividing("divide: {by: Luck}"), says: `spec.replicas.divide.by: Unsupported value: "Luck"`},
	"requests for a division by weight":         {spec: dividing("requests: {cpu: 1}"), says: "set requests only if divide.by is Capacity or Pack"},
	"17 requests":                               {spec: dividing("divide: {by: Pack}, requests: {" + resources(17) + "}"), says: "name at most 16 resources"},
	"a request that is no quantity":             {spec: dividing("divide: {by: Pack}, requests: {cpu: much}"), says: "spec.replicas.requests.cpu in body should match"},
	"weights for a division by capacity":        {spec: dividing("divide: {by: Capacity, weights: [{weight: 1}]}"), says: "set weights only if by is Weight or KubeFed"},
	"an empty list of weights":                  {spec: dividing("divide: {weights: []}"), says: "spec.replicas.divide.weights in body should have at least 1 items"},
	"65 weights":                                {spec: dividing("divide: {weights: " + many(65, "{clusters: {names: [a%d]}, weight: 1}") + "}"), says: "spec.replicas.divide.weights: Too many: 65"},
	"a weight below 0":                          {spec: dividing("divide: {weights: [{weight: -1}]}"), says: "weights[0].weight in body should be greater than or equal to 0"},
	"a weight above 1000000":                    {spec: dividing("divide: {weights: [{weight: 1000001}]}"), says: "weights[0].weight in body should be less than or equal to 1000000"},
	"an entry of weights without a weight":      {spec: dividing("divide: {weights: [{}]}"), says: "weights[0].weight: Required value"},
	"a rebalance that would always be":          {spec: dividing("divide: {rebalance: false}"), says: "set rebalance only if by is KubeFed"},
	"65 limits":                                 {spec: dividing("divide: {limits: " + many(65, "{clusters: {names: [a%d]}, maxReplicas: 1}") + "}"), says: "spec.replicas.divide.limits: Too many: 65"},
	"a limit that limits nothing":               {spec: dividing("divide: {limits: [{}]}"), says: "set minReplicas or maxReplicas"},
	"a least that is more than the most":        {spec: dividing("divide: {limits: [{minReplicas: 3, maxReplicas: 2}]}"), says: "minReplicas must not be more than maxReplicas"},
	"a least below 0":                           {spec: dividing("divide: {limits: [{minReplicas: -1}]}"), says: "limits[0].minReplicas in body should be greater than or equal to 0"},
	"a path that is no pointer":                 {spec: dividing("path: spec.replicas"), says: "spec.replicas.path in body should match"},
	"a path to all of spec":                     {spec: dividing("path: /spec"), says: "spec.replicas.path in body should match"},
	"a path into metadata":                      {spec: dividing("path: /metadata/generation"), says: "name a number of the object's spec, such as /spec/replicas, not metadata or status"},
	"a path into status":                        {spec: dividing("path: /status/replicas"), says: "name a number of the object's spec"},
	"a path of 513 characters":                  {spec: dividing("path: /spec/" + strings.Repeat("a", 507)), says: "spec.replicas.path: Too long"},
}
