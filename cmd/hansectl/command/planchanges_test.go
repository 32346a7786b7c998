package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// assumedIn runs plan on the files of the tests, in place of a hub. It returns the output and the exit code.
func assumedIn(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	return planned(t, append([]string{"--from", plansDir + "fleet.yaml"}, args...)...)
}

func TestAPlanOfAssumedClustersIsPrintedAsInTestdata(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
	}{
		"decisions that the hub has yet to carry out": {nil, 2},
		"a region is lost":                            {[]string{"--without-region", "eu-central-1"}, 2},
		"a region is lost, as JSON":                   {[]string{"--without-region", "eu-central-1", "-o", "json"}, 2},
		"more than half of clusters are lost":         {[]string{"--without-region", "eu-central-1", "--without-region", "us-east-1"}, 2},
		"a cluster is lost, with every object":        {[]string{"--without-cluster", "us-east-1", "--all"}, 2},
		"a cluster joins by its name":                 {[]string{"--add-cluster", "us-west-1,tier=gold,topology.kubernetes.io/region=us-west-1"}, 2},
		"a cluster joins by a file":                   {[]string{"--add-cluster", plansDir + "joins.yaml"}, 2},
		"a label is set":                              {[]string{"--set-label", "eu-fra-2:tier=gold"}, 2},
		"a label is removed":                          {[]string{"--set-label", "eu-fra-1:tier-"}, 2},
		"a label without an effect":                   {[]string{"--set-label", "eu-fra-1:colour=blue"}, 0},
		"a cluster without objects is lost":           {[]string{"--add-cluster", "new-1", "--without-cluster", "new-1"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, code, err := assumedIn(t, append(tc.args, "--detailed-exitcode")...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %v", code, tc.code, err)
			}
			got := strings.TrimSpace("$ hansectl plan --from fleet.yaml "+strings.Join(tc.args, " ")) + "\n" + text
			isWhatIsPrinted(t, "plan", name, strings.ReplaceAll(got, plansDir, ""))
		})
	}
}

// writtenTo writes a file, and returns its path.
func writtenTo(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPlanNamesWhatIsWrongWithAssumedClusters(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return writtenTo(t, filepath.Join(dir, name), text) }
	tests := map[string]struct {
		args []string
		want string
	}{
		"a cluster that is not there":        {[]string{"--without-cluster", "mars-1"}, `--without-cluster "mars-1": no MemberCluster has this name: there are ap-se-1, ap-se-2, eu-fra-1`},
		"a region that is not there":         {[]string{"--without-region", "mars"}, `--without-region "mars": no cluster is in this region: there are ap-southeast-1, eu-central-1, us-east-1`},
		"a label of no cluster":              {[]string{"--set-label", "tier=gold"}, `--set-label "tier=gold": want CLUSTER:KEY=VALUE, or CLUSTER:KEY- to take the label off`},
		"a label without a value":            {[]string{"--set-label", "eu-fra-1:tier"}, `--set-label "eu-fra-1:tier": want CLUSTER:KEY=VALUE`},
		"a label key that is none":           {[]string{"--set-label", "eu-fra-1:/=x"}, `--set-label "eu-fra-1:/=x": label key "/"`},
		"a label value that is none":         {[]string{"--set-label", "eu-fra-1:tier=a b"}, `--set-label "eu-fra-1:tier=a b": label value "a b"`},
		"a label of a cluster not there":     {[]string{"--set-label", "mars-1:tier=x"}, `--set-label "mars-1:tier=x": no MemberCluster has this name`},
		"a name that is none":                {[]string{"--add-cluster", "Mars"}, `--add-cluster "Mars": name "Mars"`},
		"a name that is taken":               {[]string{"--add-cluster", "eu-fra-1"}, `--add-cluster "eu-fra-1": there is a MemberCluster eu-fra-1 already`},
		"a cluster with half a label":        {[]string{"--add-cluster", "mars-1,tier"}, `--add-cluster "mars-1,tier": label "tier": want KEY=VALUE`},
		"a file that is not there":           {[]string{"--add-cluster", "mars.yaml"}, `--add-cluster "mars.yaml": reading the files: the path "mars.yaml" does not exist`},
		"a file without a cluster":           {[]string{"--add-cluster", file("map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")}, "the file has no MemberCluster"},
		"files that are not there":           {[]string{"-f", "mars.yaml"}, `reading the files: the path "mars.yaml" does not exist`},
		"a field that there is not":          {[]string{"-f", file("field.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {cluster: {}}}")}, `field.yaml: Placement.hanse.dev b/a: strict decoding error: unknown field "spec.cluster"`},
		"a value beyond its bounds":          {[]string{"-f", file("bounds.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {priority: 1000000000, resourceSelectors: [{kind: ConfigMap}], clusters: {names: [eu-fra-1]}}}")}, `bounds.yaml: Placement.hanse.dev b/a: spec.priority: Invalid value: 1000000000`},
		"a rule of the API that is broken":   {[]string{"-f", file("rule.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {}}}")}, `rule.yaml: Placement.hanse.dev b/a: spec.clusters: Invalid value: set names, labelSelector or expression`},
		"an object that is there twice":      {[]string{"--from", file("twice.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}, "twice.yaml: Namespace shop is there twice"},
		"an output format that there is not": {[]string{"-o", "xml"}, `--output "xml": want markdown, json, yaml or jsonpath=TEMPLATE`},
		"an argument":                        {[]string{"eu-fra-1"}, `unexpected argument "eu-fra-1"`},
		"a flag that there is not":           {[]string{"--without", "eu-fra-1"}, "unknown flag: --without"},
		"a mistyped flag":                    {[]string{"--without-regoin", "x"}, "unknown flag: --without-regoin; did you mean --without-region?"},
		"a name that an API server refuses":  {[]string{"-f", file("name.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: A_1, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {names: [eu-fra-1]}}}")}, `name.yaml: Placement.hanse.dev b/A_1: metadata.name: Invalid value: "A_1"`},
		"a namespace that its kind has not":  {[]string{"-f", file("scope.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: ClusterPlacement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {names: [eu-fra-1]}}}")}, "scope.yaml: ClusterPlacement.hanse.dev b/a: metadata.namespace: Forbidden: not allowed on this type"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, code, err := assumedIn(t, tc.args...)
			refused(t, err, tc.want)
			if code != 1 || out != "" {
				t.Errorf("exit code %d, output %q", code, out)
			}
		})
	}
	for name, args := range map[string][]string{"members without files": nil, "members with a lost cluster": {"-f", "a.yaml", "--without-cluster", "eu-fra-1"}} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, append([]string{"plan", "--live"}, args...)...)
			refused(t, err, errLiveFiles.Error())
			exits(t, err, 1)
		})
	}
}

func TestPlanListsWhatAdmissionRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return writtenTo(t, filepath.Join(dir, name), text) }
	tests := map[string]struct {
		args []string
		want string
	}{
		"an expression that does not compile": {[]string{"-f", file("cel.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {expression: nothing}}}")}, `cel.yaml: reading spec.clusters.expression: line 1, column 1: undeclared reference to 'nothing'`},
		"a toleration without a key":          {[]string{"-f", file("toleration.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], clusters: {names: [eu-fra-1], tolerations: [{operator: Equal, value: v}]}}}")}, `toleration.yaml: spec.clusters.tolerations[0].key: is required with operator Equal`},
		"an override that does not compile":   {[]string{"-f", file("when.yaml", "{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: a, namespace: b}, spec: {resourceSelectors: [{kind: ConfigMap}], rules: [{name: r, when: nothing, labels: {a: b}}]}}")}, `when.yaml: spec.rules[0].when: Invalid value: its field when is refused: line 1, column 1: undeclared reference to 'nothing'`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, code, err := assumedIn(t, append(tc.args, "-o", "json")...)
			refused(t, err, "admission refuses 1 object")
			refusals := planOf(t, out).Refusals
			if code != 1 || len(refusals) != 1 || !strings.Contains(filepath.Base(refusals[0].File)+": "+refusals[0].Message, tc.want) {
				t.Errorf("exit code %d, refusals %+v, want %s", code, refusals, tc.want)
			}
		})
	}
}
