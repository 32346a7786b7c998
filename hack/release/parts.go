package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Parts are the objects of the hub's chart, grouped by the way in which they are installed on a cluster with OLM.
type Parts struct {
	// Deployment and ClusterRules become parts of the ClusterServiceVersion, from which OLM installs them. OLM creates
	// the ServiceAccount.
	Deployment   appsv1.Deployment
	ClusterRules []rbacv1.PolicyRule
	Definitions  []apiextensionsv1.CustomResourceDefinition
	// Manifests are objects of the bundle that OLM applies without a change.
	Manifests []unstructured.Unstructured
	// Prerequisites are objects that an administrator applies, because OLM does not support their kind, or would damage
	// them.
	Prerequisites []unstructured.Unstructured
}

// asTheyAre has the kinds that OLM applies without a change. It includes Role. If the ClusterServiceVersion had the
// Roles and an OperatorGroup selected all namespaces, OLM would turn them into ClusterRoles, and the hub could read the
// Secrets of every namespace.
var asTheyAre = []string{
	"ClusterRole", "ClusterRoleBinding", "NetworkPolicy", "PodDisruptionBudget", "Role", "RoleBinding", "Service",
}

// byAnAdmin has the kinds that an administrator applies. OLM would overwrite the data that the hub writes into a
// ConfigMap or a Secret. An OLM bundle cannot contain the other kinds of this list. A ClusterServiceVersion can contain
// webhooks, but OLM gives them its own certificate and path, and the hub needs other ones.
var byAnAdmin = []string{
	"ConfigMap", "FlowSchema", "MutatingWebhookConfiguration", "Secret", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

// SplitChart groups the objects that helm renders from the hub's chart. It returns an error for a kind that is in no
// list, so that a new object of the chart is never forgotten in the bundle.
func SplitChart(rendered string) (*Parts, error) {
	objects, err := decode(rendered)
	if err != nil {
		return nil, err
	}
	p := &Parts{}
	var accounts []string
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetName()
		if o.GetAnnotations()["helm.sh/hook"] != "" {
			continue // OLM has no hooks, so docs/release.md explains how to uninstall
		}
		clean(&o)
		switch kind := o.GetKind(); {
		case kind == "Deployment":
			if p.Deployment.Name != "" {
				return nil, fmt.Errorf("the chart has two Deployments, %s and %s", p.Deployment.Name, o.GetName())
			}
			err = convert(o, &p.Deployment)
		case kind == "CustomResourceDefinition":
			var crd apiextensionsv1.CustomResourceDefinition
			err = convert(o, &crd)
			p.Definitions = append(p.Definitions, crd)
		case kind == "ServiceAccount":
			accounts = append(accounts, o.GetName())
		case slices.Contains(asTheyAre, kind):
			p.Manifests = append(p.Manifests, o)
		case slices.Contains(byAnAdmin, kind):
			p.Prerequisites = append(p.Prerequisites, o)
		default:
			err = errors.New("no rule says who installs this kind on a cluster with OLM: add it in hack/release/parts.go")
		}
		if err != nil {
			return nil, fmt.Errorf("%s of the chart: %w", name, err)
		}
	}
	account := p.Deployment.Spec.Template.Spec.ServiceAccountName
	if len(accounts) != 1 || accounts[0] != account {
		return nil, fmt.Errorf("the chart has the ServiceAccounts %v, but OLM makes only %q, which the Deployment names", accounts, account)
	}
	return p, p.takeClusterRules(account)
}

// takeClusterRules moves the rules of the ClusterRoles that are bound to the ServiceAccount into ClusterRules.
func (p *Parts) takeClusterRules(account string) error {
	bound := map[string]bool{}
	for _, o := range p.Manifests {
		if o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		if err := convert(o, &binding); err != nil {
			return fmt.Errorf("ClusterRoleBinding %s of the chart: %w", o.GetName(), err)
		}
		for _, s := range binding.Subjects {
			if s.Kind != rbacv1.ServiceAccountKind || s.Name != account {
				return fmt.Errorf("ClusterRoleBinding %s of the chart binds %s %s, not the hub", o.GetName(), s.Kind, s.Name)
			}
		}
		bound[binding.RoleRef.Name] = true
	}
	var err error
	p.Manifests = slices.DeleteFunc(p.Manifests, func(o unstructured.Unstructured) bool {
		switch {
		case o.GetKind() == "ClusterRoleBinding":
			return true
		case o.GetKind() == "ClusterRole" && bound[o.GetName()]:
			var role rbacv1.ClusterRole
			err = errors.Join(err, convert(o, &role))
			p.ClusterRules = append(p.ClusterRules, role.Rules...)
			return true
		}
		return false
	})
	return err
}

// decode returns the objects of a stream of YAML documents.
func decode(documents string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(documents), 4096); ; {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding document %d: %w", len(objects)+1, err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

func convert(o unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		return fmt.Errorf("converting to %T: %w", into, err)
	}
	return nil
}

// clean removes the labels and annotations of helm from an object and from its pod template.
func clean(o *unstructured.Unstructured) {
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, field := range [][]string{
			{"labels", "app.kubernetes.io/managed-by"}, {"labels", "helm.sh/chart"}, {"annotations", "helm.sh/resource-policy"},
		} {
			unstructured.RemoveNestedField(o.Object, slices.Concat(path, field)...)
		}
	}
}
