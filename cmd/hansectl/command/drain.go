package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// drain is one run of the command.
type drain struct {
	hub *hub

	name           string
	maxUnavailable int32
	wait           bool
	timeout        time.Duration
}

var errBlocked = errors.New("the drain cannot go on")

// blockedFor is how long nothing must be able to move before that is believed: the hub counts every few seconds, and what was blocked may just
// have got a place.
const blockedFor = 5 * time.Second

func newDrain(h *hub) *cobra.Command {
	d := &drain{hub: h}
	cmd := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Move the objects of a cluster to others, and send no new ones",
		Long: `Move the objects of a cluster to others, and send no new ones: set spec.drain of its MemberCluster, and wait.

Each object gets its replacement first, and leaves the cluster when that is Healthy. What its placement wants on every cluster stays, and so
does what no other cluster can take. The hub does the work: it goes on if this command ends, until hansectl uncordon ends it.`,
		Example: `  hansectl drain eu-fra-1

  # Faster: a hundred objects at a time
  hansectl drain eu-fra-1 --max-unavailable 100

  # Ask for it and look later
  hansectl drain eu-fra-1 --wait=false`,
		Args: arguments("CLUSTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-unavailable") && (d.maxUnavailable < 1 || d.maxUnavailable > 10000) {
				return usageError(cmd, fmt.Errorf("--max-unavailable %d: want 1 to 10000", d.maxUnavailable))
			}
			if d.timeout < 0 {
				return usageError(cmd, fmt.Errorf("--timeout %s: want 0 or more", d.timeout))
			}
			d.name = args[0]
			return d.run(cmd.Context())
		},
		ValidArgsFunction: h.completeClusters,
	}
	cmd.Flags().Int32Var(&d.maxUnavailable, "max-unavailable", 0, fmt.Sprintf(
		"How many objects of the cluster may be moving at a time (default %d, or what the MemberCluster says already).", hubv1.MostUnavailable))
	cmd.Flags().BoolVar(&d.wait, "wait", true, "Wait until nothing is left to move.")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, "How long to wait; 0 is as long as it takes. The drain goes on after it.")
	return cmd
}

func (d *drain) run(ctx context.Context) error {
	hub, _, err := d.hub.connect()
	if err != nil {
		return err
	}
	if err := d.ask(ctx, hub); err != nil {
		return err
	}
	if !d.wait {
		return nil
	}
	timeout := d.timeout
	if timeout == 0 {
		timeout = math.MaxInt64
	}
	var blocked time.Time
	state, err := await(ctx, d.hub.streams.Out, timeout, func(ctx context.Context) (string, bool, error) {
		cluster, err := readCluster(ctx, hub, d.name)
		if err != nil {
			return "", false, err
		}
		state, done, err := drainState(cluster)
		switch {
		case !errors.Is(err, errBlocked):
			blocked = time.Time{}
		case blocked.IsZero():
			blocked, err = time.Now(), nil
		case time.Since(blocked) < blockedFor:
			err = nil
		}
		return state, done, err
	})
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("draining membercluster/%s: %w: %s; %s (it needs a running hub)", d.name, err, state, d.goesOn())
	case ctx.Err() != nil:
		says(d.hub.streams.Out, "membercluster/"+d.name, "%s", d.goesOn())
	case errors.Is(err, errBlocked):
		return fmt.Errorf("draining membercluster/%s: %w; they move as soon as another cluster can take them, and hansectl uncordon %s ends the drain", d.name, err, d.name)
	}
	return err
}

func (d *drain) goesOn() string {
	return fmt.Sprintf("the drain goes on: hansectl drain %s shows how far it is, hansectl uncordon %s ends it", d.name, d.name)
}

// ask sets spec.drain. What is asked for already stays, unless a flag says otherwise.
func (d *drain) ask(ctx context.Context, hub client.Client) error {
	cluster, err := readCluster(ctx, hub, d.name)
	if err != nil {
		return err
	}
	before, verb := cluster.DeepCopy(), "draining"
	if cluster.Spec.Drain != nil {
		verb = "is being drained already"
	} else {
		cluster.Spec.Drain = &hubv1.DrainPolicy{}
	}
	if d.maxUnavailable > 0 {
		cluster.Spec.Drain.MaxUnavailable = &d.maxUnavailable
	}
	if err := changeCluster(ctx, hub, before, cluster); err != nil {
		return err
	}
	says(d.hub.streams.Out, "membercluster/"+d.name, "%s: it gets no new objects, and at most %s at a time", verb,
		counted(int(ptr.Deref(cluster.Spec.Drain.MaxUnavailable, hubv1.MostUnavailable)), "object")+" move")
	return nil
}

// drainState says how far a drain is. It is done when nothing is left but what stays, and an error if it cannot go on.
func drainState(cluster *hubv1.MemberCluster) (state string, done bool, err error) {
	if cluster.Spec.Drain == nil {
		return "", false, errors.New("spec.drain was unset meanwhile: what has not begun to move stays")
	}
	s := cluster.Status.Drain
	if s == nil {
		return "waiting for the hub to look at it", false, nil
	}
	stay := ""
	if s.Staying > 0 {
		stay = counted(int(s.Staying), "object") + " that the placement wants on every cluster"
	}
	switch {
	case s.Remaining == 0:
		return "drained: nothing is left", true, nil
	case s.Remaining == s.Staying:
		return "drained: what is left is " + stay, true, nil
	}
	parts := []string{counted(int(s.Remaining-s.Staying), "object") + " to go"}
	for _, part := range []struct {
		n    int32
		what string
	}{{s.Moving, "moving"}, {s.Blocked, "blocked"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	state = strings.Join(parts, ", ")
	if stay != "" {
		state += ", beside " + stay
	}
	if s.Message != "" {
		state += ": " + s.Message
	}
	if s.Remaining == s.Staying+s.Blocked {
		return state, false, fmt.Errorf("%w: %s", errBlocked, state)
	}
	return state, false, nil
}
