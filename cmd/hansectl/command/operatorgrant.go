package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

const (
	grantOperatorFlag   = "grant-operator"
	ungrantOperatorFlag = "ungrant-operator"

	wantedFile = "want what hansectl operator rbac CHART prints without --output"
)

// operatorGrants are the rights that the files of --grant-operator contain.
type operatorGrants struct {
	kinds []kindGrant
	roles []operatorRole
}

// operatorRole has the rules of an operator's own roles. join gives these rules to the hub by an additional role on the
// member, as the chart hanse-member does. The additional role is a ClusterRole if the namespace is empty, and otherwise
// a Role.
type operatorRole struct {
	operator, namespace string
	rules               []rbacv1.PolicyRule
}

var (
	errBothWays      = errors.New("--grant-operator and --ungrant-operator cannot name the same operator: run join twice")
	errNoRights      = errors.New("it grants nothing: " + wantedFile)
	errNeverGranted  = errors.New("join never grants this, so remove it from the file: a rule")
	errRule          = errors.New("the API server refuses this rule")
	operatorName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$`)
	namesOfRules     = regexp.MustCompile(`^[!-~]+$`)
	resourcesOfRules = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9-]+)?$`)
	urlsOfRules      = regexp.MustCompile(`^/[^*\s]*(/[*])?$`)
	verbsOfRules     = regexp.MustCompile(`^([a-z]+|[*])$`)
)

// readOperatorGrants reads the files of --grant-operator. It refuses the rules that the chart hanse-member also
// refuses.
func readOperatorGrants(files []string) (operatorGrants, error) {
	var out operatorGrants
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return out, fmt.Errorf("--%s: %w", grantOperatorFlag, err)
		}
		granted, err := parseOperatorGrants(text)
		if err != nil {
			return out, fmt.Errorf("--%s %s: %w", grantOperatorFlag, file, err)
		}
		if len(granted.kinds)+len(granted.roles) == 0 {
			return out, fmt.Errorf("--%s %s: %w", grantOperatorFlag, file, errNoRights)
		}
		out.kinds, out.roles = append(out.kinds, granted.kinds...), append(out.roles, granted.roles...)
	}
	return out, nil
}

// parseOperatorGrants returns the rights of all documents of a file.
func parseOperatorGrants(text []byte) (operatorGrants, error) {
	var g operatorGrants
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return g, fmt.Errorf(wantedFile+": %w", err)
		}
		var values operatorrights.MemberValues
		if err := yaml.UnmarshalStrict(document, &values); err != nil {
			return g, fmt.Errorf(wantedFile+": %w", err)
		}
		if err := g.add(values); err != nil {
			return g, err
		}
	}
}

// add adds the rights of one document.
func (g *operatorGrants) add(values operatorrights.MemberValues) error {
	for _, granted := range values.GrantedKinds {
		var texts []string
		for _, group := range granted.APIGroups {
			for _, resource := range granted.Resources {
				texts = append(texts, group+"/"+resource)
			}
		}
		kinds, err := parseGrants("grantedKinds", texts)
		if err != nil {
			return err
		}
		g.kinds = append(g.kinds, kinds...)
	}
	for _, operator := range values.Operators {
		if !operatorName.MatchString(operator.Name) {
			return fmt.Errorf("operators: name %q is %w: want at most 52 letters, digits and hyphens", operator.Name, errValue)
		}
		if err := g.addRole(operatorRole{operator: operator.Name, rules: operator.Rules}); err != nil {
			return err
		}
		for _, namespace := range slices.Sorted(maps.Keys(operator.NamespacedRules)) {
			if namespace == "" || hubv1.IsSystemNamespace(namespace) {
				return fmt.Errorf("operator %s: %w in namespace %q, where the hub writes nothing", operator.Name, errNeverGranted, namespace)
			}
			if err := g.addRole(operatorRole{operator.Name, namespace, operator.NamespacedRules[namespace]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRole checks the rules of a role, and then adds the role.
func (g *operatorGrants) addRole(r operatorRole) error {
	for _, rule := range r.rules {
		if err := checkRule(rule, r.namespace != ""); err != nil {
			return fmt.Errorf("operator %s: %w", r.operator, err)
		}
	}
	if len(r.rules) > 0 {
		g.roles = append(g.roles, r)
	}
	return nil
}

// of reports whether g has rules of at least one of the given operators.
func (g operatorGrants) of(operators []string) bool {
	return slices.ContainsFunc(g.roles, func(r operatorRole) bool { return slices.Contains(operators, r.operator) })
}

// checkRule refuses rules about all resources, and rules with which the hub could give itself more rights. It also
// refuses rules that the API server would refuse, because join would then stop halfway.
func checkRule(rule rbacv1.PolicyRule, namespaced bool) error {
	ofResources := len(rule.APIGroups) > 0 && len(rule.Resources) > 0
	switch {
	case len(rule.Verbs) == 0:
		return fmt.Errorf("%w: %s has no verb", errRule, quoted(rule))
	case ofResources == (len(rule.NonResourceURLs) > 0):
		return fmt.Errorf("%w: %s needs apiGroups and resources, or nonResourceURLs", errRule, quoted(rule))
	case namespaced && !ofResources:
		return fmt.Errorf("%w: %s has nonResourceURLs in a namespace", errRule, quoted(rule))
	case operatorrights.Unbounded(rule):
		return fmt.Errorf("%w for all groups, resources or URLs (%s)", errNeverGranted, quoted(rule))
	}
	for _, part := range []struct {
		texts []string
		are   *regexp.Regexp
		want  string
	}{
		{rule.Verbs, verbsOfRules, "a verb such as get, or *"},
		{rule.APIGroups, group, "an API group such as apps"},
		{rule.Resources, resourcesOfRules, "a resource such as pods or pods/log"},
		{rule.ResourceNames, namesOfRules, "the name of an object"},
		{rule.NonResourceURLs, urlsOfRules, "a path such as /metrics or /healthz/*"},
	} {
		for _, text := range part.texts {
			if !part.are.MatchString(text) {
				return fmt.Errorf("%q in a rule is %w: want %s", text, errValue, part.want)
			}
		}
	}
	if verb := known.Refused.in(rule); verb != "" {
		return fmt.Errorf("%w with the verb %s (%s), by which the hub gets every right", errNeverGranted, verb, quoted(rule))
	}
	return nil
}

// ruleText returns a rule as text, such as "get, list on configmaps, apps/deployments".
func ruleText(rule rbacv1.PolicyRule) string {
	text := strings.Join(rule.Verbs, ", ") + " on " + strings.Join(append(kindsOf(rule), rule.NonResourceURLs...), ", ")
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}

// quoted returns a rule as quoted text. It escapes control characters, because the rule comes from a file and was not
// checked yet.
func quoted(rule rbacv1.PolicyRule) string { return fmt.Sprintf("%q", ruleText(rule)) }

// notServed returns a note for each granted kind that the member does not serve yet. Such kinds are granted
// nevertheless, because the operator often contains their definitions.
func (g operatorGrants) notServed(member meta.RESTMapper) ([]string, error) {
	var notes []string
	for _, kind := range g.kinds {
		found, err := servedAs(member, kind)
		switch {
		case errors.Is(err, errNotServed), errors.Is(err, errAmbiguous), err == nil && found != kind:
			notes = append(notes, noteNotServed(kind))
		case err != nil:
			return nil, err
		}
	}
	return notes, nil
}

// risks returns the rights of the role that make a user who controls the hub as strong as the operator. Examples are
// all verbs on a resource, the right to create admission webhooks, and rights to act as the ServiceAccounts of other
// pods.
func (r operatorRole) risks() []string {
	var out []string
	for _, rule := range r.rules {
		if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			out = append(out, fmt.Sprintf("all verbs on %s", strings.Join(kindsOf(rule), ", ")))
		}
		for _, risk := range known.Risks {
			switch {
			case !risk.in(rule):
			case r.namespace != "" && risk.InNamespace:
				out = append(out, fmt.Sprintf("%s in namespace %s: it acts as any ServiceAccount there", risk.Of, r.namespace))
			case r.namespace == "" && (len(rule.ResourceNames) == 0 || strings.HasPrefix(risk.Of, "admissionregistration.k8s.io/")):
				out = append(out, risk.Of+": "+risk.Why)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r operatorRole) name() string { return operatorrights.RolePrefix + r.operator }

// area returns the place where the rules of a role are valid, as text: "all namespaces" or "namespace shop".
func area(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// role returns the empty Role or ClusterRole that gets the rules, with a pointer to its rules.
func (r operatorRole) role() (kind string, role client.Object, rules *[]rbacv1.PolicyRule) {
	if r.namespace == "" {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.name()}}
		return "clusterrole", role, &role.Rules
	}
	namespaced := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name()}}
	return "role", namespaced, &namespaced.Rules
}

// review prints the rights that the hub gets in addition, and their risks. It returns an error if write would fail
// later, for example because the namespace does not exist.
func (r operatorRole) review(ctx context.Context, w io.Writer, m client.Client) error {
	if r.namespace != "" {
		err := m.Get(ctx, client.ObjectKey{Name: r.namespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("operator %s has rules for namespace %s, which the member does not have: create it there first", r.operator, r.namespace)
		}
		if err != nil {
			return fmt.Errorf("reading namespace %s of the member: %w", r.namespace, err)
		}
	}
	kind, role, rules := r.role()
	bindingKind, binding, _, _ := emptyBinding(r.namespace, r.name())
	for _, there := range []made{{kind, role}, {bindingKind, binding}} {
		err := m.Get(ctx, client.ObjectKeyFromObject(there.o), there.o)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading %s of the member: %w", there, err)
		case err == nil && !ours(there.o):
			return fmt.Errorf("%s of the member: %w", there, errTaken)
		}
	}
	printLine(w, kind+"/"+r.name(), "rules of the operator %s in %s", r.operator, area(r.namespace))
	_, added := validation.Covers(*rules, r.rules)
	for _, rule := range operatorrights.MergeRules(added) {
		printLine(w, "", "+ %s", ruleText(rule))
	}
	if len(added) == 0 {
		printLine(w, "", "has them already")
	}
	for _, risk := range r.risks() {
		printLine(w, "", "WARNING: a user who controls the hub is as strong as the operator by %s", risk)
	}
	return nil
}

// write adds the rules to the Role or ClusterRole on the member. Other rules in it stay.
func (r operatorRole) write(ctx context.Context, w io.Writer, m client.Client) error {
	kind, role, rules := r.role()
	if err := put(ctx, w, m, role, kind, func() error {
		*rules = operatorrights.MergeRules(slices.Concat(*rules, r.rules))
		return mark(role)
	}); err != nil {
		return err
	}
	return bind(ctx, w, m, r.namespace, r.name())
}

// takenFromOperators returns and prints the roles and bindings to delete, because the hub shall lose the rules of these
// operators.
func takenFromOperators(ctx context.Context, w io.Writer, m client.Client, operators []string) ([]made, error) {
	if len(operators) == 0 {
		return nil, nil
	}
	all, err := madeForOperators(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []made
	for _, operator := range operators {
		before := len(out)
		for _, there := range all {
			if there.o.GetName() != operatorrights.RolePrefix+operator {
				continue
			}
			out = append(out, there)
			if strings.HasSuffix(there.kind, "role") {
				printLine(w, there.String(), "- all its rules in %s", area(there.o.GetNamespace()))
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("--%s %s: join made no role %s%s on the member", ungrantOperatorFlag, operator, operatorrights.RolePrefix, operator)
		}
	}
	return out, nil
}

// madeForOperators returns the metadata of the roles and bindings that join created on the member for operators.
// Bindings come first.
func madeForOperators(ctx context.Context, m client.Client) ([]made, error) {
	var out []made
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := m.List(ctx, list, client.MatchingLabels(ourLabels())); err != nil {
			return nil, fmt.Errorf("listing every %s of the member: %w", kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
			if strings.HasPrefix(o.Name, operatorrights.RolePrefix) {
				out = append(out, made{strings.ToLower(kind), o})
			}
		}
	}
	return out, nil
}
