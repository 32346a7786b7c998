package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/chart"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

func chartCommand(p *places) *cobra.Command {
	out, version := "", ""
	cmd := &cobra.Command{
		Use:       "chart OPERATOR",
		Short:     "Write a Helm chart of an operator, with the image of the lab, and print its path",
		Args:      cobra.ExactArgs(1),
		ValidArgs: topology.Operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			built, err := p.operator(cmd.Context(), args[0], &version)
			if err != nil {
				return err
			}
			crds, err := built.CRDs(args[0], version)
			if err != nil {
				return err
			}
			manifests, err := built.Deployment(args[0], version)
			if err != nil {
				return err
			}
			c, err := chart.New(args[0], plane.OperatorImage(args[0], version), crds, manifests)
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
