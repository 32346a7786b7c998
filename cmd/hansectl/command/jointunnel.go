package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/handshake"
)

// tunnelFlags are the flags of join for a member whose agent connects to the hub.
type tunnelFlags struct {
	enabled bool
	keys    []string
}

// notWithTunnel are flags of join that need the kubeconfig of the member.
var notWithTunnel = []string{"member-kubeconfig", "member-context", "member-server", "token-lifetime", "hub-itself"}

func (t *tunnelFlags) addTo(f *pflag.FlagSet) {
	f.BoolVar(&t.enabled, "tunnel", false, "The agent hanse-member of the cluster connects to the hub, which does not reach the cluster. Needs no member kubeconfig.")
	f.StringArrayVar(&t.keys, "key", nil, "With --tunnel: fingerprint of the agent's key, as hanse-member prints it. Twice for the present and the next key; they replace earlier ones.")
}

// check returns an error for flags that do not fit together.
func (t *tunnelFlags) check(given func(flag string) bool) error {
	if !t.enabled {
		if len(t.keys) > 0 {
			return fmt.Errorf("--key is %w without --tunnel", errValue)
		}
		return nil
	}
	for _, flag := range notWithTunnel {
		if given(flag) {
			return fmt.Errorf("--%s is %w with --tunnel: hansectl does not reach the member", flag, errValue)
		}
	}
	onMember := []string{"grant", "ungrant", grantOperatorFlag, ungrantOperatorFlag, admissionPolicyFlag}
	for _, right := range optionalRights {
		onMember = append(onMember, right.flag)
	}
	for _, flag := range onMember {
		if given(flag) {
			return fmt.Errorf("--%s is %w with --tunnel: set the values of the chart hanse-member on the member", flag, errValue)
		}
	}
	if len(t.keys) > 2 || slices.ContainsFunc(t.keys, func(k string) bool { return !handshake.IsFingerprint(k) }) {
		return fmt.Errorf("--key %q: %w: want at most two fingerprints, SHA256: and 43 characters, as hanse-member prints them", t.keys, errValue)
	}
	return nil
}

var errNoTunnel = errors.New("the hub listens for no agents: set tunnel.enabled of the chart hanse-hub, and wait until a hub has started")

// runTunnel writes the MemberCluster, and prints how the agent of the member is started.
func (j *join) runTunnel(ctx context.Context, wanted *hubv1.MemberCluster) error {
	out := j.hub.streams.Out
	onHub, hubAddress, err := j.hub.connect()
	if err != nil {
		return err
	}
	pin, err := tunnelPin(ctx, onHub)
	if err != nil {
		return err
	}
	if j.dryRun == "client" {
		onHub = notWriting{onHub}
		fmt.Fprintln(out, "Dry run: nothing is changed.")
	}
	wanted.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{Keys: j.tunnel.keys}}
	fmt.Fprintf(out, "Hub at %s\n", hubAddress)
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: j.name}}
	if err := put(ctx, out, onHub, cluster, "membercluster", func() error {
		if cluster.ResourceVersion != "" && cluster.Spec.Connection.Type != hubv1.ConnectionTunnel {
			return fmt.Errorf("it has the connection type %s, which cannot be changed: unjoin it first", cluster.Spec.Connection.Type)
		}
		if cluster.Spec.Connection.Tunnel != nil && len(j.tunnel.keys) > 0 {
			cluster.Spec.Connection.Tunnel.Keys = j.tunnel.keys
		}
		j.cluster.change(cluster, wanted)
		return nil
	}); err != nil {
		return err
	}
	keys := cluster.Spec.Connection.Tunnel.Keys
	printLine(out, "", "keys %s, allowedNamespaces %s, leave %s", keysText(keys), describeAllowed(cluster.Spec.AllowedNamespaces), cluster.Spec.Leave.Policy)
	token := ""
	switch {
	case len(keys) > 0:
	case j.dryRun == "client":
		token = "TOKEN"
	default:
		if token, err = newJoinToken(ctx, onHub, j.name, time.Now()); err != nil {
			return err
		}
	}
	j.printHelm(pin, token)
	if j.dryRun == "client" || !j.wait || len(keys) == 0 {
		return nil
	}
	return j.awaitReady(ctx, onHub)
}

// tunnelPin returns the fingerprint of the hub's key.
func tunnelPin(ctx context.Context, hub client.Client) (string, error) {
	secret := secretMetadata(client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.TunnelSecret})
	err := hub.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		return "", errNoTunnel
	}
	if err != nil {
		return "", fmt.Errorf("reading the fingerprint of the hub's key: %w", err)
	}
	return secret.Annotations[hubv1.FingerprintAnnotation], nil
}

// printHelm prints the command that installs the agent on the member. pin is the fingerprint of the hub's key. token is
// empty if the agent needs no approval.
func (j *join) printHelm(pin, token string) {
	out := j.hub.streams.Out
	fmt.Fprintf(out, `On the member, with its grantedKinds in grants.yaml (ADDRESS:PORT leads to the Service hanse-hub-tunnel):
  helm upgrade --install hanse %s -n %s --create-namespace \
    -f grants.yaml --set tunnel.enabled=true,tunnel.name=%s,tunnel.hub=ADDRESS:PORT \
    --set 'tunnel.hubKeys={%s}'`, memberChartReference, hubv1.SystemNamespace, j.name, pin)
	if token == "" {
		fmt.Fprintln(out)
		return
	}
	fmt.Fprintf(out, ` --set tunnel.joinToken.value=%s
Then, within an hour:
  hansectl approve %s
`, token, j.name)
}

// memberChartReference is where releases of the chart hanse-member are.
const memberChartReference = "oci://ghcr.io/hanse-dev/charts/hanse-member"

func keysText(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, " ")
}
