package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// unjoin has the arguments of one run of the command unjoin.
type unjoin struct {
	hub *hub

	name    string
	member  memberFlags
	abandon bool
	timeout time.Duration
}

func newUnjoin(h *hub) *cobra.Command {
	u := &unjoin{hub: h}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Remove a member from the hub",
		Long: `Remove a member from the hub: delete its MemberCluster, wait until the hub has released its objects and revoked its
token on the member, then delete the Secret.

spec.leave.policy of the MemberCluster decides what happens to the copies on the member: Orphan keeps them, without
marks of the hub; Delete deletes them. The command waits for a member that does not answer or refuses the withdrawal of a
copy, and for a removal that the hub holds until hansectl confirm. With --abandon it does not wait, and all copies on
the member stay unchanged, with their marks. If the member does not revoke the token, the output says how long the token
stays valid.

With --member-kubeconfig, the command also removes the objects that join made on the member, but none of the chart
hanse-member. Do not use it if two hubs share the member.`,
		Example: `  hansectl unjoin eu-fra-1

  # Also remove the account that join made on the member
  hansectl unjoin eu-fra-1 --member-kubeconfig eu-fra-1.kubeconfig

  # The cluster is gone for good
  hansectl unjoin eu-fra-1 --abandon`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.name = args[0]
			return u.run(cmd.Context())
		},
		ValidArgsFunction: h.completeClusters,
	}
	u.member.addTo(cmd, "to remove the objects that join made on the member.")
	cmd.Flags().BoolVar(&u.abandon, "abandon", false, "Do not wait for a member that does not answer: its copies stay on it.")
	cmd.Flags().DurationVar(&u.timeout, "timeout", 5*time.Minute, "How long to wait until the hub has released the member.")
	return cmd
}

func (u *unjoin) run(ctx context.Context) error {
	hub, _, err := u.hub.connect()
	if err != nil {
		return err
	}
	cluster, secret, err := u.read(ctx, hub)
	if err != nil {
		return err
	}
	var m *memberCluster
	if u.member.kubeconfig != "" {
		if m, err = u.openMember(ctx, cluster, secret); err != nil {
			return err
		}
	}
	if cluster != nil {
		if err := u.leave(ctx, hub, cluster); err != nil {
			return err
		}
	}
	kept, err := u.tokenKept(ctx, hub, cluster, secret)
	if err != nil {
		return err
	}
	if err := u.dropSecret(ctx, hub, secret); err != nil {
		return err
	}
	if m == nil {
		fmt.Fprintf(u.hub.streams.Out, "The member keeps ServiceAccount %s/%s%s; delete it there, unless another hub uses it\n", hubv1.SystemNamespace, accountName, kept)
		return nil
	}
	return u.clean(ctx, hub, m)
}

// read reads the MemberCluster, and the metadata of the Secret with its kubeconfig. Either one is nil if it does not
// exist. The other one may still exist if an earlier run was interrupted.
func (u *unjoin) read(ctx context.Context, hub client.Client) (*hubv1.MemberCluster, *metav1.PartialObjectMetadata, error) {
	key := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: u.name}
	cluster := &hubv1.MemberCluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: u.name}, cluster)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil, errNoHub
	case apierrors.IsNotFound(err):
		cluster = nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading MemberCluster %s: %w", u.name, err)
	case cluster.Spec.Connection.Direct != nil:
		key.Name = cluster.Spec.Connection.Direct.KubeconfigSecretRef.Name
	}
	secret := secretMetadata(key)
	switch err := hub.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading Secret %s of the hub: %w", key, err)
	}
	if cluster == nil && (secret == nil || secret.Annotations[clusterIDAnnotation] == "") {
		return nil, nil, noCluster(ctx, hub, u.name)
	}
	return cluster, secret, nil
}

// openMember connects to the member, and checks that it has the ID of the cluster that leaves.
func (u *unjoin) openMember(ctx context.Context, cluster *hubv1.MemberCluster, secret *metav1.PartialObjectMetadata) (*memberCluster, error) {
	m, err := u.member.open(ctx, u.hub, "")
	if err != nil {
		return nil, err
	}
	id := ""
	if secret != nil {
		id = secret.Annotations[clusterIDAnnotation]
	}
	if cluster != nil && cluster.Status.ClusterID != "" {
		id = cluster.Status.ClusterID
	}
	switch id {
	case m.clusterID:
		return m, nil
	case "":
		return nil, fmt.Errorf("the hub has not read the UID of cluster %s, so %s may belong to another cluster: run the command without --member-kubeconfig", u.name, u.member.kubeconfig)
	}
	return nil, fmt.Errorf("%s belongs to another cluster (kube-system uid %s, but %s has %s): nothing was changed", u.member.kubeconfig, m.clusterID, u.name, id)
}

// leave deletes the MemberCluster, and waits until the hub has removed it.
func (u *unjoin) leave(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster) error {
	out := u.hub.streams.Out
	before := cluster.DeepCopy()
	cluster.Spec.Leave.Credentials = hubv1.CredentialsRevoke
	if u.abandon {
		cluster.Spec.Leave.WhenUnreachable, cluster.Spec.Leave.TimeoutSeconds = hubv1.UnreachableAbandon, ptr.To[int32](0)
	}
	if err := hub.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("setting spec.leave of MemberCluster %s: %w", u.name, err)
	}
	if u.abandon {
		printLine(out, "membercluster/"+u.name, "is abandoned if the member does not answer; its copies then keep the labels and annotations of the hub")
	}
	many := "its objects"
	if counts, err := countObjects(ctx, hub); err == nil {
		many = counted(counts[u.name], "object") + " on the member"
	}
	what := "will stay there, without marks of the hub (leave.policy Orphan)"
	if cluster.Spec.Leave.Policy == hubv1.RemovalDelete {
		what = "will be deleted there (leave.policy Delete); CustomResourceDefinitions and namespaces stay"
	}
	if err := client.IgnoreNotFound(hub.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID})); err != nil {
		return fmt.Errorf("deleting MemberCluster %s: %w", u.name, err)
	}
	printLine(out, "membercluster/"+u.name, "deletion requested; %s %s", many, what)
	return u.awaitGone(ctx, hub)
}

func (u *unjoin) awaitGone(ctx context.Context, hub client.Client) error {
	mayBeLost := false
	state, err := await(ctx, u.hub.streams.Out, u.timeout, func(ctx context.Context) (string, bool, error) {
		var now hubv1.MemberCluster
		err := hub.Get(ctx, client.ObjectKey{Name: u.name}, &now)
		if apierrors.IsNotFound(err) {
			return "gone", true, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("reading MemberCluster %s: %w", u.name, err)
		}
		mayBeLost = now.MayBeLost(time.Now())
		if held := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionRemovalHeld); held != nil && held.Status == metav1.ConditionTrue {
			return reasonText(held), false, nil
		}
		if ready := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionReady); ready != nil {
			return reasonText(ready), false, nil
		}
		return "waiting for the hub", false, nil
	})
	if errors.Is(err, errTimeout) {
		hint := "run the command again to continue waiting"
		if !u.abandon && mayBeLost {
			// While no hub runs, the time of the last observation becomes old for every cluster. An old time then does not show
			// that this cluster is lost.
			if silence, err := u.hub.silence(ctx, hub); silence == nil && err == nil {
				hint += ", or run it with --abandon to leave the copies on the member unchanged"
			}
		}
		return fmt.Errorf("waiting for the deletion of membercluster/%s: %w: %s; %s (the deletion needs a running hub)", u.name, err, state, hint)
	}
	return err
}

// tokenKept returns the end of a message if the hub's token on the member stays valid after unjoin. It returns an empty
// text if the hub has revoked the token, or if there is no Secret. The hub records in the Secret whether it has revoked
// the token.
func (u *unjoin) tokenKept(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster, secret *metav1.PartialObjectMetadata) (string, error) {
	if secret == nil {
		return "", nil
	}
	now := secretMetadata(client.ObjectKeyFromObject(secret))
	if err := hub.Get(ctx, client.ObjectKeyFromObject(now), now); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Secret %s of the hub: %w", client.ObjectKeyFromObject(now), err)
	}
	until := ""
	if cluster != nil && cluster.Status.Credentials != nil && cluster.Status.Credentials.ExpireTime != nil {
		until = " until " + cluster.Status.Credentials.ExpireTime.UTC().Format(time.RFC3339)
	}
	switch note := now.Annotations[hubv1.CredentialsRevokedAnnotation]; note {
	case "true":
		printLine(u.hub.streams.Out, "token", "revoked on the member by the hub")
		return "", nil
	case "":
		return ", and its token stays valid" + until, nil
	default:
		return ", and its token stays valid" + until + " (" + note + ")", nil
	}
}

func (u *unjoin) dropSecret(ctx context.Context, hub client.Client, secret *metav1.PartialObjectMetadata) error {
	if secret == nil {
		return nil
	}
	out := u.hub.streams.Out
	if !ours(secret) {
		printLine(out, "secret/"+secret.Name, "left on the hub: hansectl did not make it")
		return nil
	}
	if err := client.IgnoreNotFound(hub.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})); err != nil {
		return fmt.Errorf("deleting Secret %s of the hub: %w", client.ObjectKeyFromObject(secret), err)
	}
	printLine(out, "secret/"+secret.Name, "deleted on the hub")
	return nil
}

// made is an object that join has created on a member.
type made struct {
	kind string
	o    client.Object
}

func (o made) String() string { return o.kind + "/" + o.o.GetName() }

// empty returns an object of the chart hanse-member without its content.
func empty(o *unstructured.Unstructured) made {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return made{strings.ToLower(o.GetKind()), out}
}

// madeOnEach returns the objects that join makes on each member, in the order of their removal. If the function only is
// set, it selects the objects.
func madeOnEach(ctx context.Context, only func(*unstructured.Unstructured) bool) ([]made, error) {
	objects, err := memberValues{policy: policyOn}.render(ctx)
	if err != nil {
		return nil, err
	}
	var out []made
	for _, o := range slices.Backward(objects) {
		if only == nil || only(o) {
			out = append(out, empty(o))
		}
	}
	return out, nil
}

// remove deletes the object from the member, if it exists and hansectl has made it.
func (o made) remove(ctx context.Context, w io.Writer, m client.Client) error {
	what := o.String()
	err := m.Get(ctx, client.ObjectKeyFromObject(o.o), o.o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s of the member: %w", what, err)
	case !ours(o.o):
		printLine(w, what, "not deleted: managed by %s", cmp.Or(o.o.GetLabels()[managedByLabel], "another tool"))
		return nil
	}
	if err := client.IgnoreNotFound(m.Delete(ctx, o.o)); err != nil {
		return fmt.Errorf("deleting %s of the member: %w", what, err)
	}
	printLine(w, what, "deleted")
	return nil
}

// clean deletes from the member the objects that join has created there.
func (u *unjoin) clean(ctx context.Context, hub client.Client, m *memberCluster) error {
	out := u.hub.streams.Out
	fmt.Fprintf(out, "Member %s at %s\n", u.name, m.address.server)
	uid, err := hubUID(ctx, hub)
	if err != nil {
		return err
	}
	if err := m.revokeOthers(ctx, out, uid, ""); err != nil {
		return err
	}
	forOperators, err := madeForOperators(ctx, m)
	if err != nil {
		return err
	}
	onEach, err := madeOnEach(ctx, nil)
	if err != nil {
		return err
	}
	for _, made := range append(forOperators, onEach...) {
		if err := made.remove(ctx, out, m); err != nil {
			return err
		}
	}
	return nil
}
