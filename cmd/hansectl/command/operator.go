package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

// chartRun has the arguments of a command that renders a chart.
type chartRun struct {
	hub                      *hub
	values, versions         []string
	releaseName, kubeVersion string
}

func (r *chartRun) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&r.values, "values", "f", nil, "File with values for the chart. Can be repeated; later files win.")
	flags.StringVar(&r.releaseName, "release-name", "", "Name of the release; by default the name of the chart.")
	flags.StringVar(&r.kubeVersion, "kube-version", chart.DefaultKubernetes, "Kubernetes version of the members, which the chart's templates can read.")
	flags.StringArrayVar(&r.versions, "api-versions", nil, "API version that the members serve in addition to the API versions of Kubernetes, such as monitoring.coreos.com/v1. Can be repeated.")
	_ = cmd.MarkFlagFilename("values", "yaml", "yml", "json")
}

// render renders the chart of an archive or of a folder.
func (r *chartRun) render(ctx context.Context, path string) (chart.Rendered, error) {
	in := chart.Input{
		Release: r.releaseName, Namespace: cmp.Or(*r.hub.flags.Namespace, "default"), Kubernetes: r.kubeVersion,
		APIVersions: slices.Concat(chart.KubernetesAPIVersions(), r.versions),
	}
	var err error
	if in.Archive, err = readChart(path); err != nil {
		return chart.Rendered{}, err
	}
	for _, file := range r.values {
		text, err := os.ReadFile(file)
		if err != nil {
			return chart.Rendered{}, fmt.Errorf("reading values: %w", err)
		}
		values, err := chart.ParseValues(text)
		if err != nil {
			return chart.Rendered{}, fmt.Errorf("%s: %w", file, err)
		}
		in.Values = append(in.Values, values)
	}
	rendered, err := chart.Render(ctx, in)
	if err != nil {
		return chart.Rendered{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range rendered.Lookups {
		r.hub.warn(fmt.Sprintf("warning: template %s calls lookup, which finds nothing here: on a cluster it may render other objects\n", name))
	}
	return rendered, nil
}

// readChart returns the archive of a chart. If path is a folder, it packs the folder.
func readChart(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	if info.IsDir() {
		return chart.Pack(path)
	}
	if info.Size() > chart.MaxArchiveBytes {
		return nil, fmt.Errorf("%s has %d bytes: an archive of a chart has at most %d", path, info.Size(), chart.MaxArchiveBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return text, nil
}

// completeChart completes the name of a file or folder.
func completeChart(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func newOperatorsCRDs(h *hub) *cobra.Command {
	r := &chartRun{hub: h}
	cmd := &cobra.Command{
		Use:   "crds CHART",
		Short: "Print the CustomResourceDefinitions of a chart",
		Long: `Print the CustomResourceDefinitions of a chart, as documents of YAML: those of its folder crds, of its templates and
of its hooks. CHART is an archive (.tgz) or a folder.

The hub needs these definitions to serve the operator's kinds. It does not install them itself.`,
		Example: `  # Serve the kinds of an operator on the hub
  hansectl operators crds prometheus-operator-1.0.0.tgz | kubectl apply --server-side -f -`,
		Args:              arguments("CHART"),
		ValidArgsFunction: completeChart,
		RunE: func(cmd *cobra.Command, args []string) error {
			rendered, err := r.render(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return r.printDefinitions(rendered)
		},
	}
	r.addTo(cmd)
	return cmd
}

func (r *chartRun) printDefinitions(rendered chart.Rendered) error {
	definitions := rendered.Definitions
	for _, h := range rendered.Hooks {
		listed := func(o *unstructured.Unstructured) bool { return o.GetName() == h.Object.GetName() }
		if h.Definition && !slices.ContainsFunc(definitions, listed) {
			definitions = append(definitions, h.Object)
		}
	}
	if len(definitions) == 0 {
		fmt.Fprintf(r.hub.streams.ErrOut, "the chart %s %s has no CustomResourceDefinition\n", rendered.Name, rendered.Version)
		return nil
	}
	for _, d := range definitions {
		text, err := yaml.Marshal(d.Object)
		if err != nil {
			return fmt.Errorf("writing CustomResourceDefinition %s: %w", d.GetName(), err)
		}
		if _, err := fmt.Fprintf(r.hub.streams.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

func newOperatorsRBAC(h *hub) *cobra.Command {
	r := &chartRun{hub: h}
	var out output
	cmd := &cobra.Command{
		Use:   "rbac CHART",
		Short: "Print the rights that the hub needs on a member to install a chart",
		Long: `Print the rights that the hub needs on a member to install a chart, as values of the chart hanse-member: the kinds of
its objects, and the rules of its own roles. CHART is an archive (.tgz) or a folder.

A member lets the hub write a role only if the hub has its rules. Rules with wildcards are left out, with a warning on
standard error. Bindings to cluster-admin and to roles outside the chart cause a warning, too. A member without the
chart hanse-member gets the printed rights by hansectl join --grant-operator. In the output for programs, .manifests
has the rules as roles.`,
		Example: `  # What a member must grant
  hansectl operators rbac prometheus-operator-1.0.0.tgz -n monitoring -f values.yaml

  # Grant the rights to a member without the chart hanse-member
  hansectl operators rbac prometheus-operator-1.0.0.tgz -n monitoring > prometheus-operator.yaml
  hansectl join cn-sha-1 --member-kubeconfig cn-sha-1.kubeconfig --grant-operator prometheus-operator.yaml

  # Apply the rules there without the hub, with the kubeconfig of an admin of the member
  hansectl operators rbac prometheus-operator-1.0.0.tgz -n monitoring -o jsonpath='{.manifests}' | kubectl apply -f -`,
		Args:              arguments("CHART"),
		ValidArgsFunction: completeChart,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			rendered, err := r.render(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			rights, err := operatorrights.Of(rendered)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, warning := range rights.Warnings {
				h.warn("warning: " + warning + "\n")
			}
			return out.print(h.streams.Out, rights)
		},
	}
	r.addTo(cmd)
	out.addTo(cmd)
	return cmd
}
