package system_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/member/system"
)

// in returns the start of an object of kube-system.
func in(kind, name string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {namespace: kube-system, name: " + name + "}\n"
}

func role(rule string) string { return in("Role", "issuer:leaderelection") + "rules: [{" + rule + "}]" }

func binding(to, subject string) string {
	return in("RoleBinding", "issuer:leaderelection") + "roleRef: {apiGroup: rbac.authorization.k8s.io, " + to + "}\nsubjects: [{" + subject + "}]"
}

const (
	leases   = "apiGroups: [coordination.k8s.io], resources: [leases], "
	itsRole  = "kind: Role, name: issuer:leaderelection"
	itsOwn   = "kind: ServiceAccount, name: issuer, namespace: issuer"
	nowhere  = "use another one, since Hanse writes nothing in kube-* and hanse-system of members"
	otherWay = "only leases of coordination.k8s.io and events are allowed"
)

func TestWhatHanseWritesInSystemNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		refuse string // part of the error; empty: an operator may have the object
	}{
		"a Role that elects a leader": {role(leases + "verbs: [create, get, list, watch]}, {" + leases + "resourceNames: [issuer], verbs: [get, update, patch, delete]"), ""},
		"a Role for its events":       {role("apiGroups: ['', events.k8s.io], resources: [events], verbs: [create, patch]"), ""},
		"a Role without rules":        {in("Role", "issuer:leaderelection") + "rules: []", ""},
		"a binding to such a Role":    {binding(itsRole, itsOwn), ""},
		"a binding of an API server":  {binding("kind: Role, name: extension-apiserver-authentication-reader", itsOwn), ""},

		"a ConfigMap":                          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: kube-system, name: a}", "the namespace is kube-system: " + nowhere},
		"a Role of another group":              {"apiVersion: example.com/v1\nkind: Role\nmetadata: {namespace: kube-system, name: a}", nowhere},
		"a Role in kube-public":                {strings.Replace(role(leases+"verbs: [create]"), "kube-system", "kube-public", 1), "the namespace is kube-public: " + nowhere},
		"a Role in hanse-system":               {strings.Replace(role(leases+"verbs: [create]"), "kube-system", "hanse-system", 1), nowhere},
		"the namespace itself":                 {"apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}", nowhere},
		"an old version of the kind":           {strings.Replace(role(leases+"verbs: [create]"), "k8s.io/v1", "k8s.io/v1beta1", 1), "use rbac.authorization.k8s.io/v1"},
		"a Role with an unknown field":         {role(leases+"verbs: [create]") + "\naggregationRule: {}", "unknown or invalid fields"},
		"rules that are no list":               {in("Role", "a") + "rules: {a: b}", "unknown or invalid fields"},
		"a Role of Kubernetes":                 {in("Role", "system:controller:token-cleaner") + "rules: []", "belongs to Kubernetes"},
		"the Role of all API servers":          {in("Role", "extension-apiserver-authentication-reader") + "rules: []", "belongs to Kubernetes"},
		"a Role for Secrets":                   {role("apiGroups: [''], resources: [secrets], verbs: [get]"), "rules[0] is about secrets: " + otherWay},
		"a Role for named ConfigMaps":          {role("apiGroups: [''], resources: [configmaps], resourceNames: [a], verbs: [get]"), otherWay},
		"all resources of the group of Leases": {role("apiGroups: [coordination.k8s.io], resources: ['*'], verbs: [get]"), otherWay},
		"leases of all groups":                 {role("apiGroups: ['*'], resources: [leases], verbs: [get]"), otherWay},
		"Secrets beside Leases":                {role("apiGroups: [coordination.k8s.io, ''], resources: [leases, secrets], verbs: [get]"), otherWay},
		"a second rule":                        {role(leases + "verbs: [get]}, {apiGroups: [''], resources: [pods], verbs: [create]"), "rules[1] is about pods"},
		"a rule for a URL":                     {role("nonResourceURLs: [/metrics], verbs: [get]"), "names no resource"},
		"updates of all Leases":                {role(leases + "verbs: [get, update]"), "rules[0] has the verb update on all leases: name the Leases of the operator in resourceNames"},
		"all verbs on all Leases":              {role(leases + "verbs: ['*']"), "has the verb * on all leases"},
		"a Lease of Kubernetes":                {role(leases + "resourceNames: [issuer, kube-scheduler], verbs: [update]"), `names the Lease "kube-scheduler"`},
		"a Lease of the cloud":                 {role(leases + "resourceNames: [cloud-controller-manager], verbs: [update]"), `"cloud-controller-manager"`},
		"the Lease of the migration of clouds": {role(leases + "resourceNames: [cloud-provider-extraction-migration], verbs: [update]"), `"cloud-provider-extraction-migration"`},
		"a binding to a Role of kubeadm":       {binding("kind: Role, name: kubeadm:nodes-kubeadm-config", itsOwn), "of Kubernetes"},
		"the Lease of an API server":           {role(leases + "resourceNames: [apiserver-abc], verbs: [delete]"), `"apiserver-abc"`},
		"a deletion of all Leases by no name":  {role(leases + "resourceNames: [''], verbs: [deletecollection]"), `names the Lease ""`},
		"a deletion of events":                 {role("apiGroups: [''], resources: [events], verbs: [create, delete]"), "has the verb delete on events"},
		"a binding to no Role":                 {binding("kind: Role, name: ''", itsOwn), "roleRef has no name"},
		"a binding to cluster-admin":           {binding("kind: ClusterRole, name: cluster-admin", itsOwn), "roleRef names the ClusterRole cluster-admin"},
		"a binding to a Role of Kubernetes":    {binding("kind: Role, name: system:controller:token-cleaner", itsOwn), "of Kubernetes"},
		"a binding of a user":                  {binding(itsRole, "kind: User, apiGroup: rbac.authorization.k8s.io, name: eve"), "subjects[0] is a User"},
		"a binding of everybody":               {binding(itsRole, "kind: Group, apiGroup: rbac.authorization.k8s.io, name: system:authenticated"), "subjects[0] is a Group"},
		"a binding of Kubernetes' own account": {binding(itsRole, "kind: ServiceAccount, name: default, namespace: kube-system"), "subjects[0] is a ServiceAccount of kube-system"},
		"a binding of the hub":                 {binding(itsRole, "kind: ServiceAccount, name: hanse, namespace: hanse-system"), "subjects[0] is a ServiceAccount of hanse-system"},
		"an account without a namespace":       {binding(itsRole, "kind: ServiceAccount, name: issuer"), "subjects[0] has no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			err := system.Refused(o, true)
			if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("an operator: got %v, want %q", err, c.refuse)
			}
			if err := system.Refused(o, false); err == nil || !strings.Contains(err.Error(), nowhere) {
				t.Errorf("any other owner: got %v", err)
			}
		})
	}
}

func TestOutsideOfSystemNamespacesNothingIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a Role for Secrets":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {namespace: shop, name: a}\nrules: [{apiGroups: [''], resources: [secrets], verbs: ['*']}]",
		"a cluster-wide role":  "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: kube-reader}",
		"a tenant's namespace": "apiVersion: v1\nkind: Namespace\nmetadata: {name: kubernetes-dashboard}",
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			if err := system.Refused(o, false); err != nil {
				t.Error(err)
			}
		})
	}
}
