package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// waiting has the arguments of one run of the command wait.
type waiting struct {
	hub     *hub
	aim     string
	timeout time.Duration
}

// These are the values of --for. aimCondition is only the beginning of a value: a condition type follows.
const (
	aimScheduled = "scheduled"
	aimApplied   = "applied"
	aimHealthy   = "healthy"
	aimDeleted   = "delete"
	aimCondition = "condition="
)

func newWait(h *hub) *cobra.Command {
	w := &waiting{hub: h}
	cmd := &cobra.Command{
		Use:   "wait (KIND NAME | KIND/NAME) --for=AIM",
		Short: "Wait until an object is applied or healthy on its clusters, or gone from all of them",
		Long: `Wait until an object of the hub has reached AIM on all its clusters:

  scheduled               the hub has chosen clusters for it
  applied                 every one of its clusters holds the newest generation
  healthy                 applied, and every copy is Healthy
  delete                  the object and all its copies are deleted
  condition=TYPE[=VALUE]  its binding has the condition, with the value True unless another one is given

The conditions of a binding may describe the object before its last change, so kubectl wait on the binding can end too
early. This command compares the generations of the copies with that of the object.

The exit code is 0 when the object has reached AIM, and 1 after --timeout.`,
		Example: `  kubectl apply -f web.yaml && hansectl wait deployment/web -n shop --for=healthy --timeout 5m

  kubectl delete deployment web --wait=false && hansectl wait deployment/web -n shop --for=delete`,
		Args: objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(); err != nil {
				return usageError(cmd, err)
			}
			kind, name := kindAndName(args)
			return w.run(cmd.Context(), kind, name)
		},
		ValidArgsFunction: h.completeObjects,
	}
	cmd.Flags().StringVar(&w.aim, "for", "", "What to wait for: scheduled, applied, healthy, delete or condition=TYPE[=VALUE]. Required.")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 30*time.Second, "How long to wait.")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(
		[]string{aimScheduled, aimApplied, aimHealthy, aimDeleted, aimCondition}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (w *waiting) check() error {
	switch {
	case w.aim == "":
		return errors.New("--for is missing: want scheduled, applied, healthy, delete or condition=TYPE[=VALUE]")
	case w.timeout <= 0:
		return fmt.Errorf("--timeout %s: want more than 0", w.timeout)
	case w.aim == aimScheduled, w.aim == aimApplied, w.aim == aimHealthy, w.aim == aimDeleted, len(w.aim) > len(aimCondition) && strings.HasPrefix(w.aim, aimCondition):
		return nil
	}
	return fmt.Errorf("--for %q: want scheduled, applied, healthy, delete or condition=TYPE[=VALUE]", w.aim)
}

func (w *waiting) run(ctx context.Context, kind, name string) error {
	c, _, err := w.hub.connect()
	if err != nil {
		return err
	}
	id, version, err := w.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	if id.Group == hubv1.GroupVersion.Group {
		return fmt.Errorf("the hub does not send %s to clusters: use kubectl wait", id)
	}
	state, err := await(ctx, w.hub.streams.Out, w.timeout, func(ctx context.Context) (string, bool, error) {
		binding, err := readBinding(ctx, c, id)
		if err != nil {
			return "", false, err
		}
		if inBundle(binding) != "" && w.aim != aimDeleted {
			waits, err := w.hub.unstoredOf(ctx, c, binding)
			if waits != "" || err != nil {
				return waits, false, err
			}
		}
		object, err := w.hub.template(ctx, c, id, version, binding)
		if err != nil {
			return "", false, err
		}
		if object == nil && binding == nil && w.aim != aimDeleted {
			return "", false, w.hub.noObject(ctx, c, id)
		}
		state, done := reached(w.aim, object, binding)
		if done && (w.aim == aimApplied || w.aim == aimHealthy) {
			waits, err := w.hub.clustersOfSet(ctx, c, binding)
			if waits != "" || err != nil {
				return waits, false, err
			}
		}
		return state, done, nil
	})
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("waiting for %s to be %s: %w: %s", id, w.aim, err, state)
	}
	return err
}

// reached reports whether an object has reached aim, which is the value of --for. It also returns the object's state as
// text. object or binding may be nil.
func reached(aim string, object *unstructured.Unstructured, binding hubv1.BindingObject) (state string, done bool) {
	if aim == aimDeleted {
		return leftOf(object, binding)
	}
	if binding == nil {
		return "no placement selects it, or the hub has not processed it yet", false
	}
	kind, value := hubv1.ConditionScheduled, string(metav1.ConditionTrue)
	switch aim {
	case aimApplied, aimHealthy:
		return onEveryCluster(aim, object, binding)
	case aimScheduled:
	default:
		kind, value, _ = strings.Cut(strings.TrimPrefix(aim, aimCondition), "=")
		value = cmp.Or(value, string(metav1.ConditionTrue))
	}
	found := meta.FindStatusCondition(binding.BindingStatus().Conditions, kind)
	if found == nil {
		return "its binding has no condition " + kind, false
	}
	return fmt.Sprintf("%s is %s (%s)", found.Type, found.Status, reasonText(found)), strings.EqualFold(string(found.Status), value)
}

func leftOf(object *unstructured.Unstructured, binding hubv1.BindingObject) (string, bool) {
	switch {
	case binding != nil:
		return "left on " + counted(len(binding.BindingSpec().Clusters), "cluster"), false
	case object != nil && object.GetDeletionTimestamp() == nil:
		return "the hub object exists and is not being deleted", false
	case object != nil:
		return "the hub object still has finalizers", false
	}
	return "the object and its copies are deleted", true
}

// behindNewest reports whether the rollout has not yet brought the newest revision to the cluster of the row.
func behindNewest(b hubv1.BindingObject, row *hubv1.ClusterRow) bool {
	rollout := b.BindingSpec().Rollout
	return rollout != nil && row.Revision != rollout.Newest
}

// onEveryCluster reports whether the aim "applied" or "healthy" is reached: every selected cluster holds the newest
// generation. For the aim "healthy", every copy must also be Healthy. onEveryCluster also returns the state as text.
func onEveryCluster(aim string, object *unstructured.Unstructured, binding hubv1.BindingObject) (string, bool) {
	all, good, first, behind := 0, 0, "", ""
	for _, target := range binding.BindingSpec().Clusters {
		if target.State != hubv1.TargetPresent {
			continue
		}
		all++
		row := binding.BindingStatus().Row(target.Name)
		why := ""
		switch {
		case row == nil:
			why = hubv1.ReasonPending
		case row.Applied != metav1.ConditionTrue:
			why = cmp.Or(row.Reason, hubv1.ReasonPending)
		case behindNewest(binding, row):
			// Such a cluster waits for others, and the state names the cluster for which it waits, if there is one.
			behind = cmp.Or(behind, fmt.Sprintf("; %s: has revision %d, the newest is %d", target.Name, row.Revision, binding.BindingSpec().Rollout.Newest))
			continue
		case target.Revision == 0 && row.Generation < hubv1.Wanted(target, hubv1.HubObjectOf(binding.BindingSpec().ObjectRef, object)).Generation:
			why = fmt.Sprintf("has generation %d, the hub has %d", row.Generation, object.GetGeneration())
		case aim == aimHealthy && row.Health != hubv1.HealthHealthy:
			why = string(row.Health)
		default:
			good++
			continue
		}
		if first == "" {
			first = "; " + target.Name + ": " + why
		}
	}
	if all == 0 {
		return "no cluster is chosen for it", false
	}
	return fmt.Sprintf("%s on %d of %s%s", aim, good, counted(all, "cluster"), cmp.Or(first, behind)), good == all
}
