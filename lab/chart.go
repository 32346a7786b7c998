package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/chart"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

func chartCommand(p *places) *cobra.Command {
	operators := append(slices.Clone(topology.Operators), build.CertManager)
	out := ""
	cmd := &cobra.Command{
		Use:       "chart OPERATOR",
		Short:     "Write a Helm chart of an operator, with the images of the lab, and print its path",
		Args:      cobra.ExactArgs(1),
		ValidArgs: operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(operators, args[0]) {
				return fmt.Errorf("operator %q is unknown; known: %s", args[0], strings.Join(operators, ", "))
			}
			c, err := p.chart(cmd.Context(), args[0])
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
	cmd.Flags().StringVar(&out, "out", ".", "folder of the archive")
	return cmd
}

// chart returns the chart of an operator: of its manifests, or the one in its module.
func (p *places) chart(ctx context.Context, operator string) (chart.Chart, error) {
	if operator == build.CertManager {
		built, err := p.build(ctx, operator)
		if err != nil {
			return chart.Chart{}, err
		}
		version, err := built.Version(operator)
		if err != nil {
			return chart.Chart{}, err
		}
		return chart.CertManager(version, built.Chart(operator), plane.Image)
	}
	built, err := p.build(ctx)
	if err != nil {
		return chart.Chart{}, err
	}
	crds, err := built.CRDs(operator)
	if err != nil {
		return chart.Chart{}, err
	}
	manifests, err := built.Deployment(operator)
	if err != nil {
		return chart.Chart{}, err
	}
	return chart.New(operator, plane.Image(operator), crds, manifests)
}
