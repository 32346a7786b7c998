package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// accountName is the name of the hub's ServiceAccount, ClusterRole and ClusterRoleBinding on a member. The chart
// hanse-member uses the same name.
const accountName = credential.Account

// takenUpWithin is the default time for which join and rotate wait until the hub uses the new token.
const takenUpWithin = time.Minute

// memberTimeout is the timeout of one request to a member, which may be unreachable.
const memberTimeout = 20 * time.Second

// memberFlags are the flags with the kubeconfig of a member's admin.
type memberFlags struct {
	kubeconfig, context string
}

func (f *memberFlags) addTo(cmd *cobra.Command, why string) {
	cmd.Flags().StringVar(&f.kubeconfig, "member-kubeconfig", "", "Kubeconfig of an admin of the member, "+why)
	cmd.Flags().StringVar(&f.context, "member-context", "", "Context in the member kubeconfig; by default its current context.")
}

// memberCluster is a connection to a member with the credentials of the member's admin.
type memberCluster struct {
	client.Client
	address   address // the address for the hub
	clusterID string  // uid of kube-system
	mapper    meta.RESTMapper
}

var errNoID = errors.New("its namespace kube-system has no uid")

// open connects to the member. server is the address at which the hub reaches the member. If server is empty, the hub
// gets the address in the kubeconfig.
func (f memberFlags) open(ctx context.Context, h *hub, server string) (*memberCluster, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the member kubeconfig %s: %w", f.kubeconfig, err)
	}
	a, err := addressOf(raw, f.context, server)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.kubeconfig, err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the member kubeconfig %s: %w", f.kubeconfig, err)
	}
	config.Timeout = memberTimeout
	c, err := newClient(h.adjust(config))
	if err != nil {
		return nil, fmt.Errorf("connecting to the member %s: %w", config.Host, err)
	}
	id, err := clusterIDOf(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("identifying the member %s: %w", config.Host, err)
	}
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the member %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(asking)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return &memberCluster{Client: c, address: a, clusterID: id, mapper: mapper}, nil
}

// clusterIDOf returns the ID of a cluster: the UID of its namespace kube-system.
func clusterIDOf(ctx context.Context, c client.Client) (string, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("reading namespace kube-system, whose uid identifies the cluster: %w", err)
	}
	if system.UID == "" {
		return "", errNoID
	}
	return string(system.UID), nil
}

// managedByLabel is the label that names the manager of an object. managedByUs is its value for objects of hansectl.
const (
	managedByLabel = hubv1.ManagedByLabel
	managedByUs    = hubv1.ManagedByHansectl
)

func ourLabels() map[string]string {
	return map[string]string{managedByLabel: managedByUs, "app.kubernetes.io/part-of": "hanse"}
}

func ours(o client.Object) bool { return o.GetLabels()[managedByLabel] == managedByUs }

// printLine prints what was done to one object.
func printLine(w io.Writer, object, format string, args ...any) {
	fmt.Fprintf(w, "  %-34s %s\n", object, fmt.Sprintf(format, args...))
}
