package command

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/handshake"
)

// joinTokenLifetime is how long the first key may use a token of an agent.
const joinTokenLifetime = time.Hour

// approve has the arguments of one run of the command approve.
type approve struct {
	hub *hub

	name    string
	key     string
	yes     bool
	wait    bool
	timeout time.Duration
}

func newApprove(h *hub) *cobra.Command {
	a := &approve{hub: h}
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Let an agent connect its cluster to the hub",
		Long: `Let the agent that asks to join connect its cluster to the hub: put the fingerprint of its key into
spec.connection.tunnel.keys of the MemberCluster, in place of earlier keys.

The agent asks with the token of hansectl join NAME --tunnel. Whoever has the token may ask, so compare the fingerprint
with the one in the agent's log on the member. --key does this for you: another key is refused. The token cannot be used
afterwards.`,
		Example: `  # On the member: kubectl logs -n hanse-system deploy/hanse-agent | grep fingerprint
  hansectl approve edge-7

  hansectl approve edge-7 --key SHA256:mVmEVz3oLpAJRWyGW0Bt5+8r2vTnAWwzF3c1w0Sx5dM`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.name = args[0]
			if a.key != "" && !handshake.IsFingerprint(a.key) {
				return usageError(cmd, fmt.Errorf("--key %q: %w: want SHA256: and 43 characters", a.key, errValue))
			}
			return a.run(cmd.Context())
		},
		ValidArgsFunction: h.completeClusters,
	}
	f := cmd.Flags()
	f.StringVar(&a.key, "key", "", "Approve only an agent with this fingerprint, without a question.")
	f.BoolVar(&a.yes, "yes", false, "Approve the agent without a question, whatever its key is.")
	f.BoolVar(&a.wait, "wait", true, "Wait until the member is Ready.")
	f.DurationVar(&a.timeout, "timeout", takenUpWithin, "How long to wait.")
	return cmd
}

func (a *approve) run(ctx context.Context) error {
	hub, cluster, err := connectTo(ctx, a.hub, a.name)
	if err != nil {
		return err
	}
	if cluster.Spec.Connection.Tunnel == nil {
		return fmt.Errorf("membercluster/%s has the connection type %s: only members with the type %s have an agent", a.name, cluster.Spec.Connection.Type, hubv1.ConnectionTunnel)
	}
	if cluster.Status.Agent == nil || cluster.Status.Agent.Request == nil {
		return fmt.Errorf("no agent asks to join as membercluster/%s: run hansectl join %s --tunnel, and give its token to the agent, whose log says why it does not reach the hub", a.name, a.name)
	}
	request := cluster.Status.Agent.Request
	if a.key != "" && a.key != request.Key {
		return fmt.Errorf("the agent that asks to join as membercluster/%s has the key %s, at %s: it is not the one of --key", a.name, request.Key, request.Address)
	}
	out := a.hub.streams.Out
	fmt.Fprintf(out, "An agent asks to join as membercluster/%s\n", a.name)
	for _, line := range [][2]string{
		{"key", request.Key}, {"address", request.Address}, {"cluster ID", request.ClusterID}, {"Kubernetes", request.Kubernetes}, {"agent", request.Version},
	} {
		printLine(out, "", "%-10s  %s", line[0], line[1])
	}
	if err := a.hub.confirm(a.yes || a.key != "", "Is this the fingerprint in the log of the agent (kubectl logs -n %s deploy/hanse-agent)?", hubv1.SystemNamespace); err != nil {
		return err
	}
	if err := setKeys(ctx, hub, cluster, []string{request.Key}); err != nil {
		return err
	}
	printLine(out, "membercluster/"+a.name, "the agent is approved")
	if err := deleteJoinToken(ctx, hub, a.name); err != nil {
		return err
	}
	if !a.wait {
		return nil
	}
	return (&join{hub: a.hub, name: a.name, timeout: a.timeout}).awaitReady(ctx, hub)
}

func newRevoke(h *hub) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Disconnect the agent of a cluster, and let none connect",
		Long: `Disconnect the agent of a cluster at once, and let none connect: empty spec.connection.tunnel.keys of the MemberCluster.

The copies on the cluster stay, and get no changes. hansectl join NAME --tunnel and hansectl approve let an agent with a
new key connect.`,
		Example:           `  hansectl revoke edge-7`,
		Args:              arguments("NAME"),
		ValidArgsFunction: h.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, cluster, err := connectTo(cmd.Context(), h, args[0])
			if err != nil {
				return err
			}
			if cluster.Spec.Connection.Tunnel == nil {
				return fmt.Errorf("membercluster/%s has the connection type %s: hansectl unjoin revokes its token", cluster.Name, cluster.Spec.Connection.Type)
			}
			revoked := keysText(cluster.Spec.Connection.Tunnel.Keys)
			if err := setKeys(cmd.Context(), hub, cluster, nil); err != nil {
				return err
			}
			printLine(h.streams.Out, "membercluster/"+cluster.Name, "revoked keys: %s", revoked)
			return deleteJoinToken(cmd.Context(), hub, cluster.Name)
		},
	}
}

// setKeys replaces the keys of a MemberCluster, unless another client has changed them since they were read.
func setKeys(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster, keys []string) error {
	if slices.Equal(cluster.Spec.Connection.Tunnel.Keys, keys) {
		return nil
	}
	before := cluster.DeepCopy()
	cluster.Spec.Connection.Tunnel.Keys = keys
	return changeCluster(ctx, hub, before, cluster)
}

// newJoinToken returns a token, by which the agent of a member may ask for its approval, and stores its digest in
// place of an earlier one.
func newJoinToken(ctx context.Context, hub client.Client, name string, now time.Time) (string, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	token := base64.RawURLEncoding.EncodeToString(random)
	digest := sha256.Sum256([]byte(token))
	if err := deleteJoinToken(ctx, hub, name); err != nil {
		return "", err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + name, Labels: ourLabels()},
		Type:       hubv1.JoinSecretType,
		Data: map[string][]byte{
			hubv1.JoinDigestKey: []byte(hex.EncodeToString(digest[:])), hubv1.JoinExpiryKey: []byte(now.Add(joinTokenLifetime).UTC().Format(time.RFC3339)),
		},
	}
	if err := hub.Create(ctx, secret); err != nil {
		return "", fmt.Errorf("storing the digest of the agent's token: %w", err)
	}
	return token, nil
}

// deleteJoinToken makes the token of a member's agent useless.
func deleteJoinToken(ctx context.Context, hub client.Client, name string) error {
	secret := secretMetadata(client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + name})
	if err := client.IgnoreNotFound(hub.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("deleting the token of the agent, Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
