package pods

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// consoleIsOpened enables the console, and opens a page as a user of hansectl dashboard does.
func consoleIsOpened(t *testing.T) {
	ctx := t.Context()
	helmUpgrade(t, filepath.Join(suite.Charts, "hanse-hub"), "--set", "console.enabled=true")
	must(t, suite.Hub.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "viewer"}}))
	must(t, suite.Hub.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-fleet-view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: "viewer"}},
	}))
	address, token := dashboard(t, hubv1.SystemNamespace+"/viewer")
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	signIn, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/signin", strings.NewReader(url.Values{"token": {token}}.Encode()))
	must(t, err)
	signIn.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signIn.Header.Set("Origin", address)
	answer, err := browser.Do(signIn)
	must(t, err)
	_ = answer.Body.Close()
	eventually(t, func() error { // the API server learns of a new binding by a watch
		answer, err := browser.Get(address)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		page, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(page), "system:serviceaccount:"+hubv1.SystemNamespace+":viewer") {
			return fmt.Errorf("the first page is %s:\n%s", answer.Status, page)
		}
		return nil
	})
}

// dashboard runs hansectl dashboard until the test ends. It returns the address and the token in the command's output.
func dashboard(t *testing.T, account string) (address, token string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(suite.Bin, "hansectl"), "dashboard", "--service-account", account, "--kubeconfig", suite.Hub.Kubeconfig)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the process was killed when the test's context ended
	lines := bufio.NewScanner(out)
	var printed []string
	for token == "" && lines.Scan() {
		printed = append(printed, lines.Text())
		if _, err := fmt.Sscanf(lines.Text(), "The console is at %s", &address); err != nil && len(printed) == 4 {
			token = lines.Text()
		}
	}
	if address == "" || token == "" {
		t.Fatalf("hansectl dashboard prints %q, want an address and a token", printed)
	}
	return address, token
}
