package v1alpha1_test

import "strings"

const (
	direct     = "connection: {type: Direct, direct: {kubeconfigSecretRef: {name: s}}}\n"
	everywhere = "allowedNamespaces: {from: All}\n"
	memberSpec = direct + everywhere
)

var memberClusterCases = map[string]ruleCase{
	"the least that can be said": {spec: memberSpec},
	"everything that can be said": {spec: `
connection: {type: Direct, direct: {kubeconfigSecretRef: {name: shanghai, key: config}}}
taints: [{key: maintenance, value: "true", effect: NoSchedule}, {key: maintenance, effect: NoExecute}, {key: old, effect: PreferNoSchedule}]
unschedulable: true
allowedNamespaces: {from: Selector, selector: {matchLabels: {team: a}}}
drain: {maxUnavailable: 3}
leave: {policy: Delete, timeoutSeconds: 60, whenUnreachable: Abandon}
`},

	"a name of 63 characters":       {name: strings.Repeat("a", 63), spec: memberSpec},
	"a name of one character":       {name: "a", spec: memberSpec},
	"a name of 64 characters":       {name: strings.Repeat("a", 64), spec: memberSpec, says: "the name of a MemberCluster is a DNS label of at most 63 characters"},
	"a name with a dot":             {name: "eu.fra-1", spec: memberSpec, says: "the name of a MemberCluster is a DNS label of at most 63 characters"},
	"a name in upper case":          {name: "EU", spec: memberSpec, says: "metadata.name: Invalid value"},
	"no connection":                 {spec: everywhere, says: "spec.connection: Required value"},
	"no connection type":            {spec: everywhere + "connection: {direct: {kubeconfigSecretRef: {name: s}}}", says: "spec.connection.type: Required value"},
	"a connection type to come":     {spec: everywhere + "connection: {type: Relay}", says: `spec.connection.type: Unsupported value: "Relay"`},
	"a tunnel without its member":   {spec: everywhere + "connection: {type: Tunnel}", says: "set tunnel if and only if type is Tunnel"},
	"a tunnel without keys":         {spec: everywhere + "connection: {type: Tunnel, tunnel: {}}"},
	"a tunnel with a kubeconfig":    {spec: everywhere + "connection: {type: Tunnel, tunnel: {}, direct: {kubeconfigSecretRef: {name: s}}}", says: "set direct if and only if type is Direct"},
	"a key of an agent":             {spec: everywhere + "connection: {type: Tunnel, tunnel: {keys: ['SHA256:" + strings.Repeat("a", 43) + "']}}"},
	"a key that is too short":       {spec: everywhere + "connection: {type: Tunnel, tunnel: {keys: ['SHA256:" + strings.Repeat("a", 42) + "']}}", says: "a key is SHA256: and 43 characters, as hanse-member prints it"},
	"a type without its member":     {spec: everywhere + "connection: {type: Direct}", says: "set direct if and only if type is Direct"},
	"a type with a null for member": {spec: everywhere + "connection: {type: Direct, direct: null}", says: "set direct if and only if type is Direct"},
	"no Secret":                     {spec: everywhere + "connection: {type: Direct, direct: {}}", says: "spec.connection.direct.kubeconfigSecretRef: Required value"},
	"a Secret without a name":       {spec: everywhere + `connection: {type: Direct, direct: {kubeconfigSecretRef: {name: ""}}}`, says: "kubeconfigSecretRef.name in body should be at least 1 chars long"},
	"a Secret with too long a name": {spec: everywhere + `connection: {type: Direct, direct: {kubeconfigSecretRef: {name: ` + strings.Repeat("s", 254) + `}}}`, says: "kubeconfigSecretRef.name: Too long"},
	"an empty key of a Secret":      {spec: everywhere + `connection: {type: Direct, direct: {kubeconfigSecretRef: {name: s, key: ""}}}`, says: "kubeconfigSecretRef.key in body should be at least 1 chars long"},

	"no allowedNamespaces":                     {spec: direct, says: "spec.allowedNamespaces: Required value"},
	"allowedNamespaces without from":           {spec: direct + "allowedNamespaces: {}", says: "spec.allowedNamespaces.from: Required value"},
	"no namespace is allowed":                  {spec: direct + "allowedNamespaces: {from: None}"},
	"an empty selector of namespaces":          {spec: direct + "allowedNamespaces: {from: Selector, selector: {}}"},
	"Selector without a selector":              {spec: direct + "allowedNamespaces: {from: Selector}", says: "set selector if and only if from is Selector"},
	"Selector with a null for a selector":      {spec: direct + "allowedNamespaces: {from: Selector, selector: null}", says: "set selector if and only if from is Selector"},
	"a selector beside All":                    {spec: direct + "allowedNamespaces: {from: All, selector: {}}", says: "set selector if and only if from is Selector"},
	"a selector beside None":                   {spec: direct + "allowedNamespaces: {from: None, selector: {}}", says: "set selector if and only if from is Selector"},
	"namespaces from a word that is not there": {spec: direct + "allowedNamespaces: {from: Some}", says: `spec.allowedNamespaces.from: Unsupported value: "Some"`},

	"32 taints":                        {spec: memberSpec + "taints: " + many(32, "{key: k%d, effect: NoExecute}")},
	"33 taints":                        {spec: memberSpec + "taints: " + many(33, "{key: k%d, effect: NoExecute}"), says: "spec.taints: Too many: 33"},
	"the same taint twice":             {spec: memberSpec + "taints: [{key: k, effect: NoExecute}, {key: k, value: v, effect: NoExecute}]", says: "spec.taints[1]: Duplicate value"},
	"a taint without an effect":        {spec: memberSpec + "taints: [{key: k}]", says: "spec.taints[0].effect: Required value"},
	"a taint with a misspelled effect": {spec: memberSpec + "taints: [{key: k, effect: NoExcute}]", says: "the effect of a taint is NoSchedule, PreferNoSchedule or NoExecute"},

	"a taint as the hub sets it": {spec: memberSpec + "taints: [{key: hanse.dev/unreachable, effect: NoSchedule}]", says: "taints of hanse.dev/ are set by the hub, in status.taints"},

	"a capacity":                 {spec: memberSpec + `capacity: {cpu: "400", memory: 1Ti, example.com/gpu: 8}`},
	"a capacity of no quantity":  {spec: memberSpec + "capacity: {cpu: many}", says: "spec.capacity.cpu"},
	"a capacity of 65 resources": {spec: memberSpec + "capacity: {" + strings.Trim(many(65, "r%d: 1"), "[]") + "}", says: "capacity has at most 64 resources"},

	"a drain without a number":      {spec: memberSpec + "drain: {}"},
	"a drain of one at a time":      {spec: memberSpec + "drain: {maxUnavailable: 1}"},
	"a drain of nothing at a time":  {spec: memberSpec + "drain: {maxUnavailable: 0}", says: "maxUnavailable in body should be greater than or equal to 1"},
	"a drain of too much at a time": {spec: memberSpec + "drain: {maxUnavailable: 10001}", says: "maxUnavailable in body should be less than or equal to 10000"},

	"waiting no time before giving up":      {spec: memberSpec + "leave: {timeoutSeconds: 0, whenUnreachable: Abandon}"},
	"waiting a week before giving up":       {spec: memberSpec + "leave: {timeoutSeconds: 604800}"},
	"waiting longer before giving up":       {spec: memberSpec + "leave: {timeoutSeconds: 604801}", says: "timeoutSeconds in body should be less than or equal to 604800"},
	"waiting less than no time":             {spec: memberSpec + "leave: {timeoutSeconds: -1}", says: "timeoutSeconds in body should be greater than or equal to 0"},
	"leaving in a way that is not there":    {spec: memberSpec + "leave: {policy: Abandon}", says: `spec.leave.policy: Unsupported value: "Abandon"`},
	"being away in a way that is not there": {spec: memberSpec + "leave: {whenUnreachable: Delete}", says: `spec.leave.whenUnreachable: Unsupported value: "Delete"`},
}
