package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// edge is a cluster that is not in the topology, and whose address the hub does not get.
const edge = "eu-edg-1"

// TestAnAgentJoinsByItsChart follows docs/tasks/join-tunnel.md: join, install the chart, approve, revoke.
func TestAnAgentJoinsByItsChart(t *testing.T) {
	ctx := t.Context()
	member, err := suite.AddMember(ctx, edge, "--region", "eu-west-1", "--zones", "eu-west-1a", "--nodes", "1")
	must(t, err)
	t.Cleanup(func() { removeCluster(t, edge) })
	must(t, applyCRD(ctx, member.Client, "testdata/widget-crd.yaml"))
	ns := namespace(t)
	placeWidgets(t, ns, edge)
	must(t, suite.Hub.Create(ctx, widget(ns, "guest")))

	joined, err := suite.Hansectl(ctx, "join", edge, "--tunnel")
	must(t, err)
	must(t, suite.InstallMember(ctx, member, []fleet.Kind{{APIGroups: []string{"test.hanse.dev"}, Resources: []string{"widgets"}}}, fleet.WithAgent(map[string]any{
		"enabled": true, "name": edge, "hub": suite.hub.Tunnel, "hubKeys": []string{printed(t, joined, `tunnel.hubKeys=\{(SHA256:[^}]+)\}`)},
		"joinToken": map[string]any{"value": printed(t, joined, `tunnel.joinToken.value=(\S+)`)}, "extraArgs": []string{"--zap-log-level=9"},
	})))
	agent, err := suite.StartAgent(ctx, member)
	must(t, err)
	t.Cleanup(agent.Kill)
	eventually(t, normal, func() error { return messageHas(ctx, edge, "asks to join") })
	begin := time.Now()
	approved, err := suite.Hansectl(ctx, "approve", edge, "--key", printed(t, agent.Log(), `"fingerprint":"(SHA256:[^"]+)"`))
	must(t, err)
	t.Logf("Ready after %s", time.Since(begin))
	if !strings.Contains(approved, "Ready: v1.") {
		t.Errorf("approve does not say that the member is Ready:\n%s", approved)
	}
	eventually(t, normal, func() error { return rowIs(ctx, widget(ns, "guest"), edge, metav1.ConditionTrue, "") })
	must(t, replicasOn(ctx, edge, widget(ns, "guest"), 3))
	hubLacks(t, strings.TrimPrefix(member.Server, "https://"), strings.TrimPrefix(member.ProxyServer, "https://"))

	_, err = suite.Hansectl(ctx, "revoke", edge)
	must(t, err)
	begin = time.Now()
	eventually(t, normal, func() error {
		return memberCondition(ctx, edge, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonPendingApproval)
	})
	t.Logf("PendingApproval after %s", time.Since(begin))
	must(t, replicasOn(ctx, edge, widget(ns, "guest"), 3))
	must(t, rulesOfTheAgent(ctx, member))
	logLacks(ctx, t, agent, member)
}

// printed returns the group of an expression in a text.
func printed(t *testing.T, text, expression string) string {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in:\n%s", expression, text)
	}
	return found[1]
}

// hubLacks fails the test if a Secret or MemberCluster of the hub has one of the texts.
func hubLacks(t *testing.T, texts ...string) {
	t.Helper()
	var secrets corev1.SecretList
	var clusters hubv1.MemberClusterList
	must(t, errors.Join(suite.Hub.List(t.Context(), &secrets), suite.Hub.List(t.Context(), &clusters)))
	var all strings.Builder
	must(t, json.NewEncoder(&all).Encode(clusters))
	for _, s := range secrets.Items {
		for _, data := range s.Data {
			all.Write(data)
		}
	}
	for _, text := range texts {
		if text != "" && strings.Contains(all.String(), text) {
			t.Errorf("the hub has %s", text)
		}
	}
}

// rulesOfTheAgent returns an error for each rule of the agent that it has not used, and for each request that the
// member has refused to the agent or to the account of the hub.
func rulesOfTheAgent(ctx context.Context, member *fleet.Cluster) error {
	var errs []error
	for _, name := range []string{"hanse-agent", "hanse"} {
		used, refused, err := readAudit(member.AuditLog, math.MaxInt64, "system:serviceaccount:"+hubv1.SystemNamespace+":"+name)
		if err != nil {
			return err
		}
		for _, r := range refused {
			errs = append(errs, fmt.Errorf("the member refused %s to %s: a rule is missing", r, name))
		}
		if name == "hanse" {
			continue
		}
		var role rbacv1.Role
		if err := member.Get(ctx, types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: name}, &role); err != nil {
			return err
		}
		for _, r := range unused(role.Rules, used) {
			errs = append(errs, fmt.Errorf("role %s: %s was never used: the rule can go", name, r))
		}
	}
	return errors.Join(errs...)
}

// logLacks fails the test if the log of the agent has its token or its key.
func logLacks(ctx context.Context, t *testing.T, agent *fleet.AgentProcess, member *fleet.Cluster) {
	t.Helper()
	var key, token corev1.Secret
	must(t, member.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-agent"}, &key))
	must(t, member.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-join-token"}, &token))
	for _, secret := range []string{strings.Split(string(key.Data["key.pem"]), "\n")[1], string(token.Data["token"]), "eyJ"} {
		if len(secret) < 3 || strings.Contains(agent.Log(), secret) {
			t.Errorf("the log of the agent has %.8s...", secret)
		}
	}
}
