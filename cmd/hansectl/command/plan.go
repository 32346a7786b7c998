package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cliresource "k8s.io/cli-runtime/pkg/resource"

	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// planRun has the arguments of one run of the command plan.
type planRun struct {
	hub    *hub
	window window
	out    output
	// files and changes are what the plan examines. Without them, it has the decisions that the hub has yet to carry out.
	files   cliresource.FilenameOptions
	changes fleetChanges
	// from names files with the state of a hub. If from is set, the command reads these files and not the hub.
	from     cliresource.FilenameOptions
	denied   []string
	live     bool
	diff     bool
	all      bool
	summary  bool
	detailed bool
	store    string
}

// markdownFormat is the output format for pull requests.
const markdownFormat = "markdown"

func newPlan(h *hub) *cobra.Command {
	p := &planRun{hub: h}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what files, or lost, new or relabeled clusters, would do to every copy",
		Long: `Show what a change would do to every copy: files that are applied to the hub, or lost, new or relabeled clusters.

The files may hold any mix of hub objects, placements, override policies and MemberClusters. All decisions are made
with the code of the hub, without and with the change, and both results are rendered. The plan has removals first, then
moves, new copies and changed fields, the verdict of the guard, what admission refuses, and problems, such as kinds
that the hub may not read or that a member does not grant. Nothing is written.
Requests are sent to members only with --live. Values of Secrets are not shown. Without a change, the plan has the
decisions that the hub has yet to carry out.

A bundle or FederatedOperator in a file is read as the hub does: the plan has the new objects of the bundle, and the
removal of objects that it no longer has. The same holds for a ConfigMap with manifests or a chart. The rights of the
bundle's ServiceAccount are not checked. Without -n, the plan is for all namespaces and cluster-scoped objects.

--without-cluster assumes an unreachable cluster, not a removed one: objects move if their placement sets
failover.evictAfterSeconds, and all others stay. If more than half of the clusters would not answer, the hub moves no
object, and a note says so. A cluster of --add-cluster NAME is Ready, open to every namespace, and serves every kind;
it has no room for replicas that are divided by capacity.

With --from, files replace the hub. Then objects without a namespace are cluster-scoped, clusters without the condition
Ready are Ready, and the hub runs no workloads. Which kinds the hub may read is checked if the files have its
ClusterRole hanse-hub-federated-kinds. Kinds that a hub does not serve are left out, with a note. Objects are
decided kind by kind, in the order of the names of the kinds, which can change results with the score FewestObjects.

Exit code: 0, or 1 for an error or if admission refuses an object. With --detailed-exitcode, 2 if a copy
changes or there is a problem. Wrong usage gives 1, too.`,
		Example: `  # What a folder would do
  hansectl plan -f fleet/

  # A chart, and a kustomization
  helm template web ./chart | hansectl plan -n shop -f -
  hansectl plan -k overlays/production

  # A region is lost; a cluster joins, and another one gets a label
  hansectl plan --without-region eu-central-1
  hansectl plan --add-cluster us-west-2,tier=gold --set-label eu-fra-1:tier=gold

  # A changed override policy, as the members answer it, as unified diffs
  hansectl plan -n monitoring -f policy.yaml --live --diff

  # Without a hub: files with its objects, and a cluster that is lost
  hansectl plan --from fleet/ --without-cluster eu-fra-1

  # In a pipeline: a comment for the pull request, and the plan for later
  hansectl plan -f fleet/ -o markdown --out plan.json`,
		Args: func(cmd *cobra.Command, args []string) error { return planFailed(arguments()(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(cmd); err != nil {
				return planFailed(err)
			}
			return planFailed(p.run(cmd.Context()))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return planFailed(flagError(cmd, err)) })
	p.out.addTo(cmd, markdownFormat)
	flags := cmd.Flags()
	p.window.addTo(flags)
	flags.StringSliceVarP(&p.files.Filenames, "filename", "f", nil, "Files or directories with the objects to apply; - for standard input.")
	flags.BoolVarP(&p.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	flags.StringVarP(&p.files.Kustomize, "kustomize", "k", "", "Directory with a kustomization to apply.")
	flags.StringSliceVar(&p.from.Filenames, "from", nil, "Files or directories with the objects of the hub, as kubectl get -o yaml writes them. No request is sent to a hub.")
	p.changes.addTo(cmd, h)
	flags.BoolVar(&p.live, "live", false, "Also ask the members, by a dry run of each changed copy.")
	flags.BoolVar(&p.diff, "diff", false, "Show changed copies as unified diffs, not field by field.")
	flags.BoolVar(&p.all, "all", false, "List every entry and every name of a cluster, one object in each entry.")
	flags.BoolVar(&p.summary, "summary", false, "Print only the last line.")
	flags.StringVar(&p.store, "out", "", "File in which to store the plan, for hansectl plan show.")
	flags.BoolVar(&p.detailed, "detailed-exitcode", false, "Exit with 2 if a copy changes.")
	flags.StringSliceVar(&p.denied, "denied-metadata-prefixes", nil, "Key prefixes of labels and annotations that the hub does not send to members: the value of the hub's flag of this name.")
	cmd.AddCommand(newPlanShow(h))
	return cmd
}

// planFailed gives an error the exit code 1, even for wrong usage. In the command plan, exit code 2 means that the plan
// has changes.
func planFailed(err error) error {
	var exit *ExitError
	if errors.As(err, &exit) && exit.Err != nil {
		return &ExitError{Code: 1, Err: exit.Err}
	}
	return err
}

var (
	errLiveFiles = errors.New("--live tries files on the members: give them with -f or -k, and assume no other clusters or labels")
	errFromLive  = errors.New("--from asks no hub, and --live needs one: leave one of them out")
)

func (p *planRun) check(cmd *cobra.Command) error {
	switch {
	case len(p.from.Filenames) > 0 && p.live:
		return usageError(cmd, errFromLive)
	case p.live && (!p.hasFiles() || p.changes.any()):
		return usageError(cmd, errLiveFiles)
	}
	return p.out.check(cmd)
}

func (p *planRun) hasFiles() bool { return len(p.files.Filenames) > 0 || p.files.Kustomize != "" }

func (p *planRun) run(ctx context.Context) error {
	progress := &progressPrinter{to: p.hub.streams.ErrOut, began: time.Now()}
	files, err := readFiles(ctx, p.files)
	if err != nil {
		return err
	}
	in := snapshotInput{files: files, changes: p.changes}
	if len(p.from.Filenames) > 0 {
		p.from.Recursive = p.files.Recursive
		if in.from, err = readFiles(ctx, p.from); err != nil {
			return err
		}
	}
	s, err := p.hub.snapshot(ctx, &p.window, in, progress)
	if err != nil {
		return err
	}
	s.rights.Named = func(o preview.Object) bool { return files.source(o.Identity()) != "" }
	fits := &fits{definitions: s.definitions, read: map[schema.GroupVersionKind]*definition{}}
	o := preview.Options{
		DeniedMetadataPrefixes: p.denied, Rights: s.rights, Tell: progress.decided("without and with the change"),
		Fits: func(u *unstructured.Unstructured) error { return fits.check(ctx, u) },
	}
	var made preview.Plan
	if p.hasFiles() || p.changes.any() {
		made, err = preview.Make(ctx, s.before, s.after, o)
	} else {
		made, err = preview.Next(ctx, s.before, o)
	}
	if err != nil {
		return err
	}
	made.Assumed = s.changes
	made.Notes = append(s.notes, made.Notes...)
	made.Problems = append(files.problems, made.Problems...)
	made.Summary.Problems += len(files.problems)
	for i, r := range made.Refusals {
		made.Refusals[i].File = files.source(r.Object.Identity())
	}
	if p.live {
		if err := p.ask(ctx, &made, files); err != nil {
			return err
		}
	}
	if p.diff {
		if err := view.AddDiffs(&made); err != nil {
			return err
		}
	}
	if p.store != "" {
		if err := p.save(made, s); err != nil {
			return err
		}
	}
	return p.print(view.Plan{Plan: made, All: p.all})
}

func (p *planRun) print(shown view.Plan) error {
	if err := printPlan(p.hub.streams.Out, &p.out, p.summary, shown); err != nil {
		return err
	}
	switch {
	case shown.Summary.Refused > 0:
		return fmt.Errorf("admission refuses %s", counted(shown.Summary.Refused, "object"))
	case p.detailed && shown.Changed():
		return &ExitError{Code: 2}
	}
	return nil
}
