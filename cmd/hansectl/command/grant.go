package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

// kindGrant is one kind of objects that the hub may write, by its API group and resource.
type kindGrant struct{ group, resource string }

// String returns the kind in the syntax of --grant, such as "apps/deployments".
func (k kindGrant) String() string { return strings.TrimPrefix(k.group+"/"+k.resource, "/") }

// invalid reports whether the group or the resource has a character that the chart refuses, such as a wildcard.
func (k kindGrant) invalid() bool {
	return !group.MatchString(k.group) || !resource.MatchString(k.resource)
}

var (
	errGrant = errors.New("want a resource with its group unless that is the core group, such as deployments.apps, apps/deployments or configmaps")
	group    = regexp.MustCompile(`^[a-z0-9.-]*$`)
	resource = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

func parseGrants(flag string, texts []string) ([]kindGrant, error) {
	var out []kindGrant
	for _, text := range texts {
		parsed := schema.ParseGroupResource(text)
		g := kindGrant{parsed.Group, parsed.Resource}
		if before, after, found := strings.Cut(text, "/"); found {
			g = kindGrant{before, after}
		}
		if g.invalid() {
			return nil, fmt.Errorf("%s %q: %w", flag, text, errGrant)
		}
		out = append(out, g)
	}
	return out, nil
}

// grantChange has the changes of the hub's rights that the user has requested.
type grantChange struct {
	add, remove        []kindGrant
	operators          operatorGrants
	ungrantedOperators []string
	optional           map[string]bool // values of the chart, by their names in optionalRights
	policy             policyChoice
	keepRules          bool // an existing ClusterRole keeps its rules as they are
}

func (c grantChange) any() bool {
	return len(c.add)+len(c.remove)+len(c.operators.kinds)+len(c.operators.operators)+len(c.ungrantedOperators)+len(c.optional) > 0
}

var (
	errManaged = func() error {
		flags := "--grant, --ungrant, --" + grantOperatorFlag + ", --" + ungrantOperatorFlag
		for _, right := range optionalRights {
			flags += ", --" + right.flag
		}
		return errors.New(flags + " and --" + admissionPolicyFlag + " cannot change objects that another tool manages")
	}()
	errTaken = errors.New("it was not made by hansectl: remove it, or install the chart hanse-member")
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

// set writes the objects of the chart hanse-member on the member, with the hub's new rights. If another manager created
// the hub's ServiceAccount, such as helm, set leaves everything as it is. It returns nil if it cannot tell which kinds
// the hub may write.
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
	role := &rbacv1.ClusterRole{}
	err = m.Get(ctx, client.ObjectKey{Name: accountName}, role)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ClusterRole %s of the member: %w", accountName, err)
	}
	if apierrors.IsNotFound(err) { // a new member
		c.policy = cmp.Or(c.policy, policyOn)
		given := c.optional
		c.optional = map[string]bool{}
		for _, right := range optionalRights {
			c.optional[right.value] = right.byDefault
		}
		maps.Copy(c.optional, given)
	}
	objects, err := c.objects(ctx, role.Rules)
	if err != nil {
		return nil, err
	}
	if err := reviewOperators(ctx, w, m, objects); err != nil {
		return nil, err
	}
	taken, err := takenFromOperators(ctx, w, m, c.ungrantedOperators)
	if err != nil {
		return nil, err
	}
	switch c.policy {
	case "":
		err = noteUnlimited(ctx, w, m)
	case policyOff:
		err = removePolicy(ctx, w, m)
	}
	if err != nil {
		return nil, err
	}
	granted, err := c.write(ctx, w, m, objects)
	if err != nil {
		return nil, err
	}
	for _, there := range taken {
		if err := client.IgnoreNotFound(m.Delete(ctx, there.o)); err != nil {
			return nil, fmt.Errorf("deleting %s of the member: %w", there, err)
		}
		printLine(w, there.String(), "deleted")
	}
	return granted, nil
}

// write writes the objects of the chart. It creates their namespace after the admission policy, so that a user who may
// not install the policy changes nothing on the member.
func (c grantChange) write(ctx context.Context, w io.Writer, m client.Client, objects []*unstructured.Unstructured) (*granting, error) {
	granted := &granting{}
	for _, o := range objects {
		if o.GetKind() == rbacv1.ServiceAccountKind {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
			if err := put(ctx, w, m, ns, "namespace", func() error { return nil }); err != nil {
				return nil, err
			}
		}
		before, after, err := c.writeOne(ctx, w, m, o)
		if isPolicy(o) && err != nil {
			return nil, fmt.Errorf("installing the admission policy that limits what the hub may write: %w: pass --%s=%s to join without it", err, admissionPolicyFlag, policyOff)
		}
		if err != nil {
			return nil, err
		}
		if isHubRole(o) {
			granted.kinds = append([]string{}, kindsToWrite(after)...)
			printAdded(w, before, slices.DeleteFunc(slices.Clone(after), toWrite))
			printChanges(w, kindsToWrite(before), granted.kinds)
			for _, risk := range risks(after) {
				printLine(w, "", "WARNING: a user who controls the hub is an administrator of this cluster by %s", risk)
			}
		}
	}
	return granted, nil
}

// writeOne creates or updates one object of the chart. It returns the rules of the object on the member before and
// after that, if it is a role. Earlier rules of an operator stay.
func (c grantChange) writeOne(ctx context.Context, w io.Writer, m client.Client, o *unstructured.Unstructured) (before, after []rbacv1.PolicyRule, err error) {
	there := empty(o)
	err = put(ctx, w, m, there.o, there.kind, func() (err error) {
		on := there.o.(*unstructured.Unstructured)
		if before, err = rulesOf(on); err != nil {
			return err
		}
		wanted := o
		if isHubRole(o) && c.keepRules && on.GetResourceVersion() != "" {
			after = before
			return mark(on)
		}
		if isHubRole(o) { // again, because the role may have changed since
			objects, err := c.objects(ctx, before)
			if err != nil {
				return err
			}
			wanted = hubRole(objects)
		}
		if after, err = rulesOf(wanted); err != nil {
			return err
		}
		for field, value := range wanted.Object {
			if field == "roleRef" && on.GetResourceVersion() != "" || field == "metadata" { // a roleRef is immutable
				continue
			}
			on.Object[field] = runtime.DeepCopyJSONValue(value)
		}
		if operatorOf(o) != "" && after != nil {
			after = operatorrights.MergeRules(slices.Concat(before, after))
			if err := setRules(on, after); err != nil {
				return err
			}
		}
		return mark(on)
	})
	return before, after, err
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
	known, err := rulesOfChart()
	if err != nil {
		return nil, err
	}
	g := &granting{kinds: kindsToWrite(role.Rules), chart: true}
	// If the chart grants a kind only in some namespaces, the ClusterRole has only the verbs get, list and watch. Roles in
	// these namespaces have the other verbs.
	_, others := known.values(role.Rules)
	for _, rule := range others {
		if slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			g.kinds = append(g.kinds, kindsOf(rule)...)
		}
	}
	return g, nil
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

// printAdded prints the new rules of the hub, and returns them. A rule that earlier rules cover is not new.
func printAdded(w io.Writer, before, after []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, added := validation.Covers(before, after)
	added = operatorrights.MergeRules(added)
	for _, rule := range added {
		printLine(w, "", "+ %s", ruleText(rule))
	}
	return added
}

// toWrite reports whether a rule lets the hub write kinds: it has the verb delete.
func toWrite(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Verbs, "delete") }

// kindsToWrite returns the kinds that the rules let the hub write, in the syntax of --grant.
func kindsToWrite(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, rule := range rules {
		if toWrite(rule) {
			out = append(out, kindsOf(rule)...)
		}
	}
	return out
}

// kindsIn returns the kinds of a rule.
func kindsIn(rule rbacv1.PolicyRule) []kindGrant {
	var out []kindGrant
	for _, g := range rule.APIGroups {
		for _, r := range rule.Resources {
			out = append(out, kindGrant{g, r})
		}
	}
	return out
}

// kindsOf returns the kinds of a rule, in the syntax of --grant.
func kindsOf(rule rbacv1.PolicyRule) []string {
	var out []string
	for _, k := range kindsIn(rule) {
		out = append(out, k.String())
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
