package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// join has the arguments of one run of the command join.
type join struct {
	hub *hub

	name          string
	member        memberFlags
	memberServer  string
	tunnel        tunnelFlags
	cluster       clusterFlags
	grants        grantFlags
	tokenLifetime time.Duration
	dryRun        string
	wait          bool
	timeout       time.Duration
}

func newJoin(h *hub) *cobra.Command {
	j := &join{hub: h}
	cmd := &cobra.Command{
		Use:   "join NAME {--member-kubeconfig FILE | --tunnel [--key FINGERPRINT]}",
		Short: "Join a cluster to the hub, or refresh its credentials",
		Long: `Join a cluster to the hub.

On the member it creates the ServiceAccount hanse-system/hanse, a ClusterRole and ClusterRoleBinding for the kinds that
you grant, a Role and RoleBinding with which the hub renews its token, roles with the rules of operators, an admission
policy that limits what the hub may write, and a token of 30 days. If the chart hanse-member is installed on the member,
its ServiceAccount, RBAC and admission policy are used unchanged: set its value grantedKinds instead of --grant. An
object of one of these names that another tool made is not changed.
On the hub it creates a Secret with the address of the member and this token, and a MemberCluster.

The member kubeconfig stays on this machine: only its server and CA are stored on the hub. The hub connects to no server
that it cannot verify: a kubeconfig with insecure-skip-tls-verify or without a CA is refused. A kubeconfig with
proxy-url needs --member-server.

Name a kind as deployments.apps, apps/deployments, or by its singular or short name. A grant that amounts to
cluster-admin, such as of Secrets, pods, workloads or webhook configurations, prints a WARNING with the reason. At the
end, the command names the kinds that placements send to the member and that it does not grant.

If the hub cannot reach the member, use --tunnel: the agent hanse-member of the member connects to the hub, which then
has no credentials for the member. The command changes nothing on the member and needs no kubeconfig of it. It prints the
helm command for the member, with a token by which the agent asks for its approval; hansectl approve lets it connect.
With --key, the hub accepts an agent with this key, and no token is needed.

Run the command again with the same name to replace the token. It then changes only the labels and settings that you
give; earlier grants stay. It adds the rules that each member needs, if the hub's ClusterRole lacks them, and prints
them. A cluster that is a MemberCluster under another name is refused.`,
		Example: `  # The member grants two kinds; its region is read from its nodes
  hansectl join cn-sha-1 --member-kubeconfig cn-sha-1.kubeconfig --grant monitoring.coreos.com/prometheuses --grant configmaps

  # The hub reaches the member at another address, and may send objects of team namespaces only
  hansectl join eu-fra-1 --member-kubeconfig admin.kubeconfig --member-context fra --member-server https://10.8.0.4:6443 \
    --region eu-central-1 --allowed-namespaces team

  # The member lets the hub install an operator: write the rights to a file, read them, and grant them
  hansectl operators rbac prometheus-operator-1.0.0.tgz -n monitoring > prometheus-operator.yaml
  hansectl join cn-sha-1 --member-kubeconfig cn-sha-1.kubeconfig --grant-operator prometheus-operator.yaml

  # The hub cannot reach the member: its agent asks for approval with a token
  hansectl join edge-7 --tunnel

  # The fingerprint of the agent's key is known, as hanse-member --make-key prints it
  hansectl join edge-7 --tunnel --key SHA256:mVmEVz3oLpAJRWyGW0Bt5+8r2vTnAWwzF3c1w0Sx5dM

  # What would it do?
  hansectl join ap-se-1 --member-kubeconfig ap-se-1.kubeconfig --dry-run=client`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.name = args[0]
			j.cluster.given, j.grants.given = cmd.Flags().Changed, cmd.Flags().Changed
			wanted, change, err := j.parse()
			if err != nil {
				return usageError(cmd, err)
			}
			if j.tunnel.enabled {
				return j.runTunnel(cmd.Context(), wanted)
			}
			if change.operators, err = readOperatorGrants(cmd.Context(), j.grants.operators); err != nil {
				return err
			}
			if change.operators.of(change.ungrantedOperators) {
				return usageError(cmd, errBothWays)
			}
			return j.run(cmd.Context(), wanted, change)
		},
		ValidArgsFunction: h.completeClusters,
	}
	f := cmd.Flags()
	j.member.addTo(cmd, "used from this machine to make the hub's account there. Required without --tunnel.")
	f.StringVar(&j.memberServer, "member-server", "", "Address at which the hub reaches the member, such as https://10.8.0.4:6443; by default that of the member kubeconfig.")
	j.tunnel.addTo(f)
	j.cluster.addTo(f)
	j.grants.addTo(f)
	_ = cmd.MarkFlagFilename(grantOperatorFlag, "yaml", "yml")
	f.DurationVar(&j.tokenLifetime, "token-lifetime", credential.Lifetime, "Lifetime of the token. The hub renews it after two thirds of that.")
	f.StringVar(&j.dryRun, "dry-run", "none", `"client" reads both sides and says what would be done. "none" does it.`)
	f.BoolVar(&j.wait, "wait", true, "Wait until the member is Ready.")
	f.DurationVar(&j.timeout, "timeout", takenUpWithin, "How long to wait.")
	return cmd
}

var errValue = errors.New("not possible")

// parse checks the arguments. It returns the wanted MemberCluster, and the changes of the hub's rights on the member.
func (j *join) parse() (*hubv1.MemberCluster, grantChange, error) {
	var change grantChange
	if faults := validation.IsDNS1123Label(j.name); len(faults) > 0 {
		return nil, change, fmt.Errorf("NAME %q: %w: %s", j.name, errValue, faults[0])
	}
	if err := j.tunnel.check(j.cluster.given); err != nil {
		return nil, change, err
	}
	if j.member.kubeconfig == "" && !j.tunnel.enabled {
		return nil, change, fmt.Errorf("--member-kubeconfig is %w without a file", errValue)
	}
	if j.dryRun != "none" && j.dryRun != "client" {
		return nil, change, fmt.Errorf("--dry-run %q: %w: want none or client", j.dryRun, errValue)
	}
	if err := checkLifetime(j.tokenLifetime); err != nil {
		return nil, change, err
	}
	wanted, err := j.cluster.wanted(j.name)
	if err != nil {
		return nil, change, err
	}
	if change, err = j.grants.change(); err != nil {
		return nil, change, err
	}
	return wanted, change, nil
}

// run makes the changes on the member, and then the changes on the hub. Then it waits until the MemberCluster is Ready.
func (j *join) run(ctx context.Context, wanted *hubv1.MemberCluster, change grantChange) error {
	out := j.hub.streams.Out
	onHub, hubAddress, err := j.hub.connect()
	if err != nil {
		return err
	}
	m, err := j.member.open(ctx, j.hub, j.memberServer)
	if err != nil {
		return err
	}
	existing, err := admit(ctx, onHub, j.name, m.clusterID)
	if err != nil {
		return err
	}
	hubID, err := clusterIDOf(ctx, onHub)
	if err != nil {
		return fmt.Errorf("identifying the hub: %w", err)
	}
	if err := checkHubItself(j.cluster.hubItself, hubID, m.clusterID); err != nil {
		return err
	}
	if j.dryRun == "client" {
		m.Client, onHub = notWriting{m.Client}, notWriting{onHub}
		fmt.Fprintln(out, "Dry run: nothing is changed.")
	}

	fmt.Fprintf(out, "Member %s at %s, cluster ID %s\n", j.name, m.address.server, m.clusterID)
	hubMapper, err := j.hub.flags.ToRESTMapper()
	if err != nil {
		return fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	granted, err := j.prepare(ctx, m, hubMapper, change)
	if err != nil {
		return err
	}
	uid, err := hubUID(ctx, onHub)
	if err != nil {
		return err
	}
	made := issued{token: "dry run"}
	if j.dryRun == "client" {
		printLine(out, "token", "made")
	} else if made, err = m.token(ctx, out, j.tokenLifetime, uid, tokenInUse(existing)); err != nil {
		return err
	}

	fmt.Fprintf(out, "Hub at %s\n", hubAddress)
	if err := j.register(ctx, onHub, m, existing, wanted, made.token); err != nil {
		return err
	}
	if granted != nil {
		j.printMissingGrants(ctx, onHub, hubMapper, wanted, existing, granted)
	}
	if j.dryRun == "client" || !j.wait {
		return nil
	}
	if err := j.awaitReady(ctx, onHub); err != nil {
		return err
	}
	if existing == nil {
		return nil
	}
	if err := awaitCredentials(ctx, out, onHub, j.name, j.timeout, func(now *hubv1.CredentialsStatus) bool { return now.ID == made.ID }); err != nil {
		return err
	}
	return m.revokeOthers(ctx, out, uid, made.Secret)
}

// prepare creates the hub's ServiceAccount on the member and grants the requested kinds. It returns all kinds that the
// hub may write there, or nil if they are not known.
func (j *join) prepare(ctx context.Context, m *memberCluster, hubMapper meta.RESTMapper, change grantChange) (granted *granting, err error) {
	var notes []string
	if change.add, notes, err = resolveGrants(m.mapper, hubMapper, change.add); err != nil {
		return nil, err
	}
	more, err := change.operators.notServed(m.mapper)
	if err != nil {
		return nil, err
	}
	if granted, err = change.set(ctx, j.hub.streams.Out, m); err != nil {
		return nil, fmt.Errorf("preparing the member %s: %w", j.name, err)
	}
	for _, note := range append(notes, more...) {
		printLine(j.hub.streams.Out, "", "%s", note)
	}
	return granted, nil
}

// printMissingGrants prints the kinds that placements send to the member but that the hub may not write there. It
// prints nothing if the placements cannot be listed.
func (j *join) printMissingGrants(ctx context.Context, hub client.Client, mapper meta.RESTMapper, wanted, existing *hubv1.MemberCluster, granted *granting) {
	cluster := wanted.DeepCopy()
	if existing != nil {
		cluster = existing.DeepCopy()
		cluster.Labels = labels.Merge(existing.Labels, wanted.Labels)
	}
	kinds, placements, err := lackingGrants(ctx, hub, mapper, cluster, granted.kinds)
	if err != nil {
		return
	}
	for _, k := range kinds {
		printLine(j.hub.streams.Out, "", "lacks %s, which %s wants there: %s", k, strings.Join(placements[k], ", "), granted.hint(k))
	}
}
