package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/faultproxy"
)

func signalCommand(p *places, action control.Action, short string) *cobra.Command {
	component := ""
	cmd := &cobra.Command{
		Use:   string(action) + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.do(cmd.Context(), control.SignalPath, control.Signal{Name: args[0], Component: component, Action: action})
		},
	}
	cmd.Flags().StringVar(&component, "component", "", "component of the cluster (default kube-apiserver); etcd is the one that the cluster uses")
	return cmd
}

const faultHelp = `Set what the fault proxy of a cluster does wrong, until the next call. It acts on
what goes through the proxy (lab kubeconfig NAME --proxy) and on nothing else.

  none                    nothing
  delay DURATION          every request waits that long before it is passed on
  blackhole               nothing passes in either direction, on old and new connections, and
                          nothing is reset; what was held is delivered when the fault ends
  drop PERCENT            a random share of the requests is never answered
  reset                   all connections are reset, and new ones at once
  reset DURATION|N        all connections are reset every so often, or at every Nth request
  status CODE             requests are answered so (429, 500, 503, ...); with --percent a random
                          share of them, with --retry-after and that header
  hang-watch              lists are answered; watches are accepted and deliver nothing
  hang-list [RESOURCE]    lists (of a plural, or plural.group) are never answered`

func faultCommand(p *places) *cobra.Command {
	opts := faultproxy.Options{}
	cmd := &cobra.Command{
		Use:   "fault NAME MODE [ARGUMENT]",
		Short: "Make the connection to a cluster misbehave",
		Long:  faultHelp,
		Args:  cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			fault, err := faultproxy.Parse(args[1:], opts)
			if err != nil {
				return err
			}
			return p.do(cmd.Context(), control.FaultPath, control.Fault{Name: args[0], Fault: fault})
		},
	}
	cmd.Flags().IntVar(&opts.Percent, "percent", 100, "share of the requests (status)")
	cmd.Flags().DurationVar(&opts.RetryAfter, "retry-after", time.Duration(0), "Retry-After header (status)")
	return cmd
}

func runCommand(p *places) *cobra.Command {
	request := control.Run{}
	cmd := &cobra.Command{
		Use:   "run NAME [--env K=V] -- COMMAND [ARGUMENT...]",
		Short: "Run one more process that ends with the lab; kill, pause, resume, start and logs work on it",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range request.Env {
				if !strings.Contains(pair, "=") {
					return fmt.Errorf("--env %q is not K=V", pair)
				}
			}
			program, err := exec.LookPath(args[1])
			if err != nil {
				return err
			}
			if program, err = filepath.Abs(program); err != nil {
				return err
			}
			if request.Dir, err = filepath.Abs("."); err != nil {
				return err
			}
			request.Name, request.Command = args[0], append([]string{program}, args[2:]...)
			return p.do(cmd.Context(), control.RunPath, request)
		},
	}
	cmd.Flags().StringArrayVar(&request.Env, "env", nil, "environment variable K=V, added to those of the lab; may be repeated")
	return cmd
}
