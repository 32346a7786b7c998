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
	"a Kubernetes version of GKE":             {spec: chart("kubernetesVersion: v1.30.5-gke.1443001")},
	"a Kubernetes version of EKS":             {spec: chart("kubernetesVersion: v1.29.3-eks-adc7111")},
	"a Kubernetes version of k3s":             {spec: chart("kubernetesVersion: v1.31.4+k3s1")},
	"a suffix of a version without a patch":   {spec: chart("kubernetesVersion: v1.36-gke.1"), says: "spec.chart.kubernetesVersion"},
	"an empty suffix of a version":            {spec: chart("kubernetesVersion: v1.36.0-"), says: "spec.chart.kubernetesVersion"},
	"a suffix that is no name":                {spec: chart("kubernetesVersion: v1.36.0-a/b"), says: "spec.chart.kubernetesVersion"},
	"a long suffix of a version":              {spec: chart("kubernetesVersion: v1.36.0-" + strings.Repeat("a", 51)), says: "spec.chart.kubernetesVersion"},
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
	"a chart without an archive":              {spec: "chart: {namespace: turbines}", says: "spec.chart: Invalid value: either archive or repository is required"},
	"a chart of a registry":                   {spec: ofRepository("url: oci://registry.example.com:5000/charts, version: 1.0.0-rc.1+build, secret: pull, caBundle: aGFuc2U=")},
	"a chart of an HTTPS repository":          {spec: ofRepository("url: https://example.com/, version: v1.0.0")},
	"a chart of a host without a folder":      {spec: ofRepository("url: oci://localhost, version: v1.0.0")},
	"an archive and a repository":             {spec: chart("repository: {url: oci://example.com, name: rotors, version: 1.0.0}"), says: "spec.chart: Invalid value: either archive or repository is required"},
	"a repository without TLS":                {spec: ofRepository("url: http://example.com, version: 1.0.0"), says: "spec.chart.repository.url"},
	"a repository with a password in its URL": {spec: ofRepository("url: 'https://a:b@example.com', version: 1.0.0"), says: "spec.chart.repository.url"},
	"a repository with a query in its URL":    {spec: ofRepository("url: 'https://example.com/a?b=c', version: 1.0.0"), says: "spec.chart.repository.url"},
	"a repository above a folder":             {spec: ofRepository("url: oci://example.com/charts/../other, version: 1.0.0"), says: "spec.chart.repository.url"},
	"a repository without a host":             {spec: ofRepository("url: 'https:///charts', version: 1.0.0"), says: "spec.chart.repository.url"},
	"a repository without a URL":              {spec: ofRepository("version: 1.0.0"), says: "spec.chart.repository.url: Required value"},
	"a repository with a long URL":            {spec: ofRepository("url: oci://" + strings.Repeat("a", 1024) + ", version: 1.0.0"), says: "spec.chart.repository.url: Too long"},
	"a repository without a version":          {spec: ofRepository("url: oci://example.com"), says: "spec.chart.repository.version: Required value"},
	"a range of versions":                     {spec: ofRepository("url: oci://example.com, version: '>=1.0.0'"), says: "spec.chart.repository.version"},
	"a long version":                          {spec: ofRepository("url: oci://example.com, version: " + strings.Repeat("a", 129)), says: "spec.chart.repository.version: Too long"},
	"a repository without a chart":            {spec: "chart: {repository: {url: oci://example.com, version: 1.0.0}, namespace: turbines}", says: "spec.chart.repository.name: Required value"},
	"a name of a chart with a folder":         {spec: "chart: {repository: {url: oci://example.com, name: a/b, version: 1.0.0}, namespace: turbines}", says: "spec.chart.repository.name"},
	"a long name of a chart":                  {spec: "chart: {repository: {url: oci://example.com, name: " + strings.Repeat("a", 251) + ", version: 1.0.0}, namespace: turbines}", says: "spec.chart.repository.name: Too long"},
	"an empty name of a Secret":               {spec: ofRepository("url: oci://example.com, version: 1.0.0, secret: ''"), says: "spec.chart.repository.secret"},
	"a long name of a Secret":                 {spec: ofRepository("url: oci://example.com, version: 1.0.0, secret: " + strings.Repeat("a", 254)), says: "spec.chart.repository.secret: Too long"},
	"a CA bundle in PEM": {
		spec: ofRepository(`url: oci://example.com, version: 1.0.0, caBundle: "-----BEGIN CERTIFICATE-----"`),
		says: "spec.chart.repository.caBundle: Invalid value: want PEM encoded in base64, as base64 -w0 ca.crt prints it",
	},
	"an empty CA bundle":                {spec: ofRepository("url: oci://example.com, version: 1.0.0, caBundle: ''"), says: "spec.chart.repository.caBundle"},
	"a CA bundle that is too long":      {spec: ofRepository("url: oci://example.com, version: 1.0.0, caBundle: " + strings.Repeat("aaaa", 16385)), says: "spec.chart.repository.caBundle"},
	"values of ConfigMaps":              {spec: chart("valuesFrom: [{configMap: a}, {configMap: a, key: more.yaml, optional: true}]")},
	"values of no ConfigMap":            {spec: chart("valuesFrom: [{key: values.yaml}]"), says: "spec.chart.valuesFrom[0].configMap: Required value"},
	"values of an empty ConfigMap name": {spec: chart("valuesFrom: [{configMap: ''}]"), says: "spec.chart.valuesFrom[0].configMap"},
	"values of a long ConfigMap name":   {spec: chart("valuesFrom: [{configMap: " + strings.Repeat("a", 254) + "}]"), says: "spec.chart.valuesFrom[0].configMap: Too long"},
	"values of an empty key":            {spec: chart("valuesFrom: [{configMap: a, key: ''}]"), says: "spec.chart.valuesFrom[0].key"},
	"values of a long key":              {spec: chart("valuesFrom: [{configMap: a, key: " + strings.Repeat("a", 254) + "}]"), says: "spec.chart.valuesFrom[0].key: Too long"},
	"values of 11 ConfigMaps":           {spec: chart("valuesFrom: " + many(11, "{configMap: a%d}")), says: "spec.chart.valuesFrom: Too many: 11"},
	"a chart without a namespace":       {spec: "chart: {archive: {configMap: rotors}}", says: "spec.chart.namespace: Required value"},
	"a namespace that is no name":       {spec: "chart: {archive: {configMap: rotors}, namespace: A}", says: "spec.chart.namespace"},
	"a namespace that is too long":      {spec: "chart: {archive: {configMap: rotors}, namespace: " + strings.Repeat("a", 64) + "}", says: "spec.chart.namespace: Too long"},
	"an empty namespace":                {spec: `chart: {archive: {configMap: rotors}, namespace: ""}`, says: "spec.chart.namespace"},
	"an archive without a name":         {spec: "chart: {archive: {}, namespace: turbines}", says: "spec.chart.archive.configMap: Required value"},
	"an archive with an empty name":     {spec: `chart: {archive: {configMap: ""}, namespace: turbines}`, says: "spec.chart.archive.configMap"},
	"an archive with a long name":       {spec: "chart: {archive: {configMap: " + strings.Repeat("a", 254) + "}, namespace: turbines}", says: "spec.chart.archive.configMap: Too long"},
	"an archive with an empty key":      {spec: `chart: {archive: {configMap: rotors, key: ""}, namespace: turbines}`, says: "spec.chart.archive.key"},
	"an archive with a long key":        {spec: "chart: {archive: {configMap: rotors, key: " + strings.Repeat("a", 254) + "}, namespace: turbines}", says: "spec.chart.archive.key: Too long"},
	"a release with an empty name":      {spec: chart(`releaseName: ""`), says: "spec.chart.releaseName"},
	"a release with a long name":        {spec: chart("releaseName: " + strings.Repeat("a", 54)), says: "spec.chart.releaseName: Too long"},
	"an API version twice":              {spec: chart("apiVersions: [a/v1, a/v1]"), says: "spec.chart.apiVersions[1]: Duplicate value"},
	"101 API versions":                  {spec: chart("apiVersions: " + many(101, "a%d/v1")), says: "spec.chart.apiVersions: Too many: 101"},
	"a long API version":                {spec: chart("apiVersions: [" + strings.Repeat("a", 254) + "]"), says: "spec.chart.apiVersions[0]: Too long"},
	"a configMap twice":                 {spec: "configMaps: [{name: a}, {name: a}]", says: "spec.configMaps[1]: Duplicate value"},
	"a manifest that is text":           {spec: `manifests: ["kind: Thing"]`, says: `spec.manifests[0]: Invalid value: "string"`},
	"an account with an empty name":     {spec: operatorSpec + `serviceAccountName: ""`, says: "spec.serviceAccountName in body should be at least 1 chars long"},
}

// ofRepository returns a spec with a chart of a repository. The text fields is added to the fields of the repository.
func ofRepository(fields string) string {
	return "chart: {repository: {name: rotors, " + fields + "}, namespace: turbines}"
}

// chart returns a spec whose chart has one further field.
func chart(field string) string {
	return "chart: {archive: {configMap: rotors}, namespace: turbines, " + field + "}\n"
}
