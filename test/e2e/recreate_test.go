package e2e

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestACopyThatVanishesFollowsRecreate deletes copies on a member, with each value of recreate. It deletes Widgets
// alone and together with their namespace, and Jobs while they run and after they are complete.
func TestACopyThatVanishesFollowsRecreate(t *testing.T) {
	t.Run("Always", func(t *testing.T) {
		ctx, ns := t.Context(), namespace(t)
		w := placeToVanish(t, ns, hubv1.RecreateAlways)
		must(t, suite.Members[shanghai].Delete(ctx, w.DeepCopy()))
		eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 3) })
	})
	t.Run("Never", func(t *testing.T) {
		ctx, ns := t.Context(), namespace(t)
		w := placeToVanish(t, ns, hubv1.RecreateNever)
		must(t, suite.Members[shanghai].Delete(ctx, w.DeepCopy()))
		eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonNotRecreated) })
		must(t, suite.hub.Stop())
		startHub(t)
		passes(t)
		must(t, rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonNotRecreated))
		must(t, goneFrom(ctx, shanghai, w))
		must(t, suite.Hub.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))))
		eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	})
	t.Run("Never, with its namespace", func(t *testing.T) {
		ctx, ns := t.Context(), namespace(t)
		w := placeToVanish(t, ns, hubv1.RecreateNever)
		must(t, suite.Members[shanghai].Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonNotRecreated) })
		eventually(t, normal, func() error {
			err := suite.Members[shanghai].Get(ctx, types.NamespacedName{Name: ns}, &corev1.Namespace{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("namespace %s is still there: %w", ns, err)
		})
	})
	t.Run("UntilCompleted", func(t *testing.T) {
		ctx, ns := t.Context(), namespace(t)
		j := job(ns, "once")
		p := place(t, ns, "jobs", hubv1.ResourceSelector{APIGroup: batchv1.GroupName, Kind: "Job"}, hubv1.PlacementSpec{
			Clusters: hubv1.ClusterSelection{Names: []string{shanghai}},
		})
		must(t, suite.Hub.Create(ctx, j))
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), j.DeepCopy()) })
		eventually(t, normal, func() error { return rowIs(ctx, j, shanghai, metav1.ConditionTrue, "") })
		first, err := on(ctx, shanghai, j)
		must(t, err)
		must(t, suite.Members[shanghai].Delete(ctx, first.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		eventually(t, normal, func() error { // a Job that was running when its copy was deleted is created again
			second, err := on(ctx, shanghai, j)
			if err == nil && second.GetUID() == first.GetUID() {
				err = fmt.Errorf("the first copy is still there")
			}
			return err
		})
		completeOn(t, shanghai, j)
		eventually(t, normal, func() error { return bindingCondition(ctx, j, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })
		must(t, suite.Members[shanghai].Delete(ctx, j.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		eventually(t, normal, func() error { return rowIs(ctx, j, shanghai, metav1.ConditionTrue, hubv1.ReasonCompleted) })
		must(t, suite.hub.Stop())
		startHub(t)
		passes(t)
		must(t, rowIs(ctx, j, shanghai, metav1.ConditionTrue, hubv1.ReasonCompleted))
		must(t, bindingCondition(ctx, j, hubv1.ConditionHealthy, metav1.ConditionTrue, ""))
		must(t, goneFrom(ctx, shanghai, j))

		patchSpec(t, suite.Hub, p, `{"spec":{"apply":{"recreate":"Always"}}}`)
		eventually(t, normal, func() error {
			_, err := on(ctx, shanghai, j)
			return err
		})
		must(t, suite.Hub.Delete(ctx, j.DeepCopy()))
		eventually(t, normal, func() error { return noBinding(ctx, j) })
		must(t, goneFrom(ctx, shanghai, j))
	})
}

// placeToVanish places a Widget on Shanghai with this value of recreate, and returns the Widget after it is applied.
func placeToVanish(t *testing.T, ns string, policy hubv1.Recreate) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	w := widget(ns, "vanishing")
	place(t, ns, "widgets", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Apply: hubv1.ApplyPolicy{Recreate: policy},
	})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	return w
}

// passes places a new Widget and waits for its copy. The hub then has also finished its earlier work.
func passes(t *testing.T) {
	t.Helper()
	ns := namespace(t)
	w := widget(ns, "passer-by")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(t.Context(), w))
	eventually(t, normal, func() error { return replicasOn(t.Context(), shanghai, w, 3) })
}

// job returns a suspended Job that runs once, so that only a test can complete it. The API server of each member
// generates the selector: the selector that the hub's API server generates contains the UID of the hub object, and a
// member would refuse it.
func job(namespace, name string) *unstructured.Unstructured {
	j := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"suspend": true,
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never",
			"containers":    []any{map[string]any{"name": "once", "image": "example.org/once:1"}},
		}},
	}}}
	j.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	j.SetNamespace(namespace)
	j.SetName(name)
	return j
}

// completeOn sets the status of a Job on a member to complete, as the Job controller would.
func completeOn(t *testing.T, member string, j *unstructured.Unstructured) {
	t.Helper()
	eventually(t, normal, func() error {
		var live batchv1.Job
		if err := suite.Members[member].Get(t.Context(), client.ObjectKeyFromObject(j), &live); err != nil {
			return err
		}
		now := metav1.Now()
		live.Status.StartTime, live.Status.CompletionTime, live.Status.Succeeded = &now, &now, 1
		live.Status.UncountedTerminatedPods = nil
		live.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}
		return suite.Members[member].Status().Update(t.Context(), &live)
	})
}
