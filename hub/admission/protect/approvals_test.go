package protect

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestWhoAddsAKeyOfAnAgentNeedsTheVerbApprove(t *testing.T) {
	admin := installed(t)
	ctx := t.Context()
	const clerk, approver = "clerk", "approver"
	writes := rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"create", "get", "patch"}}
	grant(t, admin, "protect-clerk", clerk, writes)
	grant(t, admin, "protect-approver", approver, writes,
		rbacv1.PolicyRule{APIGroups: writes.APIGroups, Resources: writes.Resources, ResourceNames: []string{"agent-1"}, Verbs: []string{"approve"}})
	first, second := "SHA256:"+strings.Repeat("a", 43), "SHA256:"+strings.Repeat("b", 43)
	cluster := func(name string, keys ...string) *hubv1.MemberCluster {
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{Keys: keys}}
		c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
		return c
	}
	set := func(c client.Client, keys ...string) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"connection": map[string]any{"tunnel": map[string]any{"keys": append([]string{}, keys...)}}}})
		must(t, err)
		return c.Patch(ctx, cluster("agent-1"), client.RawPatch(types.MergePatchType, patch))
	}
	const words = "needs the right to the verb approve on memberclusters.hanse.dev"
	refused(t, as(t, clerk).Create(ctx, cluster("agent-1", first)), "clerk "+words)
	refused(t, as(t, approver).Create(ctx, cluster("agent-2", first)), "approver "+words) // the verb is on another name
	must(t, as(t, clerk).Create(ctx, cluster("agent-1")))
	t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(ctx), cluster("agent-1"))) })
	refused(t, set(as(t, clerk), first), words)
	refused(t, set(as(t, theHub), first)) // hanse-hub-account refuses it, too
	must(t, set(as(t, approver), first))
	refused(t, set(as(t, clerk), second), words)
	refused(t, set(as(t, clerk), first, second), words)
	must(t, set(as(t, clerk), first))
	must(t, set(as(t, clerk))) // a key can be removed at once
	must(t, set(as(t, clerk, inEmergency), second))
}
