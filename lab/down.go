package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/supervise"
)

const downTimeout = 30 * time.Second

func downCommand(p *places) *cobra.Command {
	keep := false
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End everything and delete the lab's folder",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := p.state()
			if err != nil {
				return err
			}
			if err := down(cmd.Context(), dir, keep); err != nil {
				return err
			}
			fmt.Println("the lab is down")
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep data, logs and addresses, so that `lab up` brings the same clusters back")
	return cmd
}

// down asks the supervisor to end, and kills a supervisor that does not respond. All its children end with the
// supervisor.
func down(ctx context.Context, dir string, keep bool) error {
	asked, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	err := control.NewClient(dir).Do(asked, control.DownPath, control.Down{Keep: keep})
	if err == nil && awaitEnd(asked, dir) {
		return nil
	}
	if supervise.Alive(dir) {
		state, err := supervise.ReadState(dir)
		if err != nil {
			return err
		}
		if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing the supervisor (process %d): %w", state.PID, err)
		}
		if !awaitEnd(ctx, dir) {
			return ctx.Err()
		}
	} else if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if keep {
		return nil
	}
	return supervise.Clean(dir)
}

// awaitEnd returns true as soon as no supervisor holds the lock of the lab. It returns false if ctx ends first.
func awaitEnd(ctx context.Context, dir string) bool {
	for ctx.Err() == nil {
		if !supervise.Alive(dir) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func removeCommand(p *places) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "End a cluster and delete all that it holds, or end an extra process",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.do(cmd.Context(), control.RemovePath, control.Remove{Name: args[0]})
		},
	}
}
