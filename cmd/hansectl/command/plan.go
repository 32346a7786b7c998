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
	files  cliresource.FilenameOptions
	// from names files with the state of a hub. If from is set, the command reads these files and not the hub.
	from     cliresource.FilenameOptions
	denied   []string
	live     bool
	summary  bool
	detailed bool
	store    string
}

// markdownFormat is the output format for pull requests.
const markdownFormat = "markdown"

func newPlan(h *hub) *cobra.Command {
	p := &planRun{hub: h}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | -k DIRECTORY)",
		Short: "Show what files would do to every copy before they are applied",
		Long: `Show what files would do to every copy before they are applied to the hub.

The files may hold any mix of hub objects, placements, override policies and MemberClusters. All decisions are made
with the code of the hub, without and with the files, and both results are rendered. The plan has removals first, then
moves, new copies and changed fields, the verdict of the guard, and what admission refuses. Nothing is written.
Requests are sent to members only with --live. Values of Secrets are not shown.

A bundle or FederatedOperator in a file is read as the hub does: the plan has the new objects of the bundle, and the
removal of objects that it no longer has. The same holds for a ConfigMap with manifests or a chart. The rights of the
bundle's ServiceAccount are not checked. Without -n, the plan is for all namespaces and cluster-scoped objects.

Exit code: 0, or 1 for an error or if admission refuses an object. With --detailed-exitcode, 2 if a copy
changes or there is a problem. Wrong usage gives 1, too.`,
		Example: `  # What a folder would do
  hansectl plan -f fleet/

  # A chart, and a kustomization
  helm template web ./chart | hansectl plan -n shop -f -
  hansectl plan -k overlays/production

  # In a pipeline: a comment for the pull request, and the plan for later
  hansectl plan -f fleet/ -o markdown --out plan.json`,
		Args: func(cmd *cobra.Command, args []string) error { return planFailed(usage(cobra.NoArgs)(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(cmd); err != nil {
				return planFailed(err)
			}
			return planFailed(p.run(cmd.Context()))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return planFailed(usageError(cmd, err)) })
	p.out.addTo(cmd, markdownFormat)
	flags := cmd.Flags()
	p.window.addTo(flags)
	flags.StringSliceVarP(&p.files.Filenames, "filename", "f", nil, "Files or directories with the objects to apply; - for standard input.")
	flags.BoolVarP(&p.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	flags.StringVarP(&p.files.Kustomize, "kustomize", "k", "", "Directory with a kustomization to apply.")
	flags.StringSliceVar(&p.from.Filenames, "from", nil, "Files or directories with the objects of the hub, as kubectl get -o yaml writes them. No request is sent to a hub.")
	flags.BoolVar(&p.live, "live", false, "Also ask the members, by a dry run of each changed copy.")
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
	errNothingToPlan = errors.New("give files with -f, or a kustomization with -k")
	errFromLive      = errors.New("--from asks no hub, and --live needs one: leave one of them out")
)

func (p *planRun) check(cmd *cobra.Command) error {
	switch {
	case len(p.files.Filenames) == 0 && p.files.Kustomize == "":
		return usageError(cmd, errNothingToPlan)
	case len(p.from.Filenames) > 0 && p.live:
		return usageError(cmd, errFromLive)
	}
	return p.out.check(cmd)
}

func (p *planRun) run(ctx context.Context) error {
	progress := &progressPrinter{to: p.hub.streams.ErrOut, began: time.Now()}
	files, err := readFiles(ctx, p.files)
	if err != nil {
		return err
	}
	in := snapshotInput{files: files, content: true}
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
	fits := &fits{definitions: s.definitions, read: map[schema.GroupVersionKind]*definition{}}
	o := preview.Options{DeniedMetadataPrefixes: p.denied, Tell: progress.decided("without and with the files"), Fits: func(u *unstructured.Unstructured) error { return fits.check(ctx, u) }}
	made, err := preview.Make(ctx, s.before, s.after, o)
	if err != nil {
		return err
	}
	made.Notes = append(s.notes, made.Notes...)
	for i, r := range made.Refusals {
		made.Refusals[i].File = files.source(r.Object.Identity())
	}
	if p.live {
		if err := p.ask(ctx, &made, files); err != nil {
			return err
		}
	}
	if p.store != "" {
		if err := p.save(made, s); err != nil {
			return err
		}
	}
	return p.print(view.Plan{Plan: made})
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
