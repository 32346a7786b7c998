package certificate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/hanse-dev/hanse/hub/admission/certificate"
)

// path returns the path at which the API server calls the webhook. It fails the test unless the service and the URL in
// the ValidatingWebhookConfiguration have the same path.
func (w *world) path() string {
	w.Helper()
	webhooks := w.config().Webhooks
	path := ptr.Deref(webhooks[0].ClientConfig.Service.Path, "")
	if url := ptr.Deref(webhooks[1].ClientConfig.URL, ""); url != "https://hub.example.com:9443"+path {
		w.Errorf("the service is called by %s, and the URL is %s", path, url)
	}
	authors := ptr.Deref(w.authors().Webhooks[0].ClientConfig.Service.Path, "")
	if authors != strings.Replace(path, "/review/", "/authors/", 1) {
		w.Errorf("reviews are at %s, and authors are recorded at %s", path, authors)
	}
	return path
}

// answers returns the status code of a replica's answer at a path.
func answers(k *certificate.Keeper, path string) int {
	got := httptest.NewRecorder()
	k.Guard("/review", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).
		ServeHTTP(got, httptest.NewRequest(http.MethodPost, path, nil))
	return got.Code
}

func TestOnlyWhoKnowsThePathIsAnswered(t *testing.T) {
	w := newWorld(t)
	one, two := w.replica(name), w.replica(name)
	if got := answers(one, "/review/"); got != http.StatusNotFound {
		t.Errorf("before it has a path it answers %d", got)
	}
	w.look(one)
	w.look(two)
	path := w.path()
	part, ok := strings.CutPrefix(path, "/review/")
	if !ok || len(part) < 26 {
		t.Fatalf("the path is %q", path)
	}
	if faults := validation.IsDNS1123Subdomain(part); len(faults) > 0 {
		t.Errorf("API servers do not take %q in the path of a service: %s", part, faults)
	}
	for _, replica := range []*certificate.Keeper{one, two} {
		for at, want := range map[string]int{
			path: http.StatusOK, "/review": http.StatusNotFound, "/review/": http.StatusNotFound, "/": http.StatusNotFound, path + "/": http.StatusNotFound,
			"/authors/" + part: http.StatusNotFound,
			path[:len(path)-1]: http.StatusNotFound, path[:len(path)-1] + "_": http.StatusNotFound, strings.ToUpper(path): http.StatusNotFound,
		} {
			if got := answers(replica, at); got != want {
				t.Errorf("at %s it answers %d, want %d", at, got, want)
			}
		}
	}
}

func TestThePathIsKept(t *testing.T) {
	w := newWorld(t)
	one := w.replica(name)
	old := w.look(one)
	path := w.path()

	w.clock.SetTime(w.clock.Now().Add(260 * 24 * time.Hour))
	if w.look(one).Equal(old) {
		t.Fatal("the certificate was not renewed")
	}
	if got := w.path(); got != path {
		t.Errorf("after a renewal it is %s, want %s", got, path)
	}

	// A new version of the chart restores its own values.
	config := w.config()
	config.Webhooks[0].ClientConfig.Service.Path, config.Webhooks[1].ClientConfig.URL = nil, ptr.To("https://hub.example.com:9443/review")
	if err := w.client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	w.look(one)
	if got := w.path(); got != path {
		t.Errorf("after an upgrade it is %s, want %s", got, path)
	}
	restarted := w.replica(name)
	w.look(restarted)
	if got := answers(restarted, path); got != http.StatusOK {
		t.Errorf("a replica that has started answers %d", got)
	}
}

func TestASecretWithoutAPathThatCannotBeGuessedGetsOne(t *testing.T) {
	for name, part := range map[string]string{"none": "", "a short one": "abc", "one that is no step of a path": strings.Repeat("../", 20), "one in capitals": strings.Repeat("A", 26)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := w.replica("hanse-hub-webhook.hanse-system.svc")
			certificate := w.look(one)
			before := w.path()
			var secret corev1.Secret
			if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "hanse-system", Name: "hanse-hub-webhook"}, &secret); err != nil {
				t.Fatal(err)
			}
			if secret.Data["path"] = []byte(part); part == "" {
				delete(secret.Data, "path")
			}
			if err := w.client.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			if !w.look(one).Equal(certificate) {
				t.Error("the certificate was replaced, too")
			}
			after := w.path()
			if after == before || len(after) < len("/review/")+26 {
				t.Errorf("it is %s, and was %s", after, before)
			}
			if answers(one, after) != http.StatusOK || answers(one, before) != http.StatusNotFound {
				t.Error("it is not the new one that is answered, and that alone")
			}
		})
	}
}
