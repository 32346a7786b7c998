package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
	"github.com/hanse-dev/hanse/member/system"
)

const (
	grantOperatorFlag   = "grant-operator"
	ungrantOperatorFlag = "ungrant-operator"

	wantedFile = "want what hansectl operators rbac CHART prints without --output"
)

// operatorGrants are the rights that the files of --grant-operator contain.
type operatorGrants struct {
	kinds     []kindGrant
	operators []operatorrights.OperatorRules // one for each name
}

var (
	errBothWays = errors.New("--grant-operator and --ungrant-operator cannot name the same operator: run join twice")
	errNoRights = errors.New("it grants nothing: " + wantedFile)
)

// readOperatorGrants reads the files of --grant-operator. It refuses values that the chart hanse-member refuses.
func readOperatorGrants(ctx context.Context, files []string) (operatorGrants, error) {
	var out operatorGrants
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return out, fmt.Errorf("--%s: %w", grantOperatorFlag, err)
		}
		granted, err := parseOperatorGrants(ctx, text)
		if err != nil {
			return out, fmt.Errorf("--%s %s: %w", grantOperatorFlag, file, err)
		}
		out.add(granted.kinds, granted.operators)
	}
	return out, nil
}

// parseOperatorGrants returns the rights of all documents of a file.
func parseOperatorGrants(ctx context.Context, text []byte) (operatorGrants, error) {
	var g operatorGrants
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return g, fmt.Errorf(wantedFile+": %w", err)
		}
		var values operatorrights.MemberValues
		if err := yaml.UnmarshalStrict(document, &values); err != nil {
			return g, fmt.Errorf(wantedFile+": %w", err)
		}
		var kinds []kindGrant
		for _, granted := range values.GrantedKinds {
			kinds = append(kinds, kindsIn(rbacv1.PolicyRule{APIGroups: granted.APIGroups, Resources: granted.Resources})...)
		}
		g.add(kinds, values.Operators)
	}
	if len(g.kinds) == 0 && !slices.ContainsFunc(g.operators, func(o operatorrights.OperatorRules) bool { return len(o.Rules)+len(o.NamespacedRules) > 0 }) {
		return g, errNoRights
	}
	_, err := memberValues{kinds: g.kinds, operators: g.operators}.render(ctx)
	return g, err
}

// add adds rights. It merges the rules of operators with the same name.
func (g *operatorGrants) add(kinds []kindGrant, operators []operatorrights.OperatorRules) {
	g.kinds = append(g.kinds, kinds...)
	for _, more := range operators {
		i := slices.IndexFunc(g.operators, func(o operatorrights.OperatorRules) bool { return o.Name == more.Name })
		if i < 0 {
			g.operators = append(g.operators, more)
			continue
		}
		there := &g.operators[i]
		there.Rules = append(there.Rules, more.Rules...)
		if there.NamespacedRules == nil {
			there.NamespacedRules = map[string][]rbacv1.PolicyRule{}
		}
		for namespace, rules := range more.NamespacedRules {
			there.NamespacedRules[namespace] = append(there.NamespacedRules[namespace], rules...)
		}
	}
}

// of reports whether g has rules of at least one of the given operators.
func (g operatorGrants) of(operators []string) bool {
	return slices.ContainsFunc(g.operators, func(o operatorrights.OperatorRules) bool { return slices.Contains(operators, o.Name) })
}

// ruleText returns a rule as text, such as "get, list on configmaps, apps/deployments".
func ruleText(rule rbacv1.PolicyRule) string {
	text := strings.Join(rule.Verbs, ", ") + " on " + strings.Join(append(kindsOf(rule), rule.NonResourceURLs...), ", ")
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}

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

// operatorRisks returns the rights in the rules of an operator that make a user who controls the hub as strong as the
// operator. An empty namespace means all namespaces. Examples are all verbs on a resource, the right to create
// admission webhooks, and rights to act as the ServiceAccounts of other pods.
func operatorRisks(namespace string, rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, rule := range rules {
		if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			out = append(out, fmt.Sprintf("all verbs on %s", strings.Join(kindsOf(rule), ", ")))
		}
		for _, risk := range knownRisks {
			switch {
			case !risk.in(rule):
			case namespace != "" && risk.InNamespace:
				out = append(out, fmt.Sprintf("%s in namespace %s: it acts as any ServiceAccount there", risk.Of, namespace))
			case namespace == "" && (len(rule.ResourceNames) == 0 || strings.HasPrefix(risk.Of, "admissionregistration.k8s.io/")):
				out = append(out, risk.Of+": "+risk.Why)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// area returns the place where the rules of a role are valid, as text: "all namespaces" or "namespace shop".
func area(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// reviewOperators prints the rights that the hub gets in addition, and their risks. It returns an error if a write of
// these objects would fail later, for example because their namespace does not exist.
func reviewOperators(ctx context.Context, w io.Writer, m client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		operator, namespace := operatorOf(o), o.GetNamespace()
		if operator == "" {
			continue
		}
		if namespace != "" {
			err := m.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("operator %s has rules for namespace %s, which the member does not have: create it there first", operator, namespace)
			}
			if err != nil {
				return fmt.Errorf("reading namespace %s of the member: %w", namespace, err)
			}
		}
		there := empty(o)
		err := m.Get(ctx, client.ObjectKeyFromObject(there.o), there.o)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading %s of the member: %w", there, err)
		case err == nil && !ours(there.o):
			return fmt.Errorf("%s of the member: %w", there, errTaken)
		}
		if strings.HasSuffix(there.kind, "role") {
			if err := printRules(w, there, o); err != nil {
				return err
			}
			if err := warnOfForeignRoles(ctx, w, m, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnOfForeignRoles prints a warning for each Role of kube-system that the rules name, and that no hub has made. The
// hub can bind to such a Role, whatever its rules are.
func warnOfForeignRoles(ctx context.Context, w io.Writer, m client.Client, wanted *unstructured.Unstructured) error {
	if wanted.GetNamespace() != system.Namespace {
		return nil
	}
	rules, err := rulesOf(wanted)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		for _, name := range rule.ResourceNames {
			if !slices.Contains(rule.Verbs, "use") || name == system.AuthenticationReader {
				continue
			}
			role := &metav1.PartialObjectMetadata{}
			role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
			err := m.Get(ctx, client.ObjectKey{Namespace: system.Namespace, Name: name}, role)
			switch {
			case client.IgnoreNotFound(err) != nil:
				return fmt.Errorf("reading Role %s/%s of the member: %w", system.Namespace, name, err)
			case err == nil && role.Labels[hubv1.HubLabel] == "":
				printLine(w, "", "WARNING: a user who controls the hub can give the rights of the Role %s, which no hub has made, to any ServiceAccount", name)
			}
		}
	}
	return nil
}

// printRules prints the rules that the hub gets by a role of an operator. there is the role on the member.
func printRules(w io.Writer, there made, wanted *unstructured.Unstructured) error {
	before, err := rulesOf(there.o.(*unstructured.Unstructured))
	if err != nil {
		return err
	}
	rules, err := rulesOf(wanted)
	if err != nil {
		return err
	}
	printLine(w, there.String(), "rules of the operator %s in %s", operatorOf(wanted), area(wanted.GetNamespace()))
	if added := printAdded(w, before, rules); len(added) == 0 {
		printLine(w, "", "has them already")
	}
	for _, risk := range operatorRisks(wanted.GetNamespace(), rules) {
		printLine(w, "", "WARNING: a user who controls the hub is as strong as the operator by %s", risk)
	}
	return nil
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
