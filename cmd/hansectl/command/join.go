package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/credential"
)

// join is one run of the command.
type join struct {
	hub *hub

	name              string
	member            memberFlags
	memberServer      string
	region, zone      string
	labels            map[string]string
	allowedNamespaces string
	grants, ungrants  []string
	createNamespaces  bool
	listWorkloads     bool
	tokenLifetime     time.Duration
	leavePolicy       string
	hubItself         bool
	dryRun            string
	wait              bool
	timeout           time.Duration

	// The flags that the user gave. Of an existing MemberCluster only their fields change.
	allowedGiven, leaveGiven bool
}

func newJoin(h *hub) *cobra.Command {
	j := &join{hub: h}
	cmd := &cobra.Command{
		Use:   "join NAME --member-kubeconfig FILE",
		Short: "Join a cluster to the hub, or refresh its credentials",
		Long: `Join a cluster to the hub.

On the member it makes the ServiceAccount hanse-system/hanse, a ClusterRole and ClusterRoleBinding with the kinds that you
grant, a Role and RoleBinding with which the hub renews its token, and a token of 30 days. If the chart hanse-member is installed there, its account and RBAC are used as they are.
On the hub it makes a Secret with the address of the member and this token, and a MemberCluster.

The member kubeconfig is used from here only: of it, nothing but server and CA goes to the hub. Run it again with the same
name to replace the token; labels and what else you name are then changed, the rest stays.`,
		Example: `  # The member grants two kinds; its region is read from its nodes
  hansectl join cn-sha-1 --member-kubeconfig cn-sha-1.kubeconfig --grant monitoring.coreos.com/prometheuses --grant configmaps

  # The hub reaches the member at another address, and may send objects of team namespaces only
  hansectl join eu-fra-1 --member-kubeconfig admin.kubeconfig --member-context fra --member-server https://10.8.0.4:6443 \
    --region eu-central-1 --allowed-namespaces team

  # What would it do?
  hansectl join ap-se-1 --member-kubeconfig ap-se-1.kubeconfig --dry-run=client`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.name = args[0]
			j.allowedGiven, j.leaveGiven = cmd.Flags().Changed("allowed-namespaces"), cmd.Flags().Changed("leave-policy")
			wanted, change, err := j.parse()
			if err != nil {
				return usageError(cmd, err)
			}
			if cmd.Flags().Changed("create-namespaces") {
				change.createNamespaces = &j.createNamespaces
			}
			if cmd.Flags().Changed("list-workloads") {
				change.listWorkloads = &j.listWorkloads
			}
			return j.run(cmd.Context(), wanted, change)
		},
		ValidArgsFunction: h.completeClusters,
	}
	f := cmd.Flags()
	j.member.addTo(cmd, "used from this machine to make the hub's account there. Required.")
	f.StringVar(&j.memberServer, "member-server", "", "Address at which the hub reaches the member, such as https://10.8.0.4:6443; by default that of the member kubeconfig.")
	f.StringVar(&j.region, "region", "", "Region of the member, as label "+hubv1.RegionLabel+". Read from its nodes if it is not given.")
	f.StringVar(&j.zone, "zone", "", "Zone of the member, as label "+hubv1.ZoneLabel+". Read from its nodes if it is not given.")
	f.StringToStringVar(&j.labels, "labels", nil, "Labels of the MemberCluster, as key=value,key=value.")
	f.StringVar(&j.allowedNamespaces, "allowed-namespaces", "All", "Hub namespaces whose objects may go to the member: All, None, or a label selector such as team=metrics.")
	f.StringArrayVar(&j.grants, "grant", nil, "Kind that the hub may write on the member, as resource.group or group/resource; added to what is granted. Can be repeated.")
	f.StringArrayVar(&j.ungrants, "ungrant", nil, "Kind that the hub may not write on the member any more. Can be repeated.")
	f.BoolVar(&j.createNamespaces, "create-namespaces", true, "Let the hub create namespaces that objects need.")
	f.BoolVar(&j.listWorkloads, "list-workloads", false, "Let the hub list workloads and pods, so that hansectl tree shows the objects that controllers made for a copy.")
	f.DurationVar(&j.tokenLifetime, "token-lifetime", credential.Lifetime, "Lifetime of the token. The hub renews it after two thirds of that.")
	f.StringVar(&j.leavePolicy, "leave-policy", string(hubv1.RemovalOrphan), "What happens to the member's copies when it leaves: Orphan or Delete.")
	f.BoolVar(&j.hubItself, "hub-itself", false, "This cluster is the hub itself: its objects are the hub's own, and none is written there.")
	f.StringVar(&j.dryRun, "dry-run", "none", `"client" reads both sides and says what would be done. "none" does it.`)
	f.BoolVar(&j.wait, "wait", true, "Wait until the member is Ready.")
	f.DurationVar(&j.timeout, "timeout", time.Minute, "How long to wait.")
	return cmd
}

var errValue = errors.New("not possible")

// parse checks the input and returns the MemberCluster as wanted.
func (j *join) parse() (*hubv1.MemberCluster, grantChange, error) {
	var change grantChange
	if faults := validation.IsDNS1123Label(j.name); len(faults) > 0 {
		return nil, change, fmt.Errorf("NAME %q: %w: %s", j.name, errValue, faults[0])
	}
	if j.member.kubeconfig == "" {
		return nil, change, fmt.Errorf("--member-kubeconfig is %w without a file", errValue)
	}
	if j.dryRun != "none" && j.dryRun != "client" {
		return nil, change, fmt.Errorf("--dry-run %q: %w: want none or client", j.dryRun, errValue)
	}
	if err := checkLifetime(j.tokenLifetime); err != nil {
		return nil, change, err
	}
	leave := hubv1.RemovalPolicy(j.leavePolicy)
	if leave != hubv1.RemovalOrphan && leave != hubv1.RemovalDelete {
		return nil, change, fmt.Errorf("--leave-policy %q: %w: want Orphan or Delete", j.leavePolicy, errValue)
	}
	allowed, err := parseAllowed(j.allowedNamespaces)
	if err != nil {
		return nil, change, err
	}
	labels, err := j.wantedLabels()
	if err != nil {
		return nil, change, err
	}
	if change.add, err = parseGrants("--grant", j.grants); err != nil {
		return nil, change, err
	}
	if change.remove, err = parseGrants("--ungrant", j.ungrants); err != nil {
		return nil, change, err
	}
	return &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: labels},
		Spec: hubv1.MemberClusterSpec{
			Connection: hubv1.Connection{
				Type:   hubv1.ConnectionDirect,
				Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: j.name, Key: secretKey}},
			},
			AllowedNamespaces: allowed,
			Hub:               j.hubItself,
			Leave:             hubv1.LeavePolicy{Policy: leave},
		},
	}, change, nil
}

func parseAllowed(text string) (hubv1.AllowedNamespaces, error) {
	switch text {
	case string(hubv1.NamespacesFromAll), string(hubv1.NamespacesFromNone):
		return hubv1.AllowedNamespaces{From: hubv1.NamespacesFrom(text)}, nil
	case "":
		return hubv1.AllowedNamespaces{}, fmt.Errorf("--allowed-namespaces is %w without All, None or a label selector", errValue)
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return hubv1.AllowedNamespaces{}, fmt.Errorf("--allowed-namespaces %q is neither All nor None nor a label selector: %w", text, err)
	}
	return hubv1.AllowedNamespaces{From: hubv1.NamespacesFromSelector, Selector: selector}, nil
}

func (j *join) wantedLabels() (map[string]string, error) {
	labels := map[string]string{}
	maps.Copy(labels, j.labels)
	for _, l := range []struct{ flag, key, value string }{{"--region", hubv1.RegionLabel, j.region}, {"--zone", hubv1.ZoneLabel, j.zone}} {
		if l.value == "" {
			continue
		}
		if other, set := labels[l.key]; set && other != l.value {
			return nil, fmt.Errorf("%s %q and --labels %s=%s: %w: they differ", l.flag, l.value, l.key, other, errValue)
		}
		labels[l.key] = l.value
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...)
		if len(faults) > 0 {
			return nil, fmt.Errorf("label %s=%s: %w: %s", key, labels[key], errValue, strings.Join(faults, "; "))
		}
	}
	return labels, nil
}

// run does the member's side, then the hub's, and waits.
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
	if err := checkHubItself(j.hubItself, hubID, m.clusterID); err != nil {
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
		says(out, "token", "made")
	} else if made, err = m.token(ctx, out, j.tokenLifetime, uid, tokenInUse(existing)); err != nil {
		return err
	}

	fmt.Fprintf(out, "Hub at %s\n", hubAddress)
	if err := j.register(ctx, onHub, m, existing, wanted, made.token); err != nil {
		return err
	}
	if granted != nil {
		j.sayLacking(ctx, onHub, hubMapper, wanted, existing, granted)
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

// prepare creates the account on the member and grants the requested kinds. It returns the granted kinds; nil if they
// are not known.
func (j *join) prepare(ctx context.Context, m *memberCluster, hubMapper meta.RESTMapper, change grantChange) (granted *granting, err error) {
	var notes []string
	if change.add, notes, err = resolveGrants(m.mapper, hubMapper, change.add); err != nil {
		return nil, err
	}
	if granted, err = change.set(ctx, j.hub.streams.Out, m); err != nil {
		return nil, fmt.Errorf("preparing the member %s: %w", j.name, err)
	}
	for _, note := range notes {
		says(j.hub.streams.Out, "", "%s", note)
	}
	return granted, nil
}

// sayLacking names the kinds that placements send to the member and that it does not grant. It prints nothing for users
// who may not list placements.
func (j *join) sayLacking(ctx context.Context, hub client.Client, mapper meta.RESTMapper, wanted, existing *hubv1.MemberCluster, granted *granting) {
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
		says(j.hub.streams.Out, "", "lacks %s, which %s wants there: %s", k, strings.Join(placements[k], ", "), granted.hint(k))
	}
}
