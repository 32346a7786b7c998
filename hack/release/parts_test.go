package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// smallChart is the rendered output of a chart with one Deployment.
const smallChart = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: hub}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hub
  labels: {app: hub, helm.sh/chart: hub-1, app.kubernetes.io/managed-by: Helm}
spec:
  selector: {matchLabels: {app: hub}}
  template:
    metadata:
      labels: {app: hub, helm.sh/chart: hub-1, app.kubernetes.io/managed-by: Helm}
    spec:
      serviceAccountName: hub
      containers: [{name: hub, image: example.com/hub}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: hub}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hub}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hub}
subjects: [{kind: ServiceAccount, name: hub, namespace: hanse-system}]
`

func TestSplitChart(t *testing.T) {
	tests := map[string]struct {
		added             string
		wantManifests     []string
		wantPrerequisites []string
		wantError         string
	}{
		"the cluster role of the hub is in the ClusterServiceVersion alone": {},
		"a cluster role of users is applied as it is": {
			added:         "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: view}\n",
			wantManifests: []string{"ClusterRole view"},
		},
		"a Role stays a Role, so that OLM makes no ClusterRole of it": {
			added:         "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: hub}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]\n",
			wantManifests: []string{"Role hub"},
		},
		"a Secret is left to an admin, because OLM would replace its data": {
			added:             "apiVersion: v1\nkind: Secret\nmetadata: {name: certificate}\n",
			wantPrerequisites: []string{"Secret certificate"},
		},
		"a ValidatingAdmissionPolicy is left to an admin, because OLM does not know it": {
			added:             "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: writes}\n",
			wantPrerequisites: []string{"ValidatingAdmissionPolicy writes"},
		},
		"a hook of helm is left out": {
			added: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: uninstall, annotations: {helm.sh/hook: pre-delete}}\n",
		},
		"a kind without a rule is an error": {
			added:     "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com}\n",
			wantError: "APIService v1.example.com of the chart: no rule says",
		},
		"a second Deployment is an error": {
			added:     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n",
			wantError: "two Deployments, hub and other",
		},
		"a second ServiceAccount is an error": {
			added:     "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}\n",
			wantError: `[hub other], but OLM makes only "hub"`,
		},
		"a ClusterRoleBinding of somebody else is an error": {
			added: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hub}\nsubjects: [{kind: Group, name: everyone}]\n",
			wantError: "ClusterRoleBinding all of the chart binds Group everyone",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts, err := SplitChart(smallChart + "---\n" + tt.added)
			wantError(t, err, tt.wantError)
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.wantManifests, names(parts.Manifests)); diff != "" {
				t.Errorf("manifests: %s", diff)
			}
			if diff := cmp.Diff(tt.wantPrerequisites, names(parts.Prerequisites)); diff != "" {
				t.Errorf("prerequisites: %s", diff)
			}
			if len(parts.ClusterRules) != 1 || !slices.Equal(parts.ClusterRules[0].Resources, []string{"namespaces"}) {
				t.Errorf("the hub has the cluster rules %v, want those of its ClusterRole", parts.ClusterRules)
			}
			want := map[string]string{"app": "hub"}
			if diff := cmp.Diff(want, parts.Deployment.Spec.Template.Labels); diff != "" {
				t.Errorf("labels of the pods: %s", diff)
			}
		})
	}
}

func names(objects []unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+" "+o.GetName())
	}
	return all
}
