package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// storedPlan is a plan in a file.
type storedPlan struct {
	// Format is the version of the format in which the file stores the plan.
	Format string      `json:"format"`
	Made   metav1.Time `json:"made"`
	// Namespace is the namespace to which the plan is limited. It is empty if the plan covers all namespaces.
	Namespace string            `json:"namespace,omitempty"`
	Versions  []preview.Version `json:"versions"`
	Plan      preview.Plan      `json:"plan"`
}

const planFormat = "hanse.dev/plan/1"

// save stores a plan in a file, with the states of the objects from which the plan was made. It replaces an existing
// file.
func (p *planRun) save(made preview.Plan, s *snapshot) error {
	text, err := json.MarshalIndent(storedPlan{
		Format: planFormat, Made: metav1.NewTime(time.Now().UTC().Truncate(time.Second)), Namespace: s.namespace,
		Versions: append(preview.VersionsOf(s.before, made.Objects()), s.bundles...), Plan: made,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	if err := os.WriteFile(p.store, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	return nil
}

// planShow has the arguments of one run of the command plan show.
type planShow struct {
	hub     *hub
	window  window
	out     output
	all     bool
	summary bool
}

func newPlanShow(h *hub) *cobra.Command {
	p := &planShow{hub: h}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print a stored plan, and list the objects of the hub that have changed since it was made",
		Long: `Print a plan that hansectl plan --out has stored, and list the objects of the hub that have changed since it was made.

The command compares the clusters, the placements and override policies, and the objects of the plan with their
bindings. If one of them differs, make the plan again. The command makes no decisions itself.`,
		Example: `  hansectl plan show plan.json`,
		Args:    func(cmd *cobra.Command, args []string) error { return planFailed(arguments("FILE")(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.out.check(cmd); err != nil {
				return planFailed(err)
			}
			return planFailed(p.run(cmd.Context(), args[0]))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return planFailed(flagError(cmd, err)) })
	p.out.addTo(cmd, markdownFormat)
	p.window.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&p.all, "all", false, "List every entry and every name of a cluster, one object in each entry.")
	cmd.Flags().BoolVar(&p.summary, "summary", false, "Print only the last line.")
	return cmd
}

func (p *planShow) run(ctx context.Context, file string) error {
	stored, err := readPlan(file)
	if err != nil {
		return err
	}
	*p.hub.flags.Namespace = stored.Namespace
	now, notes, err := p.versions(ctx, stored)
	if err != nil {
		return err
	}
	shown := view.Plan{Plan: stored.Plan, Made: &stored.Made, MovedSince: preview.Moved(stored.Versions, now), All: p.all}
	shown.Notes = append(notes, shown.Notes...)
	return printPlan(p.hub.streams.Out, &p.out, p.summary, shown)
}

var errNoPlan = errors.New("it is no plan of this version of hansectl plan --out")

func readPlan(file string) (*storedPlan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	stored := &storedPlan{}
	if err := utiljson.Unmarshal(text, stored); err != nil {
		return nil, fmt.Errorf("reading the plan %s: %w", file, err)
	}
	if stored.Format != planFormat {
		return nil, fmt.Errorf("reading the plan %s: %w", file, errNoPlan)
	}
	return stored, nil
}

// versions returns the current states of the objects from which a stored plan was made.
func (p *planShow) versions(ctx context.Context, stored *storedPlan) ([]preview.Version, []string, error) {
	r, err := newFleetReader(ctx, p.hub, &p.window, &progressPrinter{to: p.hub.streams.ErrOut, began: time.Now()})
	if err != nil {
		return nil, nil, err
	}
	fleet := decide.Fleet{}
	if err := r.readAround(&fleet); err != nil {
		return nil, nil, err
	}
	now := preview.VersionsOf(fleet, nil)
	have := map[preview.Object]bool{}
	for _, v := range now {
		have[v.Object] = true
	}
	for _, v := range stored.Versions {
		if have[v.Object] || isRead(v.Object) {
			continue
		}
		found, err := r.version(v)
		if err := r.unlessForbidden(err, "whether "+v.Object.String()+" differs is not known"); err != nil {
			return nil, nil, err
		}
		switch {
		case err != nil:
			now = append(now, v)
		case found != nil:
			now = append(now, *found)
		}
	}
	return now, r.notes, nil
}

// versionsOfBundles returns the states of bundles. A stored plan compares them to find out whether a bundle has changed
// since.
func versionsOfBundles(bundles []hubv1.BundleObject) ([]preview.Version, error) {
	var out []preview.Version
	for _, b := range bundles {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", hubv1.OfBundle(b).String(), err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(hubv1.GroupVersion.WithKind(hubv1.ReferenceTo(b).Kind))
		out = append(out, preview.VersionOf(u))
	}
	return out, nil
}

// isRead reports whether hansectl lists all objects of the kind in any case: MemberClusters, placements and override
// policies. Objects of other kinds are read with one request each.
func isRead(o preview.Object) bool {
	return o.Group == hubv1.GroupVersion.Group && !slices.Contains([]string{"ResourceBinding", "ClusterResourceBinding", hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind}, o.Kind)
}

// version returns the current state of the object in the argument of, which has an earlier state. It returns nil if the
// object does not exist any more.
func (r *fleetReader) version(of preview.Version) (*preview.Version, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(of.APIVersion)
	u.SetKind(of.Object.Kind)
	err := r.Get(r.ctx, client.ObjectKey{Namespace: of.Object.Namespace, Name: of.Object.Name}, u)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", of.Object, err)
	}
	v := preview.VersionOf(u)
	if of.Facts == "" { // without Facts, the version describes a binding
		v.Facts = ""
	}
	return &v, nil
}

// printPlan prints a plan in a format, or only its summary line.
func printPlan(w io.Writer, o *output, summary bool, p view.Plan) error {
	switch {
	case summary:
		_, err := fmt.Fprintln(w, p.Line())
		return err
	case o.format == markdownFormat:
		p.WriteMarkdown(w)
		return nil
	}
	p.Colours = o.format == "" && coloured(w)
	return o.print(w, p)
}
