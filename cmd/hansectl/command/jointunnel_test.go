package command

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAMemberJoinsByItsAgent joins without a key, approves a key, and replaces it.
func TestAMemberJoinsByItsAgent(t *testing.T) {
	fresh(t)
	_, err := hansectl(t, "join", "edge-7", "--tunnel")
	refused(t, err, "set tunnel.enabled of the chart hanse-hub")
	pin, first, second := "SHA256:"+strings.Repeat("p", 43), "SHA256:"+strings.Repeat("a", 43), "SHA256:"+strings.Repeat("b", 43)
	must(t, onHub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubv1.SystemNamespace, Name: hubv1.TunnelSecret, Annotations: map[string]string{hubv1.FingerprintAnnotation: pin},
	}}))
	_, err = hansectl(t, "join", "edge-7", "--tunnel", "--dry-run=client")
	must(t, err)
	var cluster hubv1.MemberCluster
	if err := onHub.Get(t.Context(), client.ObjectKey{Name: "edge-7"}, &cluster); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run made the MemberCluster: %v", err)
	}
	out, err := hansectl(t, "join", "edge-7", "--tunnel", "--region", "eu")
	must(t, err)
	wants(t, out, "tunnel.name=edge-7", "tunnel.hubKeys={"+pin+"}", "keys none", "approve the agent")
	for _, keys := range [][]string{{first}, {first, second}, {second}} {
		args := []string{"join", "edge-7", "--tunnel", "--wait=false"}
		for _, key := range keys {
			args = append(args, "--key", key)
		}
		out, err = hansectl(t, args...)
		must(t, err)
		wants(t, out, "keys "+strings.Join(keys, " "))
		must(t, onHub.Get(t.Context(), client.ObjectKey{Name: "edge-7"}, &cluster))
		c := cluster.Spec.Connection
		if c.Type != hubv1.ConnectionTunnel || c.Direct != nil || !slices.Equal(c.Tunnel.Keys, keys) || cluster.Labels[hubv1.RegionLabel] != "eu" {
			t.Errorf("the MemberCluster has %+v, want the keys %v", c, keys)
		}
	}
	_, err = hansectl(t, "join", "edge-7", "--member-kubeconfig", onMember.kubeconfig)
	refused(t, err, "has the connection type Tunnel")
	_, err = hansectl(t, "unjoin", "edge-7", "--timeout", "20s")
	must(t, err)
}
