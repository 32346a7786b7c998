package scopes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// hubWithNode returns a client of a hub with one node. Each list of the client fails with *fails, unless that is nil.
func hubWithNode(fails *error) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if *fails != nil {
				return *fails
			}
			return c.List(ctx, list, opts...)
		}}).Build()
}

func TestAFailedReadKeepsTheFormerResultOfHubRunsWorkloads(t *testing.T) {
	t.Parallel()
	var fails error
	c := hubWithNode(&fails)
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

func TestAFailedFirstReadIsAnErrorOfHubRunsWorkloads(t *testing.T) {
	t.Parallel()
	fails := errors.New("the API server is away")
	if _, err := HubRunsWorkloads(t.Context(), hubWithNode(&fails)); !errors.Is(err, fails) {
		t.Errorf("the error is %v, want %v", err, fails)
	}
}
