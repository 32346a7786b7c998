package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// suspension has the arguments of one run of suspend or resume.
type suspension struct {
	hub *hub
	on  bool // the command is suspend

	scheduling, dispatching bool
	clusters                []string
	selector                string // the flag --selector of suspend
	selected                bool   // the flag --selector of resume
}

func newSuspend(h *hub) *cobra.Command {
	s := &suspension{hub: h, on: true}
	return s.command("suspend", "Stop the hub's work for the objects of a placement",
		`Stop the hub's work for the objects of a placement: set its spec.suspend. The copies stay as they are.

Without flags, the hub stops decisions (--scheduling) and writes to members (--dispatching).`,
		`  hansectl suspend placement/web -n shop

  # Decisions go on; nothing is written to one cluster
  hansectl suspend placement/web -n shop --cluster eu-fra-1

  # A change goes to the test clusters first
  hansectl suspend placement/web -n shop --selector 'tier notin (test)'`)
}

func newResume(h *hub) *cobra.Command {
	s := &suspension{hub: h}
	return s.command("resume", "Let the hub work again for the objects of a placement",
		`Let the hub work again for the objects of a placement: unset its spec.suspend, or the part of it that the flags name.`,
		`  hansectl resume placement/web -n shop

  hansectl resume placement/web -n shop --cluster eu-fra-1

  hansectl resume placement/web -n shop --selector`)
}

func (s *suspension) command(name, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " (placement/NAME | clusterplacement/NAME)", Short: short, Long: long, Example: example, Args: objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := kindAndName(args)
			object := emptyPlacement(kind)
			if object == nil {
				return usageError(cmd, fmt.Errorf("KIND %q: want placement or clusterplacement", kind))
			}
			selector, err := s.clusterSelector()
			if err != nil {
				return usageError(cmd, err)
			}
			return s.run(cmd.Context(), object, name, selector)
		},
		ValidArgsFunction: s.hub.completePlacements,
	}
	cmd.Flags().BoolVar(&s.scheduling, "scheduling", false, "Suspend only decisions: every binding keeps its clusters.")
	cmd.Flags().BoolVar(&s.dispatching, "dispatching", false, "Suspend only writes: the hub writes to no member.")
	cmd.Flags().StringSliceVar(&s.clusters, "cluster", nil, "Suspend only writes to this cluster. Can be repeated.")
	if s.on {
		cmd.Flags().StringVar(&s.selector, "selector", "", "Suspend only writes to clusters with these labels, such as 'tier notin (test)'. It replaces spec.suspend.clusterSelector.")
	} else {
		cmd.Flags().BoolVar(&s.selected, "selector", false, "Unset only spec.suspend.clusterSelector: the hub writes to its clusters again, unless another part of spec.suspend names them. Takes no value.")
	}
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return s.hub.completeClusters(cmd, nil, typed)
	})
	return cmd
}

// clusterSelector parses the selector flag of suspend. It returns nil if the flag is not set.
func (s *suspension) clusterSelector() (*metav1.LabelSelector, error) {
	if s.selector == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(s.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %q is not a label selector: %w", s.selector, err)
	}
	return selector, nil
}

// placementObject is a Placement or ClusterPlacement that a client can read and write.
type placementObject interface {
	client.Object
	hubv1.PlacementObject
}

// emptyPlacement returns an empty object of the kind. It returns nil if the kind is neither Placement nor
// ClusterPlacement.
func emptyPlacement(kind string) placementObject {
	kind, group, found := strings.Cut(strings.ToLower(kind), ".")
	if found && group != hubv1.GroupVersion.Group {
		return nil
	}
	switch kind {
	case "placement", "placements", "pl":
		return &hubv1.Placement{}
	case "clusterplacement", "clusterplacements", "cpl":
		return &hubv1.ClusterPlacement{}
	}
	return nil
}

// readPlacement reads the placement of this name. The result is stored in the argument "into".
func (h *hub) readPlacement(ctx context.Context, c client.Client, into placementObject, name string) error {
	key, kind := client.ObjectKey{Name: name}, "ClusterPlacement"
	if _, namespaced := into.(*hubv1.Placement); namespaced {
		kind = "Placement"
		var err error
		if key.Namespace, _, err = h.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("finding the namespace: %w", err)
		}
	}
	err := c.Get(ctx, key, into)
	switch {
	case meta.IsNoMatchError(err):
		return errNoHub
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w %s %s%s", errNoObject, kind, strings.TrimPrefix(key.String(), "/"), h.elsewhere(key.Namespace))
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return nil
}

func (s *suspension) run(ctx context.Context, object placementObject, name string, selector *metav1.LabelSelector) error {
	c, _, err := s.hub.connect()
	if err != nil {
		return err
	}
	if err := s.hub.readPlacement(ctx, c, object, name); err != nil {
		return err
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("copying a placement")
	}
	policy := &object.PlacementSpec().Suspend
	s.apply(policy, selector)
	if err := existing(ctx, c, s.clusters, nil); s.on && err != nil { // only a warning, because the cluster may join later
		s.hub.warn("warning: " + err.Error() + "\n")
	}
	if err := c.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing %s %s: %w", placementKind(object), nameOf(object), err)
	}
	printLine(s.hub.streams.Out, strings.ToLower(placementKind(object))+"/"+name, "%s", suspendedText(policy))
	if !s.on || object.PlacementSpec().Rollout == nil {
		return nil
	}
	members, err := listClusters(ctx, c)
	if err := s.hub.unlessForbidden(err, "waves that wait for the clusters are not shown"); err != nil {
		return err
	}
	var suspended []*hubv1.MemberCluster
	for i := range members {
		if policy.SuspendsWrites(members[i].Name, &members[i]) {
			suspended = append(suspended, &members[i])
		}
	}
	return s.hub.printWaves(ctx, c, []hubv1.PlacementObject{object}, suspended)
}

// apply suspends or resumes the parts of a placement that the flags name. Without flags, these are scheduling and
// dispatching. resume without flags also removes the lists of suspended clusters.
func (s *suspension) apply(p *hubv1.SuspendPolicy, selector *metav1.LabelSelector) {
	all := !s.scheduling && !s.dispatching && len(s.clusters) == 0 && selector == nil && !s.selected
	if s.scheduling || all {
		p.Scheduling = s.on
	}
	if s.dispatching || all {
		p.Dispatching = s.on
	}
	switch {
	case all && !s.on:
		p.Clusters = nil
	case s.on:
		p.Clusters = append(p.Clusters, s.clusters...)
		slices.Sort(p.Clusters)
		p.Clusters = slices.Compact(p.Clusters)
	default:
		p.Clusters = slices.DeleteFunc(p.Clusters, func(c string) bool { return slices.Contains(s.clusters, c) })
	}
	switch {
	case selector != nil:
		p.ClusterSelector = selector
	case s.selected || all && !s.on:
		p.ClusterSelector = nil
	}
}

// suspendedText describes which parts of a placement are suspended.
func suspendedText(p *hubv1.SuspendPolicy) string {
	var parts []string
	if p.Scheduling {
		parts = append(parts, "decisions stay as they are")
	}
	if p.Dispatching {
		parts = append(parts, "nothing is written to members")
	} else if clusters := view.SuspendedClusters(p); clusters != "" {
		parts = append(parts, "nothing is written to "+clusters)
	}
	if parts == nil {
		return "not suspended any more"
	}
	return "suspended: " + strings.Join(parts, "; ")
}
