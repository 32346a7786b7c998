package fleet

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ApplyCRD applies a CustomResourceDefinition and waits until the API server serves its kind.
func (c *Cluster) ApplyCRD(ctx context.Context, manifest []byte, fieldManager string) error {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
		return fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying CustomResourceDefinition %s to %s: %w", crd.GetName(), c.Name, err)
	}
	established := func(ctx context.Context) (bool, error) {
		var now apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, types.NamespacedName{Name: crd.GetName()}, &now); err != nil {
			return false, err
		}
		for _, cond := range now.Status.Conditions {
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 20*time.Second, true, established); err != nil {
		return fmt.Errorf("waiting until %s serves %s: %w", c.Name, crd.GetName(), err)
	}
	return nil
}
