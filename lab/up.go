package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/process"
	"github.com/hanse-dev/hanse/lab/supervise"
	"github.com/hanse-dev/hanse/lab/topology"
)

const supervisorTimeout = 20 * time.Second

func upCommand(p *places) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the clusters of a topology that are not up",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := p.topology(file)
			if err != nil {
				return err
			}
			return p.up(cmd.Context(), t)
		},
	}
	cmd.Flags().StringVar(&file, "topology", "", "topology file (default: what the lab had when it ended, or topologies/demo.yaml)")
	return cmd
}

// topology returns the topology in the file. Without a file, it returns the lab's last topology. If there is none, it
// returns the topology of the demo.
func (p *places) topology(file string) (topology.Topology, error) {
	if file != "" {
		return topology.Load(file)
	}
	dir, err := p.state()
	if err != nil {
		return topology.Topology{}, err
	}
	state, err := supervise.ReadState(dir)
	if err != nil || len(state.Topology.Clusters) > 0 {
		return state.Topology, err
	}
	source, err := p.source()
	if err != nil {
		return topology.Topology{}, err
	}
	return topology.Load(filepath.Join(filepath.Dir(source), "topologies", "demo.yaml"))
}

func addCommand(p *places) *cobra.Command {
	c := topology.Cluster{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Start one more cluster",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Name = args[0]
			return p.up(cmd.Context(), topology.Topology{Clusters: []topology.Cluster{c}})
		},
	}
	cmd.Flags().BoolVar(&c.Hub, "hub", false, "it is the hub")
	cmd.Flags().StringVar(&c.Region, "region", "", "region label of its nodes")
	cmd.Flags().StringSliceVar(&c.Zones, "zones", nil, "zone labels, dealt to the nodes in turn")
	cmd.Flags().Var(&c.Nodes, "nodes", "number of Node objects, or `real` for one node that runs pods")
	cmd.Flags().BoolVar(&c.Controllers, "controllers", false, "run kube-controller-manager, kube-scheduler and, without a real node, kwok")
	cmd.Flags().StringSliceVar(&c.Operators, "operators", nil, "operators to start once their CRDs are there")
	cmd.Flags().StringSliceVar(&c.DeployedOperators, "deployed-operators", nil, "operators to run while their CRDs and a pod of their Deployment are there")
	return cmd
}

// up builds missing components, starts a supervisor if none runs, and asks the supervisor to start the clusters of t.
// If up is interrupted, all processes that it started end.
func (p *places) up(ctx context.Context, t topology.Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	built, err := p.build(ctx)
	if err != nil {
		return err
	}
	stages, err := built.KwokStages()
	if err != nil {
		return err
	}
	dir, err := p.state()
	if err != nil {
		return err
	}
	if err := ensureSupervisor(ctx, dir, t.Real()); err != nil {
		return err
	}
	client := control.NewClient(dir)
	err = client.Follow(ctx, control.UpPath, control.Up{Topology: t, Bin: built.Bin(), Stages: stages}, os.Stdout)
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted; what this command started is stopped again"), awaitQuiet(client, dir))
	}
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	printStatus(status)
	return nil
}

// awaitQuiet waits until an interrupted up is rolled back. Then the supervisor responds again, or has ended because it
// had no process left.
func awaitQuiet(client *control.Client, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), supervisorTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if !supervise.Alive(dir) {
			return nil
		}
		if status, err := client.Status(ctx); err == nil && len(status.Clusters) > 0 && !status.Busy {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the supervisor does not come to rest; run `lab down`")
}

// ensureSupervisor starts a supervisor in a new session, unless one responds. A supervisor for real nodes gets its own
// namespaces.
func ensureSupervisor(ctx context.Context, dir string, real bool) error {
	client := control.NewClient(dir)
	if _, err := client.Status(ctx); !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	state, err := supervise.ReadState(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the lab's folder: %w", err)
	}
	file := filepath.Join(dir, supervise.LogFile)
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	defer func() { _ = log.Close() }() // the supervisor has its own copy
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	cmd := exec.Command(exe, "supervise", "--dir", dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if real {
		cmd.Args = append(cmd.Args, "--own-namespaces")
		err = namespaces.Start(cmd, dir, state.Network)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timeout := time.After(supervisorTimeout)
	for {
		if _, err := client.Status(ctx); !errors.Is(err, control.ErrNotRunning) {
			return err
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the supervisor ended: %w; the end of its log %s:\n%s", err, file, process.Tail(file, 20))
		case <-timeout:
			return fmt.Errorf("the supervisor does not answer; see %s", file)
		case <-ctx.Done():
			return ctx.Err() // a supervisor without requests ends by itself
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func superviseCommand(p *places) *cobra.Command {
	isolated := false
	cmd := &cobra.Command{
		Use:    "supervise",
		Short:  "Be the parent of everything that runs; `lab up` starts this",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := p.state()
			if err != nil {
				return err
			}
			if !isolated {
				return supervise.Run(cmd.Context(), dir, nil)
			}
			lab, err := namespaces.Enter(dir)
			if err != nil {
				return err
			}
			return supervise.Run(cmd.Context(), dir, &lab)
		},
	}
	cmd.Flags().BoolVar(&isolated, "own-namespaces", false, "it is process 1 of namespaces for real nodes")
	return cmd
}
