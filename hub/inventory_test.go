package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/inventory/profile"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/operators"
)

func TestAHubPublishesItsMembersAndDecisions(t *testing.T) {
	apiserver.Needed(t)
	definitions := operators.Definitions(t)
	w := startHub(t, func(o *Options) { o.InventoryNamespace = "shop" })
	for _, kind := range []schema.GroupVersionKind{profile.Kind, profile.DecisionKind} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definitions[kind.GroupKind()])
		must(t, err)
		w.create(&unstructured.Unstructured{Object: content})
	}
	w.join()
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cm-0"}, Data: map[string]string{"round": "0"}})
	w.create(&hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}}, Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
		},
	})
	var published unstructured.Unstructured
	published.SetGroupVersionKind(profile.Kind)
	eventually(t, 30*time.Second, func() error {
		if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "eu"}, &published); err != nil {
			return err
		}
		if text := fmt.Sprint(published.Object["status"]); !strings.Contains(text, "status:True type:ControlPlaneHealthy") || !strings.Contains(text, "kubernetes:v1.") {
			return fmt.Errorf("the profile is %s", text)
		}
		return nil
	})
	var decisions unstructured.UnstructuredList
	decisions.SetGroupVersionKind(profile.DecisionKind.GroupVersion().WithKind(profile.DecisionKind.Kind + "List"))
	eventually(t, 30*time.Second, func() error {
		err := w.hub.List(t.Context(), &decisions, client.InNamespace("shop"))
		if err == nil && (len(decisions.Items) != 1 || fmt.Sprint(decisions.Items[0].Object["decisions"]) != "[map[clusterProfileRef:map[name:eu namespace:shop]]]") {
			err = fmt.Errorf("the decisions are %v", decisions.Items)
		}
		return err
	})
	w.leave()
	eventually(t, 30*time.Second, func() error {
		return notThere(w.hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "eu"}, &published))
	})
}

func notThere(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is still there: %w", err)
}
