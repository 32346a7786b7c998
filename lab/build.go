package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/topology"
)

func buildCommand(p *places) *cobra.Command {
	printBin := false
	cmd := &cobra.Command{
		Use:   "build [COMPONENT...]",
		Short: "Compile the components that are not in the cache: those that every lab needs, or those named",
		RunE: func(cmd *cobra.Command, args []string) error {
			built, err := p.build(cmd.Context(), args...)
			if err != nil {
				return err
			}
			if printBin {
				fmt.Println(built.Bin())
				return nil
			}
			fmt.Println("components are in", built.Bin())
			return nil
		},
	}
	cmd.Flags().BoolVar(&printBin, "print-bin", false, "print the folder of the binaries alone, as KUBEBUILDER_ASSETS wants it")
	return cmd
}

func crdsCommand(p *places) *cobra.Command {
	version := ""
	cmd := &cobra.Command{
		Use:       "crds OPERATOR [PLURAL...]",
		Short:     "Print the CRDs of an operator, all or those named",
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: topology.Operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			built, err := p.operator(cmd.Context(), args[0], &version)
			if err != nil {
				return err
			}
			files, err := built.CRDs(args[0], version)
			if err != nil {
				return err
			}
			return printCRDs(files, args[1:])
		},
	}
	addVersion(cmd, &version)
	return cmd
}

func addVersion(cmd *cobra.Command, version *string) {
	cmd.Flags().StringVar(version, "version", "", "version of the operator (default: the newest that the lab has)")
}

// operator returns the built components after it has checked that they contain this version of the operator. If
// *version is empty, operator sets it to the newest version.
func (p *places) operator(ctx context.Context, name string, version *string) (build.Built, error) {
	if !slices.Contains(topology.Operators, name) {
		return build.Built{}, fmt.Errorf("operator %q is unknown; known: %s", name, strings.Join(topology.Operators, ", "))
	}
	built, err := p.build(ctx)
	if err != nil {
		return build.Built{}, err
	}
	versions, err := build.Versions(built.Bin(), name)
	switch {
	case err != nil:
		return build.Built{}, err
	case *version == "":
		*version = versions[len(versions)-1]
	case !slices.Contains(versions, *version):
		return build.Built{}, fmt.Errorf("the lab has no version %q of %s; it has: %s", *version, name, strings.Join(versions, ", "))
	}
	return built, nil
}

// printCRDs prints the CRD manifests with these plural names, which it reads from the names of the files. Without
// plurals, it prints all manifests.
func printCRDs(files, plurals []string) error {
	found := map[string]bool{}
	for _, file := range files {
		_, plural, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), "_")
		if len(plurals) > 0 && !slices.Contains(plurals, plural) {
			continue
		}
		found[plural] = true
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s\n", strings.TrimPrefix(strings.TrimSpace(string(data)), "---\n"))
	}
	for _, plural := range plurals {
		if !found[plural] {
			return fmt.Errorf("the operator has no CRD of %q", plural)
		}
	}
	return nil
}
