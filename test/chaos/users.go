package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// users are the clients by which the run edits the hub. Only the fleet's admin may do everything.
type users struct {
	admin client.Client
	// teams write objects, Bundles and OverridePolicies in their own namespaces.
	teams map[string]client.Client
	// lead approves waves.
	lead client.Client
	// emergency is in the group that may write bindings.
	emergency client.Client
}

// patience is the time-out of a user's request. A user does not repeat a request that failed.
const patience = 3 * time.Second

// edit are the parts of the ClusterRole edit. The hub of the lab has no controller that aggregates roles.
var edit = []string{"system:aggregate-to-view", "system:aggregate-to-edit"}

// bundleAccount is the ServiceAccount with whose rights the hub stores the Bundle, and another one, in hanse-system,
// for the FederatedOperator.
const bundleAccount = "bundles"

// newUsers creates the ServiceAccounts of the users and binds the roles of the chart hanse-hub to them.
func newUsers(ctx context.Context, hub *fleet.Cluster) (users, error) {
	u := users{teams: map[string]client.Client{}}
	writesWidgets := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chaos-widgets"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{WidgetKind.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
	}}}
	if err := client.IgnoreAlreadyExists(hub.Create(ctx, writesWidgets)); err != nil {
		return u, err
	}
	teams := map[string][]string{"team-a": {everywhere, selected, referring}, "team-b": {bundled, staged, guarded, kept}}
	for name, namespaces := range teams {
		roles := slices.Concat(edit, []string{"hanse-edit", "hanse-override", writesWidgets.Name})
		team, err := newUser(ctx, hub, name, namespaces, roles...)
		if err != nil {
			return u, err
		}
		for _, ns := range namespaces {
			u.teams[ns] = team
		}
	}
	// The accounts of the Bundle and of the FederatedOperator, as which no user sends requests.
	if err := errors.Join(
		grant(ctx, hub, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: bundled, Name: bundleAccount}, []string{bundled}, slices.Concat(edit, []string{writesWidgets.Name})...),
		grant(ctx, hub, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: bundleAccount}, nil),
		hub.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: bundleAccount}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: bundleAccount}},
		}),
	); err != nil {
		return u, err
	}
	var err error
	if u.lead, err = newUser(ctx, hub, "lead", []string{staged}, "hanse-admin"); err != nil {
		return u, err
	}
	if u.admin, err = clientFor(hub.Config); err != nil {
		return u, err
	}
	emergency := rest.CopyConfig(hub.Config)
	emergency.Impersonate = rest.ImpersonationConfig{UserName: "chaos", Groups: []string{"hanse:break-glass", "system:masters"}}
	u.emergency, err = clientFor(emergency)
	return u, err
}

// newUser creates a ServiceAccount in hanse-system with ClusterRoles in some namespaces.
func newUser(ctx context.Context, hub *fleet.Cluster, name string, namespaces []string, roles ...string) (client.Client, error) {
	if err := grant(ctx, hub, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: name}, namespaces, roles...); err != nil {
		return nil, err
	}
	config, err := hub.AsServiceAccount(ctx, name)
	if err != nil {
		return nil, err
	}
	return clientFor(config)
}

// grant creates a ServiceAccount, and binds ClusterRoles to it in some namespaces.
func grant(ctx context.Context, hub *fleet.Cluster, account rbacv1.Subject, namespaces []string, roles ...string) error {
	if err := hub.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}); err != nil {
		return fmt.Errorf("creating user %s: %w", account.Name, err)
	}
	for _, ns := range namespaces {
		for _, role := range roles {
			if err := hub.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account.Name + "-" + strings.ReplaceAll(role, ":", "-")}, Subjects: []rbacv1.Subject{account},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			}); err != nil {
				return fmt.Errorf("granting %s to user %s: %w", role, account.Name, err)
			}
		}
	}
	return nil
}

func clientFor(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = patience, -1
	config.WarningHandler = rest.NoWarnings{}
	return client.New(config, client.Options{Scheme: fleet.Scheme()})
}
