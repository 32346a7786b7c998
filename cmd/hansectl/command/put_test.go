package command

import (
	"context"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The test uses a fake client, because a real API server cannot be made to refuse only the first write.
func TestAnObjectThatTheHubWritesAtTheSameMomentIsWrittenAgain(t *testing.T) {
	ctx, conflicts := t.Context(), 2
	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	c := fake.NewClientBuilder().WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, o.GetName(), nil)
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
	mine := there.DeepCopy()
	err := put(ctx, io.Discard, c, mine, "configmap", func() error {
		mine.Data = map[string]string{"key": "mine"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var now corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKeyFromObject(there), &now); err != nil || now.Data["key"] != "mine" {
		t.Errorf("got %v, %v", now.Data, err)
	}
}
