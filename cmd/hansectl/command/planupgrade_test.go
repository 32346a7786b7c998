package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/view/preview"
)

// operatorWith is a FederatedOperator with a definition that has these fields.
func operatorWith(fields, acknowledge string) string {
	return `apiVersion: hanse.dev/v1alpha1
kind: FederatedOperator
metadata: {name: rotors}
spec:
  serviceAccountName: operators
  acknowledge: ` + acknowledge + `
  manifests:
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: rotors.example.com}
    spec:
      group: example.com
      scope: Namespaced
      names: {plural: rotors, singular: rotor, kind: Rotor, listKind: RotorList}
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + fields + `}}}}}}]
`
}

const rotorsOnHub = `---
apiVersion: hanse.dev/v1alpha1
kind: MemberCluster
metadata: {name: eu-1}
spec: {connection: {type: Direct, direct: {kubeconfigSecretRef: {name: eu-1}}}, allowedNamespaces: {from: All}}
---
apiVersion: hanse.dev/v1alpha1
kind: ClusterPlacement
metadata: {name: operators}
spec: {resourceSelectors: [{apiGroup: hanse.dev, kind: FederatedOperator}], clusters: {labelSelector: {}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {name: rotors, namespace: shop}
spec: {resourceSelectors: [{apiGroup: example.com, kind: Rotor}], clusters: {labelSelector: {}}}
---
apiVersion: example.com/v1
kind: Rotor
metadata: {name: main, namespace: shop, uid: "1", generation: 1}
spec: {size: 3}
---
apiVersion: hanse.dev/v1alpha1
kind: ResourceBinding
metadata: {name: main-rotor-0, namespace: shop}
spec:
  objectRef: {apiVersion: example.com/v1, kind: Rotor, name: main, uid: "1"}
  clusters: [{name: eu-1, state: Present}]
`

func TestAPlanSaysThatAnUpgradeOfAnOperatorIsBlocked(t *testing.T) {
	t.Parallel()
	const both, color = "size: {type: integer}, color: {type: string}", "color: {type: string}"
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	from := file("hub.yaml", operatorWith(both, "[]")+rotorsOnHub)
	for name, c := range map[string]struct {
		operator string
		blocked  bool
		changed  bool
	}{
		"a field that an object has is removed":            {operatorWith(color, "[]"), true, false},
		"the removal is acknowledged":                      {operatorWith(color, "[{crd: rotors.example.com, rule: existingFieldRemoval, path: /spec/size}]"), false, true},
		"a field that no object has is removed":            {operatorWith("size: {type: integer}", "[]"), false, true},
		"only the order of the fields in the file changes": {operatorWith("color: {type: string}, size: {type: integer}", "[]"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := planned(t, "--from", from, "-f", file("operator.yaml", c.operator), "-o", "json")
			must(t, err)
			var made preview.Plan
			must(t, json.Unmarshal([]byte(out), &made))
			var said []string
			for _, p := range made.Problems {
				said = append(said, p.Object.String()+" "+p.Reason+" "+p.Message)
			}
			text := strings.Join(said, "\n")
			if blocked := strings.Contains(text, "FederatedOperator rotors UpgradeBlocked 1 change breaks objects in use: crd rotors.example.com, version v1, rule existingFieldRemoval, path /spec/size"); blocked != c.blocked {
				t.Errorf("the problems are %q", text)
			}
			if changed := made.Summary.Changed+made.Summary.Created > 0; changed != c.changed {
				t.Errorf("the plan has %+v", made.Summary)
			}
		})
	}
}
