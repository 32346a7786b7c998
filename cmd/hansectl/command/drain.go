package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// drain has the arguments of one run of the command drain.
type drain struct {
	hub *hub

	clusters       clusterChoice
	maxUnavailable int32
	evict          bool
	wait           bool
	timeout        time.Duration
}

// errLeft means that a drained cluster still holds objects that cannot be moved.
var errLeft = errors.New("not all objects could be moved")

const (
	// blockedFor is the time after which a drain without progress is reported as blocked. The hub updates status.drain
	// only every few seconds. Within this time, a blocked object may find another cluster.
	blockedFor = 5 * time.Second
	// namedLeft is the maximum number of remaining objects that the output lists.
	namedLeft = 50
)

func newDrain(h *hub) *cobra.Command {
	d := &drain{hub: h}
	cmd := &cobra.Command{
		Use:   "drain CLUSTER | --region REGION",
		Short: "Move the objects of a cluster to others, and send no new ones",
		Long: `Move the objects of a cluster to others, and send no new ones: set spec.drain of its MemberCluster, and wait.

Each object is first created on another cluster, and leaves the drained cluster when the new copy is Healthy. An
object stays if its placement selects every cluster, or if no other cluster can hold it. With --evict such objects are
removed as well, and return with hansectl uncordon. The hub moves the objects: the drain continues after this command
ends, until hansectl uncordon ends it.

When only objects are left that cannot move, the command lists them and ends; before that, it waits 5 s for objects
that no other cluster can take. A new run of the command shows the progress.

Exit code 0: every object has left the cluster, or --wait=false. 3: objects are left that cannot be moved. 2: wrong
usage. 1: any other error, such as the end of --timeout.`,
		Example: `  hansectl drain eu-fra-1

  # Every cluster of a region
  hansectl drain --region eu-central-1

  # Faster: a hundred objects of each cluster at a time
  hansectl drain eu-fra-1 --max-unavailable 100

  # Also remove objects that no other cluster can hold; they return with hansectl uncordon
  hansectl drain eu-fra-1 --evict

  # Start the drain, and do not wait for its end
  hansectl drain eu-fra-1 --wait=false`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("max-unavailable") && (d.maxUnavailable < 1 || d.maxUnavailable > 10000) {
				return usageError(cmd, fmt.Errorf("--max-unavailable %d: want 1 to 10000", d.maxUnavailable))
			}
			if d.timeout < 0 {
				return usageError(cmd, fmt.Errorf("--timeout %s: want 0 or more", d.timeout))
			}
			return d.run(cmd.Context())
		},
	}
	d.clusters.addTo(cmd, h)
	cmd.Flags().Int32Var(&d.maxUnavailable, "max-unavailable", 0, fmt.Sprintf(
		"Maximum number of objects of a cluster that move at a time (default %d, or the value in the MemberCluster).", hubv1.DefaultMaxUnavailable))
	cmd.Flags().BoolVar(&d.evict, "evict", false, "Also remove objects that no other cluster can hold. They return when the drain ends.")
	cmd.Flags().BoolVar(&d.wait, "wait", true, "Wait until no object is left to move.")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, "How long to wait; 0 means no timeout. The drain continues after this time.")
	return cmd
}

// run starts the drain of every cluster before it waits for the first one. Otherwise, objects could move from one
// drained cluster to another.
func (d *drain) run(ctx context.Context) error {
	hub, _, err := d.hub.connect()
	if err != nil {
		return err
	}
	clusters, err := d.clusters.read(ctx, hub)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if err := d.ask(ctx, hub, cluster); err != nil {
			return err
		}
	}
	if !d.wait {
		return nil
	}
	began, left := time.Now(), []error{}
	for _, cluster := range clusters {
		timeout := time.Duration(math.MaxInt64)
		if d.timeout > 0 {
			timeout = max(0, d.timeout-time.Since(began))
		}
		err := d.await(ctx, hub, cluster.Name, timeout)
		if err != nil && !errors.Is(err, errLeft) {
			return err
		}
		if err != nil {
			d.showLeft(ctx, hub, cluster.Name)
			left = append(left, err)
		}
	}
	if len(left) > 0 {
		return &ExitError{Code: 3, Err: errors.Join(left...)}
	}
	return nil
}

// await waits until a cluster has no objects left. If the remaining objects cannot be moved, it returns errLeft.
func (d *drain) await(ctx context.Context, hub client.Client, name string, timeout time.Duration) error {
	var blocked time.Time
	state, err := await(ctx, d.hub.streams.Out, timeout, func(ctx context.Context) (string, bool, error) {
		cluster, err := readCluster(ctx, hub, name)
		if err != nil {
			return "", false, err
		}
		if cluster.Spec.Drain == nil {
			return "", false, errDrainUnset
		}
		state, end := view.DrainProgress(cluster)
		if end != view.DrainBlocked {
			blocked = time.Time{}
		} else if blocked.IsZero() {
			blocked = time.Now()
		}
		if d.clusters.region != "" {
			state = name + ": " + state
		}
		if end == view.DrainStaying || (end == view.DrainBlocked && time.Since(blocked) >= blockedFor) {
			err = fmt.Errorf("%w: %s", errLeft, state)
		}
		return state, end == view.DrainDone, err
	})
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("draining membercluster/%s: %w after %s: %s; %s (a drain needs a running hub)", name, errTimeout, d.timeout, state, goesOn(name))
	case ctx.Err() != nil:
		printLine(d.hub.streams.Out, "membercluster/"+name, "%s", goesOn(name))
	case err != nil:
		return fmt.Errorf("draining membercluster/%s: %w", name, err)
	}
	return err
}

var errDrainUnset = errors.New("spec.drain was unset during the drain: objects that have not begun to move stay")

func goesOn(cluster string) string {
	return fmt.Sprintf("the drain goes on: hansectl drain %s shows the progress, hansectl uncordon %s ends it", cluster, cluster)
}

// showLeft lists the objects that are left on a cluster, and prints what the user can do next. If the user may not read
// bindings, it prints a warning instead of the list.
func (d *drain) showLeft(ctx context.Context, hub client.Client, cluster string) {
	var left []view.LeftObject
	err := eachBinding(ctx, hub, func(b hubv1.BindingObject) {
		if b.BindingSpec().Target(cluster) != nil {
			left = append(left, view.NewLeftObject(b))
		}
	})
	if err != nil {
		fmt.Fprintf(d.hub.streams.ErrOut, "warning: the objects that are left on %s cannot be listed: %v\n", cluster, err)
	} else {
		view.WriteLeft(d.hub.streams.Out, left, namedLeft)
	}
	printLine(d.hub.streams.Out, "membercluster/"+cluster, "%s; to move the objects that stay, set spec.spread.numberOfClusters in their placements; "+
		"hansectl drain %s --evict removes these objects until hansectl uncordon",
		goesOn(cluster), cluster)
}

// ask sets spec.drain of a MemberCluster. If spec.drain exists, ask changes only the fields whose flags the user has
// set.
func (d *drain) ask(ctx context.Context, hub client.Client, cluster *hubv1.MemberCluster) error {
	before, verb := cluster.DeepCopy(), "draining"
	if cluster.Spec.Drain != nil {
		verb = "is being drained already"
	} else {
		cluster.Spec.Drain = &hubv1.DrainPolicy{}
	}
	if d.maxUnavailable > 0 {
		cluster.Spec.Drain.MaxUnavailable = &d.maxUnavailable
	}
	cluster.Spec.Drain.Evict = cluster.Spec.Drain.Evict || d.evict
	if err := changeCluster(ctx, hub, before, cluster); err != nil {
		return err
	}
	also := ""
	if cluster.Spec.Drain.Evict {
		also = "; objects that no other cluster can hold are removed"
	}
	printLine(d.hub.streams.Out, "membercluster/"+cluster.Name, "%s: it gets no new objects, and at most %s at a time%s", verb,
		counted(int(ptr.Deref(cluster.Spec.Drain.MaxUnavailable, hubv1.DefaultMaxUnavailable)), "object")+" move", also)
	return nil
}
