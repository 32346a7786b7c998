package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/hub/views"
)

// hub is the hub that the flags select.
type hub struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	version string
	warned  map[string]bool // texts of the warnings that were printed
	lead    silenceWatch
	blind   bool // the user may not read the hub's Lease
	// proof signs the requests of a user who has no token, with the key of a CertificateSigningRequest that hansectl
	// created for the user. It is nil if the user has a token, and before the first request. proofOn is the client with
	// which hansectl created the CertificateSigningRequest.
	proof   *views.Proof
	proofOn client.Client
}

// adjust sets the options that all clients of hansectl use.
func (h *hub) adjust(config *rest.Config) *rest.Config {
	config.UserAgent = "hansectl/" + h.version
	config.QPS = -1 // the API server limits requests (priority and fairness)
	config.WarningHandlerWithContext = quietWarnings{rest.NewWarningWriter(h.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})}
	return config
}

// quietWarnings prints warnings of API servers, except those about requests with the context of withoutWarnings.
type quietWarnings struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w quietWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if ctx.Value(quietWarnings{}) == nil {
		w.HandleWarningHeader(code, agent, text)
	}
}

// withoutWarnings returns a context for requests that users did not ask for, such as probes.
func withoutWarnings(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietWarnings{}, true)
}

// connect returns a client of the hub's API server, and the address of this API server.
func (h *hub) connect() (client.Client, string, error) {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the hub: %w", err)
	}
	c, err := newClient(config)
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the hub %s: %w", config.Host, err)
	}
	return c, config.Host, nil
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// completeClusters completes the names of MemberClusters.
func (h *hub) completeClusters(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, _, err := h.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var members hubv1.MemberClusterList
	if err := c.List(cmd.Context(), &members); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, m := range members.Items {
		if strings.HasPrefix(m.Name, typed) {
			names = append(names, m.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeMoreClusters completes the names of MemberClusters for each argument.
func (h *hub) completeMoreClusters(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, directive := h.completeClusters(cmd, nil, typed)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
}

// pageSize is the number of objects in one request of a long list.
const pageSize = 500

// eachBinding reads all bindings, page by page.
func eachBinding(ctx context.Context, c client.Client, visit func(hubv1.BindingObject)) error {
	if err := eachBindingIn(ctx, c, "", visit); err != nil {
		return err
	}
	return eachClusterBinding(ctx, c, visit)
}

// eachClusterBinding reads the ClusterResourceBindings, page by page.
func eachClusterBinding(ctx context.Context, c client.Client, visit func(hubv1.BindingObject)) error {
	return scopes.EachClusterBinding(ctx, c, pageSize, visit)
}

// eachBindingIn reads the bindings of a namespace. An empty namespace means all namespaces.
func eachBindingIn(ctx context.Context, c client.Client, namespace string, visit func(hubv1.BindingObject)) error {
	return scopes.EachBinding(ctx, c, namespace, pageSize, visit)
}

// countObjects returns, for each cluster, the number of hub objects that the cluster shall hold or still has.
func countObjects(ctx context.Context, c client.Client) (map[string]int, error) {
	counts := map[string]int{}
	err := eachBinding(ctx, c, addTargets(counts))
	return counts, err
}

// countObjectsIn does the same as countObjects, for the objects of one namespace.
func countObjectsIn(ctx context.Context, c client.Client, namespace string) (map[string]int, error) {
	counts := map[string]int{}
	err := eachBindingIn(ctx, c, namespace, addTargets(counts))
	return counts, err
}

// addTargets returns a function that adds 1 to the count of each cluster of a binding.
func addTargets(counts map[string]int) func(hubv1.BindingObject) {
	return func(b hubv1.BindingObject) {
		for _, t := range b.BindingSpec().Clusters {
			counts[t.Name]++
		}
	}
}

// counted returns a number with its noun, such as "1 object", "3 objects" or "2 policies".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, y := strings.CutSuffix(what, "y"); y {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
