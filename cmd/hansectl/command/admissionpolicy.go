package command

import (
	"context"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const admissionPolicyFlag = "admission-policy"

// policyChoice is a value of --admission-policy. An empty value means that the flag was not given: then a new member
// gets the policy, and any other member does not change.
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

func isPolicy(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == admissionregistrationv1.GroupName
}

// removePolicy removes the admission policy. A member whose admin may not read it keeps it.
func removePolicy(ctx context.Context, w io.Writer, m client.Client) error {
	all, err := madeOnEach(ctx, isPolicy)
	if err != nil {
		return err
	}
	for _, there := range all {
		err := there.remove(ctx, w, m)
		if apierrors.IsForbidden(err) {
			printLine(w, there.String(), "not removed: the user of the member kubeconfig lacks the right")
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteUnlimited prints a note if no admission policy limits the hub's writes: without its binding, a policy has no
// effect.
func noteUnlimited(ctx context.Context, w io.Writer, m client.Client) error {
	bindings, err := madeOnEach(ctx, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ValidatingAdmissionPolicyBinding" })
	if err != nil {
		return err
	}
	there := bindings[0]
	err = m.Get(ctx, client.ObjectKeyFromObject(there.o), there.o)
	switch {
	case apierrors.IsNotFound(err):
		printLine(w, there.String(), "missing: no policy limits what the hub may write; hansectl join --%s=%s adds it", admissionPolicyFlag, policyOn)
	case err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err):
		return fmt.Errorf("reading %s of the member: %w", there, err)
	}
	return nil
}
