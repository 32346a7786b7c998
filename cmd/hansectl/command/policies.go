package command

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// readOverrides reads the cluster-scoped override policies. If namespaced is set, it also reads those of the namespace,
// or of all namespaces if it is empty. It passes list errors to unless, with their consequence.
func readOverrides(ctx context.Context, c client.Client, namespaced bool, namespace string, unless func(err error, so string) error) ([]hubv1.OverridePolicyObject, error) {
	var out []hubv1.OverridePolicyObject
	var everywhere hubv1.ClusterOverridePolicyList
	if err := unless(c.List(ctx, &everywhere), "ClusterOverridePolicies are not considered"); err != nil {
		return nil, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
	}
	for i := range everywhere.Items {
		out = append(out, &everywhere.Items[i])
	}
	if !namespaced {
		return out, nil
	}
	var here hubv1.OverridePolicyList
	if err := unless(c.List(ctx, &here, client.InNamespace(namespace)), "OverridePolicies are not considered"); err != nil {
		return nil, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range here.Items {
		out = append(out, &here.Items[i])
	}
	return out, nil
}
