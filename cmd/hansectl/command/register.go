package command

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// secretKey is the key of the kubeconfig in the Secret.
	secretKey = "kubeconfig"
	// clusterIDAnnotation is an annotation of the Secret with the ID of the cluster. A later unjoin compares it with the
	// ID of the cluster that it reaches.
	clusterIDAnnotation = hubv1.Prefix + "cluster-id"
	// serverAnnotation is an annotation of the Secret with the address of the member. A later rotate reads this address,
	// because hansectl never reads the kubeconfig in the Secret.
	serverAnnotation = hubv1.Prefix + "server"
)

var errNoHub = errors.New("the cluster of your kubeconfig has no hub of Hanse: install the chart hanse-hub, or choose another --context")

// admit reads the MemberClusters, and checks whether this cluster may join under this name. It returns the
// MemberCluster of this name, or nil if there is none.
func admit(ctx context.Context, hub client.Client, name, clusterID string) (*hubv1.MemberCluster, error) {
	var members hubv1.MemberClusterList
	err := hub.List(ctx, &members)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, errNoHub
	}
	if err != nil {
		return nil, fmt.Errorf("listing MemberClusters on the hub: %w", err)
	}
	var ns corev1.Namespace
	if err := hub.Get(ctx, client.ObjectKey{Name: hubv1.SystemNamespace}, &ns); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("namespace %s is missing on the hub: %w", hubv1.SystemNamespace, errNoHub)
	} else if err != nil {
		return nil, fmt.Errorf("reading namespace %s of the hub: %w", hubv1.SystemNamespace, err)
	}
	return admitted(members.Items, name, clusterID)
}

// admitted checks whether a cluster may join under this name: a cluster has only one name, and a name belongs to only
// one cluster.
func admitted(members []hubv1.MemberCluster, name, clusterID string) (*hubv1.MemberCluster, error) {
	var existing *hubv1.MemberCluster
	for i := range members {
		m := &members[i]
		if m.Name == name {
			existing = m
		} else if m.Status.ClusterID == clusterID {
			return nil, fmt.Errorf("this cluster (kube-system uid %s) is a member already, as membercluster/%s: join with that name to replace its token, or unjoin it first", clusterID, m.Name)
		}
	}
	switch {
	case existing == nil:
		return nil, nil
	case existing.DeletionTimestamp != nil:
		return nil, fmt.Errorf("membercluster/%s is leaving: wait until it is gone (hansectl unjoin %s), then join", name, name)
	case existing.Spec.Connection.Type != hubv1.ConnectionDirect || existing.Spec.Connection.Direct == nil:
		return nil, fmt.Errorf("membercluster/%s has the connection type %s: hansectl join needs the type %s", name, existing.Spec.Connection.Type, hubv1.ConnectionDirect)
	case existing.Status.ClusterID != "" && existing.Status.ClusterID != clusterID:
		return nil, fmt.Errorf("membercluster/%s is another cluster (kube-system uid %s, this one is %s): choose another name, or unjoin that one first", name, existing.Status.ClusterID, clusterID)
	}
	return existing, nil
}

// checkHubItself checks that the flag --hub-itself is set if and only if the cluster has the ID of the hub. The ID
// alone proves nothing, because any server can return the hub's ID.
func checkHubItself(flagged bool, hubID, clusterID string) error {
	switch {
	case flagged && clusterID != hubID:
		return fmt.Errorf("--hub-itself is %w: this cluster (kube-system uid %s) is not the hub (%s)", errValue, clusterID, hubID)
	case !flagged && clusterID == hubID:
		return fmt.Errorf("this cluster has the identity of the hub (kube-system uid %s): pass --hub-itself if it is the hub, and do not join it otherwise", hubID)
	}
	return nil
}

// register writes the Secret, then the MemberCluster.
func (j *join) register(ctx context.Context, hub client.Client, m *memberCluster, existing, wanted *hubv1.MemberCluster, token string) error {
	ref := wanted.Spec.Connection.Direct.KubeconfigSecretRef
	if existing != nil {
		ref = existing.Spec.Connection.Direct.KubeconfigSecretRef
	}
	kubeconfig, err := m.address.kubeconfig(j.name, token)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig for the hub: %w", err)
	}
	did, err := putSecret(ctx, hub, ref, kubeconfig, m, existing != nil)
	if err != nil {
		return err
	}
	out := j.hub.streams.Out
	printLine(out, "secret/"+ref.Name, "%s: server, CA and token of the member", did)

	member := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: j.name}}
	if err := put(ctx, out, hub, member, "membercluster", func() error {
		j.cluster.change(member, wanted)
		return nil
	}); err != nil {
		return err
	}
	printLine(out, "", "allowedNamespaces %s, leave %s", describeAllowed(member.Spec.AllowedNamespaces), member.Spec.Leave.Policy)
	return nil
}

func describeAllowed(a hubv1.AllowedNamespaces) string {
	if a.From == hubv1.NamespacesFromSelector {
		return metav1.FormatLabelSelector(a.Selector)
	}
	return string(a.From)
}

// putSecret writes the kubeconfig into the Secret without reading its data. known is true if the MemberCluster already
// refers to this Secret.
func putSecret(ctx context.Context, hub client.Client, ref hubv1.SecretKeyRef, kubeconfig []byte, m *memberCluster, known bool) (string, error) {
	notes := map[string]string{clusterIDAnnotation: m.clusterID, serverAnnotation: m.address.server}
	key := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: ref.Name}
	there := secretMetadata(key)
	err := hub.Get(ctx, key, there)
	switch {
	case apierrors.IsNotFound(err):
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name, Labels: ourLabels(), Annotations: notes,
			},
			Data: map[string][]byte{ref.Key: kubeconfig},
		}
		if err := hub.Create(ctx, secret); err != nil {
			return "", fmt.Errorf("creating Secret %s on the hub: %w", key, err)
		}
		return "created", nil
	case err != nil:
		return "", fmt.Errorf("reading Secret %s of the hub: %w", key, err)
	case !known && !ours(there):
		return "", fmt.Errorf("the hub has a Secret %s that hansectl did not make: choose another name for the member", key)
	}
	change := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: notes},
		Data:       map[string][]byte{ref.Key: kubeconfig},
	}
	before := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := hub.Patch(ctx, change, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("changing Secret %s on the hub: %w", key, err)
	}
	return "updated", nil
}

func secretMetadata(key client.ObjectKey) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// awaitReady waits until the MemberCluster is Ready.
func (j *join) awaitReady(ctx context.Context, hub client.Client) error {
	out := j.hub.streams.Out
	fmt.Fprintf(out, "Waiting until membercluster/%s is Ready\n", j.name)
	seen := false
	state, err := await(ctx, out, j.timeout, func(ctx context.Context) (string, bool, error) {
		var m hubv1.MemberCluster
		if err := hub.Get(ctx, client.ObjectKey{Name: j.name}, &m); err != nil {
			return "", false, fmt.Errorf("reading MemberCluster %s: %w", j.name, err)
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady)
		if ready == nil {
			return "the hub has not processed it yet", false, nil
		}
		seen = true
		if ready.Status == metav1.ConditionTrue && m.Status.Version.Kubernetes == "" {
			return "Ready; the hub has not read its version and region yet", true, nil
		}
		if ready.Status == metav1.ConditionTrue {
			return fmt.Sprintf("Ready: %s, region %s", m.Status.Version.Kubernetes, regionOf(&m)), true, nil
		}
		return reasonText(ready), false, nil
	})
	if !errors.Is(err, errTimeout) {
		return err
	}
	hint := "the hub tries again: see kubectl get mcl"
	if !seen {
		hint = "check whether a hub runs: kubectl get lease hanse-hub -n " + hubv1.SystemNamespace
	}
	return fmt.Errorf("waiting for membercluster/%s to be Ready: %w: %s; the cluster stays joined; %s", j.name, err, state, hint)
}

func regionOf(m *hubv1.MemberCluster) string {
	if region := m.SelectableLabels()[hubv1.RegionLabel]; region != "" {
		return region
	}
	return "unknown"
}

func reasonText(c *metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}
