package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

func loadCommand(p *places) *cobra.Command {
	return &cobra.Command{
		Use:   "load NAME IMAGE...",
		Short: "Import images into the real node of a cluster: archives, or the images of operators",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := control.Load{Name: args[0]}
			for _, image := range args[1:] {
				images, err := p.images(cmd.Context(), image)
				if err != nil {
					return err
				}
				request.Images = append(request.Images, images...)
			}
			return p.do(cmd.Context(), control.LoadPath, request)
		},
	}
}

// images returns what the supervisor imports for an image argument: the name of an operator of the lab, or paths of
// archives.
func (p *places) images(ctx context.Context, image string) ([]string, error) {
	switch {
	case slices.Contains(topology.Operators, image):
		return []string{image}, nil
	case !slices.Contains(build.ChartOperators, image):
		path, err := filepath.Abs(image)
		return []string{path}, err
	}
	built, err := p.build(ctx, image)
	if err != nil {
		return nil, err
	}
	images, err := built.Images(image)
	if err != nil {
		return nil, err
	}
	var archives []string
	for _, i := range images {
		if _, err := os.Stat(i.Archive); err != nil {
			if err := plane.WriteImage(i.Archive, plane.ChartImage(i.Name), i.Program); err != nil {
				return nil, err
			}
		}
		archives = append(archives, i.Archive)
	}
	return archives, nil
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
