package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestUsersReadTheFleet runs hansectl as a user with the roles of the charts. It lists the pods of two members, and
// reads the events and logs of a Deployment there.
func TestUsersReadTheFleet(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	d := deployment(ns, "web")
	place(t, ns, "deployments", deployments, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{shanghai, singapore}}})
	must(t, suite.Hub.Create(ctx, d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), d) })
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(ctx, d, m, metav1.ConditionTrue, "") })
	}
	v := newViewer(t, ns, "reader",
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims", "events"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}})
	pods := []string{"get", "pods", "-n", ns, "--clusters", "--cluster", shanghai + "," + singapore}

	v.says(1, []string{"needs the verb read on the MemberCluster", "ask for the ClusterRole hanse-read in namespace " + ns}, pods...)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "read"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-read"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: ns + "-reader"}},
	}
	must(t, suite.Hub.Create(ctx, binding))
	eventually(t, normal, func() error {
		return mayDo(ctx, "system:serviceaccount:"+hubv1.SystemNamespace+":"+ns+"-reader", &authorizationv1.ResourceAttributes{
			Namespace: ns, Group: "hanse.dev", Resource: "resourcebindings", Verb: "read",
		})
	})
	eventually(t, normal, func() error {
		out, fault, code := v.hansectl(pods...)
		if code != 0 || strings.Count(out, "web-") != 2 || strings.Count(out, "Running") != 2 || !strings.Contains(out, "CLUSTER") || !strings.Contains(out, "RESTARTS") {
			return fmt.Errorf("it ends with %d:\n%s%s", code, out, fault)
		}
		return nil
	})
	var reported struct {
		Items []struct {
			Cluster string
			Object  unstructured.Unstructured
		}
	}
	must(t, json.Unmarshal([]byte(v.says(0, nil, append(pods, "-o", "json", "-l", "app=web")...)), &reported))
	if len(reported.Items) != 2 || reported.Items[0].Object.GetKind() != "Pod" || reported.Items[0].Object.GetNamespace() != ns {
		t.Errorf("as JSON it says %+v", reported)
	}
	v.says(0, []string{"No objects of kind Pod found"}, append(pods, "-l", "app=other")...)
	v.says(1, []string{"ask for the ClusterRole hanse-read"}, append(pods, "-A")...)
	v.says(1, []string{"may not list configmaps in namespace " + ns + " on the hub"}, "get", "configmaps", "-n", ns, "--clusters", "--cluster", shanghai)
	v.says(1, []string{shanghai + ": persistentvolumeclaims of cluster " + shanghai + ": not granted to the hub"},
		"get", "persistentvolumeclaims", "-n", ns, "--clusters", "--cluster", shanghai)

	v.says(0, []string{shanghai, singapore, "ScalingReplicaSet", "deployment/web"}, "events", "deployment/web", "-n", ns)
	// Containers of the lab have no logs. The warnings show that the members accepted the hub's requests for logs.
	v.says(0, []string{"warning: " + shanghai + ": pod web-"}, "logs", "deployment/web", "-n", ns, "--cluster", shanghai)
	v.says(1, []string{"Deployment.apps " + ns + "/web does not go to " + frankfurt}, "logs", "deployment/web", "-n", ns, "--cluster", frankfurt)
}
