package pods

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func chartIsTested(t *testing.T) {
	out, err := suite.HelmCommand(t.Context(), suite.Hub, "test", release, "--namespace", hubv1.SystemNamespace, "--timeout", "2m")
	if err != nil {
		log, _ := suite.Kubectl(t.Context(), suite.Hub, "logs", "hanse-test", "-n", hubv1.SystemNamespace)
		t.Fatalf("%v\n%s", err, log)
	}
	if !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test prints no success:\n%s", out)
	}
}

func webhookRefuses(t *testing.T) {
	err := suite.Hub.Create(t.Context(), &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: loaded, Name: "wrong"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "no.such.group", Kind: "Nothing"}},
			Clusters:          hubv1.ClusterSelection{Expression: "cluster.nonsense("},
		},
	})
	if err == nil || !strings.Contains(err.Error(), "admission webhook") {
		t.Errorf("got %v, want a refusal by the webhook", err)
	}
}

func metricsAreGuarded(t *testing.T) {
	ctx := t.Context()
	stranger := serviceAccountToken(t, "stranger")
	if status, _ := metrics(t, stranger); status != http.StatusForbidden {
		t.Errorf("a client without the right gets %d, want 403", status)
	}
	if status, _ := metrics(t, ""); status != http.StatusUnauthorized {
		t.Errorf("a client without a token gets %d, want 401", status)
	}
	scraper := serviceAccountToken(t, "scraper")
	must(t, suite.Hub.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-hub-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: loaded, Name: "scraper"}},
	}))
	eventually(t, func() error { // the API server learns of a new role by a watch, and the hub asks again after a refusal
		status, page := metrics(t, scraper)
		if status != http.StatusOK || !strings.Contains(page, "\nhanse_") {
			return fmt.Errorf("a client with the right gets %d and %d bytes, want metrics of Hanse", status, len(page))
		}
		return nil
	})
}

func serviceAccountToken(t *testing.T, name string) string {
	t.Helper()
	must(t, suite.Hub.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: loaded, Name: name}}))
	out, err := suite.Kubectl(t.Context(), suite.Hub, "create", "token", name, "-n", loaded)
	must(t, err)
	return strings.TrimSpace(out)
}

// metrics reads the metrics page of the leader, with a client that trusts the CA in the hub's Secret.
func metrics(t *testing.T, token string) (status int, page string) {
	t.Helper()
	var secret corev1.Secret
	must(t, suite.Hub.Get(t.Context(), types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-webhook"}, &secret))
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("the Secret hanse-hub-webhook has no CA")
	}
	port := forward(t, leader(t), 8443)
	clients := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "hanse-hub-metrics.hanse-system.svc", MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%s/metrics", port), nil)
	must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := clients.Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body)
}

// forward forwards a local port to a port of a pod until the test ends. It returns the local port.
func forward(t *testing.T, pod string, port int) string {
	t.Helper()
	bin, err := suite.LabCommand(t.Context(), "build", "--print-bin")
	must(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(bin), "kubectl"), "port-forward", "pod/"+pod, fmt.Sprintf(":%d", port),
		"--address=127.0.0.1", "-n", hubv1.SystemNamespace, "--kubeconfig", suite.Hub.Kubeconfig)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the process was killed when the test's context ended
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	_, rest, found := strings.Cut(line, "127.0.0.1:") // the line has the form: Forwarding from 127.0.0.1:40001 -> 8443
	local, _, _ := strings.Cut(rest, " ")
	if !found {
		t.Fatalf("kubectl port-forward prints %q, want the local port", line)
	}
	return local
}

func viewsAreServed(t *testing.T) {
	ctx := t.Context()
	for _, name := range members {
		out, err := suite.Hansectl(ctx, "get", "configmap", loadedName(0), "-n", loaded, "--cluster", name, "-o", "yaml")
		must(t, err)
		if !strings.Contains(out, "value:") || !strings.Contains(out, loadedName(0)) {
			t.Errorf("the view of the copy on %s is:\n%s", name, out)
		}
	}
}

// operatorActs runs prometheus-operator in a pod on the member with a real node. The hub places the custom resource on
// this member.
func operatorActs(t *testing.T) {
	ctx := t.Context()
	member := suite.Members[frankfurt]
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator")
	must(t, err)
	for crd := range strings.SplitSeq(crds, "\n---\n") {
		must(t, member.ApplyCRD(ctx, []byte(crd), "test"))
		if strings.Contains(crd, "name: prometheuses.monitoring.coreos.com") {
			must(t, suite.Hub.ApplyCRD(ctx, []byte(crd), "test"))
		}
	}
	load(t, frankfurt, "prometheus-operator")
	_, err = suite.Kubectl(ctx, member, "apply", "-f", "testdata/prometheus-operator.yaml")
	must(t, err)
	_, err = suite.Kubectl(ctx, member, "rollout", "status", "deployment/prometheus-operator", "-n", "monitoring", "--timeout=60s")
	must(t, err)
	_, err = suite.Kubectl(ctx, suite.Hub, "apply", "-f", "testdata/prometheus.yaml")
	must(t, err)
	eventually(t, func() error { return statefulSetMade(ctx) })
	eventually(t, func() error {
		out, err := suite.Kubectl(ctx, suite.Hub, "get", "prometheus", "web", "-n", loaded, "-o", "jsonpath={.status}")
		if err != nil {
			return err
		}
		if !strings.Contains(out, "conditions") {
			return fmt.Errorf("the status on the hub is %q, want the operator's conditions", out)
		}
		return nil
	})
}

func statefulSetMade(ctx context.Context) error {
	out, err := suite.Kubectl(ctx, suite.Members[frankfurt], "get", "statefulset", "-n", loaded, "-o", "name")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "statefulset.apps/prometheus-web" {
		return errors.New("the operator has not made the StatefulSet prometheus-web")
	}
	return nil
}
