package command

import (
	"crypto/sha256"
	"encoding/hex"
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
	wants(t, out, "tunnel.name=edge-7", "tunnel.hubKeys={"+pin+"}", "keys none", "tunnel.joinToken.value=", "hansectl approve edge-7")
	approvesAgent(t, out, first)
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

// approvesAgent checks that the token in the output of join is stored as a digest only, and that approve and revoke
// change the keys and end the token.
func approvesAgent(t *testing.T, joined, key string) {
	t.Helper()
	_, token, _ := strings.Cut(joined, "tunnel.joinToken.value=")
	token, _, _ = strings.Cut(token, "\n")
	var secret corev1.Secret
	digest := sha256.Sum256([]byte(token))
	stored := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-join-edge-7"}
	must(t, onHub.Get(t.Context(), stored, &secret))
	if got := string(secret.Data[hubv1.JoinDigestKey]); got != hex.EncodeToString(digest[:]) || len(token) != 43 || secret.Type != hubv1.JoinSecretType {
		t.Errorf("the token %q is stored as %q in a Secret of type %s", token, got, secret.Type)
	}
	_, err := hansectl(t, "approve", "edge-7", "--yes")
	refused(t, err, "no agent asks to join")
	_, err = hansectl(t, "approve", "cn-sha-1", "--yes")
	refused(t, err, "cn-sha-1")
	var cluster hubv1.MemberCluster
	must(t, onHub.Get(t.Context(), client.ObjectKey{Name: "edge-7"}, &cluster))
	cluster.Status.Agent = &hubv1.AgentStatus{Request: &hubv1.AgentRequest{
		Key: key, Token: hex.EncodeToString(digest[:])[:16], ClusterID: "some-id", Kubernetes: "v1.36.3", Version: "0.1.0", Address: "192.0.2.7", Time: metav1.Now(),
	}}
	must(t, onHub.Status().Update(t.Context(), &cluster))
	_, err = hansectl(t, "approve", "edge-7", "--key", "SHA256:"+strings.Repeat("x", 43))
	refused(t, err, key, "not the one of --key")
	_, err = hansectl(t, "approve", "edge-7")
	refused(t, err, "pass --yes")
	out, err := hansectl(t, "approve", "edge-7", "--key", key, "--wait=false")
	must(t, err)
	wants(t, out, key, "some-id", "v1.36.3", "192.0.2.7", "the agent is approved")
	must(t, onHub.Get(t.Context(), client.ObjectKey{Name: "edge-7"}, &cluster))
	if !slices.Equal(cluster.Spec.Connection.Tunnel.Keys, []string{key}) {
		t.Errorf("the MemberCluster has the keys %v", cluster.Spec.Connection.Tunnel.Keys)
	}
	if err := onHub.Get(t.Context(), stored, &secret); !apierrors.IsNotFound(err) {
		t.Errorf("the token stays: %v", err)
	}
	out, err = hansectl(t, "rotate", "edge-7")
	must(t, err)
	wants(t, out, "--set tunnel.keySecret=hanse-agent-20", "--set tunnel.joinToken.value=", "hansectl approve edge-7")
	must(t, onHub.Get(t.Context(), stored, &secret))
	if got := string(secret.Data[hubv1.JoinDigestKey]); got == hex.EncodeToString(digest[:]) {
		t.Error("the token of rotate is the earlier one")
	}
	out, err = hansectl(t, "revoke", "edge-7")
	must(t, err)
	wants(t, out, "revoked keys: "+key)
	must(t, onHub.Get(t.Context(), client.ObjectKey{Name: "edge-7"}, &cluster))
	if len(cluster.Spec.Connection.Tunnel.Keys) > 0 {
		t.Errorf("after revoke, the MemberCluster has the keys %v", cluster.Spec.Connection.Tunnel.Keys)
	}
}
