package chaos

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hanse-dev/hanse/test/fleet"
)

func TestALiarDamagesAnswersUntilItIsHonestAgain(t *testing.T) {
	const truth = `{"kind":"ConfigMapList","items":[]}`
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, truth)
	}))
	defer member.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, certificateOf(member), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := newLiar(&fleet.Cluster{Name: "member", CAFile: ca, ProxyServer: member.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tc := range []struct{ lie, path, want string }{
		{lie: "", path: "/list", want: truth},
		{lie: "truncated", path: "/list", want: truth[:len(truth)/2]},
		{lie: "html", path: "/list", want: "<html><body>Sign in</body></html>"},
		{lie: "empty", path: "/list", want: "{}"},
		{lie: "empty", path: "/list?watch=true", want: truth},
		{lie: "watch", path: "/list", want: truth},
		{lie: "watch", path: "/list?watch=true", want: truth + "garbage"},
		{lie: "", path: "/list", want: truth},
	} {
		l.lie.Store(tc.lie)
		res, err := l.Client().Get(l.URL + tc.path)
		if err != nil {
			t.Fatalf("%+v: %v", tc, err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), tc.want) || (tc.lie != "watch" && len(body) != len(tc.want)) {
			t.Errorf("lie %q of %s: the answer is %q, %v, want %q", tc.lie, tc.path, body, err, tc.want)
		}
	}
	if res, err := l.Client().Get(l.URL + "/reset"); err == nil {
		_ = res.Body.Close()
		t.Errorf("a connection that the member reset has the answer %s", res.Status)
	}
}

func TestTheMutatorSetsTheFieldThatTheOracleIgnores(t *testing.T) {
	m := newMutator()
	defer m.Close()
	review, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "r"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Client().Post(m.URL, "application/json", bytes.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if a := answer.Response; a == nil || !a.Allowed || a.UID != "r" || !strings.Contains(string(a.Patch), "/spec/note") {
		t.Errorf("the answer is %+v", answer.Response)
	}
	w := object(sized, 1, "")
	w.Object["spec"].(map[string]any)["note"] = "mutated"
	if _, compared := content(w)["note"]; compared {
		t.Error("the oracle compares the field")
	}
}
