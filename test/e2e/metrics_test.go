package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestMetricsAreForThoseWhoMayReadThem serves metrics as the chart configures it: over TLS with a certificate of the
// webhook's CA, and only to users with the chart's reader role.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	ctx := t.Context()
	h, err := suite.StartHub(ctx, "hub-metrics", "--metrics-secure=true")
	if h != nil {
		t.Cleanup(func() { _ = h.Stop() })
	}
	must(t, err)
	for _, name := range []string{"scraper", "stranger"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}}
		must(t, suite.Hub.Create(ctx, account))
	}
	must(t, suite.Hub.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-hub-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: "scraper"}},
	}))
	url := strings.Replace(h.Metrics, "http://", "https://", 1)

	tests := map[string]struct {
		account string // empty means no token
		want    int
	}{
		"a bound account reads them":             {account: "scraper", want: http.StatusOK},
		"an account without the role is refused": {account: "stranger", want: http.StatusForbidden},
		"nobody in particular is turned away":    {want: http.StatusUnauthorized},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			must(t, err)
			if tc.account != "" {
				token, err := suite.Hub.Token(t.Context(), tc.account)
				must(t, err)
				req.Header.Set("Authorization", "Bearer "+token)
			}
			// The new role binding and the certificate with the DNS name for metrics take effect after a moment.
			eventually(t, normal, func() error {
				scraper, err := metricsClient(t.Context())
				if err != nil {
					return err
				}
				defer scraper.CloseIdleConnections()
				res, err := scraper.Do(req)
				if err != nil {
					return err
				}
				defer func() { _ = res.Body.Close() }()
				page, err := io.ReadAll(res.Body)
				if err != nil {
					return err
				}
				if res.StatusCode != tc.want || (tc.want == http.StatusOK) != strings.Contains(string(page), "go_goroutines") {
					return fmt.Errorf("got %s, want %d: %.200s", res.Status, tc.want, page)
				}
				return nil
			})
		})
	}
}

// metricsClient returns a client that verifies the server as the chart's ServiceMonitor does: by the CA in the Secret,
// which it reads again in each call, and by the DNS name of the Service.
func metricsClient(ctx context.Context) (*http.Client, error) {
	var secret corev1.Secret
	if err := suite.Hub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-webhook"}, &secret); err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, errors.New("the Secret has no CA yet")
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: "hanse-hub-metrics.hanse-system.svc",
	}}}, nil
}
