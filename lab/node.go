package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/topology"
)

func loadCommand(p *places) *cobra.Command {
	return &cobra.Command{
		Use:   "load NAME IMAGE...",
		Short: "Import images into the real node of a cluster: archives, or the images of the lab's operators",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := control.Load{Name: args[0]}
			for _, image := range args[1:] {
				if !slices.Contains(topology.Operators, image) {
					path, err := filepath.Abs(image)
					if err != nil {
						return err
					}
					image = path
				}
				request.Images = append(request.Images, image)
			}
			return p.do(cmd.Context(), control.LoadPath, request)
		},
	}
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Say whether this machine can run real nodes, and if not, why",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := namespaces.Possible(); err != nil {
				return err
			}
			fmt.Println("this machine can run real nodes")
			return nil
		},
	}
}
