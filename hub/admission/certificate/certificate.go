// Package certificate creates and renews the hub's serving certificate for the webhooks that review policies and record
// their authors, and for the metrics that Prometheus reads. It also creates the secret part of the webhooks' paths,
// which only the API server knows (path.go).
//
// One Secret has the certificate, its CA and the secret part of the paths. All replicas share it. The CA and the paths
// are also in the webhooks of one ValidatingWebhookConfiguration and one MutatingWebhookConfiguration. Every replica
// regularly checks the Secret and the configurations, and adds missing parts. No replica therefore depends on another
// one. If two replicas write at the same time, the API server refuses the second write, and the second replica reads
// the result of the first.
//
//   - The CA signs one certificate. Then the key of the CA is discarded, so that the Secret holds no key that could
//     sign another certificate.
//   - A new certificate has a new CA and is made long before the old certificate ends. The old CA stays in the bundle
//     while it is valid. So a replica may serve the old certificate for a while, and replicas need not switch at the
//     same time.
//   - A certificate is served only after its CA is in the ValidatingWebhookConfiguration. Without a configuration no
//     server calls the webhook, and the certificate is served at once. A user may delete the configuration of a failing
//     webhook, and hubs still start.
//   - The MutatingWebhookConfiguration never delays this. If it cannot be written, authors are not recorded, but
//     policies are reviewed.
//
// The library cert-controller creates and checks certificates. Its control loop is not used. The loop needs the Secret
// as a file, reads every webhook configuration, caches all Secrets of the namespace again, and ends the process if the
// file is late.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// lasts is the lifetime of a certificate and its CA. renewBefore is the remaining lifetime at which a new certificate
	// is made.
	lasts       = 365 * 24 * time.Hour
	renewBefore = 120 * 24 * time.Hour

	caKey = "ca.crt"
)

// ErrNone means that no certificate has been read or created yet.
var ErrNone = errors.New("the hub has no certificate yet")

// Options of a Keeper. The fields Reader, Client, Configuration and Clock are optional; all other fields are required.
type Options struct {
	// Reader reads uncached, Client writes. If they are not set, SetupWithManager takes both from its manager.
	Reader client.Reader
	Client client.Client
	// Secret is the Secret with the certificate. The chart creates it, and the Keeper creates it again after a user has
	// deleted it.
	Secret types.NamespacedName
	// Configuration is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration. It is empty
	// if the hub has no webhooks.
	Configuration string
	// ReviewPath and AuthorPath are the paths of the validating and of the mutating webhook, without the random part.
	ReviewPath, AuthorPath string
	// Names are the DNS names of the hub. The current certificate is kept while it has all of them.
	Names []string
	Clock clock.PassiveClock
}

// Keeper creates and renews the certificate. It runs in every replica.
type Keeper struct {
	options Options
	serving atomic.Pointer[served]
	// unreviewed and unrecorded are true while the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration do
	// not exist. Only log lines depend on them.
	unreviewed, unrecorded atomic.Bool
}

type served struct {
	pair tls.Certificate
	raw  []byte // the certificate as in the Secret
	part string // the random part of the paths
	// sessions is the key with which the console encrypts its sessions.
	sessions []byte
	data     map[string][]byte // the whole content of the Secret
}

// New returns a Keeper that has not read a certificate yet.
func New(o Options) *Keeper {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Keeper{options: o}
}

// SetupWithManager adds the Keeper to the manager, and uses the clients of the manager.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	k.options.Reader, k.options.Client = mgr.GetAPIReader(), mgr.GetClient()
	if err := mgr.Add(k); err != nil {
		return fmt.Errorf("adding the certificate of webhook and metrics: %w", err)
	}
	return nil
}

// GetCertificate returns the current certificate, for a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s := k.serving.Load(); s != nil {
		return &s.pair, nil
	}
	return nil, ErrNone
}

// SessionKey returns the key of the console's sessions, which all replicas share. The error is ErrNone before the first
// read.
func (k *Keeper) SessionKey() ([]byte, error) {
	if s := k.serving.Load(); s != nil {
		return s.sessions, nil
	}
	return nil, ErrNone
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("certificate")
	ctx = ctrl.LoggerInto(ctx, log)
	for {
		pause := pace.LookEvery // look again, because others may have changed the Secret
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			pause = pace.RetryAfter
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				pause = pace.LookEvery / 3
				log.Error(err, "Keeping the certificate of the webhooks")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Look reads the Secret and the webhook configurations once, and adds the certificate, the CA and the paths where they
// are missing.
func (k *Keeper) Look(ctx context.Context) error {
	var secret corev1.Secret
	err := k.options.Reader.Get(ctx, k.options.Secret, &secret)
	missing := apierrors.IsNotFound(err)
	switch {
	case missing:
		secret = k.lost()
	case err != nil:
		return fmt.Errorf("reading Secret %s with the certificate of the webhook: %w", k.options.Secret, err)
	}
	holds, complete := k.holds(secret.Data), hides(secret.Data[pathKey]) && len(secret.Data[sessionKey]) >= sessionKeySize
	if !holds {
		if err := k.renew(&secret); err != nil {
			return fmt.Errorf("making a certificate for %v: %w", k.options.Names, err)
		}
	}
	if !complete {
		fill(secret.Data)
	}
	write := k.options.Client.Update
	if missing {
		ctrl.LoggerFrom(ctx).Info("Creating the missing Secret with the certificate of the webhook", "secret", k.options.Secret)
		write = func(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
			return k.options.Client.Create(ctx, o)
		}
	}
	if missing || !holds || !complete {
		if err := write(ctx, &secret); err != nil {
			return fmt.Errorf("writing Secret %s with the certificate of the webhook: %w", k.options.Secret, err)
		}
	}
	if err := k.injectReviews(ctx, secret.Data); err != nil {
		return err
	}
	return errors.Join(k.serve(secret.Data), k.injectAuthors(ctx, secret.Data))
}

// lost returns the Secret that a user has deleted, with the content that this process has read or written last. Without
// such content, the Secret is empty.
func (k *Keeper) lost() corev1.Secret {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.options.Secret.Namespace, Name: k.options.Secret.Name}, Type: corev1.SecretTypeOpaque}
	if s := k.serving.Load(); s != nil {
		secret.Data = maps.Clone(s.data)
	}
	return secret
}

// holds reports whether the certificate is valid for every name, for longer than renewBefore.
func (k *Keeper) holds(data map[string][]byte) bool {
	at := k.options.Clock.Now().Add(renewBefore)
	for _, name := range k.options.Names {
		if ok, err := rotator.ValidCert(data[caKey], data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], name, &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, at); err != nil || !ok {
			return false
		}
	}
	return true
}

// renew makes a new certificate and writes it into secret. The CA bundle has the new CA first, and then the previous
// CA.
func (k *Keeper) renew(secret *corev1.Secret) error {
	begin := k.options.Clock.Now().Add(-time.Hour)
	maker := rotator.CertRotator{
		CAName: "hanse-hub-ca", CAOrganization: "hanse", DNSName: k.options.Names[0], ExtraDNSNames: k.options.Names[1:],
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	ca, err := maker.CreateCACert(begin, begin.Add(lasts))
	if err != nil {
		return err
	}
	certificate, key, err := maker.CreateCertPEM(ca, begin, begin.Add(lasts))
	if err != nil {
		return err
	}
	before := k.current(secret.Data[caKey])
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[caKey] = append(bytes.Clone(ca.CertPEM), before...)
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = certificate, key
	return nil
}

// current returns the first CA of a bundle, which has signed the current certificate. The result is empty if this CA
// has expired or cannot be read.
func (k *Keeper) current(bundle []byte) []byte {
	block, _ := pem.Decode(bundle)
	if block == nil {
		return nil
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil || k.options.Clock.Now().After(ca.NotAfter) {
		return nil
	}
	return pem.EncodeToMemory(block)
}

// injectReviews writes the CA and the path into every webhook of the ValidatingWebhookConfiguration.
func (k *Keeper) injectReviews(ctx context.Context, data map[string][]byte) error {
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	return k.inject(ctx, &config, &k.unreviewed, "the API server admits policies without a review until the chart is installed again", func() error {
		for i := range config.Webhooks {
			if err := lead(&config.Webhooks[i].ClientConfig, data, k.options.ReviewPath); err != nil {
				return fmt.Errorf("webhook %s: %w", config.Webhooks[i].Name, err)
			}
		}
		return nil
	})
}

// injectAuthors writes the CA and the path into every webhook of the MutatingWebhookConfiguration.
func (k *Keeper) injectAuthors(ctx context.Context, data map[string][]byte) error {
	var config admissionregistrationv1.MutatingWebhookConfiguration
	return k.inject(ctx, &config, &k.unrecorded, "authors of policies are not recorded, as with webhook.authors: false", func() error {
		for i := range config.Webhooks {
			if err := lead(&config.Webhooks[i].ClientConfig, data, k.options.AuthorPath); err != nil {
				return fmt.Errorf("webhook %s: %w", config.Webhooks[i].Name, err)
			}
		}
		return nil
	})
}

// inject reads a configuration, changes it by fill, and writes it. It does nothing if the hub has no webhooks, and only
// logs the effect if the configuration does not exist.
func (k *Keeper) inject(ctx context.Context, config client.Object, missing *atomic.Bool, effect string, fill func() error) error {
	if k.options.Configuration == "" {
		return nil
	}
	kind := reflect.TypeOf(config).Elem().Name()
	err := k.options.Reader.Get(ctx, types.NamespacedName{Name: k.options.Configuration}, config)
	switch {
	case apierrors.IsNotFound(err):
		if !missing.Swap(true) {
			ctrl.LoggerFrom(ctx).Info("There is no "+kind+": "+effect, "configuration", k.options.Configuration)
		}
		return nil
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, k.options.Configuration, err)
	}
	missing.Store(false)
	before, ok := config.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying a %T", config)
	}
	if err := fill(); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, k.options.Configuration, err)
	}
	if equality.Semantic.DeepEqual(before, config) {
		return nil
	}
	if err := k.options.Client.Patch(ctx, config, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the CA and the path into %s %s: %w", kind, k.options.Configuration, err)
	}
	return nil
}

// serve makes GetCertificate and Guard use the certificate and the random part of the paths from the Secret.
func (k *Keeper) serve(data map[string][]byte) error {
	if s := k.serving.Load(); s != nil && bytes.Equal(s.raw, data[corev1.TLSCertKey]) && s.part == string(data[pathKey]) && bytes.Equal(s.sessions, data[sessionKey]) {
		return nil
	}
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("reading the certificate of the webhook: %w", err)
	}
	if pair.Leaf != nil {
		expiry.WithLabelValues().Set(float64(pair.Leaf.NotAfter.Unix()))
	}
	k.serving.Store(&served{pair: pair, raw: data[corev1.TLSCertKey], part: string(data[pathKey]), sessions: data[sessionKey], data: data})
	return nil
}
