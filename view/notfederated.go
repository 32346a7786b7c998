package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// NotFederated is the reason why an object has no binding, and the steps that help.
type NotFederated struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

func (n NotFederated) write(w io.Writer) {
	fmt.Fprintf(w, "%-10s %s\n", "Why:", printable(n.Reason+": "+n.Message))
	if n.Do != "" {
		fmt.Fprintf(w, "%-10s %s\n", "Do:", printable(n.Do))
	}
}

// Surroundings are the inputs that determine whether an object gets a binding.
type Surroundings struct {
	// Placements are the placements of the object's namespace and all ClusterPlacements.
	Placements      []hubv1.PlacementObject
	NamespaceLabels map[string]string
}

// WhyNot returns the reason why an object has no binding. It uses the rules of the hub, with the data that users can
// read.
func WhyNot(id hubv1.ObjectIdentity, object *unstructured.Unstructured, around Surroundings) *NotFederated {
	switch {
	case id.Group == hubv1.GroupVersion.Group:
		return &NotFederated{Reason: hubv1.ReasonNotFederated, Message: "the hub's own kinds never go to members"}
	case object.GetLabels()[hubv1.HubLabel] != "":
		return &NotFederated{
			Reason: hubv1.ReasonNotFederated, Message: "it has the label " + hubv1.HubLabel + ": a hub wrote it as a copy, and Hanse does not place copies",
			Do: "look at the object on the hub that wrote the copy",
		}
	case object.GetDeletionTimestamp() != nil:
		return &NotFederated{Reason: hubv1.ReasonObjectDeleted, Message: "it is being deleted and is on no member any more"}
	}
	selectable := hubv1.Selectable(id, object, around.NamespaceLabels)
	choice, invalid := placement.Choose(selectable, around.Placements, nil)
	if choice.Winner == nil {
		return unselected(id, around.Placements, invalid)
	}
	return unbound(id, object, choice.Winner)
}

// unselected explains an object that no placement selects. It names the placements that almost match.
func unselected(id hubv1.ObjectIdentity, placements []hubv1.PlacementObject, invalid []placement.InvalidPlacement) *NotFederated {
	n := &NotFederated{Reason: hubv1.ReasonNotSelected, Message: "no placement selects it"}
	var close []string
	for _, p := range placements {
		for _, s := range p.PlacementSpec().ResourceSelectors {
			if s.APIGroup == id.Group && (s.Kind == id.Kind || s.Kind == "*") {
				close = append(close, nameOf(p))
				break
			}
		}
	}
	for _, i := range invalid {
		n.Message += fmt.Sprintf("; the selectors of %s are invalid: %v", nameOf(i.Placement), i.Err)
	}
	if len(close) > 0 {
		n.Message += fmt.Sprintf("; %s selects the kind, but not the name, labels or namespace of this object", list(close))
		n.Do = "compare the selectors of these placements with the object"
		return n
	}
	selector := fmt.Sprintf("{kind: %s}", id.Kind)
	if id.Group != "" {
		selector = fmt.Sprintf("{apiGroup: %s, kind: %s}", id.Group, id.Kind)
	}
	where := "a ClusterPlacement"
	if id.Namespace != "" {
		where = "a Placement in namespace " + id.Namespace
	}
	n.Do = fmt.Sprintf("create %s with resourceSelectors: [%s]", where, selector)
	return n
}

// unbound explains an object that a placement selects but that has no binding.
func unbound(id hubv1.ObjectIdentity, object *unstructured.Unstructured, winner hubv1.PlacementObject) *NotFederated {
	name := nameOf(winner)
	if placement.HubWouldRun(id.GroupKind(), false) && winner.PlacementSpec().HubExecution != hubv1.HubExecutionAllowed {
		return &NotFederated{
			Reason:  hubv1.ReasonHubWouldRun,
			Message: fmt.Sprintf("%s selects it, but the hub itself would act on a %s", name, id.GroupKind()),
			Do:      fmt.Sprintf("set spec.hubExecution to Allowed in %s to place it although the hub acts on it", name),
		}
	}
	if refusal := cmp.Or(tenancy.OfPlace(id, hubv1.IsOfOperator(object)), tenancy.OfSecret(object)); refusal != nil {
		return &NotFederated{Reason: refusal.Reason, Message: name + " selects it, but it is never sent to members", Do: refusal.Message}
	}
	accepted := meta.FindStatusCondition(winner.PlacementStatus().Conditions, hubv1.ConditionAccepted)
	switch {
	case winner.PlacementSpec().Suspend.Scheduling:
		return &NotFederated{
			Reason: hubv1.ReasonSuspended, Message: name + " selects it, and suspends scheduling",
			Do: "unset spec.suspend.scheduling in " + name,
		}
	case accepted == nil || accepted.ObservedGeneration < winner.GetGeneration():
		return &NotFederated{
			Reason: hubv1.ReasonPending, Message: name + " selects it, and the hub has not processed that placement yet",
			Do: fmt.Sprintf("see whether a hub runs: kubectl get lease hanse-hub -n %s", hubv1.SystemNamespace),
		}
	case accepted.Status != metav1.ConditionTrue:
		return &NotFederated{
			Reason: accepted.Reason, Message: strings.TrimSuffix(fmt.Sprintf("%s selects it but is not accepted: %s", name, accepted.Message), ": "),
			Do: what[accepted.Reason],
		}
	}
	return &NotFederated{
		Reason: hubv1.ReasonPending, Message: name + " selects it, and the hub has not decided on it yet",
		Do: "try again in a moment; then look at the object's events and at the log of hanse-hub",
	}
}

// what maps each reason why a placement is not accepted to the advice for the user.
var what = map[string]string{
	hubv1.ReasonNotFederated:   "run hansectl federate, or add the kind to federatedKinds of the chart hanse-hub",
	hubv1.ReasonKindNotServed:  "install the kind's CustomResourceDefinition on the hub",
	hubv1.ReasonHubWouldRun:    "set spec.hubExecution to Allowed to place the kinds although the hub acts on them",
	hubv1.ReasonInvalid:        "correct the placement",
	hubv1.ReasonRequestRefused: "remove the value from the annotation, and use hansectl rollout",
}

func nameOf(p hubv1.PlacementObject) string {
	if p.GetNamespace() == "" {
		return "ClusterPlacement/" + p.GetName()
	}
	return "Placement/" + p.GetName()
}
