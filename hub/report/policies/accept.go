package policies

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/replicas"
	"github.com/hanse-dev/hanse/view/preview"
)

// acceptance has the inputs of the condition Accepted of a placement.
type acceptance struct {
	policy           hubv1.PlacementObject
	kinds            func(schema.GroupKind) (informer.State, bool)
	watches          func(kind schema.GroupKind, namespace string) bool
	hubRunsWorkloads bool
	scalePath        func(schema.GroupKind) string // path of the replicas in the kind's scale subresource, for messages
	resource         func(schema.GroupKind) string // plural name of the kind's resource, for messages
}

// condition returns the condition Accepted. It names the first error in the order of the spec, and all kinds that the
// hub may not read. known is false until the hub has tried to list all kinds before the first error, or all
// kinds of the spec if it may not read one of them. Without an error, known is false until the hub has listed all
// selected kinds, and has tried to list the kinds in spec.references. While known is false, the caller does not use the
// condition. Thus a restart of the hub does not change the condition.
func (a acceptance) condition() (c metav1.Condition, known bool) {
	spec := a.policy.PlacementSpec()
	if err := preview.CheckPlacement(a.policy); err != nil {
		return notAccepted(hubv1.ReasonInvalid, "%s", err), true
	}
	known = true
	for i, s := range spec.ResourceSelectors {
		gk := schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}
		if spec.HubExecution != hubv1.HubExecutionAllowed && placement.HubWouldRun(gk, a.hubRunsWorkloads) {
			return notAccepted(hubv1.ReasonHubWouldRun,
				"resourceSelectors[%d]: the hub itself would act on a %s; to place it anyway, set spec.hubExecution to Allowed", i, gk), true
		}
		clusterScoped := gk.Kind == hubv1.ClusterBundleKind || gk.Kind == hubv1.FederatedOperatorKind
		if gk.Group == hubv1.GroupVersion.Group && clusterScoped && a.policy.GetNamespace() != "" {
			return notAccepted(hubv1.ReasonInvalid, "resourceSelectors[%d]: only a ClusterPlacement can select a %s", i, gk.Kind), true
		}
		if gk.Kind == "*" || gk.Group == hubv1.GroupVersion.Group {
			continue // no right to check: the hub finds the kinds of a group itself, and reads bundles
		}
		state, refused, tried := a.readable(gk, fmt.Sprintf("resourceSelectors[%d]", i))
		if refused != nil || !tried {
			return ptr.Deref(refused, metav1.Condition{}), tried
		}
		if namespace := a.policy.GetNamespace(); namespace != "" && !a.watches(gk, namespace) {
			return notAccepted(hubv1.ReasonNotFederated,
				"resourceSelectors[%d]: the hub may not read %s in namespace %s; add it to the namespaces of the kind in the chart's value federatedKinds", i, gk, namespace), true
		}
		if replicas.NeedsPath(gk, &spec.Replicas) {
			return notAccepted(hubv1.ReasonDivisionRefused, "resourceSelectors[%d]: %s", i, replicas.CheckKind(gk, spec, a.scalePath(gk))), true
		}
		known = known && state.Synced
	}
	if refused, tried := a.unreadableReference(); refused != nil || !tried {
		return ptr.Deref(refused, metav1.Condition{}), tried
	}
	return metav1.Condition{Type: hubv1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}, known
}

// unreadableReference returns the results of readable for the first kind in spec.references that the hub cannot read,
// or has not tried to list yet. It does not check the kinds to which a pod template may refer, because most objects
// need only some of them. The status of a binding shows which needed objects are missing.
func (a acceptance) unreadableReference() (refused *metav1.Condition, tried bool) {
	for i, r := range a.policy.PlacementSpec().References {
		if r.Kind == "" || r.APIGroup == hubv1.GroupVersion.Group {
			continue
		}
		gk := schema.GroupKind{Group: r.APIGroup, Kind: r.Kind}
		if _, refused, tried = a.readable(gk, fmt.Sprintf("references[%d]", i)); refused != nil || !tried {
			return refused, tried
		}
	}
	return nil, true
}

// readable returns the state of the watch of a kind. If the hub cannot read the kind, refused is the condition, whose
// message names the field of the spec. tried is false if the hub has not tried to list the kind yet.
func (a acceptance) readable(gk schema.GroupKind, field string) (state informer.State, refused *metav1.Condition, tried bool) {
	state, watched := a.kinds(gk)
	switch {
	case !watched || !state.Synced && state.Reason == "":
		return state, nil, false
	case state.Reason == hubv1.ReasonKindNotServed:
		refused = ptr.To(notAccepted(hubv1.ReasonKindNotServed, "%s: %s", field, notServed(gk)))
	case state.Reason == hubv1.ReasonForbidden:
		return state, a.notFederated(), a.tried()
	}
	return state, refused, true
}

// asked returns the kinds that the hub has to read for the placement.
func (a acceptance) asked() []preview.AskedKind {
	return preview.AskedKinds(a.policy.PlacementSpec(), a.hubRunsWorkloads)
}

// tried reports whether the hub has tried to list all kinds of the placement.
func (a acceptance) tried() bool {
	return !slices.ContainsFunc(a.asked(), func(k preview.AskedKind) bool {
		state, watched := a.kinds(k.Kind)
		return !watched || !state.Synced && state.Reason == ""
	})
}

// notFederated returns the condition for a placement with kinds that the hub may not read. Its message names all of
// them, and has the entries of the chart's value that grant them.
func (a acceptance) notFederated() *metav1.Condition {
	missing := slices.DeleteFunc(a.asked(), func(k preview.AskedKind) bool {
		state, _ := a.kinds(k.Kind)
		return state.Reason != hubv1.ReasonForbidden
	})
	return ptr.To(notAccepted(hubv1.ReasonNotFederated, "%s", preview.NotFederated(missing, a.resource)))
}

// notServed returns a message for a kind that the hub does not serve. The message says what a user can do. In the core
// group, a CRD cannot help: the selector lacks the group, or the kind is misspelt.
func notServed(gk schema.GroupKind) string {
	if gk.Group == "" {
		return fmt.Sprintf("the core group has no kind %s; set the apiGroup of the kind, or correct its name", gk.Kind)
	}
	return fmt.Sprintf("the hub does not serve %s; install its CustomResourceDefinition on the hub", gk)
}

func notAccepted(reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: hubv1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: reason, Message: cut(fmt.Sprintf(format, args...))}
}
