package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hanse-dev/hanse/view/wire"
)

func TestTheTokenIsThatOfTheUsersRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("of-a-file\n"), 0o600))
	tests := map[string]struct {
		config rest.Config
		window window
		want   string
		says   string // part of the error
	}{
		"of the kubeconfig":      {rest.Config{BearerToken: "mine"}, window{}, "mine", ""},
		"of a file of that":      {rest.Config{BearerTokenFile: file}, window{}, "of-a-file", ""},
		"of --token-file":        {rest.Config{BearerToken: "mine"}, window{tokenFile: file}, "of-a-file", ""},
		"of a file that is gone": {rest.Config{}, window{tokenFile: "nowhere"}, "", "reading --token-file"},
		"of a plugin": {rest.Config{ExecProvider: &clientcmdapi.ExecConfig{
			Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			Args: []string{"-c", `echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of-a-plugin"}}'`},
		}}, window{}, "of-a-plugin", ""},
		"of a user with a certificate": {rest.Config{}, window{}, "", "kubectl create token SERVICEACCOUNT --audience hanse-hub"},
		"of a user with a password":    {rest.Config{Username: "me", Password: "x"}, window{}, "", "your kubeconfig has no bearer token"},
		"of somebody else":             {rest.Config{BearerToken: "mine", Impersonate: rest.ImpersonationConfig{UserName: "other"}}, window{}, "", "pass a token of that user"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.window.token(&tc.config)
			if tc.says != "" {
				refused(t, err, tc.says)
				return
			}
			must(t, err)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheHubIsAskedByItsAPIServer acts as the API server, which passes a request on to a Service without the header
// Authorization.
func TestTheHubIsAskedByItsAPIServer(t *testing.T) {
	const proxied = "/api/v1/namespaces/hanse-system/services/https:hanse-hub-view:8444/proxy"
	answers := map[string]string{
		"cn-sha-1": `{"before": {"kind": "Widget"}}`,
		"eu-fra-1": `{"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden", "message": "user \"me\" needs the verb view on the MemberCluster"}`,
		"ap-se-1":  `{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no", "details": {"kind": "services", "name": "x"}}`,
		"us-1":     `{"kind": "Status", "code": 404, "reason": "NotFound", "message": "no", "details": {"kind": "services", "name": "x"}}`,
		"us-2":     `<html>`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.EscapedPath(), proxied)
		if !ok || r.URL.Query().Get("namespace") != "shop" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer mine" || r.Header.Get(wire.TokenHeader) != "mine" {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
		text := answers[strings.Split(path, "/")[2]]
		var status struct{ Code int }
		if json.Unmarshal([]byte(text), &status) != nil {
			status.Code = http.StatusBadGateway
		}
		if status.Code != 0 {
			w.WriteHeader(status.Code)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	flags := genericclioptions.NewConfigFlags(false)
	token, none := "mine", filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(none, nil, 0o600))
	insecure := true
	flags.APIServer, flags.BearerToken, flags.KubeConfig, flags.Insecure = &server.URL, &token, &none, &insecure

	v, err := (&window{}).open(t.Context(), &hub{flags: flags}, nil)
	must(t, err)
	var answer wire.DiffAnswer
	must(t, v.Ask(t.Context(), "cn-sha-1", wire.Diff, "shop", wire.DiffRequest{}, &answer))
	if diff := cmp.Diff(wire.DiffAnswer{Before: map[string]any{"kind": "Widget"}}, answer); diff != "" {
		t.Error(diff)
	}
	for cluster, says := range map[string]string{
		"eu-fra-1": "needs the verb view", "ap-se-1": "ask for the Role hanse-view in namespace hanse-system", "us-1": "view.enabled", "us-2": "502",
	} {
		refused(t, v.Ask(t.Context(), cluster, wire.Diff, "shop", wire.DiffRequest{}, &answer), says)
	}
	_, err = (&window{endpoint: "http://hub:8444"}).open(t.Context(), &hub{flags: flags}, nil)
	refused(t, err, "want https://HOST:PORT")
	exits(t, err, 2)
}
