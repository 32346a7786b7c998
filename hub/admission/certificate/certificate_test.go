package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hanse-dev/hanse/hub/admission/certificate"
)

const name = "hanse-hub-webhook.hanse-system.svc"

// world has a fake API server with the Secret and the webhook configurations that the chart creates.
type world struct {
	*testing.T
	client client.Client
	clock  *testclock.FakePassiveClock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hanse-system", Name: "hanse-hub-webhook"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hanse-hub"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{
				{Name: "a.hanse.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "hanse-system", Name: "hanse-hub-webhook"}}},
				{Name: "b.hanse.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://hub.example.com:9443/review")}},
			},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hanse-hub"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{
				{Name: "authors.hanse.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "hanse-system", Name: "hanse-hub-webhook"}}},
			},
		},
	).Build()
	return &world{T: t, client: c, clock: testclock.NewFakePassiveClock(time.Now())}
}

// replica returns the Keeper of one replica of the hub, for a certificate with these names.
func (w *world) replica(names ...string) *certificate.Keeper {
	return certificate.New(certificate.Options{
		Reader: w.client, Client: w.client, Configuration: "hanse-hub", Names: names, ReviewPath: "/review", AuthorPath: "/authors", Clock: w.clock,
		Secret: types.NamespacedName{Namespace: "hanse-system", Name: "hanse-hub-webhook"},
	})
}

func (w *world) look(k *certificate.Keeper) *x509.Certificate {
	w.Helper()
	if err := k.Look(w.Context()); err != nil {
		w.Fatal(err)
	}
	served, err := k.GetCertificate(nil)
	if err != nil {
		w.Fatal(err)
	}
	return served.Leaf
}

func (w *world) config() *admissionregistrationv1.ValidatingWebhookConfiguration {
	w.Helper()
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	if err := w.client.Get(w.Context(), types.NamespacedName{Name: "hanse-hub"}, &config); err != nil {
		w.Fatal(err)
	}
	return &config
}

func (w *world) authors() *admissionregistrationv1.MutatingWebhookConfiguration {
	w.Helper()
	var config admissionregistrationv1.MutatingWebhookConfiguration
	if err := w.client.Get(w.Context(), types.NamespacedName{Name: "hanse-hub"}, &config); err != nil {
		w.Fatal(err)
	}
	return &config
}

// trusts fails the test unless the CA of every webhook verifies the certificate for this name and the current time.
func (w *world) trusts(c *x509.Certificate, name string) {
	w.Helper()
	bundles := map[string][]byte{}
	for _, webhook := range w.config().Webhooks {
		bundles[webhook.Name] = webhook.ClientConfig.CABundle
	}
	for _, webhook := range w.authors().Webhooks {
		bundles[webhook.Name] = webhook.ClientConfig.CABundle
	}
	for webhook, bundle := range bundles {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			w.Fatalf("webhook %s has no CA", webhook)
		}
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: w.clock.Now()}); err != nil {
			w.Errorf("webhook %s: %s", webhook, err)
		}
	}
}

func TestNothingIsServedBeforeThereIsACertificate(t *testing.T) {
	w := newWorld(t)
	if _, err := w.replica(name).GetCertificate(&tls.ClientHelloInfo{}); !errors.Is(err, certificate.ErrNone) {
		t.Error(err)
	}
}

func TestReplicasShareACertificate(t *testing.T) {
	w := newWorld(t)
	one, two := w.replica(name), w.replica(name)
	first := w.look(one)
	w.trusts(first, name)
	before, authors := w.config(), w.authors()
	if second := w.look(two); !second.Equal(first) {
		t.Error("the second replica has another certificate")
	}
	w.look(one)
	if diff := cmp.Diff(before, w.config()) + cmp.Diff(authors, w.authors()); diff != "" {
		t.Errorf("it was written although nothing changed:\n%s", diff)
	}
}

func TestACertificateIsRenewedWhileTheOldOneIsServed(t *testing.T) {
	w := newWorld(t)
	one, two := w.replica(name), w.replica(name)
	old := w.look(one)
	w.look(two)
	w.clock.SetTime(w.clock.Now().Add(200 * 24 * time.Hour))
	if !w.look(one).Equal(old) {
		t.Error("it was renewed too early")
	}
	w.clock.SetTime(w.clock.Now().Add(60 * 24 * time.Hour))
	renewed := w.look(one)
	if renewed.Equal(old) {
		t.Fatal("it was not renewed")
	}
	w.trusts(renewed, name)
	w.trusts(old, name) // the other replica still serves the old certificate
	if !w.look(two).Equal(renewed) {
		t.Error("the other replica has not taken it")
	}
	w.clock.SetTime(w.clock.Now().Add(300 * 24 * time.Hour))
	w.trusts(w.look(one), name)
	if n := strings.Count(string(w.config().Webhooks[0].ClientConfig.CABundle), "BEGIN CERTIFICATE"); n != 2 {
		t.Errorf("%d CAs are trusted, want the new one and the one before", n)
	}
}

func TestChangesOfOthersToTheWebhookConfigurationAreReverted(t *testing.T) {
	w := newWorld(t)
	one := w.replica(name)
	first := w.look(one)
	config := w.config()
	config.Webhooks[0].ClientConfig.CABundle = nil
	config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "c.hanse.dev"})
	if err := w.client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if !w.look(one).Equal(first) {
		t.Error("it has another certificate now")
	}
	w.trusts(first, name)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hanse-system", Name: "hanse-hub-webhook"}}
	if err := w.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.trusts(w.look(one), name)
}

func TestACertificateForOtherNamesIsReplaced(t *testing.T) {
	w := newWorld(t)
	first := w.look(w.replica(name))
	both := w.look(w.replica(name, "hub.example.com"))
	if both.Equal(first) {
		t.Error("it was kept")
	}
	w.trusts(both, name)
	w.trusts(both, "hub.example.com")
}

func TestASecretThatAUserDeletesIsCreatedAgain(t *testing.T) {
	lose := func(w *world) {
		t.Helper()
		if err := w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hanse-system", Name: "hanse-hub-webhook"}}); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	one := w.replica(name)
	first := w.look(one)
	path, sessions := *w.config().Webhooks[1].ClientConfig.URL, key(t, one)
	lose(w)
	if again := w.look(one); !again.Equal(first) || *w.config().Webhooks[1].ClientConfig.URL != path || string(key(t, one)) != string(sessions) {
		t.Error("a process that knows the content writes another one")
	}
	if other := w.look(w.replica(name)); !other.Equal(first) {
		t.Error("another replica does not read the certificate")
	}

	lose(w) // and then all processes start again
	fresh := w.look(w.replica(name))
	if fresh.Equal(first) {
		t.Error("a process without a Secret serves the certificate of another one")
	}
	w.trusts(fresh, name)
	w.trusts(w.look(one), name)
}

func key(t *testing.T, k *certificate.Keeper) []byte {
	t.Helper()
	out, err := k.SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWithoutAConfigurationItServesAndSaysSoOnce(t *testing.T) {
	for kind, of := range map[string]func(*world) client.Object{
		"ValidatingWebhookConfiguration": func(w *world) client.Object { return w.config() },
		"MutatingWebhookConfiguration":   func(w *world) client.Object { return w.authors() },
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			config := of(w)
			if err := w.client.Delete(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			var reported []string
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { reported = append(reported, args) }, funcr.Options{}))
			one := w.replica(name)
			looks := func() {
				t.Helper()
				for range 2 {
					if err := one.Look(ctx); err != nil {
						t.Fatal(err)
					}
				}
			}
			looks()
			if _, err := one.GetCertificate(nil); err != nil {
				t.Error(err)
			}
			if len(reported) != 1 || !strings.Contains(reported[0], "There is no "+kind) || !strings.Contains(reported[0], "hanse-hub") {
				t.Errorf("said %q, want one line that names the configuration", reported)
			}

			config.SetResourceVersion("")
			if err := w.client.Create(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			looks()
			w.trusts(w.look(one), name)
			if err := w.client.Delete(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			looks()
			if len(reported) != 2 {
				t.Errorf("said %q, want another line after it was taken away again", reported)
			}
		})
	}
}

// unreadable returns a replica that cannot read webhook configurations of one kind.
func (w *world) unreadable(config client.Object) *certificate.Keeper {
	return certificate.New(certificate.Options{
		Reader: interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if reflect.TypeOf(o) == reflect.TypeOf(config) {
					return errors.New("the server is starting")
				}
				return c.Get(ctx, key, o, opts...)
			},
		}), Client: w.client, Configuration: "hanse-hub", Names: []string{name}, Clock: w.clock,
		Secret: types.NamespacedName{Namespace: "hanse-system", Name: "hanse-hub-webhook"},
	})
}

func TestAConfigurationOfReviewsThatCannotBeReadIsWaitedFor(t *testing.T) {
	one := newWorld(t).unreadable(&admissionregistrationv1.ValidatingWebhookConfiguration{})
	if err := one.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "the server is starting") {
		t.Errorf("got %v", err)
	}
	if _, err := one.GetCertificate(nil); !errors.Is(err, certificate.ErrNone) {
		t.Errorf("got %v: it is served although nobody may trust it", err)
	}
}

func TestAConfigurationOfAuthorsThatCannotBeReadDelaysNoReview(t *testing.T) {
	w := newWorld(t)
	one := w.unreadable(&admissionregistrationv1.MutatingWebhookConfiguration{})
	err := one.Look(t.Context())
	if err == nil || !strings.Contains(err.Error(), "reading MutatingWebhookConfiguration hanse-hub: the server is starting") {
		t.Errorf("got %v", err)
	}
	if _, err := one.GetCertificate(nil); err != nil {
		t.Error(err)
	}
	if len(w.config().Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Error("the webhook of reviews has no CA")
	}
}

// TestACertificateWithoutAWebhook runs a replica that serves only metrics, and another replica that serves metrics and
// the webhook.
func TestACertificateWithoutAWebhook(t *testing.T) {
	w := newWorld(t)
	const metrics = "hanse-hub-metrics.hanse-system.svc"
	alone := certificate.New(certificate.Options{
		Reader: w.client, Client: w.client, Names: []string{metrics}, Clock: w.clock,
		Secret: types.NamespacedName{Namespace: "hanse-system", Name: "hanse-hub-webhook"},
	})
	if err := w.look(alone).VerifyHostname(metrics); err != nil {
		t.Error(err)
	}
	if ca := w.config().Webhooks[0].ClientConfig.CABundle; len(ca) > 0 {
		t.Errorf("the configuration was written: %s", ca)
	}
	both := w.look(w.replica(name, metrics)) // creates a new certificate with both names
	w.trusts(both, name)
	w.trusts(both, metrics)
	if again := w.look(alone); !again.Equal(both) {
		t.Errorf("the replica for metrics serves one for %v", again.DNSNames)
	}
}
