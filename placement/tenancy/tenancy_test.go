package tenancy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPlacesWhereNothingIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		id   hubv1.ObjectIdentity
		want bool
	}{
		"an object of kube-system":                      {hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "kube-system", Name: "a"}, true},
		"an object of another namespace of the cluster": {hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "kube-public", Name: "a"}, true},
		"an object of Hanse's namespace":                {hubv1.ObjectIdentity{Kind: "Secret", Namespace: "hanse-system", Name: "a"}, true},
		"the namespace itself":                          {hubv1.ObjectIdentity{Kind: "Namespace", Name: "kube-node-lease"}, true},
		"an object of a tenant":                         {hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "kubernetes-dashboard", Name: "a"}, false},
		"a tenant's namespace":                          {hubv1.ObjectIdentity{Kind: "Namespace", Name: "shop"}, false},
		"a Role of kube-system":                         {hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "kube-system", Name: "a"}, true},
		"a cluster-scoped object of such a name":        {hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "kube-reader"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if r := tenancy.OfPlace(tc.id, false); (r != nil) != tc.want || r != nil && r.Reason != hubv1.ReasonNamespaceRefused {
				t.Errorf("got %+v", r)
			}
		})
	}
}

const pod = `containers: [{name: c, image: i, securityContext: {privileged: true}}], hostNetwork: true`

func TestWhatIsNeverWritten(t *testing.T) {
	baseline := map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	for name, tc := range map[string]struct {
		object string
		labels map[string]string
		reason string // expected reason; empty: none
		says   string
	}{
		"a token of a ServiceAccount":        {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`, nil, hubv1.ReasonSecretTypeRefused, "create one on the member"},
		"a token by which nodes join":        {`{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token}`, nil, hubv1.ReasonSecretTypeRefused, "bootstrap"},
		"another Secret":                     {`{apiVersion: v1, kind: Secret, type: Opaque}`, baseline, "", ""},
		"a type of another kind":             {`{apiVersion: x.com/v1, kind: Secret, type: kubernetes.io/service-account-token}`, nil, "", ""},
		"a pod in a namespace without level": {`{apiVersion: v1, kind: Pod, spec: {` + pod + `}}`, nil, "", ""},
		"a pod":                              {`{apiVersion: v1, kind: Pod, spec: {` + pod + `}}`, baseline, hubv1.ReasonPodSecurityViolation, "baseline:latest: correct host namespaces, privileged of"},
		"a Deployment":                       {`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a StatefulSet":                      {`{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a DaemonSet":                        {`{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a ReplicaSet":                       {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a Job":                              {`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a CronJob":                          {`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {` + pod + `}}}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a ReplicationController":            {`{apiVersion: v1, kind: ReplicationController, spec: {template: {spec: {` + pod + `}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "privileged"},
		"a Deployment that is fine":          {`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: c, image: i}]}}}}`, baseline, "", ""},
		"one that is not fine for restricted": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: c, image: i}]}}}}`,
			map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "v1.24"},
			hubv1.ReasonPodSecurityViolation, "restricted:v1.24: correct allowPrivilegeEscalation != false",
		},
		"a level that cannot be read is the strictest": {
			`{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: i}]}}`,
			map[string]string{"pod-security.kubernetes.io/enforce": "none"}, hubv1.ReasonPodSecurityViolation, "restricted:latest",
		},
		"a template that cannot be read": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {hostNetwork: "yes"}}}}`, baseline, hubv1.ReasonPodSecurityViolation, "cannot be read",
		},
		"a custom resource":          {`{apiVersion: x.com/v1, kind: Deployment, spec: {template: {spec: {` + pod + `}}}}`, baseline, "", ""},
		"a Deployment without one":   {`{apiVersion: apps/v1, kind: Deployment, spec: {}}`, baseline, "", ""},
		"a level that only warns":    {`{apiVersion: v1, kind: Pod, spec: {` + pod + `}}`, map[string]string{"pod-security.kubernetes.io/warn": "restricted"}, "", ""},
		"a namespace that allows it": {`{apiVersion: v1, kind: Pod, spec: {` + pod + `}}`, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := tenancy.Of(object(t, tc.object), tc.labels, false)
			reason, message := "", ""
			if got != nil {
				reason, message = got.Reason, got.Message
			}
			if diff := cmp.Diff(tc.reason, reason); diff != "" || !strings.Contains(message, tc.says) {
				t.Errorf("%s%s", message, diff)
			}
		})
	}
}

func TestOfAnOperatorOnlyRolesOfLeaderElectionAreWrittenInKubeSystem(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {namespace: kube-system, name: a}\nrules: "
	for name, tc := range map[string]struct {
		object            string
		place, asOperator bool // whether the place, and the whole object, are accepted
	}{
		"a Role for a Lease":               {role + "[{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]", true, true},
		"a Role that a change has widened": {role + "[{apiGroups: [''], resources: [secrets], verbs: [get]}]", true, false},
		"a ConfigMap":                      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: kube-system, name: a}", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, tc.object)
			if r := tenancy.OfPlace(hubv1.IdentityOf(o), true); (r == nil) != tc.place {
				t.Errorf("its place: %+v", r)
			}
			r := tenancy.Of(o, nil, true)
			if (r == nil) != tc.asOperator || r != nil && r.Reason != hubv1.ReasonNamespaceRefused {
				t.Errorf("of an operator: %+v", r)
			}
			for _, r := range []*tenancy.Refusal{tenancy.OfPlace(hubv1.IdentityOf(o), false), tenancy.Of(o, nil, false)} {
				if r == nil || r.Reason != hubv1.ReasonNamespaceRefused {
					t.Errorf("of another owner: %+v", r)
				}
			}
		})
	}
}
