package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
	"github.com/hanse-dev/hanse/view/wire"
)

// explain has the arguments of one run of the command explain.
type explain struct {
	hub     *hub
	out     output
	cluster string
	fields  bool
	window  window
}

func newExplain(h *hub) *cobra.Command {
	e := &explain{hub: h}
	cmd := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME)",
		Short: "Show why an object is on some clusters and not on others",
		Long: `Show why an object of the hub is on its clusters and not on others.

The command makes the decision again from the present objects of the hub, with the code of the hub. It shows all of the
decision: the placement that the object follows and the placements that it does not follow, the result of each filter
for each cluster, scores, steps of the spread, shares of the replicas, and whether the binding has the same result.
Nothing is written.

  same       the decision is the same if the object stays where the binding has it, with the same replicas, by the same
             placement
  Also       other placements that match the object, and why it does not follow them
  Fleet      the condition Scheduled that results from the replay
  Hub said   the condition Scheduled of the binding, if it differs from Fleet
  Differs    what differs from the binding: the hub has not decided again yet, waits for an input that only the hub
             has, or holds a withdrawal
  RESULT     Selected, Rejected, Withdrawn (the cluster loses the object), or Evicting (the cluster loses the object
             when the copies on other clusters are healthy)
  HELD       whether the cluster holds the object; such a cluster keeps it as long as the placement allows
  FILTERS    how many filters the cluster passes; WHY has each filter that rejects it, with the value that failed
  SCORED BY  the parts of each score
  SPREAD     the steps of the spread, in order
  Replicas   the divided number, and for each cluster the weight, limits, room, the current share and the new one
  Note       inputs of the decision that only the hub knows

The hub does not record why it first chose a cluster. The replay shows why the object stays on its clusters now. It
lacks three inputs: since when the capacity of a cluster is unchanged, which clusters a first division still waits for,
and whether the hub runs workloads, unless a condition shows that.

With --fields:

  FIELD           JSON pointer of a field that differs from the hub object
  VALUE           the value as JSON, (removed), or *** for a Secret
  SET BY, RANK    the rule that set the field last, with its rank; "division of replicas"; or memberOwnedFields
  SHADOWED        the overwritten values, the latest one first
  MEMBER MANAGER  field managers that have the field on the member; a removed field has none
  Changed         fields that the cluster's admission has changed, with the stored and the sent value
  Skipped         rules that are not applied, because one of their test operations fails
  Digest          the digest on the copy, and the one that the hub last confirmed on the cluster`,
		Example: `  hansectl explain prometheus web -n monitoring

  # Every filter, for one cluster
  hansectl explain deployment/web -n shop --cluster cn-sha-1

  # Which rule set each field there, and which manager owns it on the member
  hansectl explain deployment/web -n shop --cluster cn-sha-1 --fields

  # Clusters for which the decision would differ now
  hansectl explain deployment/web -o json | jq '.differences'`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.out.check(cmd); err != nil {
				return err
			}
			if e.fields && e.cluster == "" {
				return usageError(cmd, errors.New("--fields needs --cluster"))
			}
			kind, name := kindAndName(args)
			return e.run(cmd.Context(), kind, name)
		},
	}
	e.out.addTo(cmd)
	cmd.Flags().StringVar(&e.cluster, "cluster", "", "Show only this cluster, with the result of every filter.")
	cmd.Flags().BoolVar(&e.fields, "fields", false, "Also show the fields that differ from the hub object: which rule set each, and which manager owns it on the member.")
	e.window.addTo(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	return cmd
}

func (e *explain) run(ctx context.Context, kind, name string) error {
	c, err := e.hub.reader(&e.window)
	if err != nil {
		return err
	}
	id, version, err := e.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	object, binding, err := e.placed(ctx, c, id, version)
	if err != nil {
		return err
	}
	if _, err := e.hub.warnOfSilence(ctx, c); err != nil {
		return err
	}
	reader := inputs.Reader{Client: c, Unless: e.hub.unlessForbidden, Count: func(ctx context.Context) (map[string]int, error) { return countSent(ctx, c) }}
	in, err := reader.Read(ctx, object, binding, time.Now())
	if err != nil {
		return err
	}
	if e.cluster != "" && !slices.ContainsFunc(in.Facts.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == e.cluster }) {
		var names []string
		for _, m := range in.Facts.Clusters {
			names = append(names, m.Name)
		}
		return fmt.Errorf("the hub has no MemberCluster %q: %s", e.cluster, preview.ThereAre(names))
	}
	shown := view.Explain(in, decide.Replay(in), e.cluster)
	if shown.BundleRollout, err = e.hub.bundleRollout(ctx, c, binding); err != nil {
		return err
	}
	if e.fields {
		if shown.Fields, err = e.fieldsOf(ctx, c, in); err != nil {
			return err
		}
	}
	return e.out.print(e.hub.streams.Out, shown)
}

// fieldsOf returns which policy or manager set each field on the cluster. If the copy cannot be read, the result has no
// field managers, and a note with the reason.
func (e *explain) fieldsOf(ctx context.Context, c client.Client, in decide.Input) (*view.Fields, error) {
	id := hubv1.ObjectOf(in.Binding)
	policies, err := inputs.Overrides(ctx, c, id.Namespace != "", id.Namespace, e.hub.unlessForbidden)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(in.Facts.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == e.cluster })
	onMember, err := e.copyOf(ctx, c, id)
	fields := view.FieldsOf(in, policies, in.Facts.Clusters[i], onMember)
	if err != nil {
		fields.Note = "the copy could not be read: " + err.Error()
	}
	return fields, nil
}

// copyOf reads the copy on the cluster through the hub.
func (e *explain) copyOf(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) (*unstructured.Unstructured, error) {
	views, err := e.window.open(ctx, e.hub, c)
	if err != nil {
		return nil, err
	}
	var answer wire.CopyAnswer
	if err := views.Ask(ctx, e.cluster, wire.Copy, id.Namespace, wire.CopyRequest{Object: wire.ObjectOf(id)}, &answer); err != nil {
		return nil, err
	}
	if answer.Object == nil && answer.Refused != nil {
		return nil, fmt.Errorf("%s: %s", answer.Refused.Reason, answer.Refused.Message)
	}
	return &unstructured.Unstructured{Object: answer.Object}, nil
}

// placed reads an object and its binding. If there is no decision to explain, it returns an error with the reason.
func (e *explain) placed(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) (*unstructured.Unstructured, hubv1.BindingObject, error) {
	binding, err := readBinding(ctx, c, id)
	if err != nil {
		return nil, nil, err
	}
	object, err := e.hub.template(ctx, c, id, version, binding)
	switch {
	case err != nil:
		return nil, nil, err
	case object == nil && binding == nil:
		return nil, nil, e.hub.noObject(ctx, c, id)
	case object == nil || object.GetDeletionTimestamp() != nil:
		text := fmt.Sprintf("%s is deleted", id)
		if going := view.Withdrawing(binding); going != "" {
			text += " and " + going
		}
		return nil, nil, fmt.Errorf("%s: there is nothing to decide, see hansectl status", text)
	case binding != nil:
		return object, binding, nil
	}
	around, err := e.hub.surroundings(ctx, c, id.Namespace)
	if err != nil {
		return nil, nil, err
	}
	why := view.WhyNot(id, object, around)
	return nil, nil, fmt.Errorf("%s is not placed: %s: %s", id, why.Reason, why.Message)
}

// countSent returns, for each cluster, the number of hub objects that the cluster shall hold.
func countSent(ctx context.Context, c client.Client) (map[string]int, error) {
	counts := map[string]int{}
	err := eachBinding(ctx, c, func(b hubv1.BindingObject) {
		for _, t := range b.BindingSpec().Clusters {
			if t.State == hubv1.TargetPresent {
				counts[t.Name]++
			}
		}
	})
	return counts, err
}
