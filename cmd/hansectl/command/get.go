package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// get has the arguments of one run of the command get.
type get struct {
	hub      *hub
	window   window
	out      output
	clusters []string
	all      bool
	limit    int
	// fleet is true if all objects of the kind on the members are listed, including objects that are not copies. selector
	// and watch need fleet.
	fleet    bool
	selector string
	watch    bool
	every    time.Duration
}

func newGet(h *hub) *cobra.Command {
	g := &get{hub: h, every: readEvery}
	cmd := &cobra.Command{
		Use:   "get (KIND [NAME] | KIND/NAME)",
		Short: "Show objects as they are on the members",
		Long: `Show the copies of hub objects of a kind as they are on the members, or with --clusters all objects of the
kind there. They are read through the hub.

Without --clusters, HEALTH and READY are the last values that the hub received, with ? while the hub receives no
changes from the cluster. AGE is the age of the copy. With --clusters, the table has the columns of each member's API
server, and CLUSTER. The hub asks all MemberClusters that you may list, or the clusters of --cluster. -o json and -o
yaml have each object as the member has it now. Values of Secrets are not shown.

With --clusters, an answer has at most 500 objects of a cluster, or --limit if that is less, and 8 MiB; a warning names
a cluster that has more. The hub must serve the kind, because it checks there whether you may list it. Name another
version as plural.version.group. A cluster that does not serve the kind has no such objects, and a warning says so.
The member must grant the kind to the hub: chart value grantedKinds, or listWorkloads for pods and workloads.

A cluster that does not answer is named on standard error, and the others are shown. The exit code is then 1.`,
		Example: `  # The Deployments of a namespace on every cluster
  hansectl get deployments -n shop

  # One object on one cluster, as it is there
  hansectl get deployment/web -n shop --cluster eu-fra-1 -o yaml

  # The pods of a namespace on every cluster, copies or not
  hansectl get pods -n shop --clusters

  # Replicas by cluster
  hansectl get deployments -n shop -o jsonpath='{range .items[*]}{.cluster} {.object.spec.replicas}{"\n"}{end}'`,
		Args:              kindAndPerhapsName,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.out.check(cmd); err != nil {
				return err
			}
			kind, name := args[0], ""
			if strings.Contains(kind, "/") || len(args) == 2 {
				kind, name = kindAndName(args)
			}
			switch {
			case g.all && name != "":
				return usageError(cmd, errors.New("a name and --all-namespaces exclude each other"))
			case g.limit < 1:
				return usageError(cmd, errors.New("--limit is at least 1"))
			case g.fleet:
				if !cmd.Flags().Changed("limit") {
					g.limit = views.MaxListed
				}
				if g.limit > views.MaxListed {
					return usageError(cmd, fmt.Errorf("--limit is at most %d with --clusters", views.MaxListed))
				}
				if g.watch && !g.out.text() {
					return usageError(cmd, errors.New("--watch shows only tables: leave out --output, or pass --output wide"))
				}
				return g.list(cmd.Context(), kind, name)
			case g.selector != "" || g.watch || g.out.format == "wide":
				return usageError(cmd, errors.New("--selector, --watch and --output wide need --clusters"))
			}
			return g.run(cmd.Context(), kind, name)
		},
	}
	g.out.addTo(cmd, "wide", "name")
	g.window.addTo(cmd.Flags())
	cmd.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "Show the objects of all namespaces.")
	cmd.Flags().StringSliceVar(&g.clusters, "cluster", nil, "Show only this cluster. Can be repeated.")
	cmd.Flags().BoolVar(&g.fleet, "clusters", false, "Show all objects of the kind on the clusters, not only the copies of hub objects.")
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "Show only objects with these labels, such as app=web,tier!=db. Needs --clusters.")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, fmt.Sprintf("Show the table again after a change: the members are asked every %s. Needs --clusters.", readEvery))
	cmd.Flags().IntVar(&g.limit, "limit", 50, fmt.Sprintf("Maximum number of objects to show. With --clusters, of each cluster; %d if the flag is not given.", views.MaxListed))
	_ = cmd.RegisterFlagCompletionFunc("cluster", h.completeMoreClusters)
	return cmd
}

// kindAndPerhapsName checks the arguments of get: a kind is required, a name is optional.
func kindAndPerhapsName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && strings.Count(args[0], "/") < 2 {
		return nil
	}
	return objectArguments(cmd, args)
}

func (g *get) run(ctx context.Context, kind, name string) error {
	c, err := g.hub.reader(&g.window)
	if err != nil {
		return err
	}
	id, version, err := g.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	bindings, err := g.bindings(ctx, c, id, version)
	if err != nil {
		return err
	}
	if err := existing(ctx, c, g.clusters, bindings); err != nil {
		return err
	}
	found := view.Copies{Items: []view.MemberCopy{}}
	if found.More = max(0, len(bindings)-g.limit); found.More > 0 {
		fmt.Fprintf(g.hub.streams.ErrOut, "warning: %s not shown: see --limit\n", counted(found.More, "more object"))
		bindings = bindings[:g.limit]
	}
	byCluster := g.targets(bindings)
	if len(byCluster) > 0 {
		viewer, err := g.window.open(ctx, g.hub, c)
		if err != nil {
			return err
		}
		observed, err := g.hub.observed(ctx, c, nil)
		if err != nil {
			return err
		}
		g.read(ctx, viewer, byCluster, observed, &found)
	}
	found.Sort()
	if err := g.out.print(g.hub.streams.Out, found); err != nil {
		return err
	}
	return g.hub.noteMembers(nil, found.NotAsked)
}

// bindings returns the bindings of objects of the kind in id: of one object if id has a name, of the objects in a
// namespace, or of all objects.
func (g *get) bindings(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) ([]hubv1.BindingObject, error) {
	if id.Name != "" {
		binding, err := g.hub.readPlaced(ctx, c, id, version)
		return []hubv1.BindingObject{binding}, err
	}
	var out []hubv1.BindingObject
	keep := func(b hubv1.BindingObject) {
		if hubv1.ObjectOf(b).GroupKind() == id.GroupKind() {
			out = append(out, b.DeepCopyObject().(hubv1.BindingObject))
		}
	}
	var err error
	switch {
	case id.Namespace == "":
		err = eachClusterBinding(ctx, c, keep)
	case g.all:
		err = eachBindingIn(ctx, c, "", keep)
	default:
		err = eachBindingIn(ctx, c, id.Namespace, keep)
	}
	slices.SortFunc(out, func(a, b hubv1.BindingObject) int {
		return strings.Compare(hubv1.ObjectOf(a).String(), hubv1.ObjectOf(b).String())
	})
	return out, err
}

// targets returns, for each cluster that holds an object, the bindings of its objects. It leaves out clusters that the
// user has not named.
func (g *get) targets(bindings []hubv1.BindingObject) map[string][]hubv1.BindingObject {
	out := map[string][]hubv1.BindingObject{}
	for _, b := range bindings {
		for _, t := range b.BindingSpec().Clusters {
			if len(g.clusters) == 0 || slices.Contains(g.clusters, t.Name) {
				out[t.Name] = append(out[t.Name], b)
			}
		}
	}
	return out
}

// read reads the copies from each cluster.
func (g *get) read(
	ctx context.Context, viewer *views.Client, byCluster map[string][]hubv1.BindingObject, observed func(cluster string) bool, found *view.Copies,
) {
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for cluster, bindings := range byCluster {
		asking.Go(func() error {
			copies, err := readCopies(ctx, viewer, cluster, bindings, observed(cluster))
			mu.Lock()
			defer mu.Unlock()
			found.Items = append(found.Items, copies...)
			if err != nil {
				found.NotAsked = append(found.NotAsked, view.ClusterNote{Cluster: cluster, Note: err.Error()})
			}
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored for each cluster
}

// readCopies reads the copies from a cluster one by one. It stops at the first error, except a Forbidden error, because
// the user may have the right to read other objects.
func readCopies(
	ctx context.Context, viewer *views.Client, cluster string, bindings []hubv1.BindingObject, observed bool,
) (copies []view.MemberCopy, refusal error) {
	for _, b := range bindings {
		id := hubv1.ObjectOf(b)
		request, answer := wire.CopyRequest{Object: wire.ObjectOf(id)}, wire.CopyAnswer{}
		err := viewer.Ask(ctx, cluster, wire.Copy, id.Namespace, request, &answer)
		switch {
		case apierrors.IsForbidden(err):
			refusal = err // the user may lack the right to this object only, or to all objects
			continue
		case err != nil:
			return copies, err
		}
		copies = append(copies, view.CopyOf(cluster, b, answer, observed))
	}
	return copies, refusal
}
