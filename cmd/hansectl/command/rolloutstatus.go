package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// rolloutStatus has the arguments of one run of rollout status.
type rolloutStatus struct {
	hub     *hub
	out     output
	watch   bool
	timeout time.Duration
}

func newRolloutStatus(h *hub) *cobra.Command {
	s := &rolloutStatus{hub: h}
	cmd := &cobra.Command{
		Use:   "status (KIND NAME | KIND/NAME)",
		Short: "Show the progress of a change",
		Long: `Show the progress of an object's change, with one row per cluster. For a Placement or ClusterPlacement, the command
shows the objects whose change is not complete. A bundle or operator changes as a whole: for it, and for each of its
objects, the command shows the rollout of the bundle.

  WAVE      the wave of the cluster; - if you may not read the placement or the MemberClusters
  REVISION  the revision that the cluster shall hold
  HOLDS     the revision that the cluster last reported
  HEALTH    health of the copy; ? marks the last known health
  PASSING   for how long the copy has been healthy at its revision

With --watch, each step is printed with the time since the start, until the rollout has ended.

The exit code is 0 when all clusters have the newest revision, and while the rollout runs if --watch is not given. It
is 1 when a revision has failed or was rolled back, and after --timeout.`,
		Example: `  hansectl rollout status deployment web -n shop

  # In a pipeline
  kubectl apply -f web.yaml && hansectl rollout status deployment/web -n shop --watch --timeout 2h

  hansectl rollout status placement web -n shop

  # An operator, or any of its objects
  hansectl rollout status federatedoperator gears`,
		Args: objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(cmd); err != nil {
				return err
			}
			kind, name := kindAndName(args)
			return s.run(cmd.Context(), kind, name)
		},
		ValidArgsFunction: h.completeObjects,
	}
	s.out.addTo(cmd)
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", false, "Print each step until the rollout has ended.")
	cmd.Flags().DurationVar(&s.timeout, "timeout", 0, "How long to watch; 0 means until the rollout has ended.")
	return cmd
}

func (s *rolloutStatus) check(cmd *cobra.Command) error {
	switch {
	case s.watch && s.out.format != "":
		return usageError(cmd, errors.New("--watch and --output exclude each other"))
	case !s.watch && s.timeout != 0:
		return usageError(cmd, errors.New("--timeout needs --watch"))
	case s.timeout < 0:
		return usageError(cmd, fmt.Errorf("--timeout %s: want 0 or more", s.timeout))
	}
	return s.out.check(cmd)
}

// rolloutState is the state of a rollout at the time at which the command read it.
type rolloutState struct {
	shown    shown
	result   view.RolloutResult
	progress string
}

// errRollout means that the rollout of a revision has failed.
var errRollout = errors.New("the rollout has failed")

func (s *rolloutStatus) run(ctx context.Context, kind, name string) error {
	c, _, err := s.hub.connect()
	if err != nil {
		return err
	}
	see := s.seeObject
	if emptyPlacement(kind) != nil {
		see = s.seePlacement
	}
	first, err := see(ctx, c, kind, name)
	if err != nil {
		return err
	}
	last := first
	if s.watch {
		last, err = s.follow(ctx, first, func(ctx context.Context) (rolloutState, error) { return see(ctx, c, kind, name) })
	} else {
		err = s.out.print(s.hub.streams.Out, first.shown)
	}
	if err == nil && last.result == view.RolloutBroken {
		err = fmt.Errorf("%w: %s", errRollout, last.progress)
	}
	return err
}

// follow reads the rollout again and again, and prints each new state, until the rollout has ended. If a reading fails,
// it prints a warning and tries again.
func (s *rolloutStatus) follow(ctx context.Context, first rolloutState, see func(context.Context) (rolloutState, error)) (rolloutState, error) {
	last := first
	timeout := cmp.Or(s.timeout, math.MaxInt64)
	_, err := await(ctx, s.hub.streams.Out, timeout, func(ctx context.Context) (string, bool, error) {
		now, err := see(ctx)
		switch {
		case errors.Is(err, errNoObject), ctx.Err() != nil:
			return last.progress, false, err
		case err != nil:
			s.hub.warn(fmt.Sprintf("warning: %v; trying again\n", err))
		default:
			last = now
		}
		return last.progress, last.result != view.RolloutRuns, nil
	})
	if errors.Is(err, errTimeout) {
		err = fmt.Errorf("watching the rollout: %w: %s", err, last.progress)
	}
	return last, err
}

func (s *rolloutStatus) seeObject(ctx context.Context, c client.Client, kind, name string) (rolloutState, error) {
	id, version, err := s.hub.identify(ctx, c, kind, name)
	if err != nil {
		return rolloutState{}, err
	}
	set, err := s.hub.readSet(ctx, c, id)
	if err != nil {
		return rolloutState{}, err
	}
	if set != nil && set.in.Spec != nil {
		r := view.SetRolloutOf(set.in, set.asked)
		return rolloutState{r, r.Result, r.Progress}, nil
	}
	found, err := s.hub.readStaged(ctx, c, id, version)
	if err != nil {
		return rolloutState{}, err
	}
	in := view.RolloutInput{ID: id, Object: found.object, Binding: found.binding}
	if set != nil && set.lead != nil {
		in = view.RolloutInput{ID: hubv1.ObjectOf(set.lead), Binding: set.lead}
	}
	followed, err := s.hub.followed(ctx, c, in.Binding.BindingSpec().PlacementRef)
	if err != nil {
		return rolloutState{}, err
	}
	if followed != nil {
		in.Placement = followed
	}
	var members hubv1.MemberClusterList
	if err := s.hub.unlessForbidden(c.List(ctx, &members), "the waves of clusters are not shown"); err != nil {
		return rolloutState{}, fmt.Errorf("listing MemberClusters: %w", err)
	}
	in.Members, in.Now = members.Items, time.Now()
	r := view.RolloutOf(in)
	return rolloutState{r, r.Result, r.Progress}, nil
}

// seePlacement reads the state of a placement's rollouts. With --watch, it does not read the objects, because only
// their counts are printed.
func (s *rolloutStatus) seePlacement(ctx context.Context, c client.Client, kind, name string) (rolloutState, error) {
	p, err := s.hub.rollingPlacement(ctx, c, kind, name)
	if err != nil {
		return rolloutState{}, err
	}
	var objects []hubv1.BindingObject
	if !s.watch {
		if objects, err = followers(ctx, c, p); err != nil {
			return rolloutState{}, err
		}
	}
	r := view.PlacementRolloutOf(p, objects)
	return rolloutState{r, r.Result, r.Progress}, nil
}
