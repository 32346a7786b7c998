package events

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

// Entries of a sink's Secret. Only an entry of this name is read: its name says that it is meant for a sink. Otherwise,
// the author of a sink could send other Secrets of the hub to a receiver.
const (
	signingKeyEntry = "signingKey"
	urlEntry        = "url"
	routingKeyEntry = "routingKey"
)

const maxURLBytes = 1024

var (
	// errSigningKey is the error for a sink whose signing key is missing or invalid.
	errSigningKey = errors.New("no signing key")
	// errSecret is the error for a sink whose Secret lacks the entry for its format.
	errSecret = errors.New("no usable Secret")
	errCA     = errors.New("spec.caBundle is not the base64 of certificates in PEM")
	errURL    = errors.New("the URL is not https://HOST/PATH, without user, password and fragment")

	// routingKey has the integration keys of PagerDuty, which have 32 characters.
	routingKey = regexp.MustCompile(`^[A-Za-z0-9]{20,64}$`)
)

// target is the receiver of a sink's messages, with the URL and the secrets from one generation of the sink's spec.
type target struct {
	generation int64
	format     hubv1.NotificationFormat
	url, ca    string
	keys       [][]byte // for CloudEvents
	routingKey string   // for PagerDuty
}

// target returns the receiver that the current spec of a sink describes. If only the Secret cannot be read, the result
// still has the generation of the spec.
func (n *Notifier) target(ctx context.Context, name string, uid types.UID) (target, error) {
	var sink hubv1.NotificationSink
	if err := n.opts.Client.Get(ctx, types.NamespacedName{Name: name}, &sink, client.UnsafeDisableDeepCopy); err != nil {
		return target{}, fmt.Errorf("reading NotificationSink %s: %w", name, err)
	}
	if sink.UID != uid {
		return target{}, fmt.Errorf("NotificationSink %s was deleted and created again", name)
	}
	to := target{generation: sink.Generation, format: sink.Spec.Format, url: sink.Spec.URL}
	ca, err := base64.StdEncoding.DecodeString(sink.Spec.CABundle)
	if err != nil {
		return to, errCA
	}
	to.ca = string(ca)
	if sink.Spec.SecretRef.Name == "" {
		return to, nil
	}
	missing := errSecret
	if to.format == hubv1.FormatCloudEvents {
		missing = errSigningKey
	}
	of := types.NamespacedName{Namespace: n.opts.Namespace, Name: sink.Spec.SecretRef.Name}
	var secret corev1.Secret
	switch err := n.opts.Client.Get(ctx, of, &secret, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return to, fmt.Errorf("%w: Secret %s does not exist", missing, of)
	case err != nil:
		return to, fmt.Errorf("reading Secret %s: %w", of, err)
	}
	if entry, err := to.read(&secret, sink.Spec.SecretRef.Key); err != nil {
		return to, fmt.Errorf("%w: key %s of Secret %s: %w", missing, entry, of, err)
	}
	return to, nil
}

// read reads the entry of a Secret that the format needs. It returns the name of the entry. key is the name in the spec
// of a sink for CloudEvents.
func (to *target) read(secret *corev1.Secret, key string) (entry string, err error) {
	switch to.format {
	case hubv1.FormatSlack, hubv1.FormatTeams:
		text := strings.TrimSpace(string(secret.Data[urlEntry]))
		if !isReceiver(text) {
			return urlEntry, errURL
		}
		to.url = text
		return urlEntry, nil
	case hubv1.FormatPagerDuty:
		text := strings.TrimSpace(string(secret.Data[routingKeyEntry]))
		if !routingKey.MatchString(text) {
			return routingKeyEntry, errors.New("must be an integration key of PagerDuty, with letters and digits only")
		}
		to.routingKey = text
		if to.url == "" {
			to.url = format.DefaultPagerDutyURL
		}
		return routingKeyEntry, nil
	}
	if key == "" {
		key = signingKeyEntry
	}
	to.keys, err = parseKeys(secret.Data[key])
	return key, err
}

// isReceiver reports whether a text is a URL that the field url of a sink might have.
func isReceiver(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURLBytes && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}
