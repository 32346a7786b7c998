package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// rotate has the arguments of one run of the command rotate.
type rotate struct {
	hub *hub

	name          string
	member        memberFlags
	memberServer  string
	tokenLifetime time.Duration
	timeout       time.Duration
}

func newRotate(h *hub) *cobra.Command {
	r := &rotate{hub: h}
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give the hub a new token for a member and revoke the old one",
		Long: `Give the hub a new token for a member, and revoke the old one once the hub uses the new one. The watches of the member
continue.

Without a member kubeconfig the hub makes the new token by itself. The hub cannot make it if it has no
connection to the member, if hansectl did not make its current token, or if the member does not grant the right. In
these cases, give the kubeconfig of an admin of the member. The rules of the hub's ClusterRole stay as they are. A token
that does not expire is replaced by a token that expires, and the Secret of the old token is deleted on the member. If
two hubs share the member, they share this Secret: first run hansectl join again for each hub.

For a member with an agent, the command prints the helm command with which the agent makes a new key, and asks for its
approval. Until hansectl approve, the agent with the old key stays connected.

An attacker who controlled the hub may have made tokens that this command does not revoke. Delete the ServiceAccount
hanse-system/hanse of the member and join again.`,
		Example: `  hansectl rotate eu-fra-1

  # A member that was joined by an earlier version, whose token does not expire
  hansectl rotate eu-fra-1 --member-kubeconfig eu-fra-1.kubeconfig`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = args[0]
			if err := checkLifetime(r.tokenLifetime); err != nil {
				return usageError(cmd, err)
			}
			if r.member.kubeconfig == "" && cmd.Flags().Changed("token-lifetime") {
				return usageError(cmd, fmt.Errorf("--token-lifetime is %w without --member-kubeconfig: the hub keeps the lifetime", errValue))
			}
			return r.run(cmd.Context())
		},
		ValidArgsFunction: h.completeClusters,
	}
	r.member.addTo(cmd, "used on this machine to request the token.")
	cmd.Flags().StringVar(&r.memberServer, "member-server", "", "Address at which the hub reaches the member; by default the address that hansectl join stored.")
	cmd.Flags().DurationVar(&r.tokenLifetime, "token-lifetime", credential.Lifetime, "Lifetime of the token.")
	cmd.Flags().DurationVar(&r.timeout, "timeout", takenUpWithin, "How long to wait until the hub uses the new token.")
	return cmd
}

func checkLifetime(d time.Duration) error {
	if d < minTokenLifetime {
		return fmt.Errorf("--token-lifetime %s: %w: servers grant at least %s", d, errValue, minTokenLifetime)
	}
	return nil
}

var (
	errNotConnected = errors.New("the hub has not reached the member yet")
	errNotOurs      = errors.New("hansectl does not manage the Secret with the kubeconfig: update the Secret with the tool that manages it")
)

func (r *rotate) run(ctx context.Context) error {
	hub, cluster, err := connectTo(ctx, r.hub, r.name)
	if err != nil {
		return err
	}
	if cluster.Spec.Connection.Tunnel != nil && cluster.DeletionTimestamp == nil {
		return r.byAgent(ctx, hub)
	}
	if cluster.Spec.Connection.Direct == nil || cluster.DeletionTimestamp != nil {
		return fmt.Errorf("membercluster/%s is being deleted, or its connection type is not %s: there is no token to rotate", r.name, hubv1.ConnectionDirect)
	}
	secret := secretMetadata(client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: cluster.Spec.Connection.Direct.KubeconfigSecretRef.Name})
	if err := hub.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return fmt.Errorf("reading Secret %s of the hub: %w", client.ObjectKeyFromObject(secret), err)
	}
	if !ours(secret) {
		return fmt.Errorf("rotating the token of membercluster/%s: %w", r.name, errNotOurs)
	}
	if r.member.kubeconfig != "" {
		return r.byAdmin(ctx, hub, cluster, cmp.Or(r.memberServer, secret.Annotations[serverAnnotation]))
	}
	return r.byHub(ctx, hub, cluster)
}

// byAgent prints how the agent of the member makes a new key.
func (r *rotate) byAgent(ctx context.Context, hub client.Client) error {
	if r.member.kubeconfig != "" {
		return fmt.Errorf("--member-kubeconfig is %w for a member with an agent", errValue)
	}
	now := time.Now()
	token, err := newJoinToken(ctx, hub, r.name, now)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.hub.streams.Out, `On the member:
  helm upgrade hanse %s -n %s --reuse-values \
    --set tunnel.keySecret=hanse-agent-%s --set tunnel.joinToken.value=%s
Then, within an hour, replace the key:
  hansectl approve %s
`, memberChartReference, hubv1.SystemNamespace, now.UTC().Format("20060102-1504"), token, r.name)
	return nil
}

// byHub asks the hub to request a new token. The hub uses the connection to the member that it already has.
func (r *rotate) byHub(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster) error {
	out := r.hub.streams.Out
	before := cluster.Status.Credentials
	if before == nil {
		return fmt.Errorf("rotating the token of membercluster/%s: %w: pass --member-kubeconfig", r.name, errNotConnected)
	}
	after := cluster.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[hubv1.RotateCredentialsAnnotation] = before.ID
	if err := changeCluster(ctx, hub, cluster, after); err != nil {
		return err
	}
	printLine(out, "membercluster/"+r.name, "requested a new token from the hub")
	return awaitCredentials(ctx, out, hub, r.name, r.timeout, func(now *hubv1.CredentialsStatus) bool { return now.ID != before.ID })
}

// byAdmin requests the new token with the rights of an admin of the member.
func (r *rotate) byAdmin(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster, server string) error {
	out := r.hub.streams.Out
	m, err := r.member.open(ctx, r.hub, server)
	if err != nil {
		return err
	}
	if _, err := admit(ctx, hub, r.name, m.clusterID); err != nil {
		return err
	}
	uid, err := hubUID(ctx, hub)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Member %s at %s, cluster ID %s\n", r.name, m.address.server, m.clusterID)
	if _, err := (grantChange{keepRules: true}).set(ctx, out, m); err != nil {
		return fmt.Errorf("preparing the member %s: %w", r.name, err)
	}
	made, err := m.token(ctx, out, r.tokenLifetime, uid, tokenInUse(cluster))
	if err != nil {
		return err
	}
	kubeconfig, err := m.address.kubeconfig(r.name, made.token)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig for the hub: %w", err)
	}
	ref := cluster.Spec.Connection.Direct.KubeconfigSecretRef
	did, err := putSecret(ctx, hub, ref, kubeconfig, m, true)
	if err != nil {
		return err
	}
	printLine(out, "secret/"+ref.Name, "%s on the hub: server, CA and token of the member", did)
	if err := awaitCredentials(ctx, out, hub, r.name, r.timeout, func(now *hubv1.CredentialsStatus) bool { return now.ID == made.ID }); err != nil {
		return err
	}
	return m.revokeOthers(ctx, out, uid, made.Secret)
}

// awaitCredentials waits until the hub uses the new credentials. The function wanted reports whether the credentials in
// the status of the MemberCluster are the new ones.
func awaitCredentials(ctx context.Context, out io.Writer, hub client.Client, name string, timeout time.Duration, wanted func(*hubv1.CredentialsStatus) bool) error {
	state, err := await(ctx, out, timeout, func(ctx context.Context) (string, bool, error) {
		m, err := readCluster(ctx, hub, name)
		if err != nil {
			return "", false, err
		}
		now := m.Status.Credentials
		if now != nil && wanted(now) {
			until := "they do not expire"
			if now.ExpireTime != nil {
				until = "they expire at " + now.ExpireTime.UTC().Format(time.RFC3339)
			}
			return "the hub uses the new credentials; " + until, true, nil
		}
		for _, conditionType := range []string{hubv1.ConditionCredentialsExpireSoon, hubv1.ConditionCredentialsValid} {
			if c := meta.FindStatusCondition(m.Status.Conditions, conditionType); c != nil && (conditionType == hubv1.ConditionCredentialsExpireSoon || c.Status != "True") {
				return reasonText(c), false, nil
			}
		}
		return "the hub does not use the new credentials yet", false, nil
	})
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("waiting for the hub to use new credentials of membercluster/%s: %w: %s; the hub goes on trying", name, err, state)
	}
	return err
}
