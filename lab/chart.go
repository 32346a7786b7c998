package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/chart"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

func chartCommand(p *places) *cobra.Command {
	operators := slices.Concat(topology.Operators, build.ChartOperators)
	out, version := "", ""
	cmd := &cobra.Command{
		Use:       "chart OPERATOR",
		Short:     "Write a Helm chart of an operator, and print its path",
		Args:      cobra.ExactArgs(1),
		ValidArgs: operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.chart(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			archive, err := c.Pack()
			if err != nil {
				return err
			}
			file := filepath.Join(out, c.FileName())
			if err := os.WriteFile(file, archive, 0o644); err != nil {
				return fmt.Errorf("writing the chart: %w", err)
			}
			fmt.Println(file)
			return nil
		},
	}
	addVersion(cmd, &version)
	cmd.Flags().StringVar(&out, "out", ".", "folder of the archive")
	return cmd
}

// chart returns the chart of an operator at a version. The chart is that of the operator's module, or made of the
// operator's manifests. An empty version means the newest one.
func (p *places) chart(ctx context.Context, operator, version string) (chart.Chart, error) {
	if slices.Contains(build.ChartOperators, operator) {
		return p.authorsChart(ctx, operator, version)
	}
	built, err := p.operator(ctx, operator, &version)
	if err != nil {
		return chart.Chart{}, err
	}
	crds, err := built.CRDs(operator, version)
	if err != nil {
		return chart.Chart{}, err
	}
	manifests, err := built.Deployment(operator, version)
	if err != nil {
		return chart.Chart{}, err
	}
	return chart.New(operator, plane.OperatorImage(operator, version), crds, manifests)
}

func (p *places) authorsChart(ctx context.Context, operator, version string) (chart.Chart, error) {
	built, err := p.build(ctx, operator)
	if err != nil {
		return chart.Chart{}, err
	}
	only, err := built.Version(operator)
	if err != nil {
		return chart.Chart{}, err
	}
	if version != "" && version != only {
		return chart.Chart{}, fmt.Errorf("the lab has no version %q of %s; it has: %s", version, operator, only)
	}
	if operator == build.CertManager {
		return chart.CertManager(only, built.Chart(operator))
	}
	return chart.OfModule(built.Chart(operator))
}
