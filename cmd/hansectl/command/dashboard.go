package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// consoleTokenLasts is the lifetime of a token for --service-account.
const consoleTokenLasts = time.Hour

// dashboard has the arguments of one run of the command dashboard.
type dashboard struct {
	hub     *hub
	port    int
	account string // ServiceAccount as NAMESPACE/NAME; empty: use the user's own token
	noToken bool
}

func newDashboard(h *hub) *cobra.Command {
	d := &dashboard{hub: h}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Open the console of the hub on this machine",
		Long: `Forward a port of this machine to the console of the hub, and print its address and a token to sign in with.

The connection goes through the hub's API server to a pod of the hub. You need list on pods and create on
pods/portforward in namespace hanse-system. If the pod ends, the command connects to another pod. Ctrl-C ends the
command.

The token is the bearer token of your kubeconfig, or one of --service-account that is valid for an hour. A kubeconfig
with a client certificate has no token: use --service-account or --no-token. The console shows what the user of the
token may read.

The port answers only requests for 127.0.0.1 and localhost. Other users of this machine can open the console, but have
to sign in. Browsers send the cookie of the session also to other servers at 127.0.0.1. A hub outside its cluster has
no pod: open the address of its flag --console-bind-address instead.`,
		Example: `  # With your own rights
  hansectl dashboard

  # With the rights of a ServiceAccount, on port 8080 of this machine
  hansectl dashboard --service-account monitoring/viewer --port 8080`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return usageError(cmd, err)
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&d.port, "port", 0, "Port of this machine; 0 means a free port.")
	cmd.Flags().StringVar(&d.account, "service-account", "", "NAMESPACE/NAME of a ServiceAccount. hansectl requests a token of this account and prints it.")
	cmd.Flags().BoolVar(&d.noToken, "no-token", false, "Print no token.")
	return cmd
}

func (d *dashboard) check() error {
	namespace, name, _ := strings.Cut(d.account, "/")
	switch {
	case d.port < 0 || d.port > 65535:
		return fmt.Errorf("--port %d: want 0 to 65535", d.port)
	case d.account != "" && (namespace == "" || name == "" || strings.Contains(name, "/")):
		return fmt.Errorf("--service-account %q: want NAMESPACE/NAME", d.account)
	case d.account != "" && d.noToken:
		return errors.New("--service-account and --no-token exclude each other")
	}
	return nil
}

func (d *dashboard) run(ctx context.Context) error {
	c, _, err := d.hub.connect()
	if err != nil {
		return err
	}
	config, err := d.hub.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("finding the hub: %w", err)
	}
	t := &tunnel{config: config, pods: c, out: d.hub.streams.ErrOut}
	pod, port, err := t.pod(ctx)
	if err != nil {
		return err
	}
	signIn, err := d.signIn(ctx, c, config)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
	if err != nil {
		return fmt.Errorf("listening for your browser: %w", err)
	}
	defer func() { _ = listener.Close() }()
	ended, err := t.open(ctx, pod, port)
	if err != nil {
		return err
	}
	go t.keep(ctx, ended)
	local := listener.Addr().(*net.TCPAddr).Port
	fmt.Fprintf(d.hub.streams.Out, "The console is at http://127.0.0.1:%d until you press Ctrl-C.\n%s", local, signIn)
	server := &http.Server{
		Handler: consoleProxy(local, t.transport()), ReadHeaderTimeout: openWithin,
		ErrorLog: log.New(io.Discard, "", 0), // drop messages about closed browser connections
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving your browser: %w", err)
	}
	return nil
}

// signIn returns a text with the token with which the user signs in. It returns an empty text for --no-token.
func (d *dashboard) signIn(ctx context.Context, c client.Client, config *rest.Config) (string, error) {
	if d.noToken {
		return "", nil
	}
	if d.account == "" {
		token, err := (&window{}).token(config)
		switch {
		case errors.Is(err, errNoToken):
			return "", errors.New("your kubeconfig has no bearer token to sign in with: pass --service-account NAMESPACE/NAME, or --no-token")
		case errors.Is(err, errImpersonating):
			return "", errors.New("the token of your kubeconfig does not belong to the impersonated user: pass --service-account NAMESPACE/NAME, or --no-token")
		case err != nil:
			return "", err
		}
		return fmt.Sprintf("Sign in with the token of your kubeconfig:\n\n%s\n", token), nil
	}
	namespace, name, _ := strings.Cut(d.account, "/")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(consoleTokenLasts.Seconds()))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s: %w", d.account, err)
	}
	return fmt.Sprintf("Sign in with this token of ServiceAccount %s, which is valid until %s:\n\n%s\n",
		d.account, request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), request.Status.Token), nil
}
