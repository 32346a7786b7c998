// Command example is an operator on Hanse's fleet: each namespace with the label example.com/isolated: "true" gets a
// NetworkPolicy that lets no traffic in, on every member. docs/controllers.md shows how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/hanse-dev/hanse/provider"
)

const (
	isolatedLabel = "example.com/isolated"
	policyName    = "deny-ingress"
	workers       = 8 // a member that is slow holds one of them for some seconds
	reconcileTime = 30 * time.Second
)

func main() {
	consumer := flag.String("consumer", "isolate", "Name of the entry in consumers of the chart hanse-member.")
	namespace := flag.String("namespace", "isolate", "Namespace of the hub that has the credentials for the members.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), *consumer, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "the operator ended:", err)
		os.Exit(1)
	}
}

// run makes the operator and runs it until ctx ends.
func run(ctx context.Context, hub *rest.Config, consumer, namespace string) error {
	fleet, manager, err := setUp(hub, consumer, namespace)
	if err != nil {
		return err
	}
	go tellOfClusters(ctx, manager.GetLogger(), fleet)
	return manager.Start(ctx)
}

// setUp connects the fleet, the manager and the controller.
func setUp(hub *rest.Config, consumer, namespace string) (*provider.Provider, mcmanager.Manager, error) {
	fleet, err := provider.New(hub, provider.Options{Consumer: consumer, Namespace: namespace})
	if err != nil {
		return nil, nil, fmt.Errorf("making the provider: %w", err)
	}
	manager, err := mcmanager.New(hub, fleet, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	err = mcbuilder.ControllerManagedBy(manager).
		Named("isolate").
		For(&corev1.Namespace{}).
		Owns(&networkingv1.NetworkPolicy{}).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: reconcileTime}).
		Complete(&isolate{manager: manager})
	if err != nil {
		return nil, nil, fmt.Errorf("making the controller: %w", err)
	}
	return fleet, manager, nil
}

// tellOfClusters logs each minute which clusters the operator does not work on as it should.
func tellOfClusters(ctx context.Context, log logr.Logger, fleet *provider.Provider) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, s := range fleet.States() {
				if s.Reason != provider.ReasonServed {
					log.Info("A cluster is not served", "cluster", s.Cluster, "reason", s.Reason, "message", s.Message)
				}
			}
		}
	}
}

// isolate reconciles one namespace of one member.
type isolate struct{ manager mcmanager.Manager }

// Reconcile implements mcreconcile.Func. An error is tried again, and delays other members by at most one worker.
func (i *isolate) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	member, err := i.manager.GetCluster(ctx, req.ClusterName)
	if err != nil { // the cluster left; when it comes back, all its objects are reconciled
		return ctrl.Result{}, err
	}
	namespace := &corev1.Namespace{}
	err = member.GetClient().Get(ctx, client.ObjectKey{Name: req.Name}, namespace)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading namespace %s: %w", req.Name, err)
	}
	if namespace.Labels[isolatedLabel] != "true" || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	policy := denyIngress(namespace.Name)
	known := &networkingv1.NetworkPolicy{}
	err = member.GetClient().Get(ctx, client.ObjectKeyFromObject(policy), known)
	if err == nil || !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	if err := controllerutil.SetControllerReference(namespace, policy, member.GetScheme()); err != nil {
		return ctrl.Result{}, fmt.Errorf("setting the owner of the policy: %w", err)
	}
	if err := member.GetClient().Create(ctx, policy); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, fmt.Errorf("isolating namespace %s: %w", req.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Isolated a namespace", "cluster", req.ClusterName, "namespace", req.Name)
	return ctrl.Result{}, nil
}

func denyIngress(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policyName},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}
