package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/plane"
)

func statusCommand(p *places) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := p.status(cmd.Context())
			if err != nil {
				return err
			}
			switch output {
			case "":
				printStatus(status)
				return nil
			case "json":
				out := json.NewEncoder(os.Stdout)
				out.SetIndent("", "  ")
				return out.Encode(status)
			}
			return fmt.Errorf("output %q is unknown; known: json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or nothing for a table")
	return cmd
}

func printStatus(status control.Status) {
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tREGION\tREADY\tNODES\tSERVER\tPROXY\tFAULT\tCOMPONENTS")
	for _, c := range status.Clusters {
		fmt.Fprintf(table, "%s\t%s\t%t\t%d\t%s\t%s\t%s\t%s\n",
			c.Name, c.Region, c.Ready, c.Nodes, c.Server, c.ProxyServer, c.Fault, summary(c.Components))
	}
	for _, e := range status.Etcds {
		fmt.Fprintf(table, "etcd %s\t\t%t\t\t%s\t\t\t%s\n", e.Name, e.State == "running", e.ClientURL, summary([]control.Component{{Name: plane.Etcd, State: e.State, Reason: e.Reason}}))
	}
	for _, e := range status.Extra {
		fmt.Fprintf(table, "%s\t\t\t\t\t\t\t%s\n", e.Name, summary([]control.Component{e}))
	}
	_ = table.Flush() // to stdout
	fmt.Println("state and logs:", status.Dir)
}

// summary lists the names of the components. For a component that does not run, it adds the reason.
func summary(components []control.Component) string {
	var words []string
	for _, c := range components {
		word := c.Name
		if c.State != "running" {
			word += " (" + strings.TrimSpace(c.State+" "+c.Reason) + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func kubeconfigCommand(p *places) *cobra.Command {
	proxy := false
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print the path of a cluster's kubeconfig",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := p.status(cmd.Context())
			if err != nil {
				return err
			}
			for _, c := range status.Clusters {
				if c.Name == args[0] && proxy {
					fmt.Println(c.ProxyKubeconfig)
					return nil
				}
				if c.Name == args[0] {
					fmt.Println(c.Kubeconfig)
					return nil
				}
			}
			return fmt.Errorf("the lab has no cluster %q", args[0])
		},
	}
	cmd.Flags().BoolVar(&proxy, "proxy", false, "the one that goes through the fault proxy")
	return cmd
}

func logsCommand(p *places) *cobra.Command {
	return &cobra.Command{
		Use:   "logs NAME [COMPONENT]",
		Short: "Print the log of a cluster's component (default: its API server), or of an extra process",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := p.status(cmd.Context())
			if err != nil {
				return err
			}
			file, err := logFile(status, args)
			if err != nil {
				return err
			}
			log, err := os.Open(file)
			if err != nil {
				return err
			}
			defer func() { _ = log.Close() }()
			_, err = io.Copy(os.Stdout, log)
			return err
		},
	}
}

func logFile(status control.Status, args []string) (string, error) {
	component := plane.APIServer
	if len(args) == 2 {
		component = args[1]
	}
	for _, e := range status.Extra {
		if e.Name == args[0] {
			return e.Log, nil
		}
	}
	for _, c := range status.Clusters {
		if c.Name != args[0] {
			continue
		}
		components := c.Components
		for _, e := range status.Etcds {
			if e.Name == c.Etcd {
				components = append(components, control.Component{Name: plane.Etcd, Log: e.Log})
			}
		}
		for _, x := range components {
			if x.Name == component {
				return x.Log, nil
			}
		}
		return "", fmt.Errorf("cluster %q has no component %q", c.Name, component)
	}
	return "", fmt.Errorf("the lab has no %q", args[0])
}
