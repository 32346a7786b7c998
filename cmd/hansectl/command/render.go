package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// renderRun has the arguments of one run of the command render.
type renderRun struct {
	hub      *hub
	window   window
	out      output
	files    cliresource.FilenameOptions
	clusters []string
	all      bool
	offline  bool
	denied   []string
}

func newRender(h *hub) *cobra.Command {
	r := &renderRun{hub: h}
	cmd := &cobra.Command{
		Use:   "render (KIND NAME | KIND/NAME)",
		Short: "Print an object as the hub sends it to each cluster",
		Long: `Print an object as the hub sends it to each cluster: one YAML document per cluster, after a comment that names the
override rules that changed it.

Overrides and shares of the replicas are applied with the code of the hub. The comment also names rules that are skipped
because one of their tests fails, the fields that are left to the cluster, and after "without" the metadata that is never
sent. -f treats override policies and the object in files as if they were applied to the hub, so that you see the
effect of a change before you make it. With --offline, only the files are read: they must have the object, the
MemberClusters, the policies, and the namespaces with their labels. Nothing is written, and no request is sent to a
member.

The output lacks what depends on the member: fields that its schema lacks, memberOwnedFields and its defaults; hansectl
diff shows them. It also lacks the marks of the hub, and the annotation hanse.dev/reload. Secrets are printed in full.

By default, the clusters are the clusters of the object's binding or, with --offline and without a binding, those of
the placements in the files. For an excluded cluster, the output has only a comment. The exit code is 1 if the object
cannot be rendered for a cluster. Bundles in files are refused.`,
		Example: `  # What each cluster gets
  hansectl render prometheus web -n monitoring

  # What a changed policy would make of it
  hansectl render prometheus web -n monitoring --cluster cn-sha-1 -f policy.yaml

  # Without a hub, for every cluster of the files
  hansectl render --offline -f fleet/ prometheus web --all`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd); err != nil {
				return err
			}
			kind, name := kindAndName(args)
			return r.run(cmd.Context(), kind, name)
		},
	}
	r.out.addTo(cmd)
	flags := cmd.Flags()
	r.window.addTo(flags)
	flags.StringSliceVar(&r.clusters, "cluster", nil, "Render for this cluster, even if it shall not hold the object. Can be repeated.")
	flags.BoolVar(&r.all, "all", false, "Render for every cluster, even if it shall not hold the object.")
	flags.StringSliceVarP(&r.files.Filenames, "filename", "f", nil, "Files or directories with objects to treat as if they were applied; - for standard input.")
	flags.BoolVarP(&r.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	flags.BoolVar(&r.offline, "offline", false, "Send no request to a hub: read the object, MemberClusters and policies from the files.")
	flags.StringSliceVar(&r.denied, "denied-metadata-prefixes", nil, "Key prefixes of labels and annotations that the hub does not send to members: the value of the hub's flag of this name.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	return cmd
}

func (r *renderRun) check(cmd *cobra.Command) error {
	if err := r.out.check(cmd); err != nil {
		return err
	}
	switch {
	case r.offline && len(r.files.Filenames) == 0:
		return usageError(cmd, errNoFiles)
	case r.all && len(r.clusters) > 0:
		return usageError(cmd, errors.New("--all and --cluster exclude each other"))
	}
	return nil
}

var errNoFiles = errors.New("--offline needs files: give them with -f")

var errBundleInFiles = errors.New("the files have a bundle, and hansectl render does not read bundles in files: use hansectl plan, or apply the bundle first")

func (r *renderRun) run(ctx context.Context, kind, name string) error {
	files, err := readFiles(ctx, r.files)
	if err != nil {
		return err
	}
	if len(files.bundles) > 0 {
		return errBundleInFiles
	}
	if err := files.refused(); err != nil {
		return err
	}
	in := preview.RenderInput{DeniedMetadataPrefixes: r.denied}
	if r.offline {
		err = r.readFiles(ctx, &in, files, kind, name)
	} else {
		err = r.readHub(ctx, &in, files, kind, name)
	}
	if err != nil {
		return err
	}
	if in.Clusters, err = r.chosen(in); err != nil {
		return err
	}
	renderings := view.Render(in)
	if r.offline { // otherwise the hub's own check has the schemas of all kinds
		fits := &fits{definitions: files.definitions(), read: map[schema.GroupVersionKind]*definition{}}
		renderings.Check(func(u *unstructured.Unstructured) error { return fits.check(ctx, u) })
	}
	if err := r.out.print(r.hub.streams.Out, renderings); err != nil {
		return err
	}
	failed := renderings.Failed()
	for _, c := range failed {
		fmt.Fprintf(r.hub.streams.ErrOut, "%s: %s\n", c.Cluster, strings.ReplaceAll(c.Error, "\n", "; "))
	}
	if len(failed) > 0 {
		return fmt.Errorf("the object cannot be rendered for %d of %s", len(failed), counted(len(in.Clusters), "cluster"))
	}
	return nil
}

// readHub reads the object and all inputs for its manifests from the hub, and applies the files to them.
func (r *renderRun) readHub(ctx context.Context, in *preview.RenderInput, files *fleetFiles, kind, name string) error {
	c, err := r.hub.reader(&r.window)
	if err != nil {
		return err
	}
	id, version, err := r.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	binding, err := readBinding(ctx, c, id)
	if err != nil {
		return err
	}
	if binding != nil && hubv1.ObjectOf(binding) == id {
		in.Binding = binding.BindingSpec()
	}
	if in.Object, err = r.hub.template(ctx, c, id, version, binding); err != nil {
		return err
	}
	home, _, err := r.hub.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("finding the namespace: %w", err)
	}
	files.defaultNamespaces(home)
	for _, u := range files.objects {
		if u.GetNamespace() == "" && id.Namespace != "" {
			u.SetNamespace(home)
		}
		if hubv1.IdentityOf(u) == id {
			if of := inBundle(binding); of != "" {
				return fmt.Errorf("reading %s: %s is an object of %s, which a file cannot replace: pass the changed bundle to hansectl plan", files.source(id), id, of)
			}
			in.Object = u
		}
	}
	if in.Object == nil {
		return r.hub.noObject(ctx, c, id)
	}
	r.warnOf(files)
	return r.readAround(ctx, c, in, files, id.Namespace)
}

// readAround reads, from the hub, what determines the manifests besides the object itself: the clusters, the override
// policies, and the labels of the object's namespace.
func (r *renderRun) readAround(ctx context.Context, c client.Client, in *preview.RenderInput, files *fleetFiles, namespace string) error {
	var members hubv1.MemberClusterList
	if err := c.List(ctx, &members); err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	for i := range members.Items {
		in.Clusters = append(in.Clusters, &members.Items[i])
	}
	policies, err := inputs.Overrides(ctx, c, namespace != "", namespace, r.hub.unlessForbidden)
	if err != nil {
		return err
	}
	in.Policies = files.policiesOver(policies)
	in.OtherVersions, err = inputs.OtherVersions(ctx, c, in.Object, in.Clusters)
	if err := r.hub.unlessForbidden(err, "other versions of the kind are not considered"); err != nil {
		return err
	}
	if namespace == "" {
		return nil
	}
	var ns corev1.Namespace
	if err := r.hub.unlessForbidden(c.Get(ctx, client.ObjectKey{Name: namespace}, &ns), "labels of the namespace are not considered"); err != nil {
		return fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	in.NamespaceLabels = ns.Labels
	return nil
}

// warnOf warns about files that do not affect the rendered object.
func (r *renderRun) warnOf(files *fleetFiles) {
	if n := len(files.clusters) + len(files.placements) + len(files.bindings); n > 0 {
		fmt.Fprintf(r.hub.streams.ErrOut, "warning: MemberClusters, placements and bindings of the files are not considered: see hansectl plan\n")
	}
}

// chosen returns the clusters for which the object is rendered.
func (r *renderRun) chosen(in preview.RenderInput) ([]*hubv1.MemberCluster, error) {
	if r.all {
		return in.Clusters, nil
	}
	names := r.clusters
	if len(names) == 0 {
		if in.Binding == nil {
			return nil, errors.New("the object is not placed: choose clusters with --cluster or --all")
		}
		for _, t := range in.Binding.Clusters {
			if t.State != hubv1.TargetAbsent {
				names = append(names, t.Name)
			}
		}
	}
	var out []*hubv1.MemberCluster
	for _, name := range names {
		i := slices.IndexFunc(in.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == name })
		switch {
		case i >= 0:
			out = append(out, in.Clusters[i])
		case len(r.clusters) > 0:
			var there []string
			for _, m := range in.Clusters {
				there = append(there, m.Name)
			}
			return nil, fmt.Errorf("no MemberCluster has the name %s: %s", name, preview.ThereAre(there))
		default: // the hub also renders for a cluster without labels
			out = append(out, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return out, nil
}
