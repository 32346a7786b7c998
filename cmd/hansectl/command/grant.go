package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// grants are the rights that the hub has on a member. The chart hanse-member gives the hub the same rights.
type grants struct {
	kinds            []kindGrant
	createNamespaces bool
	// listWorkloads lets the hub list the objects that controllers have created for a copy, such as Pods.
	listWorkloads bool
	// listEvents and readLogs let the hub read the events of all namespaces and the logs of all pods.
	listEvents, readLogs bool
}

// grantVerbs are the verbs that the hub needs on a kind that it writes.
var grantVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// kindGrant is one kind of objects that the hub may write, by its API group and resource.
type kindGrant struct{ group, resource string }

// String returns the kind in the syntax of --grant, such as "apps/deployments".
func (k kindGrant) String() string { return strings.TrimPrefix(k.group+"/"+k.resource, "/") }

var (
	errGrant = errors.New("want a resource with its group unless that is the core group, such as deployments.apps, apps/deployments or configmaps")
	group    = regexp.MustCompile(`^[a-z0-9.-]*$`)
	resource = regexp.MustCompile(`^[a-z0-9]+$`)
)

func parseGrants(flag string, texts []string) ([]kindGrant, error) {
	var out []kindGrant
	for _, text := range texts {
		parsed := schema.ParseGroupResource(text)
		g := kindGrant{parsed.Group, parsed.Resource}
		if before, after, found := strings.Cut(text, "/"); found {
			g = kindGrant{before, after}
		}
		if !group.MatchString(g.group) || !resource.MatchString(g.resource) {
			return nil, fmt.Errorf("%s %q: %w", flag, text, errGrant)
		}
		out = append(out, g)
	}
	return out, nil
}

// grantChange has the changes of the hub's rights that the user has requested. A nil pointer means that the right does
// not change.
type grantChange struct {
	add, remove                     []kindGrant
	operators                       operatorGrants
	ungrantedOperators              []string
	createNamespaces, listWorkloads *bool
	listEvents, readLogs            *bool
	policy                          policyChoice
}

func (c grantChange) any() bool {
	return len(c.add)+len(c.remove)+len(c.operators.kinds)+len(c.operators.roles)+len(c.ungrantedOperators) > 0 ||
		c.createNamespaces != nil || c.listWorkloads != nil || c.listEvents != nil || c.readLogs != nil
}

// rules returns the new rules of the hub's ClusterRole. before are its current rules; nil means that the ClusterRole
// does not exist yet. Rules that hansectl does not know stay.
func (c grantChange) rules(before []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	g, others := readGrants(before)
	if before == nil {
		g.createNamespaces = true
	}
	g.createNamespaces, g.listWorkloads = ptr.Deref(c.createNamespaces, g.createNamespaces), ptr.Deref(c.listWorkloads, g.listWorkloads)
	g.listEvents, g.readLogs = ptr.Deref(c.listEvents, g.listEvents), ptr.Deref(c.readLogs, g.readLogs)
	g.kinds = slices.DeleteFunc(slices.Concat(g.kinds, c.add, c.operators.kinds), func(k kindGrant) bool {
		return slices.ContainsFunc(c.remove, func(r kindGrant) bool { return r == k || (r.group == "" && r.resource == k.resource) })
	})
	return append(g.rules(), others...)
}

// readGrants splits the rules of a ClusterRole into the grants that hansectl knows, and all other rules.
func readGrants(rules []rbacv1.PolicyRule) (g grants, others []rbacv1.PolicyRule) {
	same := func(a rbacv1.PolicyRule, among []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(among, func(b rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(a, b) })
	}
	for _, rule := range rules {
		switch {
		case same(rule, grants{}.rules()):
		case same(rule, grants{createNamespaces: true}.rules()):
			g.createNamespaces = true
		case same(rule, grants{listWorkloads: true}.rules()):
			g.listWorkloads = true
		case same(rule, grants{listEvents: true}.rules()):
			g.listEvents = true
		case same(rule, grants{readLogs: true}.rules()):
			g.readLogs = true
		case slices.Equal(rule.Verbs, grantVerbs) && len(rule.ResourceNames) == 0:
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					g.kinds = append(g.kinds, kindGrant{group, resource})
				}
			}
		default:
			others = append(others, rule)
		}
	}
	return g, others
}

// tokenRules returns the rules with which the hub renews its own token. They are in a Role in the member's namespace
// hanse-system.
func tokenRules() []rbacv1.PolicyRule {
	core := []string{""}
	return []rbacv1.PolicyRule{
		{APIGroups: core, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{accountName}, Verbs: []string{"create"}},
		{APIGroups: core, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{
			APIGroups: core, Resources: []string{"secrets"}, ResourceNames: append([]string{credential.LastingSecret}, credential.TokenSecrets...),
			Verbs: []string{"delete"},
		},
	}
}

// rules returns the rules of the hub's ClusterRole on the member.
func (g grants) rules() []rbacv1.PolicyRule {
	out := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	}
	if g.createNamespaces {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}})
	}
	if g.listWorkloads {
		out = append(out,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets", "replicasets"}, Verbs: []string{"list"}},
			rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: []string{"list"}},
		)
	}
	if g.listEvents {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}})
	}
	if g.readLogs {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}})
	}
	byGroup := map[string]int{} // index in out of the rule for an API group
	for _, k := range g.kinds {
		i, found := byGroup[k.group]
		if !found {
			i = len(out)
			byGroup[k.group] = i
			out = append(out, rbacv1.PolicyRule{APIGroups: []string{k.group}, Verbs: grantVerbs})
		}
		if !slices.Contains(out[i].Resources, k.resource) {
			out[i].Resources = append(out[i].Resources, k.resource)
		}
	}
	return out
}

var (
	errManaged = errors.New("--grant, --ungrant, --grant-operator, --ungrant-operator, --create-namespaces, --list-workloads and --admission-policy cannot change objects that another tool manages")
	errTaken   = errors.New("it was not made by hansectl: remove it, or install the chart hanse-member")
)

// granting has the kinds that the hub may write on a member.
type granting struct {
	kinds []string
	// chart is true if the Helm chart hanse-member created the hub's rules on the member. It is false if hansectl created
	// them.
	chart bool
}

// hint returns what a user must do to grant one more kind: a flag of join, or a value of the chart.
func (g *granting) hint(kind kindGrant) string {
	if g.chart {
		return "add it to grantedKinds of the chart there"
	}
	return fmt.Sprintf("add it by --grant %s", kind)
}

// set creates the hub's ServiceAccount and its roles on the member. If another manager created the ServiceAccount, such
// as the chart, set leaves everything as it is. It returns nil if it cannot tell which kinds the hub may write.
func (c grantChange) set(ctx context.Context, w io.Writer, m *memberCluster) (*granting, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	err := m.Get(ctx, client.ObjectKeyFromObject(account), account)
	switch {
	case err == nil && !ours(account):
		if err := useForeign(w, account, c.any() || c.policy != ""); err != nil {
			return nil, err
		}
		return chartGrants(ctx, m)
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading ServiceAccount %s/%s of the member: %w", account.Namespace, account.Name, err)
	}
	for _, role := range c.operators.roles {
		if err := role.review(ctx, w, m); err != nil {
			return nil, err
		}
	}
	taken, err := takenFromOperators(ctx, w, m, c.ungrantedOperators)
	if err != nil {
		return nil, err
	}
	if err := c.policy.set(ctx, w, m); err != nil { // before the hub has any right
		return nil, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}
	if err := put(ctx, w, m, ns, "namespace", func() error { return nil }); err != nil {
		return nil, err
	}
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	if err := put(ctx, w, m, account, "serviceaccount", func() error {
		account.AutomountServiceAccountToken = ptr.To(false) // only the hub uses the token, no pod does
		return mark(account)
	}); err != nil {
		return nil, err
	}
	granted, err := c.setRole(ctx, w, m)
	if err != nil {
		return nil, err
	}
	for _, role := range c.operators.roles {
		if err := role.write(ctx, w, m); err != nil {
			return nil, err
		}
	}
	for _, there := range taken {
		if err := client.IgnoreNotFound(m.Delete(ctx, there.o)); err != nil {
			return nil, fmt.Errorf("deleting %s of the member: %w", there, err)
		}
		printLine(w, there.String(), "deleted")
	}
	return granted, nil
}

func useForeign(w io.Writer, account *corev1.ServiceAccount, change bool) error {
	by := cmp.Or(account.Labels[managedByLabel], "somebody else")
	if release := account.Annotations["meta.helm.sh/release-name"]; release != "" {
		by += ", release " + release
	}
	if change {
		return fmt.Errorf("ServiceAccount %s/%s of the member is managed by %s: %w; set grantedKinds, operators and admissionPolicy there", account.Namespace, account.Name, by, errManaged)
	}
	printLine(w, "serviceaccount/"+account.Name, "exists, managed by %s: its RBAC is left as it is", by)
	return nil
}

// chartGrants returns the kinds that the hub may write on the member. It reads the kinds from the ClusterRole that the
// Helm chart hanse-member created. It returns nil if this ClusterRole does not exist.
func chartGrants(ctx context.Context, m *memberCluster) (*granting, error) {
	role := &rbacv1.ClusterRole{}
	err := m.Get(ctx, client.ObjectKey{Name: accountName}, role)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ClusterRole %s of the member: %w", accountName, err)
	}
	g := &granting{kinds: granted(role.Rules), chart: true}
	// If the chart grants a kind only in some namespaces, the ClusterRole has only the verbs get, list and watch. Roles in
	// these namespaces have the other verbs.
	_, others := readGrants(role.Rules)
	for _, rule := range others {
		if slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			g.kinds = append(g.kinds, kindsOf(rule)...)
		}
	}
	return g, nil
}

func (c grantChange) setRole(ctx context.Context, w io.Writer, m *memberCluster) (*granting, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	var before []string
	if err := put(ctx, w, m, role, "clusterrole", func() error {
		before = granted(role.Rules)
		if role.ResourceVersion == "" || c.any() {
			role.Rules = c.rules(role.Rules)
		}
		return mark(role)
	}); err != nil {
		return nil, err
	}
	now := append([]string{}, granted(role.Rules)...)
	printChanges(w, before, now)
	for _, risk := range risks(role.Rules) {
		printLine(w, "", "WARNING: a user who controls the hub is an administrator of this cluster by %s", risk)
	}
	if err := setTokenRole(ctx, w, m); err != nil {
		return nil, err
	}
	return &granting{kinds: now}, bind(ctx, w, m, "", accountName)
}

// printChanges prints the kinds that were granted and withdrawn by this run, and then all granted kinds.
func printChanges(w io.Writer, before, now []string) {
	for _, kind := range now {
		if !slices.Contains(before, kind) {
			printLine(w, "", "+ %s", kind)
		}
	}
	for _, kind := range before {
		if !slices.Contains(now, kind) {
			printLine(w, "", "- %s", kind)
		}
	}
	if len(now) > 0 {
		printLine(w, "", "grants %s", strings.Join(now, ", "))
		return
	}
	printLine(w, "", "grants no kind yet: run join again with --grant RESOURCE.GROUP")
}

// setTokenRole creates the Role that lets the hub renew and revoke its own token.
func setTokenRole(ctx context.Context, w io.Writer, m *memberCluster) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	if err := put(ctx, w, m, role, "role", func() error {
		role.Rules = tokenRules()
		return mark(role)
	}); err != nil {
		return err
	}
	return bind(ctx, w, m, hubv1.SystemNamespace, accountName)
}

// bind gives a role to the hub's ServiceAccount. The role is a ClusterRole if namespace is empty, and otherwise a Role.
func bind(ctx context.Context, w io.Writer, m client.Client, namespace, name string) error {
	kind, binding, ref, subjects := emptyBinding(namespace, name)
	return put(ctx, w, m, binding, kind, func() error {
		if binding.GetResourceVersion() == "" { // set the roleRef only at creation, because it is immutable
			*ref = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
			if namespace == "" {
				ref.Kind = "ClusterRole"
			}
		}
		*subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: accountName}}
		return mark(binding)
	})
}

// emptyBinding returns an empty RoleBinding, with pointers to its role and its subjects. If namespace is empty, it
// returns a ClusterRoleBinding.
func emptyBinding(namespace, name string) (kind string, binding client.Object, ref *rbacv1.RoleRef, subjects *[]rbacv1.Subject) {
	if namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return "clusterrolebinding", binding, &binding.RoleRef, &binding.Subjects
	}
	namespaced := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return "rolebinding", namespaced, &namespaced.RoleRef, &namespaced.Subjects
}

// granted returns the kinds that the rules let the hub write, in the syntax of --grant. These are the kinds with the
// verb delete.
func granted(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, rule := range rules {
		if slices.Contains(rule.Verbs, "delete") {
			out = append(out, kindsOf(rule)...)
		}
	}
	return out
}

// kindsOf returns the kinds of a rule, in the syntax of --grant.
func kindsOf(rule rbacv1.PolicyRule) []string {
	var out []string
	for _, g := range rule.APIGroups {
		for _, r := range rule.Resources {
			out = append(out, kindGrant{g, r}.String())
		}
	}
	return out
}

// mark sets hansectl's labels on an object. It returns an error if another manager owns the object.
func mark(o client.Object) error {
	if o.GetResourceVersion() != "" && !ours(o) {
		return errTaken
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for k, v := range ourLabels() {
		labels[k] = v
	}
	o.SetLabels(labels)
	return nil
}

// put creates or updates an object and prints the result. It retries after a conflict, because the hub may write at the
// same time.
func put(ctx context.Context, w io.Writer, c client.Client, o client.Object, kind string, change func() error) error {
	var did controllerutil.OperationResult
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err := retry.OnError(retry.DefaultBackoff, raced, func() (err error) {
		did, err = controllerutil.CreateOrUpdate(ctx, c, o, change)
		return err
	})
	if raced(err) {
		return fmt.Errorf("writing %s/%s: another client changed it at the same time, try again: %w", kind, o.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("writing %s/%s: %w", kind, o.GetName(), err)
	}
	printLine(w, kind+"/"+o.GetName(), "%s", did)
	return nil
}
