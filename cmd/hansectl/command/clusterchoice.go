package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// clusterChoice names one MemberCluster, or all MemberClusters of a region.
type clusterChoice struct {
	name   string
	region string
}

func (c *clusterChoice) addTo(cmd *cobra.Command, h *hub) {
	cmd.Flags().StringVar(&c.region, "region", "", "All clusters of this region, instead of one cluster by its name.")
	cmd.Args = usage(func(_ *cobra.Command, args []string) error {
		switch {
		case c.region != "" && len(args) > 0:
			return fmt.Errorf("unexpected argument %q beside --region", args[0])
		case c.region != "":
			return nil
		case len(args) == 0:
			return errors.New("CLUSTER is missing")
		case len(args) > 1:
			return fmt.Errorf("unexpected argument %q", args[1])
		}
		c.name = args[0]
		return nil
	})
	cmd.ValidArgsFunction = h.completeClusters
	_ = cmd.RegisterFlagCompletionFunc("region", h.completeRegions)
}

// read returns the chosen MemberClusters, sorted by name. It returns an error if there are none.
func (c *clusterChoice) read(ctx context.Context, hub client.Client) ([]*hubv1.MemberCluster, error) {
	if c.region == "" {
		cluster, err := readCluster(ctx, hub, c.name)
		return []*hubv1.MemberCluster{cluster}, err
	}
	members, err := listClusters(ctx, hub)
	if err != nil {
		return nil, err
	}
	var chosen []*hubv1.MemberCluster
	for i := range members {
		if labelledRegion(&members[i]) == c.region {
			chosen = append(chosen, &members[i])
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("no cluster is in region %q; the regions are %s", c.region, strings.Join(regionsOf(members), ", "))
	}
	slices.SortFunc(chosen, func(a, b *hubv1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

// each calls do for every chosen MemberCluster, and stops at the first error.
func (c *clusterChoice) each(ctx context.Context, h *hub, do func(client.Client, *hubv1.MemberCluster) error) error {
	hub, _, err := h.connect()
	if err != nil {
		return err
	}
	clusters, err := c.read(ctx, hub)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if err := do(hub, cluster); err != nil {
			return err
		}
	}
	return nil
}

func listClusters(ctx context.Context, hub client.Client) ([]hubv1.MemberCluster, error) {
	var members hubv1.MemberClusterList
	if err := hub.List(ctx, &members); meta.IsNoMatchError(err) {
		return nil, errNoHub
	} else if err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	return members.Items, nil
}

// existing returns an error for a name that neither a MemberCluster nor a target of the bindings has. Without this
// error, a mistyped name would look like a cluster without objects. If the user may not list MemberClusters, every name
// is accepted.
func existing(ctx context.Context, hub client.Client, names []string, bindings []hubv1.BindingObject) error {
	if len(names) == 0 {
		return nil
	}
	members, err := listClusters(ctx, hub)
	if err != nil {
		return nil //nolint:nilerr // the command itself says what it cannot read
	}
	for _, name := range names {
		bound := slices.ContainsFunc(bindings, func(b hubv1.BindingObject) bool { return b.BindingSpec().Target(name) != nil })
		if !bound && !slices.ContainsFunc(members, func(m hubv1.MemberCluster) bool { return m.Name == name }) {
			return noCluster(ctx, hub, name)
		}
	}
	return nil
}

func labelledRegion(m *hubv1.MemberCluster) string { return m.SelectableLabels()[hubv1.RegionLabel] }

func regionsOf(members []hubv1.MemberCluster) []string {
	var regions []string
	for i := range members {
		if r := labelledRegion(&members[i]); r != "" {
			regions = append(regions, r)
		}
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}

// completeRegions completes the names of regions that MemberClusters have.
func (h *hub) completeRegions(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, _, err := h.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	members, err := listClusters(cmd.Context(), c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.DeleteFunc(regionsOf(members), func(r string) bool { return !strings.HasPrefix(r, typed) }), cobra.ShellCompDirectiveNoFileComp
}
