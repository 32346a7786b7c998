package policies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bundles writes the status either of Bundles and ClusterBundles, or of FederatedOperators. The package hub/bundles
// writes the other parts of this status: the condition Stored, and the chart and the kinds of an operator. For
// operators, bundles also writes status.operators of MemberClusters.
type bundles struct {
	Options
	// named returns the reference to the Bundle, ClusterBundle or FederatedOperator with the given key.
	named func(types.NamespacedName) hubv1.BundleReference
}

// bundleNamed returns the reference to a Bundle, or to a ClusterBundle if the key has no namespace.
func bundleNamed(key types.NamespacedName) hubv1.BundleReference {
	kind := hubv1.BundleKind
	if key.Namespace == "" {
		kind = hubv1.ClusterBundleKind
	}
	return hubv1.BundleReference{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// operatorNamed returns the reference to a FederatedOperator.
func operatorNamed(key types.NamespacedName) hubv1.BundleReference {
	return hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: key.Name}
}

func (p *bundles) update(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	of := p.named(key)
	complete := p.Templates.StoredState().Synced // read before the objects, because they may be read completely in between
	objects, err := p.objects(ctx, of)
	if err != nil {
		return 0, err
	}
	switch {
	case of.Kind != hubv1.FederatedOperatorKind:
	case !complete: // not all objects are read yet, so the operator may only seem to have none
		again = foldEvery
	default: // the operator may be deleted
		if again, err = p.writeFacts(ctx, of.Name, objects); err != nil {
			return 0, err
		}
	}
	b := of.New()
	if err := p.Client.Get(ctx, key, b); err != nil {
		return again, unlessGone(err, b, key)
	}
	before := b.DeepCopyObject().(hubv1.BundleObject)
	foldBundle(b, objects)
	if o, ok := b.(*hubv1.FederatedOperator); ok {
		foldOperator(o, objects)
	}
	p.foldRemoval(of.Kind, b, &b.BundleStatus().RemovalHeld, &b.BundleStatus().Conditions)
	if equality.Semantic.DeepEqual(before, b) {
		return again, nil
	}
	_, err = write(ctx, p.Client, before, b)
	return again, err
}

// objects returns the objects that the hub has stored for a bundle, sorted by name. It leaves out objects that are
// being deleted.
func (p *bundles) objects(ctx context.Context, of hubv1.BundleReference) ([]bundled, error) {
	notOn, err := p.notInRevision(ctx, of)
	if err != nil {
		return nil, err
	}
	var out []bundled
	for _, id := range p.Templates.StoredOf(of) {
		template, ok := p.Templates.Get(id)
		if !ok || template.GetDeletionTimestamp() != nil {
			continue
		}
		binding := hubv1.NewBinding(id.BindingKey())
		err := p.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			binding = nil
		case err != nil:
			return nil, fmt.Errorf("reading the binding of %s: %w", id, err)
		}
		out = append(out, bundled{id: id, generation: template.GetGeneration(), binding: binding, notOn: notOn(id)})
	}
	slices.SortFunc(out, func(a, b bundled) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return out, nil
}

// foldBundle sets the numbers and the conditions Applied and Healthy in the status of a bundle. If the newest manifests
// are not stored, the conditions describe the stored manifests. In this case, the observedGeneration of the conditions
// does not change.
func foldBundle(b hubv1.BundleObject, objects []bundled) {
	status := b.BundleStatus()
	status.Objects, status.Placed = int32(len(objects)), 0
	for _, o := range objects {
		if o.follows() {
			status.Placed++
		}
	}
	generation := b.GetGeneration()
	stored := meta.FindStatusCondition(status.Conditions, hubv1.ConditionStored)
	isStored := stored != nil && stored.Status == metav1.ConditionTrue && stored.ObservedGeneration == generation
	for _, c := range []metav1.Condition{
		worstOf(hubv1.ConditionApplied, hubv1.ReasonAppliedEverywhere, objects),
		worstOf(hubv1.ConditionHealthy, hubv1.ReasonHealthyEverywhere, objects),
	} {
		of := generation
		if was := meta.FindStatusCondition(status.Conditions, c.Type); !isStored {
			if of = 0; was != nil {
				of = was.ObservedGeneration
			}
		}
		set(&status.Conditions, of, c)
	}
}

// bundled is one object that the hub has stored for a bundle. binding is nil if the object has no binding.
type bundled struct {
	id         hubv1.ObjectIdentity
	generation int64 // generation of the stored object
	binding    hubv1.BindingObject
	notOn      func(cluster string) bool // see operator.Stored
}

// follows reports whether the object follows a placement, which means that a placement selects the object and decides
// about it.
func (o bundled) follows() bool {
	return o.binding != nil && o.binding.BindingSpec().PlacementRef != nil
}

// isCurrent reports whether the rows in the binding's status are about the object's current generation. It returns
// false if at least one cluster has not reported this generation yet.
func (o bundled) isCurrent() bool {
	spec, status := o.binding.BindingSpec(), o.binding.BindingStatus()
	if status.ObservedGeneration != o.binding.GetGeneration() {
		return false
	}
	hub := hubv1.HubObject{Generation: o.generation, Revisions: spec.Revisions}
	return !slices.ContainsFunc(spec.Clusters, func(t hubv1.BindingTarget) bool {
		row := status.Row(t.Name)
		return t.State == hubv1.TargetPresent && (row == nil || !hubv1.Wanted(t, hub).IsHeld(row.Generation, row.Revision))
	})
}

// worstOf merges one condition of the bindings of all objects. An object follows a placement if the placement decides
// about it. The result is False if one object has False, and Unknown if no object follows a placement. Otherwise it is
// Unknown if an object has Unknown or no current report, and False if some objects follow no placement. If none of
// these is the case, it is True, and its reason is the argument `good`.
func worstOf(conditionType, good string, objects []bundled) metav1.Condition {
	var failed, unknown, unplaced []string
	var why, whyUnknown string
	for _, o := range objects {
		if o.binding == nil && o.notOn != nil {
			continue // the bundle is rolled out as a whole, and no cluster has a revision with the object yet
		}
		if !o.follows() {
			unplaced = append(unplaced, o.id.String())
			continue
		}
		c := meta.FindStatusCondition(o.binding.BindingStatus().Conditions, conditionType)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue && !o.isCurrent():
			unknown, whyUnknown = append(unknown, o.id.String()), hubv1.ReasonNotYetReported
		case c.Status == metav1.ConditionFalse:
			failed = append(failed, o.id.String()+": "+c.Message)
			if why == "" || c.Reason != hubv1.ReasonWaitingOnSome { // a failure of another object is the reason
				why = c.Reason
			}
		case c.Status == metav1.ConditionUnknown:
			unknown, whyUnknown = append(unknown, o.id.String()+": "+c.Message), c.Reason
		}
	}
	out := metav1.Condition{Type: conditionType}
	switch {
	case len(failed) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, why, someOf(failed, len(objects))
	case len(objects) == 0:
		out.Status, out.Reason = metav1.ConditionUnknown, hubv1.ReasonNothingPlaced
		out.Message = "the hub has stored no object of this bundle: the condition Stored says why"
	case len(unplaced) == len(objects):
		out.Status, out.Reason = metav1.ConditionUnknown, hubv1.ReasonNothingPlaced
		out.Message = "no placement selects this bundle: add a resourceSelector with apiGroup hanse.dev to a placement"
	case len(unknown) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, whyUnknown, someOf(unknown, len(objects))
	case len(unplaced) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, hubv1.ReasonPartlyPlaced, "no placement selects "+someOf(unplaced, len(objects))
	default:
		out.Status, out.Reason = metav1.ConditionTrue, good
	}
	return out
}
