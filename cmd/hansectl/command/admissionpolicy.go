package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/charts"
)

const (
	admissionPolicyFlag = "admission-policy"
	// hubPolicyName is the name of the admission policy and of its binding in the chart hanse-member.
	hubPolicyName = "hanse-member-hub"
)

// policyChoice is a value of --admission-policy. An empty value means that the flag was not given.
type policyChoice string

const (
	policyOn    policyChoice = "true"
	policyAdopt policyChoice = "adopt"
	policyOff   policyChoice = "false"
)

func parsePolicyChoice(text string) (policyChoice, error) {
	switch c := policyChoice(text); c {
	case policyOn, policyAdopt, policyOff:
		return c, nil
	}
	return "", fmt.Errorf("--%s %q: %w: want %s, %s or %s", admissionPolicyFlag, text, errValue, policyOn, policyAdopt, policyOff)
}

// set installs the admission policy that limits the hub's writes on the member, or removes it. If the user has not
// chosen, a new member gets the policy, and any other member keeps what it has.
func (c policyChoice) set(ctx context.Context, w io.Writer, m client.Client) error {
	if c == "" {
		switch err := m.Get(ctx, client.ObjectKey{Name: accountName}, &rbacv1.ClusterRole{}); {
		case err == nil:
			return noteUnlimited(ctx, w, m)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading ClusterRole %s of the member: %w", accountName, err)
		}
		c = policyOn
	}
	if c == policyOff {
		return removePolicy(ctx, w, m)
	}
	objects, err := policyOfChart(ctx, c == policyAdopt)
	if err != nil {
		return err
	}
	for _, o := range objects {
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(o.GroupVersionKind())
		there.SetName(o.GetName())
		if err := put(ctx, w, m, there, strings.ToLower(o.GetKind()), func() error {
			there.Object["spec"] = runtime.DeepCopyJSONValue(o.Object["spec"])
			return mark(there)
		}); err != nil {
			return fmt.Errorf("installing the admission policy that limits what the hub may write: %w: pass --%s=%s to join without it", err, admissionPolicyFlag, policyOff)
		}
	}
	return nil
}

// policyOfChart returns the admission policy and its binding, as the chart hanse-member renders them.
func policyOfChart(ctx context.Context, adoption bool) ([]*unstructured.Unstructured, error) {
	archive, err := charts.Archive("hanse-member", charts.Member())
	if err != nil {
		return nil, err
	}
	values := map[string]any{"admissionPolicy": map[string]any{"enabled": true, "adoption": adoption}}
	rendered, err := chart.Render(ctx, chart.Input{Archive: archive, Namespace: hubv1.SystemNamespace, Values: []map[string]any{values}})
	if err != nil {
		return nil, fmt.Errorf("making the admission policy of the member: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, o := range rendered.Objects {
		if o.GroupVersionKind().Group == admissionregistrationv1.GroupName {
			out = append(out, o)
		}
	}
	return out, nil
}

// madeForPolicy returns the objects of the admission policy, without their content. The binding comes first.
func madeForPolicy() []made {
	named := metav1.ObjectMeta{Name: hubPolicyName}
	return []made{
		{"validatingadmissionpolicybinding", &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named}},
		{"validatingadmissionpolicy", &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named}},
	}
}

// removePolicy removes the admission policy. A member whose admin may not read it keeps it.
func removePolicy(ctx context.Context, w io.Writer, m client.Client) error {
	for _, there := range madeForPolicy() {
		err := there.remove(ctx, w, m)
		if apierrors.IsForbidden(err) {
			printLine(w, there.String(), "left as it is: the member kubeconfig may not change it")
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteUnlimited prints a note if no admission policy limits the hub's writes.
func noteUnlimited(ctx context.Context, w io.Writer, m client.Client) error {
	there := madeForPolicy()[0]
	err := m.Get(ctx, client.ObjectKeyFromObject(there.o), there.o)
	switch {
	case apierrors.IsNotFound(err):
		printLine(w, there.String(), "missing: no policy limits what the hub may write; hansectl join --%s=%s adds it", admissionPolicyFlag, policyOn)
	case err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err):
		return fmt.Errorf("reading %s of the member: %w", there, err)
	}
	return nil
}
