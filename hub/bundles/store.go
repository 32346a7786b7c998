package bundles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// errBehind means that the API server has a newer state of a bundle or a stored object than the cache.
var errBehind = errors.New("the cache is behind the API server")

// refusal is the reason why the manifests of a bundle are not stored.
type refusal struct{ reason, message string }

// Error implements error.
func (r *refusal) Error() string { return r.message }

// content has the objects that a bundle describes, and data for the status of the bundle.
type content struct {
	objects []*unstructured.Unstructured
	chart   *hubv1.RenderedChart // nil if the objects are not from a chart
	kept    *kept                // nil if the chart generates no values
}

// store brings the stored objects of a bundle to its content, and returns the condition Stored. If one object is
// refused, store changes none of the stored objects, and returns only the kept values of the content.
func (c *Controller) store(ctx context.Context, b hubv1.BundleObject) (metav1.Condition, content, error) {
	has, err := c.read(ctx, b)
	var changed []change
	if err == nil {
		changed, err = c.compare(ctx, b, has.objects)
	}
	if o, ok := b.(*hubv1.FederatedOperator); ok && err == nil {
		err = c.upgradable(ctx, o, has.chart, changed)
	}
	if err == nil && len(changed) > 0 {
		err = c.confirm(ctx, b, changed)
	}
	var set *newSet
	if err == nil {
		set, err = c.setOf(ctx, b, has.objects)
	}
	if err == nil {
		err = c.withinLimit(b, changed)
	}
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return metav1.Condition{
			Type: hubv1.ConditionStored, Status: metav1.ConditionFalse, Reason: refused.reason, Message: hubv1.CutMessage(refused.message, 1024),
		}, content{kept: has.kept}, nil
	}
	if err != nil {
		return metav1.Condition{}, content{}, err
	}
	if err := c.writeKept(ctx, has.kept); err != nil {
		return metav1.Condition{}, content{}, err
	}
	if err := c.writeSet(ctx, b, set); err != nil {
		return metav1.Condition{}, content{}, err
	}
	for _, ch := range changed {
		if err := c.write(ctx, ch); err != nil {
			return metav1.Condition{}, content{}, err
		}
	}
	if err := c.forget(ctx, hubv1.ReferenceTo(b)); err != nil {
		return metav1.Condition{}, content{}, err
	}
	return metav1.Condition{Type: hubv1.ConditionStored, Status: metav1.ConditionTrue, Reason: hubv1.ReasonStored}, has, nil
}

// read returns the content of a bundle. The error is a *refusal if the content is not acceptable.
func (c *Controller) read(ctx context.Context, b hubv1.BundleObject) (has content, err error) {
	in := manifest.Input{Namespace: b.GetNamespace(), Manifests: b.BundleSpec().Manifests, Namespaced: manifest.NamespacedOn(c.opts.Mapper)}
	for _, source := range b.BundleSpec().ConfigMaps {
		m, err := c.configMap(ctx, types.NamespacedName{Namespace: c.home(b), Name: source.Name}, false)
		if err != nil {
			return has, err
		}
		in.ConfigMaps = append(in.ConfigMaps, *m)
	}
	o, isOperator := b.(*hubv1.FederatedOperator)
	in.Operator = isOperator
	if isOperator && o.Spec.Chart != nil {
		if in.Rendered, err = c.renderChart(ctx, o, &has); err != nil {
			return has, err
		}
	}
	has.objects, err = manifest.Read(in)
	if errors.Is(err, manifest.ErrScope) {
		return has, err
	}
	if err != nil {
		return has, &refusal{hubv1.ReasonManifestInvalid, err.Error() + "; the stored objects stay"}
	}
	for _, o := range has.objects {
		if o.GetNamespace() == "" {
			continue
		}
		var ns corev1.Namespace
		if err := c.opts.Client.Get(ctx, types.NamespacedName{Name: o.GetNamespace()}, &ns); apierrors.IsNotFound(err) {
			return has, &refusal{hubv1.ReasonHubNamespaceMissing, fmt.Sprintf(
				"%s: the hub has no namespace %s for the object's binding: create the namespace on the hub", hubv1.IdentityOf(o), o.GetNamespace())}
		} else if err != nil {
			return has, fmt.Errorf("reading namespace %s: %w", o.GetNamespace(), err)
		}
	}
	return has, nil
}

// configMap reads a ConfigMap of a bundle. It returns nil if an optional ConfigMap does not exist. If a required one
// does not exist, the error is a *refusal.
func (c *Controller) configMap(ctx context.Context, key types.NamespacedName, optional bool) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{}
	err := c.opts.APIReader.Get(ctx, key, m)
	switch {
	case apierrors.IsNotFound(err) && optional:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, &refusal{hubv1.ReasonConfigMapMissing, fmt.Sprintf("ConfigMap %s does not exist; the stored objects stay", key)}
	case apierrors.IsForbidden(err):
		return nil, &refusal{hubv1.ReasonConfigMapMissing, fmt.Sprintf("the hub may not read ConfigMap %s: set bundles.configMaps in the hub's chart; the stored objects stay", key)}
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return m, nil
}

// home returns the namespace in which the ConfigMaps and the ServiceAccount of a bundle are.
func (c *Controller) home(b hubv1.BundleObject) string {
	if b.GetNamespace() != "" {
		return b.GetNamespace()
	}
	return c.opts.Namespace
}

// change is one change of the stored objects: an object to create, to replace or to remove.
type change struct {
	manifest.Stored
	// before is the stored object. It is nil if the object is not stored yet.
	before *unstructured.Unstructured
}

func (c change) id() hubv1.ObjectIdentity { return hubv1.IdentityOf(c.Manifest) }

// compare returns the changes that bring the stored objects of a bundle to the wanted objects. Changes that remove an
// object come first. The error is a *refusal if an object belongs to another bundle.
func (c *Controller) compare(ctx context.Context, b hubv1.BundleObject, wanted []*unstructured.Unstructured) ([]change, error) {
	of := hubv1.OfBundle(b)
	var removed, written []change
	names := map[hubv1.ObjectIdentity]bool{}
	for _, o := range wanted {
		id := hubv1.IdentityOf(o)
		names[id] = true
		before, sent, err := c.taken(ctx, of, id)
		if err != nil {
			return nil, err
		}
		next := manifest.Stored{Bundle: of, UID: b.GetUID(), Generation: max(b.GetGeneration(), sent+1), Manifest: o}
		if before != nil {
			is := before.GetUID() == b.GetUID() && before.GetDeletionTimestamp() == nil && equality.Semantic.DeepEqual(manifest.Of(before).Object, o.Object)
			if is && maps.Equal(hubv1.BundleOf(before).Labels, of.Labels) {
				continue
			}
			if next.Generation = before.GetGeneration(); !is {
				next.Generation = max(before.GetGeneration()+1, b.GetGeneration())
			}
		}
		written = append(written, change{next, before})
	}
	restored, err := c.restored(ctx, b, names)
	if err != nil {
		return nil, err
	}
	written = append(written, restored...)
	for _, before := range c.stored(of.BundleReference) {
		if !names[hubv1.IdentityOf(before)] && before.GetDeletionTimestamp() == nil {
			removed = append(removed, c.removal(before))
		}
	}
	lost, _, err := c.lost(ctx, of, names)
	if err != nil {
		return nil, err
	}
	if removed = append(removed, lost...); len(removed) > 0 {
		held, err := c.heldBySets(ctx, of.BundleReference)
		if err != nil {
			return nil, err
		}
		removed = slices.DeleteFunc(removed, func(ch change) bool { return held(ch.id()) })
	}
	return append(removed, written...), nil
}

// lost returns the changes that remove objects which have bindings, but are neither stored nor in the content of their
// bundle: a user has deleted the Secret of an object, and the bundle, or its content, has gone since. Without these
// changes, the copies would stay forever. The stored manifest of such an object has no content, see bundle.HasContent.
// since is a time at which the bundle existed. It is zero if there are no such objects.
func (c *Controller) lost(ctx context.Context, of hubv1.ObjectBundle, wanted map[hubv1.ObjectIdentity]bool) (out []change, since time.Time, err error) {
	bindings, err := scopes.Bindings(ctx, c.opts.Client, of.Namespace, client.MatchingFields{bundleIndex: of.BundleReference.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, since, err
	}
	for _, cached := range bindings {
		id, ref := hubv1.ObjectOf(cached), cached.BindingSpec().ObjectRef
		if wanted[id] {
			continue
		}
		if _, stored := c.opts.Templates.Get(id); stored {
			continue
		}
		b := hubv1.NewBinding(id.BindingKey()) // read uncached, because the cache may still have a deleted binding
		if err := c.opts.APIReader.Get(ctx, id.BindingKey(), b); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, since, fmt.Errorf("reading the binding of %s uncached: %w", id, err)
		}
		if b.BindingSpec().ObjectRef.Bundle == nil || *b.BindingSpec().ObjectRef.Bundle != of.BundleReference {
			continue
		}
		since = latest(since, b)
		out = append(out, change{Stored: manifest.Stored{
			Bundle: of, UID: ref.UID, Generation: newestSent(b), Manifest: manifest.WithoutContent(ref.APIVersion, id), Removed: c.opts.Clock.Now(),
		}})
	}
	return out, since, nil
}

// latest returns the later of a time and the creation time of an object.
func latest(t time.Time, o client.Object) time.Time {
	if at := o.GetCreationTimestamp().Time; at.After(t) {
		return at
	}
	return t
}

// newestSent returns the newest generation of the object that a cluster has.
func newestSent(b hubv1.BindingObject) (generation int64) {
	for _, row := range b.BindingStatus().Clusters {
		generation = max(generation, row.Generation)
	}
	return generation
}

// taken returns the object that the hub stores for the bundle under this identity. The hub stores each object of a
// bundle in a Secret. before is nil if this Secret does not exist. If a user has deleted the Secret, clusters may still
// have copies. sent is then the newest generation of these copies. In all other cases, sent is 0. The error is a
// refusal if another bundle contains the object, or if the binding belongs to a hub object of this identity.
func (c *Controller) taken(
	ctx context.Context, of hubv1.ObjectBundle, id hubv1.ObjectIdentity,
) (before *unstructured.Unstructured, sent int64, err error) {
	if before, ok := c.opts.Templates.Get(id); ok {
		switch has := hubv1.BundleOf(before); {
		case has == nil: // a hub object, which is allowed if it has no copies, see below
		case has.BundleReference == of.BundleReference:
			return before, 0, nil
		case before.GetDeletionTimestamp() != nil:
			return nil, 0, &refusal{hubv1.ReasonIdentityTaken, fmt.Sprintf(
				"%s: %s no longer has this object, but clusters still have copies of it: wait until the copies are removed; if the condition RemovalHeld is True, "+
					"run hansectl confirm; the stored objects stay", id, has)}
		default:
			return nil, 0, &refusal{hubv1.ReasonIdentityTaken, fmt.Sprintf("%s: %s has this object: remove it from one of the two; the stored objects stay", id, has)}
		}
	}
	b := hubv1.NewBinding(id.BindingKey())
	err = c.opts.Client.Get(ctx, id.BindingKey(), b, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("reading the binding of %s: %w", id, err)
	case b.BindingSpec().ObjectRef.Bundle == nil:
		return nil, 0, &refusal{hubv1.ReasonIdentityTaken, fmt.Sprintf(
			"%s: the hub has an object of this name, and a placement sends it to clusters: remove it from the bundle, or delete the object on the hub; the stored objects stay", id)}
	}
	return nil, newestSent(b), nil
}

func (c *Controller) removal(before *unstructured.Unstructured) change {
	bundled := hubv1.BundleOf(before)
	return change{manifest.Stored{
		Bundle: *bundled, UID: before.GetUID(), Generation: before.GetGeneration(), Manifest: manifest.Of(before), Removed: c.opts.Clock.Now(),
	}, before}
}

// confirm reads the bundle from the API server. It returns errBehind if the bundle there differs from the bundle from
// which the changes were computed. It returns a *refusal if the ServiceAccount may not make the changes.
func (c *Controller) confirm(ctx context.Context, b hubv1.BundleObject, changed []change) error {
	of := hubv1.ReferenceTo(b)
	live := of.New()
	if err := c.opts.APIReader.Get(ctx, of.Key(), live); apierrors.IsNotFound(err) {
		return errBehind
	} else if err != nil {
		return fmt.Errorf("reading %s uncached: %w", of, err)
	}
	if live.GetUID() != b.GetUID() || live.GetGeneration() != b.GetGeneration() || live.GetDeletionTimestamp() != nil {
		return errBehind
	}
	return c.allowed(ctx, b, changed)
}

// write writes one stored object, if the object has not changed since the change was computed.
func (c *Controller) write(ctx context.Context, ch change) error {
	secret, err := ch.Secret(c.opts.Namespace)
	if err != nil {
		return err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("object", ch.id().String())
	if !ch.Removed.IsZero() {
		log.Info("Removing an object from a bundle", "bundle", ch.Bundle.String())
	} else {
		log.V(1).Info("Storing an object of a bundle")
	}
	if ch.before == nil {
		err := c.opts.Client.Create(ctx, secret)
		if apierrors.IsAlreadyExists(err) {
			err = c.replaceBroken(ctx, secret)
		}
		if err != nil {
			return fmt.Errorf("storing %s in Secret %s: %w", ch.id(), secret.Name, err)
		}
		return nil
	}
	patch, err := ch.Patch(ch.before.GetResourceVersion())
	if err != nil {
		return fmt.Errorf("writing %s as JSON: %w", ch.id(), err)
	}
	if err := c.opts.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("storing %s in Secret %s: %w", ch.id(), secret.Name, err)
	}
	return nil
}

// replaceBroken replaces a stored Secret whose object cannot be decoded, because a user has edited the Secret. If the
// object can be decoded, replaceBroken changes nothing and returns errBehind.
func (c *Controller) replaceBroken(ctx context.Context, secret *corev1.Secret) error {
	var is corev1.Secret
	if err := c.opts.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), &is); err != nil {
		return client.IgnoreNotFound(err) // the next reconcile stores the object
	}
	if _, err := manifest.ReadStored(&is); err == nil {
		return errBehind
	}
	ctrl.LoggerFrom(ctx).Info("Replacing a Secret that has no readable object of a bundle", "secret", is.Name)
	if err := c.opts.Client.Delete(ctx, &is, client.Preconditions{UID: &is.UID, ResourceVersion: &is.ResourceVersion}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.opts.Client.Create(ctx, secret)
}

// stored returns the stored objects of a bundle. They are shared, and the caller must not change them.
func (c *Controller) stored(of hubv1.BundleReference) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, id := range c.opts.Templates.StoredOf(of) {
		if o, ok := c.opts.Templates.Get(id); ok {
			out = append(out, o)
		}
	}
	return out
}

// removeAll removes the objects of a deleted bundle, after an uncached read has confirmed the deletion. It also drops
// the cached chart of an operator.
func (c *Controller) removeAll(ctx context.Context, of hubv1.BundleReference) error {
	c.reserved.free(of)
	if of.Kind == hubv1.FederatedOperatorKind {
		c.forgetRendering(of.Name)
		c.opts.Charts.Forget(of.Name)
	}
	remove, since, err := c.lost(ctx, hubv1.ObjectBundle{BundleReference: of}, nil)
	if err != nil {
		return err
	}
	for _, o := range c.stored(of) {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		remove = append(remove, c.removal(o))
		since = latest(since, o)
	}
	if len(remove) > 0 {
		live, gone, err := c.opts.Templates.Live(ctx, of.Identity(), since)
		if err != nil {
			return err
		}
		if !gone && live.GetDeletionTimestamp() == nil {
			return errBehind // the bundle exists, so its objects are not removed
		}
	}
	for _, ch := range remove {
		if err := c.write(ctx, ch); err != nil {
			return err
		}
	}
	if err := c.dropKept(ctx, of); err != nil {
		return err
	}
	if err := c.dropSet(ctx, of); err != nil {
		return err
	}
	return c.forget(ctx, of)
}

// forget deletes the Secrets of objects that were removed from their bundle, if the bindings of the objects are
// deleted.
func (c *Controller) forget(ctx context.Context, of hubv1.BundleReference) error {
	for _, o := range c.stored(of) {
		if o.GetDeletionTimestamp() == nil {
			continue
		}
		id := hubv1.IdentityOf(o)
		// The read of the binding is uncached, because a new binding may not be in the cache yet.
		switch err := c.opts.APIReader.Get(ctx, id.BindingKey(), hubv1.NewBinding(id.BindingKey())); {
		case err == nil:
			continue // wait for the binding: its deletion event wakes the bundle
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading the binding of %s: %w", id, err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.opts.Namespace, Name: id.ManifestName()}}
		version := client.Preconditions{ResourceVersion: ptr.To(o.GetResourceVersion())}
		if err := c.opts.Client.Delete(ctx, secret, version); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s of %s: %w", secret.Name, id, err)
		}
	}
	return nil
}
