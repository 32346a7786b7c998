package v1alpha1_test

import "strings"

const (
	operatorSpec  = "chart: {archive: {configMap: rotors}, namespace: turbines}\n"
	operatorEmpty = "either chart, or manifests and configMaps, is required"
)

var operatorCases = map[string]ruleCase{
	"a chart":     {spec: operatorSpec},
	"manifests":   {spec: bundleSpec},
	"configMaps":  {spec: "configMaps: [{name: a}]"},
	"all of both": {spec: operatorSpec + bundleSpec, says: "spec: Invalid value: " + operatorEmpty},
	"nothing":     {spec: "{}", says: "spec: Invalid value: " + operatorEmpty},
	"everything that can be said of a chart": {spec: `
serviceAccountName: operators
removal: Allow
chart:
  archive: {configMap: rotors, key: rotors.tgz}
  digest: sha256:` + strings.Repeat("a", 64) + `
  namespace: turbines
  releaseName: wind
  values: {image: {tag: v1}, list: [1, a], nothing: null}
  kubernetesVersion: v1.36.2
  apiVersions: [monitoring.coreos.com/v1]
  hooks: Skip`},
	"a Kubernetes version without a patch":    {spec: chart("kubernetesVersion: v1.36")},
	"a Kubernetes version without a v":        {spec: chart("kubernetesVersion: 1.36.0"), says: "spec.chart.kubernetesVersion"},
	"values that are a list":                  {spec: chart("values: []"), says: "spec.chart.values: Invalid value"},
	"an acknowledged change":                  {spec: operatorSpec + "acknowledge: [{crd: rotors.example.com, rule: existingFieldRemoval, path: /spec/size}]"},
	"an acknowledged change of everything":    {spec: operatorSpec + "acknowledge: [{crd: rotors.example.com}]", says: "spec.acknowledge[0].rule: Required value"},
	"an acknowledged change of no definition": {spec: operatorSpec + "acknowledge: [{rule: scope, path: /spec/scope}]", says: "spec.acknowledge[0].crd: Required value"},
	"an acknowledged change without a path":   {spec: operatorSpec + "acknowledge: [{crd: a, rule: scope}]", says: "spec.acknowledge[0].path: Required value"},
	"101 acknowledged changes":                {spec: operatorSpec + "acknowledge: " + many(101, "{crd: a%d, rule: scope, path: /spec/scope}"), says: "spec.acknowledge: Too many: 101"},
	"another removal":                         {spec: operatorSpec + "removal: Delete", says: `spec.removal: Unsupported value: "Delete"`},
	"hooks that run":                          {spec: chart("hooks: Run"), says: `spec.chart.hooks: Unsupported value: "Run"`},
	"a digest of another algorithm":           {spec: chart("digest: sha512:aa"), says: "spec.chart.digest"},
	"a chart without an archive":              {spec: "chart: {namespace: turbines}", says: "spec.chart.archive: Required value"},
	"a chart without a namespace":             {spec: "chart: {archive: {configMap: rotors}}", says: "spec.chart.namespace: Required value"},
	"a namespace that is no name":             {spec: "chart: {archive: {configMap: rotors}, namespace: A}", says: "spec.chart.namespace"},
	"a namespace that is too long":            {spec: "chart: {archive: {configMap: rotors}, namespace: " + strings.Repeat("a", 64) + "}", says: "spec.chart.namespace: Too long"},
	"an empty namespace":                      {spec: `chart: {archive: {configMap: rotors}, namespace: ""}`, says: "spec.chart.namespace"},
	"an archive without a name":               {spec: "chart: {archive: {}, namespace: turbines}", says: "spec.chart.archive.configMap: Required value"},
	"an archive with an empty name":           {spec: `chart: {archive: {configMap: ""}, namespace: turbines}`, says: "spec.chart.archive.configMap"},
	"an archive with a long name":             {spec: "chart: {archive: {configMap: " + strings.Repeat("a", 254) + "}, namespace: turbines}", says: "spec.chart.archive.configMap: Too long"},
	"an archive with an empty key":            {spec: `chart: {archive: {configMap: rotors, key: ""}, namespace: turbines}`, says: "spec.chart.archive.key"},
	"an archive with a long key":              {spec: "chart: {archive: {configMap: rotors, key: " + strings.Repeat("a", 254) + "}, namespace: turbines}", says: "spec.chart.archive.key: Too long"},
	"a release with an empty name":            {spec: chart(`releaseName: ""`), says: "spec.chart.releaseName"},
	"a release with a long name":              {spec: chart("releaseName: " + strings.Repeat("a", 54)), says: "spec.chart.releaseName: Too long"},
	"an API version twice":                    {spec: chart("apiVersions: [a/v1, a/v1]"), says: "spec.chart.apiVersions[1]: Duplicate value"},
	"101 API versions":                        {spec: chart("apiVersions: " + many(101, "a%d/v1")), says: "spec.chart.apiVersions: Too many: 101"},
	"a long API version":                      {spec: chart("apiVersions: [" + strings.Repeat("a", 254) + "]"), says: "spec.chart.apiVersions[0]: Too long"},
	"a configMap twice":                       {spec: "configMaps: [{name: a}, {name: a}]", says: "spec.configMaps[1]: Duplicate value"},
	"a manifest that is text":                 {spec: `manifests: ["kind: Thing"]`, says: `spec.manifests[0]: Invalid value: "string"`},
	"an account with an empty name":           {spec: operatorSpec + `serviceAccountName: ""`, says: "spec.serviceAccountName in body should be at least 1 chars long"},
}

// chart is a spec with one more field of its chart.
func chart(field string) string {
	return "chart: {archive: {configMap: rotors}, namespace: turbines, " + field + "}\n"
}
