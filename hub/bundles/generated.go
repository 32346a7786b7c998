package bundles

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/child"
)

// expiresSoon is the time before the end of a kept certificate at which the condition CertificateExpiresSoon begins.
const expiresSoon = 30 * 24 * time.Hour

// kept are the values that the chart of an operator generated, and their Secret.
type kept struct {
	child.StoredValues
	// secret stores the values. It is not nil if it must be written before the objects are stored.
	secret *corev1.Secret
	// first is the field of the chart whose kept certificate expires first, and expires the time. expires is zero if the
	// chart has no such field.
	first   string
	expires time.Time
}

// keepValues puts the kept values of an operator into the objects of its rendered chart. It returns the values to keep
// from now on, and writes nothing. It returns nil if the chart generates no values and none are kept. The error may be
// a *refusal. If the reason is that the kept values do not suit the chart, keepValues returns them, too.
func (c *Controller) keepValues(ctx context.Context, o *hubv1.FederatedOperator, rendered *child.Rendered) (*kept, error) {
	is := o.Status.GeneratedValues
	if len(rendered.Generated) == 0 && is == nil {
		return nil, nil
	}
	out, version, err := c.readKept(ctx, o)
	if err != nil {
		return nil, err
	}
	changed := false
	if out.ID == "" && is != nil { // the Secret was deleted or edited, but the stored objects have its values
		earlier, complete := rendered.ValuesIn(func(id hubv1.ObjectIdentity) *unstructured.Unstructured { return c.storedFor(o, id) })
		if !complete && !regenerates(o, is.ID) {
			return nil, wouldChange(o, fmt.Errorf("the Secret %s with the kept values is gone, and the stored objects do not have all of them", keptKey(c.opts.Namespace, o)))
		}
		out.ID, out.Values, changed = is.ID, earlier, true
	}
	if out.ID == "" || regenerates(o, out.ID) {
		out.ID, out.Values, changed = strings.ToLower(rand.Text()), nil, true
	}
	next, err := rendered.Keep(out.Values)
	if err != nil {
		next = out.Values
	}
	if field, at, found := rendered.FirstExpiry(next); found {
		out.first, out.expires = field.String(), at
	}
	switch {
	case errors.Is(err, child.ErrValuesWouldChange):
		return out, wouldChange(o, err)
	case err != nil:
		return nil, invalidChart(err)
	case len(next) == 0:
		return nil, nil
	}
	changed = changed || len(next) != len(out.Values)
	out.Operator, out.Values = o.UID, next
	if changed {
		if out.secret, err = out.Secret(keptKey(c.opts.Namespace, o)); err != nil {
			return nil, invalidChart(err)
		}
		out.secret.ResourceVersion = version
	}
	return out, nil
}

// storedFor returns the stored object of an operator. It returns nil if the operator has no such object.
func (c *Controller) storedFor(o *hubv1.FederatedOperator, id hubv1.ObjectIdentity) *unstructured.Unstructured {
	before, ok := c.opts.Templates.Get(id)
	if !ok || hubv1.BundleOf(before) == nil || hubv1.BundleOf(before).BundleReference != hubv1.ReferenceTo(o) {
		return nil
	}
	return before
}

// regenerates reports whether a user has requested to replace the kept values with this id.
func regenerates(o *hubv1.FederatedOperator, id string) bool {
	return o.Annotations[hubv1.RegenerateValuesAnnotation] == id
}

// wouldChange returns a refusal for a chart that does not suit the kept values.
func wouldChange(o *hubv1.FederatedOperator, err error) error {
	return &refusal{hubv1.ReasonValuesWouldChange, fmt.Sprintf(
		"%v: change the values of the chart so that it generates the same fields as before, or run hansectl operators regenerate %s, which replaces all kept values; the stored objects stay", err, o.Name)}
}

func keptKey(namespace string, o hubv1.BundleObject) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: hubv1.ReferenceTo(o).Identity().GeneratedValuesName()}
}

// readKept reads the kept values of an operator, and the resourceVersion of their Secret. ID is empty if there are
// none, if a user has edited the Secret so that it cannot be read, or if the values belong to an earlier operator of
// the same name. The resourceVersion is empty if the Secret does not exist. The error is a *refusal if a Secret of
// another type has its name, because the type of a Secret never changes.
func (c *Controller) readKept(ctx context.Context, o *hubv1.FederatedOperator) (out *kept, version string, err error) {
	key := keptKey(c.opts.Namespace, o)
	var secret corev1.Secret
	switch err := c.opts.APIReader.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
		return &kept{}, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("reading the kept values in Secret %s: %w", key, err)
	case secret.Type != hubv1.GeneratedValuesSecretType:
		return nil, "", &refusal{hubv1.ReasonValuesNotKept, fmt.Sprintf(
			"the hub keeps the generated values of the chart in Secret %s of the type %s, but a Secret of the type %s has this name: delete it", key, hubv1.GeneratedValuesSecretType, secret.Type)}
	}
	out = &kept{}
	if err := out.Read(&secret); err != nil || out.Operator != o.UID {
		out = &kept{}
	}
	return out, secret.ResourceVersion, nil
}

// writeKept stores the kept values of an operator, if they changed. It must be called before the objects with these
// values are stored, so that a hub that stops in between uses the same values again.
func (c *Controller) writeKept(ctx context.Context, k *kept) error {
	if k == nil || k.secret == nil {
		return nil
	}
	var err error
	if k.secret.ResourceVersion == "" {
		err = c.opts.Client.Create(ctx, k.secret)
	} else {
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": k.secret.ResourceVersion}, "data": k.secret.Data})
		if err == nil {
			err = c.opts.Client.Patch(ctx, k.secret, client.RawPatch(types.MergePatchType, patch))
		}
	}
	if err != nil {
		return fmt.Errorf("keeping the generated values in Secret %s: %w", client.ObjectKeyFromObject(k.secret), err)
	}
	return nil
}

// dropKept deletes the kept values of a deleted operator. Call it before the last stored object is forgotten, because
// after a restart the hub finds a deleted operator by its stored objects.
func (c *Controller) dropKept(ctx context.Context, of hubv1.BundleReference) error {
	if of.Kind != hubv1.FederatedOperatorKind {
		return nil
	}
	key := types.NamespacedName{Namespace: c.opts.Namespace, Name: of.Identity().GeneratedValuesName()}
	var secret corev1.Secret
	if err := c.opts.APIReader.Get(ctx, key, &secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if secret.Type != hubv1.GeneratedValuesSecretType {
		return nil // the hub did not make it
	}
	live := of.New()
	if err := c.opts.APIReader.Get(ctx, of.Key(), live); err == nil && live.GetDeletionTimestamp() == nil {
		return errBehind // a new operator of this name may use the values
	} else if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s uncached: %w", of, err)
	}
	err := c.opts.Client.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the kept values in Secret %s: %w", key, err)
	}
	return nil
}

// describe sets the kept values in the status of an operator, and the condition CertificateExpiresSoon. It returns true
// if the status has changed. k is nil if no values are kept.
func (k *kept) describe(o *hubv1.FederatedOperator, now time.Time) bool {
	before := o.Status.GeneratedValues
	o.Status.GeneratedValues = nil
	changed := (before == nil) != (k == nil)
	if k == nil {
		return meta.RemoveStatusCondition(&o.Status.Conditions, hubv1.ConditionCertificateExpiresSoon) || changed
	}
	is := &hubv1.GeneratedValuesStatus{ID: k.ID, Values: int32(len(k.Values))} //nolint:gosec // a Secret has at most 1 MiB
	if !k.expires.IsZero() {
		is.CertificateExpires = &metav1.Time{Time: k.expires.Truncate(time.Second)}
	}
	o.Status.GeneratedValues = is
	changed = changed || before.ID != is.ID || before.Values != is.Values || !before.CertificateExpires.Equal(is.CertificateExpires)
	if k.expires.IsZero() || now.Before(k.expires.Add(-expiresSoon)) {
		return meta.RemoveStatusCondition(&o.Status.Conditions, hubv1.ConditionCertificateExpiresSoon) || changed
	}
	return meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
		Type: hubv1.ConditionCertificateExpiresSoon, Status: metav1.ConditionTrue, Reason: hubv1.ReasonCertificateExpires, ObservedGeneration: o.Generation,
		Message: fmt.Sprintf("the certificate that is kept for %s, ends at %s: run hansectl operators regenerate %s, which replaces all kept values",
			k.first, k.expires.UTC().Format(time.RFC3339), o.Name),
	}) || changed
}

// untilExpiresSoon returns the time until the condition CertificateExpiresSoon of an operator begins. It returns 0 if
// it has begun, or never begins.
func untilExpiresSoon(b hubv1.BundleObject, now time.Time) time.Duration {
	o, ok := b.(*hubv1.FederatedOperator)
	if !ok || o.Status.GeneratedValues == nil || o.Status.GeneratedValues.CertificateExpires == nil {
		return 0
	}
	return max(o.Status.GeneratedValues.CertificateExpires.Add(-expiresSoon).Sub(now), 0)
}
