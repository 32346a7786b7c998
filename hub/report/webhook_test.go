package report

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestASlowWebhookOfOneKindDoesNotHoldUpOthers(t *testing.T) {
	w := newWorld(t, "Widget")
	var widgets []*unstructured.Unstructured
	for i := range 2 * workers {
		widgets = append(widgets, w.object(fmt.Sprint("widget-", i), present("a")))
	}
	slow := w.slowWebhook("widgets", widgets[0])
	w.start()
	for _, o := range widgets {
		w.applied(o, "a", hubv1.HealthHealthy, two)
	}
	w.eventually("the first writes to end without an answer", func() (bool, string) {
		_, ended := slow.calls()
		return ended > 0, "none has ended"
	})
	w.gvk.Kind = "Strict"
	w.applied(w.object("web", present("a")), "a", hubv1.HealthHealthy, two)
	w.until("the status of another kind", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))
	if began, _ := slow.calls(); began > workers+1 {
		t.Errorf("the status of another kind waited for %d calls of the webhook", began)
	}
	slow.release()
	w.gvk.Kind = "Widget"
	w.eventually("all statuses of the slow kind", func() (bool, string) {
		list := w.objects()
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return false, err.Error()
		}
		with := 0
		for _, o := range list.Items {
			if o.Object["status"] != nil {
				with++
			}
		}
		return with == len(widgets), fmt.Sprint(with, " have a status")
	})
}

// slowWebhook is a user's validating webhook that answers no call until the test releases it.
type slowWebhook struct {
	released     chan struct{}
	tried        atomic.Bool // whether a dry run has called the webhook, which answers it at once
	began, ended atomic.Int32
	release      func()
}

// slowWebhook registers a webhook for the status of one resource in the world's namespace. It returns once the API
// server calls the webhook.
func (w *world) slowWebhook(resource string, o *unstructured.Unstructured) *slowWebhook {
	w.t.Helper()
	s := &slowWebhook{released: make(chan struct{})}
	s.release = sync.OnceFunc(func() { close(s.released) })
	server := httptest.NewTLSServer(s)
	w.t.Cleanup(func() {
		s.release()
		server.Close()
	})
	name := "slow." + w.namespace + ".test.hanse.dev"
	none, ignore := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &ignore, TimeoutSeconds: ptr.To[int32](30),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{w.gvk.Group}, APIVersions: []string{"*"}, Resources: []string{resource + "/status"}},
			}},
		}},
	}
	if err := w.client.Create(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.client.Delete(w.t.Context(), config) })
	w.eventually("the webhook to be called", func() (bool, string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":9}}`))
		err := w.client.Status().Patch(w.t.Context(), o.DeepCopy(), patch, client.DryRunAll)
		return s.tried.Load() && err == nil, fmt.Sprint(err)
	})
	return s
}

// calls returns how many calls have begun and how many have ended.
func (s *slowWebhook) calls() (began, ended int) { return int(s.began.Load()), int(s.ended.Load()) }

// ServeHTTP implements http.Handler.
func (s *slowWebhook) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	if ptr.Deref(review.Request.DryRun, false) {
		s.tried.Store(true)
	} else {
		s.hold(req.Context())
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(rw).Encode(review)
}

func (s *slowWebhook) hold(ctx context.Context) {
	s.began.Add(1)
	defer s.ended.Add(1)
	select {
	case <-s.released:
	case <-ctx.Done():
	}
}
