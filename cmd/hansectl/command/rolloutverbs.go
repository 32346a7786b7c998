package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// rollingPlacement reads a placement, and returns an error if the placement has no rollout.
func (h *hub) rollingPlacement(ctx context.Context, c client.Client, kind, name string) (placementObject, error) {
	p := emptyPlacement(kind)
	if err := h.readPlacement(ctx, c, p, name); err != nil {
		return nil, err
	}
	if p.PlacementSpec().Rollout == nil {
		return nil, fmt.Errorf("%s %s has no rollout: it sets no spec.rollout, so a change goes to all clusters at once", placementKind(p), nameOf(p))
	}
	return p, nil
}

// steeredPlacement is a placement whose rollouts the user controls by a command, such as pause or approve.
type steeredPlacement struct {
	hub       *hub
	client    client.Client
	placement placementObject
	named     string // kind and name of the placement, such as placement/web
}

// ask reads the placement that the argument names, for a command that controls its rollouts. A placement without a
// rollout is an error.
func (h *hub) ask(ctx context.Context, arg string) (*steeredPlacement, error) {
	c, _, err := h.connect()
	if err != nil {
		return nil, err
	}
	kind, name := placementArgument(arg)
	p, err := h.rollingPlacement(ctx, c, kind, name)
	if err != nil {
		return nil, err
	}
	return &steeredPlacement{hub: h, client: c, placement: p, named: strings.ToLower(placementKind(p)) + "/" + name}, nil
}

// annotate changes the annotations of the placement. It removes the author of the last change, which the hub's webhook
// sets again. While no webhook answers, the API server would otherwise refuse a change in the name of another user.
func (a *steeredPlacement) annotate(ctx context.Context, change func(map[string]string)) error {
	err := annotate(ctx, a.client, a.placement, func(annotations map[string]string) {
		change(annotations)
		delete(annotations, hubv1.ChangedByAnnotation)
	})
	if err != nil {
		return fmt.Errorf("changing %s: %w", a.named, err)
	}
	return nil
}

func (a *steeredPlacement) print(format string, args ...any) {
	printLine(a.hub.streams.Out, a.named, format, args...)
}

// steering returns the placement with the bindings of the objects that follow it.
func (a *steeredPlacement) steering(ctx context.Context) (rollout.Steering, error) {
	objects, err := followers(ctx, a.client, a.placement)
	return rollout.Steering{Placement: a.placement, Named: a.named, Objects: objects}, err
}

func newRolloutPause(h *hub) *cobra.Command {
	return &cobra.Command{
		Use:     "pause PLACEMENT",
		Short:   "Pause changes: no further cluster begins to change",
		Long:    `Pause changes: no further cluster begins to change. Clusters that have begun continue.`,
		Example: `  hansectl rollout pause web -n shop`,
		Args:    placementArguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := h.ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.annotate(cmd.Context(), rollout.Pause); err != nil {
				return err
			}
			resumed := args[0]
			if namespace := a.placement.GetNamespace(); namespace != "" {
				resumed += " -n " + namespace
			}
			a.print("paused: no more clusters begin to change until hansectl rollout resume %s; clusters that have begun go on", resumed)
			return nil
		},
		ValidArgsFunction: h.completePlacements,
	}
}

func newRolloutResume(h *hub) *cobra.Command {
	return &cobra.Command{
		Use:     "resume PLACEMENT",
		Short:   "End a pause",
		Long:    `End a pause: changes continue with the next cluster.`,
		Example: `  hansectl rollout resume web -n shop`,
		Args:    placementArguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := h.ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.placement.GetAnnotations()[hubv1.RolloutPauseAnnotation] == "" {
				a.print("is not paused")
				return nil
			}
			if err := a.annotate(cmd.Context(), rollout.Resume); err != nil {
				return err
			}
			a.print("resumed: changes continue with the next cluster")
			return nil
		},
		ValidArgsFunction: h.completePlacements,
	}
}

func newRolloutApprove(h *hub) *cobra.Command {
	return &cobra.Command{
		Use:   "approve PLACEMENT WAVE",
		Short: "Let the changes in progress enter a wave",
		Long: `Let the changes in progress enter a wave whose approval is Manual. A later change needs another approval.

An object enters the wave only after it has passed the earlier waves, even if the approval comes before that.`,
		Example: `  # Let the changes of Placement web enter its wave asia
  hansectl rollout approve web asia -n shop`,
		Args: placementArguments("WAVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return h.approve(cmd.Context(), args[0], args[1])
		},
		ValidArgsFunction: h.completeWaves,
	}
}

func (h *hub) approve(ctx context.Context, placement, wave string) error {
	return h.request(ctx, placement, func(s rollout.Steering) (rollout.Request, error) { return s.Approve(wave) },
		"wave "+wave+" is approved for the changes of %s: each object enters the wave after it has passed the earlier waves")
}

func newRolloutSkip(h *hub) *cobra.Command {
	var wave string
	cmd := &cobra.Command{
		Use:   "skip PLACEMENT (CLUSTER | --wave WAVE)",
		Short: "Skip a cluster or a wave: changes do not wait for it",
		Long: `Skip a cluster for the changes in progress: no wave waits for the cluster. The cluster gets the new revision when its
wave has passed without it. A failure on the cluster does not stop the rollout.

With --wave, the changes in progress wait for no cluster of the wave. A skip is no approval: a manual wave still waits
for its approval.`,
		Example: `  hansectl rollout skip web eu-fra-1 -n shop

  # Skip a wave whose clusters have all left
  hansectl rollout skip web --wave asia -n shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("wave"):
				return placementArguments("CLUSTER")(cmd, args)
			case len(args) > 1:
				return usageError(cmd, fmt.Errorf("unexpected argument %q beside --wave", args[1]))
			}
			return placementArguments()(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("wave") {
				return h.skipWave(cmd.Context(), args[0], wave)
			}
			return h.skip(cmd.Context(), args[0], args[1])
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return h.completeClusters(cmd, nil, typed)
			}
			return h.completePlacements(cmd, args, typed)
		},
	}
	cmd.Flags().StringVar(&wave, "wave", "", "Skip all clusters of this wave, instead of one cluster.")
	_ = cmd.RegisterFlagCompletionFunc("wave", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeWaveNames(cmd, args, typed, func(hubv1.RolloutWave) bool { return true })
	})
	return cmd
}

func (h *hub) skip(ctx context.Context, placement, cluster string) error {
	return h.request(ctx, placement, func(s rollout.Steering) (rollout.Request, error) { return s.Skip(cluster) },
		cluster+" is skipped for the changes of %s: no wave waits for the cluster, which gets the changes after its wave has passed")
}

func (h *hub) skipWave(ctx context.Context, placement, wave string) error {
	return h.request(ctx, placement, func(s rollout.Steering) (rollout.Request, error) { return s.SkipWave(wave) },
		"wave "+wave+" is skipped for the changes of %s: the changes wait for no cluster of the wave")
}

// request writes a user's request into the annotations of a placement. done is the text to print, with %s for the
// number of objects.
func (h *hub) request(ctx context.Context, placement string, of func(rollout.Steering) (rollout.Request, error), done string) error {
	a, err := h.ask(ctx, placement)
	if err != nil {
		return err
	}
	s, err := a.steering(ctx)
	if err != nil {
		return err
	}
	request, err := of(s)
	if err != nil {
		return err
	}
	if err := a.annotate(ctx, request.Change); err != nil {
		return err
	}
	a.print("%s", fmt.Sprintf(done, counted(request.Objects, "object")))
	return nil
}

// promotion has the arguments of one run of rollout promote.
type promotion struct {
	hub       *hub
	full, yes bool
	reason    string
}

func newRolloutPromote(h *hub) *cobra.Command {
	p := &promotion{hub: h}
	cmd := &cobra.Command{
		Use:   "promote PLACEMENT --full --reason TEXT",
		Short: "Send the changes in progress to all clusters at once",
		Long: `Send the changes in progress to all clusters at once, without waves, soak, approvals and windows. It is for
emergencies: a bad change reaches every cluster. Changes that have failed or were rolled back are sent, too. Suspended
and cordoned clusters keep their revision.`,
		Example: `  hansectl rollout promote web -n shop --full --reason "CVE-2026-1234"`,
		Args:    placementArguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.reason = strings.Join(strings.Fields(p.reason), " ")
			switch {
			case !p.full:
				return usageError(cmd, errors.New("--full is missing: pass --full to skip all waves, or approve one wave with hansectl rollout approve"))
			case p.reason == "":
				return usageError(cmd, errors.New("--reason is missing: say why the waves are left out"))
			}
			return p.run(cmd.Context(), args[0])
		},
		ValidArgsFunction: h.completePlacements,
	}
	cmd.Flags().BoolVar(&p.full, "full", false, "Send the changes to all clusters at once. Required.")
	cmd.Flags().StringVar(&p.reason, "reason", "", "The reason for skipping the waves. It is stored in an annotation of the placement. Required.")
	cmd.Flags().BoolVar(&p.yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (p *promotion) run(ctx context.Context, placement string) error {
	a, err := p.hub.ask(ctx, placement)
	if err != nil {
		return err
	}
	s, err := a.steering(ctx)
	if err != nil {
		return err
	}
	request, err := s.Promote(p.reason)
	if err != nil {
		return err
	}
	changes := "the changes of " + counted(request.Objects, "object")
	if err := p.hub.confirm(p.yes, "This sends %s to %s at once.", changes, counted(request.Clusters, "cluster")); err != nil {
		return err
	}
	if err := a.annotate(ctx, request.Change); err != nil {
		return err
	}
	a.print("%s go to all clusters at once: %s", changes, p.reason)
	return nil
}

// completeWaves completes the name of a placement, and then the names of its waves that wait for an approval.
func (h *hub) completeWaves(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return h.completePlacements(cmd, args, typed)
	}
	return h.completeWaveNames(cmd, args, typed, func(w hubv1.RolloutWave) bool { return w.Approval == hubv1.ApprovalManual })
}

// completeWaveNames completes the names of the waves for which offer returns true. args has the placement.
func (h *hub) completeWaveNames(cmd *cobra.Command, args []string, typed string, offer func(hubv1.RolloutWave) bool) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kind, _ := placementArgument(args[0])
	if emptyPlacement(kind) == nil {
		return nil, cobra.ShellCompDirectiveError
	}
	a, err := h.ask(cmd.Context(), args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, w := range a.placement.PlacementSpec().Rollout.Waves {
		if offer(w) && strings.HasPrefix(w.Name, typed) {
			names = append(names, w.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
