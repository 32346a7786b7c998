package command

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// grantFile writes a file for --grant-operator, and returns its name.
func grantFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// rulesOfWidgets returns the content of a file with one operator and one rule for all namespaces.
func inKubeSystem(rule string) string {
	return "operators: [{name: a, namespacedRules: {kube-system: [" + rule + "]}}]"
}

func rulesOfWidgets(rule string) string {
	return "operators:\n- name: widgets\n  rules:\n  - " + rule + "\n"
}

func TestBadFilesOfGrantOperatorAreRefusedBeforeAnythingIsRead(t *testing.T) {
	printed, err := run(t, "operators", "rbac", chartFolder(t, operatorTemplates), "-o", "yaml")
	must(t, err)
	const noRights = "want what hansectl operators rbac CHART prints without --output"
	for name, c := range map[string]struct{ text, wants string }{
		"a file that is no YAML":                    {"a: [", noRights},
		"a file with a list":                        {"- a", noRights},
		"an operator without rules":                 {"operators: [{name: a}]", "it grants nothing: " + noRights},
		"an empty file":                             {"", "it grants nothing: " + noRights},
		"a rule for all groups in a later document": {"grantedKinds: [{apiGroups: [apps], resources: [daemonsets]}]\n---\n" + rulesOfWidgets("{apiGroups: ['*'], resources: [deployments], verbs: [get]}"), `operator widgets: rules.0.apiGroups has "*", by which the hub gets rights on all groups`},
		"the output for programs":                   {printed, `unknown field "chart"`},
		"a kind for some namespaces alone":          {"grantedKinds: [{apiGroups: [''], resources: [secrets], namespaces: [a]}]", `unknown field "namespaces"`},
		"all kinds of a group":                      {"grantedKinds: [{apiGroups: [apps], resources: ['*']}]", "grantedKinds.0.resources.0: '*' does not match pattern"},
		"a kind of all groups":                      {"grantedKinds: [{apiGroups: ['*'], resources: [pods]}]", "grantedKinds.0.apiGroups.0: '*' does not match pattern"},
		"an operator without a name":                {"operators: [{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]", "operators.0.name: '' does not match pattern"},
		"a rule for all groups":                     {rulesOfWidgets("{apiGroups: ['*'], resources: [pods], verbs: [get]}"), `operator widgets: rules.0.apiGroups has "*", by which the hub gets rights on all groups`},
		"a rule for all resources":                  {rulesOfWidgets("{apiGroups: [''], resources: ['*'], verbs: [get]}"), `operator widgets: rules.0.resources has "*", by which the hub gets rights on all resources`},
		"a rule for all subresources":               {rulesOfWidgets("{apiGroups: [''], resources: ['pods/*'], verbs: [get]}"), `operator widgets: rules.0.resources has "pods/*", by which the hub gets rights on all resources`},
		"a rule for all URLs":                       {rulesOfWidgets("{nonResourceURLs: ['/*'], verbs: [get]}"), `operator widgets: rules.0.nonResourceURLs has "/*", by which the hub gets rights on all URLs`},
		"a rule for a wildcard in a URL":            {rulesOfWidgets("{nonResourceURLs: ['/a*'], verbs: [get]}"), "operators.0.rules.0.nonResourceURLs.0: '/a*' does not match pattern"},
		"a URL with a sign that is not printable":   {rulesOfWidgets(`{nonResourceURLs: ["/a\e[8m"], verbs: [get]}`), "operators.0.rules.0.nonResourceURLs.0: "},
		"a rule with the verb escalate":             {rulesOfWidgets("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, escalate]}"), "operator widgets: rules.0 has the verb escalate on rbac.authorization.k8s.io/roles, by which the hub gets every right: remove the rule"},
		"a rule with the verb bind":                 {rulesOfWidgets("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [view], verbs: [bind]}"), "operator widgets: rules.0 has the verb bind"},
		"all verbs on roles":                        {rulesOfWidgets("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: ['*']}"), "operator widgets: rules.0 has the verb *"},
		"escalate in one namespace":                 {"operators: [{name: a, namespacedRules: {b: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}]}}]", "operator a: namespacedRules.b.0 has the verb escalate"},
		"rules in a system namespace":               {"operators: [{name: a, namespacedRules: {kube-system: [{apiGroups: [''], resources: [pods], verbs: [get]}]}}]", `operator a: namespacedRules.kube-system.0 has the verb get on pods, by which the hub gets more in kube-system than an operator needs to elect its leader: remove the rule`},
		"rules in another system namespace":         {"operators: [{name: a, namespacedRules: {kube-public: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]}}]", `operator a: namespacedRules has rules of namespace "kube-public", where the hub writes nothing`},
		"all Leases of kube-system":                 {inKubeSystem("{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}"), "namespacedRules.kube-system.0 has the verb update on coordination.k8s.io/leases, by which the hub gets more in kube-system than an operator needs to elect its leader: set resourceNames"},
		"a Lease of Kubernetes":                     {inKubeSystem("{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [issuer, kube-scheduler], verbs: [update]}"), "names kube-scheduler, which belongs to Kubernetes: remove it"},
		"another ConfigMap of kube-system":          {inKubeSystem("{apiGroups: [''], resources: [configmaps], resourceNames: [extension-apiserver-authentication, kubeadm-config], verbs: [get]}"), "has the verb get on configmaps"},
		"a change of the ConfigMap of API servers":  {inKubeSystem("{apiGroups: [''], resources: [configmaps], resourceNames: [extension-apiserver-authentication], verbs: [update]}"), "has the verb update on configmaps"},
		"the use of all Roles of kube-system":       {inKubeSystem("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [use]}"), "has the verb use on rbac.authorization.k8s.io/roles, by which the hub gets more in kube-system than an operator needs to elect its leader: set resourceNames"},
		"the use of Roles in all namespaces":        {rulesOfWidgets("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [issuer], verbs: [get, use]}"), "operator widgets: rules.0 has the verb use on roles of all namespaces, by which the hub writes them in kube-system: name them in namespacedRules.kube-system"},
		"the use of a Role of Kubernetes":           {inKubeSystem("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: ['system:controller:token-cleaner'], verbs: [use]}"), "names system:controller:token-cleaner, which belongs to Kubernetes"},
		"a Role of kube-system to bind":             {inKubeSystem("{apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [issuer], verbs: [bind]}"), "namespacedRules.kube-system.0 has the verb bind"},
		"rules in a namespace without a name":       {"operators: [{name: a, namespacedRules: {'': [{apiGroups: [''], resources: [pods], verbs: [get]}]}}]", `operators.namespacedRules: the key "": '' does not match pattern`},
		"a rule without verbs":                      {rulesOfWidgets("{apiGroups: [''], resources: [pods]}"), "operators.0.rules.0.verbs: got null, want array"},
		"a rule without resources":                  {rulesOfWidgets("{apiGroups: [''], verbs: [get]}"), "operators.0.rules.0: missing property 'resources'"},
		"a rule for a URL in a namespace":           {"operators: [{name: a, namespacedRules: {b: [{nonResourceURLs: [/metrics], verbs: [get]}]}}]", "operators.0.namespacedRules.b.0: additional properties 'nonResourceURLs' not allowed"},
		"a subresource with a capital letter":       {rulesOfWidgets("{apiGroups: [''], resources: [pods/Log], verbs: [get]}"), "'pods/Log' does not match pattern"},
		"a verb with signs that hide the next":      {rulesOfWidgets(`{apiGroups: [''], resources: [pods], verbs: ["get\e[8m"]}`), `'get\x1b[8m' does not match pattern`},
		"an unknown field, such as a misspelling":   {"operatros: []", `unknown field "operatros"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := grantFile(t, c.text)
			_, err := run(t, "join", "a", "--member-kubeconfig", "x", "--grant-operator", file)
			refused(t, err, "--grant-operator "+file+": ", c.wants)
			exits(t, err, 1)
		})
	}
	t.Run("an operator that is granted and taken away", func(t *testing.T) {
		file := grantFile(t, rulesOfWidgets("{apiGroups: [apps], resources: [deployments], verbs: [get]}"))
		_, err := run(t, "join", "a", "--member-kubeconfig", "x", "--grant-operator", file, "--ungrant-operator", "widgets")
		refused(t, err, "cannot name the same operator")
		exits(t, err, 2)
	})
	t.Run("a file that does not exist", func(t *testing.T) {
		_, err := run(t, "join", "a", "--member-kubeconfig", "x", "--grant-operator", filepath.Join(t.TempDir(), "none.yaml"))
		refused(t, err, "--grant-operator: open ", "none.yaml")
	})
}

func TestRightsAsStrongAsTheOperatorAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, rule string
		want            []string // how the expected texts begin
	}{
		"its own kinds to read":                      {"", "{apiGroups: [example.com], resources: [widgets], verbs: [get]}", nil},
		"all verbs on named resources":               {"", "{apiGroups: [example.com], resources: [widgets, widgets/status], verbs: ['*']}", []string{"all verbs on example.com/widgets, example.com/widgets/status"}},
		"all verbs on one object":                    {"", "{apiGroups: [example.com], resources: [widgets], resourceNames: [a], verbs: ['*']}", []string{"all verbs on example.com/widgets"}},
		"all verbs on Secrets have two reasons":      {"", "{apiGroups: [''], resources: [secrets], verbs: ['*']}", []string{"all verbs on secrets", "secrets: it reads every Secret"}},
		"one named Secret":                           {"", "{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}", nil},
		"webhook configurations":                     {"", "{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [patch]}", []string{"admissionregistration.k8s.io/mutatingwebhookconfigurations: it changes everything"}},
		"one named webhook configuration":            {"", "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], resourceNames: [a], verbs: [update]}", []string{"admissionregistration.k8s.io/validatingwebhookconfigurations: "}},
		"webhook configurations to read":             {"", "{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [get, list]}", nil},
		"pods everywhere":                            {"", "{apiGroups: [''], resources: [pods], verbs: [create]}", []string{"pods: it runs pods in kube-system"}},
		"pods in its namespace":                      {"monitoring", "{apiGroups: [''], resources: [pods], verbs: [create]}", []string{"pods in namespace monitoring: it acts as any ServiceAccount there"}},
		"workloads in its namespace":                 {"monitoring", "{apiGroups: [apps], resources: [deployments], verbs: [patch]}", []string{"apps/deployments in namespace monitoring: "}},
		"commands in pods in its namespace":          {"monitoring", "{apiGroups: [''], resources: [pods/exec], verbs: [create]}", []string{"pods/exec in namespace monitoring: "}},
		"pods to read in its namespace":              {"monitoring", "{apiGroups: [''], resources: [pods], verbs: [get]}", nil},
		"a cluster-scoped kind in a role of its own": {"monitoring", "{apiGroups: [''], resources: [nodes], verbs: [patch]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var rule rbacv1.PolicyRule
			must(t, yaml.UnmarshalStrict([]byte(c.rule), &rule))
			got := operatorRisks(c.namespace, []rbacv1.PolicyRule{rule})
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// asHub returns a client with the credentials that the hub has for a member.
func asHub(t *testing.T, name string) client.Client {
	t.Helper()
	var secret corev1.Secret
	must(t, onHub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: name}, &secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	c, err := newClient(config)
	must(t, err)
	return c
}

// createdByHub creates an object as the hub. It retries, because new rights take effect late.
func createdByHub(t *testing.T, hub client.Client, o *unstructured.Unstructured) {
	t.Helper()
	var err error
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err = hub.Create(ctx, o.DeepCopy())
		return err == nil, nil
	}) != nil {
		t.Fatalf("creating %s %s as the hub: %v", o.GetKind(), o.GetName(), err)
	}
	t.Cleanup(func() { remove(t, onMember, o) })
}

func TestJoinGrantsWhatAnOperatorNeeds(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(onMember.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}})))
	printed, err := run(t, "operators", "rbac", chartFolder(t, operatorTemplates), "-n", "widgets")
	must(t, err)
	file := grantFile(t, printed)
	join := func(args ...string) (string, error) {
		return hansectl(t, append([]string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--wait=false", "--admission-policy=false"}, args...)...)
	}
	clusterRole := func() []rbacv1.PolicyRule {
		var role rbacv1.ClusterRole
		must(t, client.IgnoreNotFound(onMember.Get(ctx, client.ObjectKey{Name: "hanse-operator-widgets"}, &role)))
		return role.Rules
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, document := range strings.Split(operatorTemplates, "---\n") {
		o := &unstructured.Unstructured{}
		// Documents with template actions are not valid YAML.
		if yaml.Unmarshal([]byte(document), &o.Object) == nil && strings.HasPrefix(o.GetAPIVersion(), rbacv1.GroupName) {
			if o.GetKind() != "ClusterRole" {
				o.SetNamespace("widgets")
			}
			objects[o.GetKind()] = o
		}
	}

	t.Run("a dry run lists the rules and how strong they are, and writes nothing", func(t *testing.T) {
		out, err := join("--grant-operator", file, "--dry-run=client")
		must(t, err)
		wants(t, out,
			"clusterrole/hanse-operator-widgets rules of the operator widgets in all namespaces", "+ get, list, watch on configmaps, services\n",
			"+ * on example.com/widgets, example.com/widgets/finalizers\n", "+ get on secrets named a\n", "+ get on /metrics\n",
			"WARNING: a user who controls the hub is as strong as the operator by all verbs on example.com/widgets, example.com/widgets/finalizers",
			"role/hanse-operator-widgets        rules of the operator widgets in namespace widgets", "+ create, get, update on coordination.k8s.io/leases\n",
			"+ rbac.authorization.k8s.io/clusterroles", "example.com/widgets is not served by the member yet")
		forOperators, err := madeForOperators(ctx, onMember)
		must(t, err)
		if len(forOperators) > 0 {
			t.Errorf("something was made: %v", forOperators[0].o)
		}
	})
	t.Run("a hub without the grant may not write the operator's role", func(t *testing.T) {
		_, err := join("--grant", "clusterroles,roles", "--grant", "rolebindings")
		must(t, err)
		hub := asHub(t, "cn-sha-1")
		must(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return hub.List(ctx, &rbacv1.ClusterRoleList{}) == nil, nil
		}))
		if err := hub.Create(ctx, objects["ClusterRole"].DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
			t.Errorf("want a refusal because of the rules, got %v", err)
		}
	})
	t.Run("a hub with the grant may write the operator's roles and bind them", func(t *testing.T) {
		out, err := join("--grant-operator", file)
		must(t, err)
		wants(t, out, "clusterrole/hanse-operator-widgets created", "clusterrolebinding/hanse-operator-widgets created", "rolebinding/hanse-operator-widgets created")
		if strings.Index(out, "+ get, list, watch on configmaps") > strings.Index(out, "serviceaccount/hanse") {
			t.Errorf("the rules are listed after something was written:\n%s", out)
		}
		hub := asHub(t, "cn-sha-1")
		for _, kind := range []string{"ClusterRole", "Role", "RoleBinding"} {
			createdByHub(t, hub, objects[kind])
		}
	})
	t.Run("again it says that the hub has them", func(t *testing.T) {
		out, err := join("--grant-operator", file)
		must(t, err)
		wants(t, out, "has them already", "clusterrole/hanse-operator-widgets unchanged", "role/hanse-operator-widgets        unchanged")
	})
	t.Run("without the flag they stay", func(t *testing.T) {
		before := clusterRole()
		_, err := join("--grant", "configmaps")
		must(t, err)
		if diff := cmp.Diff(before, clusterRole()); diff != "" || len(before) == 0 {
			t.Errorf("rules (-before +after):\n%s", diff)
		}
	})
	t.Run("the rules of a later chart are added to the earlier ones", func(t *testing.T) {
		before := len(clusterRole())
		out, err := join("--grant-operator", grantFile(t, rulesOfWidgets("{apiGroups: [route.openshift.io], resources: [routes/custom-host], verbs: [create]}")))
		must(t, err)
		wants(t, out, "+ create on route.openshift.io/routes/custom-host\n", "clusterrole/hanse-operator-widgets updated")
		if strings.Contains(out, "+ get, list, watch on configmaps") {
			t.Errorf("a rule that the hub had is listed as added:\n%s", out)
		}
		if after := len(clusterRole()); after != before+1 {
			t.Errorf("there are %d rules, want %d and one more", after, before)
		}
	})
	t.Run("a Role of kube-system that another client has made is named", func(t *testing.T) {
		role := func(name, hub string) {
			o := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{hubv1.HubLabel: hub}}}
			must(t, onMember.Create(ctx, o))
			t.Cleanup(func() { remove(t, onMember, o) })
		}
		role("foreign", "")
		role("own", "hub-1")
		out, err := join("--dry-run=client", "--grant-operator", grantFile(t, inKubeSystem(
			"{apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [foreign, own, missing, extension-apiserver-authentication-reader], verbs: [use]}")))
		must(t, err)
		wants(t, out, "WARNING: a user who controls the hub can give the rights of the Role foreign, which no hub has made, to any ServiceAccount")
		if n := strings.Count(out, "which no hub has made"); n != 1 {
			t.Errorf("it warns %d times:\n%s", n, out)
		}
	})
	for name, c := range map[string]struct{ operator, wants string }{
		"a namespace that the member does not have": {"missing", "operator missing has rules for namespace nowhere, which the member does not have: create it there first"},
		"a role that hansectl did not make":         {"taken", "role/hanse-operator-taken of the member: it was not made by hansectl"},
	} {
		t.Run(name+" is refused before anything is written", func(t *testing.T) {
			apply(t, onMember, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: "hanse-operator-taken"}})
			const rule = "[{apiGroups: [''], resources: [pods], verbs: [get]}]"
			namespace := map[string]string{"missing": "nowhere", "taken": "widgets"}[c.operator]
			text := "grantedKinds: [{apiGroups: [''], resources: [services]}]\n" +
				"operators: [{name: " + c.operator + ", rules: " + rule + ", namespacedRules: {" + namespace + ": " + rule + "}}]"
			_, err := join("--grant-operator", grantFile(t, text))
			refused(t, err, "preparing the member cn-sha-1", c.wants)
			var role rbacv1.ClusterRole
			must(t, onMember.Get(ctx, client.ObjectKey{Name: accountName}, &role))
			if slices.Contains(kindsToWrite(role.Rules), "services") {
				t.Error("the kinds of the file were granted")
			}
			if err := onMember.Get(ctx, client.ObjectKey{Name: "hanse-operator-" + c.operator}, &role); !apierrors.IsNotFound(err) {
				t.Errorf("the role for all namespaces was made: %v", err)
			}
		})
	}
	t.Run("one operator's rules are taken away, and those of others and its kinds stay", func(t *testing.T) {
		const rule = "[{apiGroups: [''], resources: [pods], verbs: [get]}]"
		other := grantFile(t, "operators: [{name: gadgets, rules: "+rule+", namespacedRules: {widgets: "+rule+"}}]")
		_, err := join("--grant-operator", other)
		must(t, err)
		made := func() []string {
			all, err := madeForOperators(ctx, onMember)
			must(t, err)
			var names []string
			for _, there := range all {
				names = append(names, there.String())
			}
			return names
		}
		before := made()
		out, err := join("--ungrant-operator", "gadgets", "--dry-run=client")
		must(t, err)
		wants(t, out, "clusterrole/hanse-operator-gadgets - all its rules in all namespaces", "- all its rules in namespace widgets")
		if diff := cmp.Diff(before, made()); diff != "" {
			t.Errorf("a dry run changed something (-before +after):\n%s", diff)
		}
		out, err = join("--ungrant-operator", "gadgets")
		must(t, err)
		wants(t, out, "rolebinding/hanse-operator-gadgets deleted", "grants rbac.authorization.k8s.io/clusterroles")
		if diff := cmp.Diff(slices.DeleteFunc(before, func(name string) bool { return strings.Contains(name, "gadgets") }), made()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_, err = join("--ungrant-operator", "gadgets")
		refused(t, err, "--ungrant-operator gadgets: join made no role hanse-operator-gadgets on the member")
	})
	t.Run("unjoin removes them, and leaves those that it did not make", func(t *testing.T) {
		other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hanse-operator-other"}}
		apply(t, onMember, other)
		out, err := hansectl(t, "unjoin", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig)
		must(t, err)
		wants(t, out, "clusterrole/hanse-operator-widgets deleted", "clusterrolebinding/hanse-operator-widgets deleted",
			"role/hanse-operator-widgets        deleted", "rolebinding/hanse-operator-widgets deleted")
		forOperators, err := madeForOperators(ctx, onMember)
		must(t, err)
		if len(forOperators) > 0 {
			t.Errorf("something is left: %v", forOperators[0].o)
		}
		must(t, onMember.Get(ctx, client.ObjectKeyFromObject(other), other))
	})
}

func TestJoinRefusesRightsOfOperatorsWhereTheMemberChartGrantsThem(t *testing.T) {
	fresh(t)
	systemNamespace(t, onMember)
	apply(t, onMember, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubv1.SystemNamespace, Name: accountName, Labels: map[string]string{managedByLabel: "Helm"},
	}})
	_, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--wait=false",
		"--grant-operator", grantFile(t, rulesOfWidgets("{apiGroups: [apps], resources: [deployments], verbs: [get]}")))
	refused(t, err, "is managed by Helm", "--grant-operator", "set grantedKinds, operators and admissionPolicy there")
}
