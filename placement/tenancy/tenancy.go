// Package tenancy decides which objects are never sent to a member, whatever a placement or an override policy says.
// These are objects of system namespaces, Secrets that are credentials of a cluster, and pod templates that the Pod
// Security level of the hub's namespace forbids. Without this package, a user of a hub namespace could get more rights
// on members than on the hub.
//
// If an object is refused, its existing copies are not withdrawn. They stay unchanged.
package tenancy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/system"
)

// Refusal is the reason why an object is not sent to members. The message contains no value of the object.
type Refusal struct{ Reason, Message string }

// OfPlace returns a Refusal for objects in the namespaces kube-* and hanse-system, and for these namespaces themselves.
// It returns nil if the object is none of these, and for the objects that a FederatedOperator may have in kube-system.
func OfPlace(id hubv1.ObjectIdentity, ofOperator bool) *Refusal {
	if err := system.RefusedPlace(id, ofOperator); err != nil {
		return &Refusal{hubv1.ReasonNamespaceRefused, err.Error()}
	}
	return nil
}

// credentials are the types of Secrets that are credentials of one cluster.
var credentials = []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken}

// OfSecret returns a Refusal for a Secret that is a credential of one cluster. Such a Secret of the hub is of no use on
// a member, and the member would treat it as its own: it would accept a bootstrap token, and write a new token of its
// own into a Secret for a ServiceAccount. OfSecret returns nil for any other object.
func OfSecret(object *unstructured.Unstructured) *Refusal {
	if !hubv1.IsSecret(object.GroupVersionKind().GroupKind()) {
		return nil
	}
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	if !slices.Contains(credentials, corev1.SecretType(kind)) {
		return nil
	}
	return &Refusal{hubv1.ReasonSecretTypeRefused, fmt.Sprintf("a Secret of type %s is a credential of one cluster: create one on the member, or remove this Secret "+
		"from the placement", kind)}
}

// Of returns a Refusal for a manifest that must not be sent, and nil if it may be sent. The manifest has the form that
// the member would get. namespaceLabels are the labels of its namespace on the hub. ofOperator is true for an object of
// a FederatedOperator.
func Of(manifest *unstructured.Unstructured, namespaceLabels map[string]string, ofOperator bool) *Refusal {
	if err := system.Refused(manifest, ofOperator); err != nil {
		return &Refusal{hubv1.ReasonNamespaceRefused, err.Error()}
	}
	if r := OfSecret(manifest); r != nil {
		return r
	}
	level, violations := PodSecurity(manifest, namespaceLabels)
	if len(violations) == 0 {
		return nil
	}
	return &Refusal{hubv1.ReasonPodSecurityViolation, fmt.Sprintf("the hub's namespace enforces Pod Security %s: correct %s of the pod template, or change the label of the namespace",
		level, strings.Join(violations, ", "))}
}

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// PodSecurity checks the pod template of a built-in kind by the Pod Security level that the labels of its namespace
// enforce. level is this level, such as "baseline:latest", and violations are the violated rules, such as "privileged".
// If the labels enforce no level, there are no violations.
func PodSecurity(manifest *unstructured.Unstructured, namespaceLabels map[string]string) (level string, violations []string) {
	// If the label has an invalid value, the level is restricted, as on an API server.
	enforced, _ := api.PolicyToEvaluate(namespaceLabels, api.Policy{Enforce: api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}})
	if enforced.Enforce.Level == api.LevelPrivileged {
		return "", nil
	}
	level = enforced.Enforce.String()
	found, there := templateOf(manifest)
	if !there {
		return level, nil
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &template); err != nil {
		return level, []string{"fields that cannot be read"}
	}
	e, err := evaluator()
	if err != nil {
		return level, []string{"controls that cannot be read"}
	}
	for _, result := range e.EvaluatePod(enforced.Enforce, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			violations = append(violations, result.ForbiddenReason)
		}
	}
	return level, violations
}

// templates has the path of the pod template for each built-in kind that has one.
var templates = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {},
	{Kind: "PodTemplate"}:                {"template"},
	{Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// templateOf returns the pod template of an object. there is false if the object has none.
func templateOf(object *unstructured.Unstructured) (template map[string]any, there bool) {
	path, ok := templates[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil, false
	}
	at := object.Object
	for _, step := range path {
		if at, ok = at[step].(map[string]any); !ok {
			return nil, false
		}
	}
	return at, true
}
