package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cliresource "k8s.io/cli-runtime/pkg/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
	"github.com/hanse-dev/hanse/hub/memberview"
)

// diff is one run of the command.
type diff struct {
	hub      *hub
	window   window
	out      output
	clusters []string
	all      bool
	files    cliresource.FilenameOptions
}

func newDiff(h *hub) *cobra.Command {
	d := &diff{hub: h}
	cmd := &cobra.Command{
		Use:   "diff (KIND NAME | KIND/NAME)",
		Short: "Show what the hub would change on the members, now or with other policies",
		Long: `Show what the hub would change of an object on the members to which it goes, as a unified diff.

The hub renders the object as it does for a write, and each member says in a dry run what that would come to, its own defaults and webhooks
included. Status, managed fields and marks of the hub are left out; values of Secrets are not shown. Nothing is changed.
An object that is on a member already and is not Hanse's is compared, too, if you have the verb adopt on the MemberCluster.

The exit code is 0 if there is no difference, 1 if there is one, and 2 if there was an error.`,
		Example: `  # What is there against what shall be there, on every cluster
  hansectl diff prometheus web -n monitoring

  # What a change of a policy would do
  hansectl diff prometheus web -n monitoring -f policy.yaml --cluster cn-sha-1`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.out.check(cmd); err != nil {
				return failed(err)
			}
			if d.all && len(d.clusters) > 0 {
				return failed(usageError(cmd, errors.New("--all and --cluster exclude each other")))
			}
			kind, name := kindAndName(args)
			return failed(d.run(cmd.Context(), kind, name))
		},
	}
	d.out.addTo(cmd)
	d.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&d.clusters, "cluster", nil, "Compare on this cluster alone. Can be repeated.")
	cmd.Flags().BoolVar(&d.all, "all", false, "Compare on every cluster to which the object goes, as without --cluster.")
	cmd.Flags().StringSliceVarP(&d.files.Filenames, "filename", "f", nil, "Files or directories with override policies, used instead of policies of the same name. Can be repeated.")
	cmd.Flags().BoolVarP(&d.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	return cmd
}

func (d *diff) run(ctx context.Context, kind, name string) error {
	c, err := d.hub.reader(&d.window)
	if err != nil {
		return err
	}
	id, version, err := d.hub.identify(kind, name)
	if err != nil {
		return err
	}
	policies, err := readPolicies(d.files)
	if err != nil {
		return err
	}
	binding, err := d.hub.readPlaced(ctx, c, id, version)
	if err != nil {
		return err
	}
	clusters, err := sentTo(id, binding, d.clusters)
	if err != nil {
		return err
	}
	views, err := d.window.open(ctx, d.hub, c)
	if err != nil {
		return err
	}
	result := view.Diff{Object: memberview.ObjectOf(id), Clusters: make([]view.ClusterDiff, len(clusters))}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for i, cluster := range clusters {
		asking.Go(func() error {
			var answer memberview.DiffAnswer
			err := views.ask(ctx, cluster, memberview.Diff, id.Namespace, memberview.DiffRequest{Object: result.Object, Policies: policies}, &answer)
			result.Clusters[i] = view.DiffOf(cluster, id, answer, err)
			return nil
		})
	}
	_ = asking.Wait() // each cluster has its own error
	return d.show(result)
}

// askedAtOnce is the number of members that get a request at the same time.
const askedAtOnce = 4

// sentTo returns the clusters that get an object, sorted by name. If the user names clusters, it returns only those.
func sentTo(id hubv1.ObjectIdentity, binding hubv1.BindingObject, named []string) ([]string, error) {
	var there []string
	for _, t := range binding.BindingSpec().Clusters {
		if t.State != hubv1.TargetAbsent {
			there = append(there, t.Name)
		}
	}
	slices.Sort(there)
	for _, name := range named {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("%s does not go to %s: see hansectl explain", id, name)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return there, nil
}

// readPolicies reads files that may contain only override policies.
func readPolicies(options cliresource.FilenameOptions) ([]json.RawMessage, error) {
	if len(options.Filenames) == 0 {
		return nil, nil
	}
	infos, err := cliresource.NewLocalBuilder().Unstructured().FilenameParam(false, &options).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", err)
	}
	var out []json.RawMessage
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok || u.GroupVersionKind().Group != hubv1.GroupVersion.Group || !strings.HasSuffix(u.GetKind(), "OverridePolicy") {
			return nil, fmt.Errorf("reading %s: %s is no override policy, and only these are compared", info.Source, info.ObjectName())
		}
		text, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", info.Source, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// show prints the differences. On standard error it prints why a cluster has no comparison.
func (d *diff) show(result view.Diff) error {
	w := d.hub.streams.Out
	if d.out.format == "" && coloured(w) {
		result.Colours = true
	}
	if err := d.out.print(w, result); err != nil {
		return err
	}
	var faults, differs int
	for _, c := range result.Clusters {
		switch {
		case c.Error != "":
			faults++
			fmt.Fprintf(d.hub.streams.ErrOut, "error: %s: %s\n", c.Cluster, c.Error)
		case c.Unadopted && !c.Differs:
			fmt.Fprintf(d.hub.streams.ErrOut, "warning: %s: not Hanse's, but as the hub would have it\n", c.Cluster)
		case c.Refused != nil && c.Differs:
			fmt.Fprintf(d.hub.streams.ErrOut, "warning: %s: not written now: %s: %s\n", c.Cluster, c.Refused.Reason, c.Refused.Message)
		}
		if c.Differs {
			differs++
		}
	}
	switch {
	case faults > 0:
		return &ExitError{Code: 2, Err: fmt.Errorf("%s could not be compared", counted(faults, "cluster"))}
	case differs > 0:
		return &ExitError{Code: 1}
	}
	return nil
}
