package pods

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// onlyLong skips a test of an operator that the lab compiles only on demand.
func onlyLong(t *testing.T) {
	t.Helper()
	if os.Getenv("HANSE_LONG") == "" {
		t.Skip("it compiles for minutes: run make test-pods HANSE_LONG=1")
	}
}

// operatorIsInstalled installs an operator with the chart of its authors on the member with a real node. The file
// NAME.yaml in testdata has its FederatedOperator, and values are arguments with which hansectl renders the chart.
func operatorIsInstalled(t *testing.T, name, namespace string, values ...string) {
	t.Helper()
	ctx := t.Context()
	load(t, frankfurt, name)
	archive, err := suite.LabCommand(ctx, "chart", name, "--out", t.TempDir())
	must(t, err)
	archive = strings.TrimSpace(archive)
	rendered := append([]string{archive, "-n", namespace}, values...)
	definitionsAreServed(t, rendered)
	rightsAreGranted(t, name, namespace, rendered)
	_, err = suite.Kubectl(ctx, suite.Hub, "create", "configmap", name+"-chart", "-n", hubv1.SystemNamespace, "--from-file=chart.tgz="+archive)
	must(t, err)
	_, err = suite.Kubectl(ctx, suite.Hub, "apply", "-f", "testdata/images.yaml", "-f", "testdata/"+name+".yaml")
	must(t, err)
}

// definitionsAreServed creates the definitions of a chart on the hub.
func definitionsAreServed(t *testing.T, rendered []string) {
	t.Helper()
	crds, err := suite.Hansectl(t.Context(), append([]string{"operators", "crds"}, rendered...)...)
	must(t, err)
	file := filepath.Join(t.TempDir(), "crds.yaml")
	must(t, os.WriteFile(file, []byte(crds), 0o600))
	_, err = suite.Kubectl(t.Context(), suite.Hub, "apply", "--server-side", "-f", file)
	must(t, err)
	_, err = suite.Kubectl(t.Context(), suite.Hub, "wait", "--for=condition=Established", "-f", file, "--timeout=60s")
	must(t, err)
}

// rightsAreGranted adds the rights that a chart needs to the values of the member chart. On the hub, it creates the
// ServiceAccount of the operator, with the rights to create its objects.
func rightsAreGranted(t *testing.T, name, namespace string, rendered []string) {
	t.Helper()
	ctx := t.Context()
	member := suite.Members[frankfurt]
	text, err := suite.Hansectl(ctx, append([]string{"operators", "rbac"}, rendered...)...)
	must(t, err)
	var rights struct {
		GrantedKinds []fleet.Kind `json:"grantedKinds"`
		Operators    []any        `json:"operators"`
	}
	must(t, yaml.Unmarshal([]byte(text), &rights))
	// The member chart creates Roles for the hub in this namespace.
	must(t, member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, suite.InstallMember(ctx, member, append(slices.Clone(kinds), rights.GrantedKinds...), func(values map[string]any) {
		values["operators"] = rights.Operators
	}))

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator-" + name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
	}}
	for _, k := range rights.GrantedKinds {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: k.APIGroups, Resources: k.Resources, Verbs: []string{"get", "create", "update", "delete"}})
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}}
	for _, o := range []client.Object{account, role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}} {
		must(t, suite.Hub.Create(ctx, o))
	}
}

func operatorReady(ctx context.Context, name string) error {
	var o hubv1.FederatedOperator
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &o); err != nil {
		return err
	}
	if o.Status.Total != 1 || o.Status.Ready != 1 {
		return fmt.Errorf("the operator %s is ready on %d of %d clusters: %+v, %+v", name, o.Status.Ready, o.Status.Total, o.Status.NotReady, o.Status.Conditions)
	}
	return nil
}

// statusSays returns nil if the output of hansectl status for an object contains all texts.
func statusSays(ctx context.Context, o *unstructured.Unstructured, texts ...string) error {
	out, err := suite.Hansectl(ctx, "status", strings.ToLower(o.GetKind()), o.GetName(), "-n", o.GetNamespace())
	for _, text := range texts {
		if err == nil && !strings.Contains(out, text) {
			err = fmt.Errorf("hansectl status says %s, want it with %q", out, text)
		}
	}
	return err
}

// verified returns nil if a PEM certificate is for a host and was signed by one of the roots.
func verified(certificate []byte, roots *x509.CertPool, host string) error {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return errors.New("there is no certificate")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	_, err = parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

// operatorIsRemoved deletes the custom resources of an operator, and then the operator. It waits until the member has
// none of its objects.
func operatorIsRemoved(t *testing.T, name string, used []*unstructured.Unstructured, objects ...client.Object) {
	t.Helper()
	ctx := t.Context()
	member := suite.Members[frankfurt]
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := suite.Hub.Delete(ctx, o); err == nil || !strings.Contains(err.Error(), "delete these objects first") {
		t.Fatalf("the deletion of an operator whose kinds are in use answers %v", err)
	}
	for _, u := range used {
		must(t, suite.Hub.Delete(ctx, u))
		eventually(t, func() error { return gone(ctx, member, u) })
	}
	eventually(t, func() error { return suite.Hub.Delete(ctx, o) }) // the hub allows it only when the bindings are gone
	for _, o := range objects {
		eventually(t, func() error { return gone(ctx, member, o) })
	}
}

func gone(ctx context.Context, c client.Client, o client.Object) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is there: %w", o.GetName(), err)
	}
	return nil
}
