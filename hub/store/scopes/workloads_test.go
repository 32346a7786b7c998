package scopes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// hubWithNode returns a client of a hub with one node. A list fails if fails returns an error.
func hubWithNode(fails func() error) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := fails(); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		}}).Build()
}

func TestAFailedReadKeepsTheFormerResultOfHubRunsWorkloads(t *testing.T) {
	t.Parallel()
	var fails error
	c := hubWithNode(func() error { return fails })
	synctest.Test(t, func(t *testing.T) {
		runs, err := HubRunsWorkloads(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !runs() {
			t.Error("a hub with a node runs no workloads")
		}
		if err := c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
			t.Fatal(err)
		}
		fails = errors.New("the API server is away")
		<-time.After(workloadsFor + time.Second)
		if !runs() {
			t.Error("a failed read changed the result")
		}
		fails = nil
		<-time.After(workloadsFor + time.Second)
		if runs() {
			t.Error("a hub that has lost its node still runs workloads")
		}
		fails = errors.New("the API server is away")
		<-time.After(workloadsFor + time.Second)
		if runs() {
			t.Error("a failed read changed the result")
		}
	})
}

func TestHubRunsWorkloadsWaitsForTheFirstRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := hubWithNode(func() error {
			if time.Since(began) < time.Minute {
				return errors.New("the API server is away")
			}
			return nil
		})
		runs, err := HubRunsWorkloads(t.Context(), c)
		if err != nil || !runs() {
			t.Errorf("a hub with a node runs no workloads: %v", err)
		}
		if waited := time.Since(began); waited < time.Minute {
			t.Errorf("a result after %s, without a read", waited)
		}
	})
}

func TestAForbiddenFirstReadIsAnErrorOfHubRunsWorkloads(t *testing.T) {
	t.Parallel()
	fails := error(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no rule")))
	if _, err := HubRunsWorkloads(t.Context(), hubWithNode(func() error { return fails })); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v, want %v", err, fails)
	}
}
