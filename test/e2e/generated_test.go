package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

// authority is a template with a CA, a certificate of the CA, and the version of the chart.
const authority = `{{- $ca := genCA "rotors" 365 }}
{{- $cert := genSignedCert "rotors" nil (list "rotors.svc") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: authority, annotations: {version: "{{ .Chart.Version }}"}}
data: {ca.crt: {{ $ca.Cert | b64enc }}, tls.crt: {{ $cert.Cert | b64enc }}, tls.key: {{ $cert.Key | b64enc }}}
`

// chartWithAuthority stores the chart with the template authority in the ConfigMap of this name.
func chartWithAuthority(t *testing.T, name, version string) {
	t.Helper()
	archive := charttest.Archive("rotors", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: rotors\nversion: " + version + "\n", "templates/authority.yaml": authority,
	})
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, BinaryData: map[string][]byte{"rotors.tgz": archive}}
	if err := suite.Hub.Create(t.Context(), m); apierrors.IsAlreadyExists(err) {
		must(t, suite.Hub.Update(t.Context(), m))
	} else {
		must(t, err)
		t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), m) })
	}
}

// authorityOn returns the CA, the certificate and the key on a member. It returns an error if the member does not have
// those of this version of the chart.
func authorityOn(ctx context.Context, member, ns, version string) (string, error) {
	var s corev1.Secret
	if err := suite.Members[member].Get(ctx, client.ObjectKey{Namespace: ns, Name: "authority"}, &s); err != nil {
		return "", err
	}
	if is := s.Annotations["version"]; is != version {
		return "", fmt.Errorf("%s has version %s of the chart, want %s", member, is, version)
	}
	return string(s.Data["ca.crt"]) + string(s.Data["tls.crt"]) + string(s.Data["tls.key"]), nil
}

// TestGeneratedValuesStayThroughAnUpgradeARestartAndAReturn installs a chart that generates a CA and a certificate at
// each rendering. All members keep the first ones, until a user requests new ones.
func TestGeneratedValuesStayThroughAnUpgradeARestartAndAReturn(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	serviceAccount(t, hubv1.SystemNamespace, ns, ns)
	chartWithAuthority(t, ns, "1.0.0")
	fop := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	fop.Spec.ServiceAccountName = ns
	fop.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: ns}, Namespace: ns}
	must(t, suite.Hub.Create(ctx, fop))
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind, Name: ns}}
	p.Spec.Clusters, p.Spec.RemovalLimit, p.Spec.AllowEmpty = everyCluster(), manyRemovals, true
	p.Spec.Deletion.WhenDeleted = hubv1.RemovalDelete
	must(t, suite.Hub.Create(ctx, p))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), p) })

	// on returns the values of this version, which are the same on all members.
	on := func(t *testing.T, version string) string {
		t.Helper()
		values := map[string]bool{}
		last := ""
		for _, m := range members {
			eventually(t, joined, func() (err error) { last, err = authorityOn(ctx, m, ns, version); return err })
			values[last] = true
		}
		if len(values) != 1 {
			t.Errorf("the members have %d CAs", len(values))
		}
		return last
	}
	// update stores another version of the chart, and lets the hub read it at once.
	update := func(t *testing.T, version string) {
		t.Helper()
		chartWithAuthority(t, ns, version)
		o := testOperator{}
		o.edit(t, fop, func(s *hubv1.FederatedOperatorSpec) { s.Chart.APIVersions = []string{"example.com/v" + version[:1]} })
	}
	first := on(t, "1.0.0")
	t.Run("an upgrade while the hub is down", func(t *testing.T) {
		must(t, suite.hub.Kill())
		update(t, "2.0.0")
		startHub(t)
		if on(t, "2.0.0") != first {
			t.Error("the CA is another one")
		}
	})
	t.Run("a return to the earlier chart", func(t *testing.T) {
		update(t, "1.0.0")
		if on(t, "1.0.0") != first {
			t.Error("the CA is another one")
		}
	})
	t.Run("a request makes one new CA, on all members", func(t *testing.T) {
		_, err := suite.Hansectl(ctx, "operators", "regenerate", ns, "--yes")
		must(t, err)
		eventually(t, joined, func() error {
			for _, m := range members {
				if is, err := authorityOn(ctx, m, ns, "1.0.0"); err != nil || is == first {
					return errors.Join(fmt.Errorf("%s has the same CA: %t", m, is == first), err)
				}
			}
			return nil
		})
		on(t, "1.0.0")
	})
	t.Run("the kept values go with the operator", func(t *testing.T) {
		must(t, suite.Hub.Delete(ctx, fop))
		key := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.ReferenceTo(fop).Identity().GeneratedValuesName()}
		eventually(t, joined, func() error {
			if err := suite.Hub.Get(ctx, key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("Secret %s is there: %w", key, err)
			}
			return nil
		})
	})
}
