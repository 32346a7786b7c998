package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/release"
)

// federate has the arguments of one run of the command federate.
type federate struct {
	hub *hub

	kinds       []release.Wanted
	status      bool
	members     []string
	kubeconfigs []string
	tokenFile   window
	dryRun      string
	yes         bool
}

func newFederate(h *hub) *cobra.Command {
	f := &federate{hub: h}
	cmd := &cobra.Command{
		Use:   "federate (KIND | PRESET)...",
		Short: "Let the hub read kinds, and let members grant them, by the values of the charts",
		Long: `Let the hub read kinds, so that placements can select them, and let members grant these kinds to the hub.

The command shows the rights that the hub gets, asks you, and changes values of the Helm releases: federatedKinds of the
chart hanse-hub, and grantedKinds of the chart hanse-member. It runs helm, which must be in PATH, with the chart that the
release stores; all other values stay. On a member that joined by hansectl join, it adds grants as join does. It writes
no rights in another way. If Flux or Argo CD owns a release, it prints the values to commit.

A member is changed only if you give a kubeconfig of its admin. For other members, the command asks the hub which kinds
they lack, and prints the commands and values that grant them.

Name a kind as deployments.apps, apps/deployments, or by its singular or short name. A PRESET stands for several kinds:

` + presetsText() + `
The hub reads a kind in all namespaces. To limit it to namespaces, set federatedKinds in the values.`,
		Example: `  # What would it do?
  hansectl federate workloads config --members all --dry-run=client

  # The hub reads Caches and writes their status, and two members grant them
  hansectl federate caches.acme.io --status --members all \
    --member-kubeconfig cn-sha-1.kubeconfig --member-kubeconfig eu-fra-1.kubeconfig`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dryRun != "none" && f.dryRun != "client" {
				return usageError(cmd, fmt.Errorf("--dry-run %q: %w: want none or client", f.dryRun, errValue))
			}
			return f.run(cmd.Context(), args)
		},
		ValidArgsFunction: cobra.FixedCompletions(slices.Sorted(maps.Keys(release.Presets)), cobra.ShellCompDirectiveNoFileComp),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.status, "status", false, "Let the hub also write the status of the kinds. The kinds of the preset workloads always have this.")
	flags.StringSliceVar(&f.members, "members", nil, `Members that shall grant the kinds, by their names; "all" stands for all of them.`)
	flags.StringSliceVar(&f.kubeconfigs, "member-kubeconfig", nil, "Kubeconfig of an admin of a member, used from this machine. The command finds out which member it is for. Can be repeated.")
	flags.StringVar(&f.dryRun, "dry-run", "none", `"client" shows what would be done. "none" does it.`)
	flags.BoolVar(&f.yes, "yes", false, "Do not ask for a confirmation.")
	f.tokenFile.addTo(flags)
	_ = cmd.RegisterFlagCompletionFunc("members", h.completeMoreClusters)
	return cmd
}

// presetsText returns the presets with their kinds, for the help of the command.
func presetsText() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(release.Presets)) {
		var kinds []string
		for _, k := range release.Presets[name] {
			kinds = append(kinds, k.Resource)
		}
		fmt.Fprintf(&text, "  %-9s  %s\n", name, strings.Join(kinds, ", "))
	}
	return text.String()
}

// wanted returns the kinds of the arguments. A preset comes before a kind of the same name.
func (f *federate) wanted(args []string) ([]release.Wanted, error) {
	mapper, err := f.hub.flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	var out []release.Wanted
	for _, arg := range args {
		if preset, ok := release.Presets[arg]; ok {
			out = append(out, preset...)
			continue
		}
		typed, err := parseGrants("KIND", []string{arg})
		if err != nil {
			return nil, err
		}
		kind, err := servedAs(mapper, typed[0])
		if errors.Is(err, errNotServed) {
			return nil, fmt.Errorf("the hub does not serve %s: install its CustomResourceDefinition there first%s", arg, didYouMean(f.hub.similarKinds(arg)))
		} else if err != nil {
			return nil, fmt.Errorf("KIND %s: %w", arg, err)
		}
		if kind.group == hubv1.GroupVersion.Group {
			return nil, fmt.Errorf("KIND %s: the hub's own kinds never go to members", arg)
		}
		out = append(out, release.Wanted{Kind: release.Kind{Group: kind.group, Resource: kind.resource}, Status: f.status})
	}
	return out, nil
}

// step is one change that the command makes after the confirmation.
type step struct {
	what string // such as "the release hanse of the hub"
	do   func(ctx context.Context) error
}

func (f *federate) run(ctx context.Context, args []string) error {
	c, address, err := f.hub.connect()
	if err != nil {
		return err
	}
	if f.kinds, err = f.wanted(args); err != nil {
		return err
	}
	steps, err := f.onHub(ctx, c, address)
	if err != nil {
		return err
	}
	more, err := f.onMembers(ctx, c)
	if err != nil {
		return err
	}
	steps = append(steps, more...)
	if len(steps) == 0 || f.dryRun == "client" {
		return nil
	}
	var what []string
	for _, s := range steps {
		what = append(what, s.what)
	}
	if err := f.hub.confirm(f.yes, "This changes %s.", strings.Join(what, ", ")); err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("changing %s: %w", s.what, err)
		}
	}
	return nil
}

// onHub shows what the hub may read in addition, and returns the step that grants it.
func (f *federate) onHub(ctx context.Context, c client.Client, address string) ([]step, error) {
	out := f.hub.streams.Out
	fmt.Fprintf(out, "Hub at %s\n", address)
	of, err := readInstallation(ctx, c, hubChart)
	if err != nil {
		return nil, err
	}
	change, err := of.with(f.kinds)
	if err != nil {
		return nil, err
	}
	if of.release == nil {
		known, err := readFederated(ctx, c, "")
		if err != nil {
			return nil, err
		}
		if known != nil {
			change.drop(func(k release.Wanted) bool {
				return known.all && mayList(known.everywhere, k.GroupResource()) && !k.Status
			})
		}
	}
	if len(change.added) == 0 {
		printLine(out, of.String(), "the hub may read these kinds already")
		return nil, nil
	}
	if err := change.print(ctx, out); err != nil {
		return nil, err
	}
	if !of.byHelm() {
		return nil, change.printValues(out)
	}
	flags, err := f.hub.helmFlags()
	if err != nil {
		return nil, err
	}
	return []step{{"the release " + of.release.Name + " on the hub", func(ctx context.Context) error {
		return change.upgrade(ctx, out, flags)
	}}}, nil
}
