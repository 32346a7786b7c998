package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/namespaces"
)

func loadCommand(p *places) *cobra.Command {
	return &cobra.Command{
		Use:   "load NAME ARCHIVE...",
		Short: "Import archives of images into the real node of a cluster",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := control.Load{Name: args[0]}
			for _, archive := range args[1:] {
				path, err := filepath.Abs(archive)
				if err != nil {
					return err
				}
				request.Archives = append(request.Archives, path)
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
