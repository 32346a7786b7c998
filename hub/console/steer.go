package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/guard"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// errRefused is the error of an action that the current state does not allow.
var errRefused = errors.New("nothing was changed")

// errNoRight is the error of an action for which the user lacks a right.
var errNoRight = errors.New("nothing was changed: you lack the right")

// errStale is the error of a form that a user has sent from an outdated page.
var errStale = errors.New("the page showed an older state: go back, reload the page, and decide again")

// errUnsure is the error of a form whose confirmation box is not checked.
var errUnsure = errors.New("the confirmation box is not checked")

// sure is the value of the confirmation field if the user has checked the box.
const sure = "yes"

// may reports whether the user has a right on the hub.
func (u *user) may(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	if err := u.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking the right to %s %s: %w", right.Verb, right.Resource, err)
	}
	return review.Status.Allowed, nil
}

// must returns an error unless the user has the right to every one of the verbs on an object.
func (u *user) must(ctx context.Context, on authorizationv1.ResourceAttributes, verbs ...string) error {
	for _, verb := range verbs {
		on.Verb = verb
		may, err := u.may(ctx, on)
		if err != nil {
			return err
		}
		if !may {
			where := ""
			if on.Namespace != "" {
				where = " in namespace " + on.Namespace
			}
			return fmt.Errorf("%w to the verb %s on %s%s", errNoRight, verb, on.Resource, where)
		}
	}
	return nil
}

// resourceOf returns the resource attributes of a placement, for an access review.
func resourceOf(p hubv1.PlacementObject) authorizationv1.ResourceAttributes {
	resource := "placements"
	if p.GetNamespace() == "" {
		resource = "clusterplacements"
	}
	return authorizationv1.ResourceAttributes{Group: hubv1.GroupVersion.Group, Resource: resource, Namespace: p.GetNamespace(), Name: p.GetName()}
}

// placement reads a placement. Without a namespace, it reads a ClusterPlacement.
func (u *user) placement(ctx context.Context, namespace, name string) (hubv1.PlacementObject, error) {
	var p hubv1.PlacementObject = &hubv1.Placement{}
	if namespace == "" {
		p = &hubv1.ClusterPlacement{}
	}
	if err := u.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
		return nil, fmt.Errorf("reading a placement: %w", err)
	}
	return p, nil
}

const (
	// maxSteered is the maximum number of objects of a placement that one page keeps in memory. At most maxComplete of
	// them are objects whose rollout is complete.
	maxSteered  = 10000
	maxComplete = 2000
)

var errManyChanges = fmt.Errorf("more than %d objects of the placement are changing: use hansectl rollout", maxSteered-maxComplete)

// steering reads a placement and the bindings of its objects. It returns an error if the placement specifies no
// rollout.
func (u *user) steering(ctx context.Context, namespace, name string) (rollout.Steering, error) {
	p, err := u.placement(ctx, namespace, name)
	if err != nil {
		return rollout.Steering{}, err
	}
	s := rollout.Steering{Placement: p, Named: kindOf(p, "Placement") + " " + nameOf(p)}
	if p.PlacementSpec().Rollout == nil {
		return s, fmt.Errorf("%w rollout of %s: it sets no spec.rollout, so a change goes to all clusters at once", errNotFound, s.Named)
	}
	complete, dropped := 0, 0
	keep := func(b hubv1.BindingObject) {
		if !rollout.Follows(b, p) {
			return
		}
		if r := b.BindingSpec().Rollout; r != nil && r.Phase == hubv1.RolloutComplete {
			if complete++; complete > maxComplete {
				dropped++
				return
			}
		}
		if len(s.Objects) <= maxSteered {
			s.Objects = append(s.Objects, b)
		}
	}
	err = u.eachBinding(ctx, namespace, keep)
	if err == nil && len(s.Objects) > maxSteered {
		err = fmt.Errorf("%w: %w", errRefused, errManyChanges)
	}
	if dropped > 0 {
		u.note(fmt.Sprintf("The waves leave out %d %s whose rollout is complete", dropped, plural(dropped, "object", "objects")))
	}
	return s, err
}

// annotate changes the annotations of an object. If the object has changed since it was read, the API server returns a
// conflict.
func (u *user) annotate(ctx context.Context, object client.Object, change func(map[string]string)) error {
	before := object.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, object.GetAnnotations())
	change(annotations)
	object.SetAnnotations(annotations)
	if err := u.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing the annotations of %s: %w", nameOf(object), err)
	}
	return nil
}

// steer returns an action on the rollouts of a placement. The user needs two rights on the placement: the custom verb
// in the argument `verb`, and patch. If stale is true, the action also accepts the form of an outdated page.
func steer(verb string, stale bool, request func(rollout.Steering, url.Values) (func(map[string]string), error)) func(context.Context, *visit) (string, error) {
	return func(ctx context.Context, v *visit) (string, error) {
		namespace, name := v.PostForm.Get("namespace"), v.PostForm.Get("name")
		s, err := v.user.steering(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		if !stale && v.PostForm.Get("state") != s.State() {
			return "", fmt.Errorf("%w: %w", errRefused, errStale)
		}
		if err := v.user.must(ctx, resourceOf(s.Placement), verb, "patch"); err != nil {
			return "", err
		}
		change, err := request(s, v.PostForm)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errRefused, err)
		}
		return rolloutPath(namespace, name), v.user.annotate(ctx, s.Placement, func(annotations map[string]string) {
			change(annotations)
			delete(annotations, hubv1.ChangedByAnnotation) // the webhook of authors sets it again, if it is on
		})
	}
}

// These are the actions on rollouts. A pause accepts also the form of an outdated page, because a user may have to
// pause quickly.
var (
	approveWave   = steer("rollout-approve", false, approval)
	pauseRollout  = steer("rollout-pause", true, func(rollout.Steering, url.Values) (func(map[string]string), error) { return rollout.Pause, nil })
	resumeRollout = steer("rollout-pause", false, func(rollout.Steering, url.Values) (func(map[string]string), error) { return rollout.Resume, nil })
	skipCluster   = steer("rollout-skip", false, func(s rollout.Steering, form url.Values) (func(map[string]string), error) {
		r, err := s.Skip(form.Get("cluster"))
		return r.Change, err
	})
	promoteRollout = steer("rollout-promote", false, promotion)
)

func approval(s rollout.Steering, form url.Values) (func(map[string]string), error) {
	r, err := s.Approve(form.Get("wave"))
	return r.Change, err
}

func promotion(s rollout.Steering, form url.Values) (func(map[string]string), error) {
	if form.Get("sure") != sure {
		return nil, errUnsure
	}
	r, err := s.Promote(form.Get("reason"))
	return r.Change, err
}

// undoRollout rolls an object back: the clusters get an earlier revision of the object.
func undoRollout(ctx context.Context, v *visit) (string, error) {
	namespace, name := v.PostForm.Get("namespace"), v.PostForm.Get("binding")
	b, err := v.user.rollingBinding(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	id, spec, state, err := v.user.revisionsOf(ctx, b)
	if err != nil {
		return "", err
	}
	if v.PostForm.Get("state") != state {
		return "", fmt.Errorf("%w: %w", errRefused, errStale)
	}
	if spec.ObjectRef.Bundle != nil {
		return "", fmt.Errorf("%w: %w", errRefused, errInBundle)
	}
	if err := v.user.must(ctx, undoRight(id.Namespace), "rollout-undo"); err != nil {
		return "", err
	}
	to, err := strconv.ParseInt(v.PostForm.Get("revision"), 10, 64)
	if err != nil || to < 1 {
		return "", fmt.Errorf("%w: revision %q is not a revision number", errRefused, v.PostForm.Get("revision"))
	}
	if to, err = rollout.UndoTo(spec, to); err != nil {
		return "", fmt.Errorf("%w: %w", errRefused, err)
	}
	if rollout.Undone(spec, to) {
		return "", fmt.Errorf("%w: the clusters get revision %d already", errRefused, to)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(hubv1.GroupVersion.WithKind(id.Kind))
	if id == hubv1.ObjectOf(b) {
		object.SetGroupVersionKind(spec.ObjectRef.GroupVersionKind())
	}
	if err := v.user.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object); err != nil {
		return "", fmt.Errorf("reading %s: %w", id, err)
	}
	return rolloutObjectPath(namespace, name), v.user.annotate(ctx, object, rollout.Undo(to, v.now))
}

var errInBundle = errors.New("the bundle of the object has no revisions that you may read: return to its earlier content")

// undoRight returns the right on placements that an undo needs. The hub's admission checks the same right.
func undoRight(namespace string) authorizationv1.ResourceAttributes {
	right := authorizationv1.ResourceAttributes{Verb: "rollout-undo", Group: hubv1.GroupVersion.Group, Resource: "placements", Namespace: namespace}
	if right.Namespace == "" {
		right.Resource = "clusterplacements"
	}
	return right
}

// mayUndo reports whether the user may undo a rollout of an object, or of a bundle.
func (u *user) mayUndo(ctx context.Context, id hubv1.ObjectIdentity) (bool, error) {
	mapping, err := u.RESTMapper().RESTMapping(id.GroupKind())
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding the kind %s: %w", id.Kind, err)
	}
	patch := authorizationv1.ResourceAttributes{Verb: "patch", Group: id.Group, Resource: mapping.Resource.Resource, Namespace: id.Namespace, Name: id.Name}
	for _, right := range []authorizationv1.ResourceAttributes{undoRight(id.Namespace), patch} {
		if may, err := u.may(ctx, right); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// confirmRemoval confirms a held removal of copies, if the page has shown the same removal.
func confirmRemoval(ctx context.Context, v *visit) (string, error) {
	namespace, name := v.PostForm.Get("namespace"), v.PostForm.Get("name")
	var object client.Object
	switch kind := v.PostForm.Get("kind"); kind {
	case memberKind:
		object = &hubv1.MemberCluster{}
	case hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind:
		object = hubv1.BundleReference{Kind: kind}.New()
	case "ClusterPlacement":
		object = &hubv1.ClusterPlacement{}
	default:
		object = &hubv1.Placement{}
	}
	if err := v.user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return "", fmt.Errorf("reading the object with the held removal: %w", err)
	}
	held, confirmed := guard.Held(object)
	switch {
	case held == nil || held.ID != v.PostForm.Get("id"):
		return "", fmt.Errorf("%w: %w", errRefused, errStale)
	case v.PostForm.Get("sure") != sure:
		return "", fmt.Errorf("%w: %w", errRefused, errUnsure)
	case confirmed:
		return heldPath, nil
	}
	if err := v.user.must(ctx, heldResource(object), "patch"); err != nil {
		return "", err
	}
	return heldPath, v.user.annotate(ctx, object, guard.Confirm(held))
}
