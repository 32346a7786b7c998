package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	return &cobra.Command{
		Use:       "crds OPERATOR [PLURAL...]",
		Short:     "Print the CRDs of an operator, all or those named",
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: topology.Operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownOperator(args[0]); err != nil {
				return err
			}
			built, err := p.build(cmd.Context())
			if err != nil {
				return err
			}
			files, err := built.CRDs(args[0])
			if err != nil {
				return err
			}
			return printCRDs(files, args[1:])
		},
	}
}

func knownOperator(name string) error {
	if !slices.Contains(topology.Operators, name) {
		return fmt.Errorf("operator %q is unknown; known: %s", name, strings.Join(topology.Operators, ", "))
	}
	return nil
}

// printCRDs prints the manifests whose file name contains one of the plurals, or all manifests.
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
