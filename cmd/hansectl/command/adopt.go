package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// adoption has the arguments of one run of the command adopt.
type adoption struct {
	hub      *hub
	window   window
	out      output
	clusters []string

	overwrite, dryRun, yes bool
}

func newAdopt(h *hub) *cobra.Command {
	a := &adoption{hub: h}
	cmd := &cobra.Command{
		Use:   "adopt (KIND NAME | KIND/NAME)",
		Short: "Take over an object that already exists on members",
		Long: `Take over an object that already exists on members and that the hub did not create. The command first shows
what would change, and asks you.

An object is taken over if no field of it would change, as with apply.adoption: IfNoDiff of a placement. With
--overwrite it gets the hub's values even if fields differ, as with apply.adoption: Always. The command applies to this
object alone, and once. Afterwards the object is a copy, which the hub keeps up to date. The hub marks the copy as
adopted: deletion.adopted of the placement decides what happens to it when the hub removes it.

  Adoptable  the object is not Hanse's, and can be taken over
  Differs    the object is not Hanse's, and would change
  Copy       the object is already a copy of the hub object
  Missing    the cluster has no object of that name; the hub creates a copy without this command
  Refused    the hub does not write the object now: it belongs to another hub, it is suspended or paused, or
             apply.mode is ReportOnly
  Adopted    the object was taken over

The command takes over only the objects that it has shown. An object that was created again in the meantime stays as
it is. A Secret needs --overwrite, because its values are never compared. The admission policy of the member must
allow adoption: chart value admissionPolicy.adoption, or hansectl join --admission-policy=adopt.

You need the verb adopt on the MemberClusters, and update on the hub object. The exit code is 1 if an object is not
taken over or, with --dry-run, would not be taken over, or if a cluster could not be asked.`,
		Example: `  # Show the objects on the members, and what would change
  hansectl adopt deployment/web -n shop --dry-run

  # Take it over on one cluster
  hansectl adopt deployment/web -n shop --cluster eu-fra-1

  # Show the differences, and then write the hub's values
  hansectl diff deployment/web -n shop
  hansectl adopt deployment/web -n shop --overwrite`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.out.check(cmd); err != nil {
				return err
			}
			if a.out.format != "" && !a.dryRun && !a.yes {
				return usageError(cmd, errors.New("--output needs --dry-run or --yes"))
			}
			kind, name := kindAndName(args)
			return a.run(cmd.Context(), kind, name)
		},
	}
	a.out.addTo(cmd)
	a.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&a.clusters, "cluster", nil, "Adopt the object only on this cluster. Can be repeated.")
	cmd.Flags().BoolVar(&a.overwrite, "overwrite", false, "Also adopt objects that differ from the hub object, and write the hub's values to them.")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "Show what the command would do, and change nothing.")
	cmd.Flags().BoolVar(&a.yes, "yes", false, "Do not ask for a confirmation.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", h.completeMoreClusters)
	return cmd
}

func (a *adoption) run(ctx context.Context, kind, name string) error {
	c, err := a.hub.reader(&a.window)
	if err != nil {
		return err
	}
	id, version, err := a.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	binding, err := a.hub.readPlaced(ctx, c, id, version)
	if err != nil {
		return err
	}
	clusters, err := sentTo(id, binding, a.clusters)
	if err != nil {
		return err
	}
	viewer, err := a.window.open(ctx, a.hub, c)
	if err != nil {
		return err
	}
	found := view.Adoption{Object: wire.ObjectOf(id)}
	for _, cluster := range clusters {
		there := view.ClusterAdoption{Cluster: cluster}
		if len(a.clusters) == 0 && holdsCopy(binding, cluster) {
			there.State = wire.AdoptCopy
		}
		found.Clusters = append(found.Clusters, there)
	}
	a.ask(ctx, viewer, found, func(c view.ClusterAdoption) bool { return c.State == "" })
	if a.out.format == "" {
		if err := a.out.print(a.hub.streams.Out, found); err != nil {
			return err
		}
	}
	possible := adoptable(found)
	if a.dryRun || len(possible) == 0 {
		return errors.Join(a.printFormatted(found), left(found))
	}
	if err := a.hub.confirm(a.yes, "%s", a.aboutToAdopt(possible)); err != nil {
		return err
	}
	asked := func(c view.ClusterAdoption) bool { return slices.Contains(possible, c.Cluster) }
	a.ask(ctx, viewer, found, asked)
	if a.out.format == "" {
		taken := view.Adoption{Object: found.Object}
		for _, c := range found.Clusters {
			if asked(c) {
				taken.Clusters = append(taken.Clusters, c)
			}
		}
		taken.Write(a.hub.streams.Out, time.Now())
	}
	return errors.Join(a.printFormatted(found), left(found))
}

// holdsCopy reports whether the hub has confirmed that the cluster holds a copy of the object. Such a cluster needs no
// adoption.
func holdsCopy(binding hubv1.BindingObject, cluster string) bool {
	row := binding.BindingStatus().Row(cluster)
	return row != nil && row.Applied == metav1.ConditionTrue && row.UID != "" && row.Reason != hubv1.ReasonInSync
}

// ask asks clusters to adopt their objects, and stores the answers in found. The argument "which" selects the clusters.
func (a *adoption) ask(ctx context.Context, viewer *views.Client, found view.Adoption, which func(view.ClusterAdoption) bool) {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for i := range found.Clusters {
		there := &found.Clusters[i]
		if !which(*there) {
			continue
		}
		asking.Go(func() error {
			request := wire.AdoptRequest{Object: found.Object, Adoption: hubv1.AdoptionIfNoDiff, UID: there.UID}
			if a.overwrite {
				request.Adoption = hubv1.AdoptionAlways
			}
			there.AdoptAnswer = wire.AdoptAnswer{}
			err := viewer.Ask(ctx, there.Cluster, wire.Adopt, found.Object.Namespace, request, &there.AdoptAnswer)
			if err != nil {
				there.Error = err.Error()
			}
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored for each cluster
}

// adoptable returns the clusters with an object that can be adopted.
func adoptable(found view.Adoption) []string {
	var clusters []string
	for _, c := range found.Clusters {
		if c.State == wire.AdoptPossible {
			clusters = append(clusters, c.Cluster)
		}
	}
	return clusters
}

func (a *adoption) aboutToAdopt(clusters []string) string {
	how := "Their fields do not change."
	if len(clusters) == 1 {
		how = "Its fields do not change."
	}
	if a.overwrite {
		how = "Fields that differ get the hub's values."
	}
	return fmt.Sprintf("This takes over %s on %s. %s", counted(len(clusters), "object"), strings.Join(clusters, ", "), how)
}

func (a *adoption) printFormatted(found view.Adoption) error {
	if a.out.format == "" {
		return nil
	}
	return a.out.print(a.hub.streams.Out, found)
}

// left returns an error if objects were not adopted or clusters did not answer, and otherwise nil.
func left(found view.Adoption) error {
	objects, unknown := found.Left()
	var errs []error
	if objects > 0 {
		errs = append(errs, fmt.Errorf(
			"%s not taken over: column WHY has the reasons, and hansectl diff shows differences", counted(objects, "object")))
	}
	if unknown > 0 {
		errs = append(errs, fmt.Errorf("%s could not be asked", counted(unknown, "cluster")))
	}
	return errors.Join(errs...)
}
