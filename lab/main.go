// Command lab runs real Kubernetes control planes on one machine: a hub and any number of members.
//
// The command build compiles the components, supervise runs the parent of all processes, and most other commands send a
// request to this supervisor.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/control"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	p := &places{}
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Real Kubernetes control planes on this machine, for trying and testing Hanse",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&p.dir, "dir", "", "folder of the lab's state and logs (default: .cache/lab/run in the repository)")
	root.PersistentFlags().StringVar(&p.components, "components", "", "folder of the components' source (default: found upwards from the working directory)")
	root.AddCommand(
		buildCommand(p), crdsCommand(p), chartCommand(p),
		upCommand(p), addCommand(p), removeCommand(p), downCommand(p), superviseCommand(p),
		statusCommand(p), kubeconfigCommand(p), logsCommand(p),
		signalCommand(p, control.Kill, "Kill a component with SIGKILL"),
		signalCommand(p, control.Start, "Start a component that was killed or has ended"),
		signalCommand(p, control.Pause, "Stop a component with SIGSTOP"),
		signalCommand(p, control.Resume, "Continue a paused component with SIGCONT"),
		faultCommand(p), runCommand(p), loadCommand(p), checkCommand(),
	)
	return root
}

// places are the folders of the lab.
type places struct {
	dir, components string
}

// source returns the folder of the components' source. It searches from the working directory and from the binary's
// folder.
func (p *places) source() (string, error) {
	if p.components != "" {
		return filepath.Abs(p.components)
	}
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			for _, candidate := range []string{filepath.Join(dir, "components"), filepath.Join(dir, "lab", "components")} {
				if _, err := os.Stat(filepath.Join(candidate, "kubernetes", "go.mod")); err == nil {
					return candidate, nil
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("finding the components' source: not in a Hanse repository; use --components")
}

// cache returns the git-ignored folder for all files that the lab creates.
func (p *places) cache() (string, error) {
	source, err := p.source()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(filepath.Dir(source)), ".cache", "lab"), nil
}

// state returns the folder of the running lab.
func (p *places) state() (string, error) {
	if p.dir != "" {
		return filepath.Abs(p.dir)
	}
	cache, err := p.cache()
	return filepath.Join(cache, "run"), err
}

// build returns the components that every lab needs, or those with the given names.
func (p *places) build(ctx context.Context, names ...string) (build.Built, error) {
	source, err := p.source()
	if err != nil {
		return build.Built{}, err
	}
	cache, err := p.cache()
	if err != nil {
		return build.Built{}, err
	}
	return build.Ensure(ctx, source, cache, os.Stderr, names...)
}

func (p *places) client() (*control.Client, error) {
	dir, err := p.state()
	if err != nil {
		return nil, err
	}
	return control.NewClient(dir), nil
}

// status returns the state of the running lab.
func (p *places) status(ctx context.Context) (control.Status, error) {
	client, err := p.client()
	if err != nil {
		return control.Status{}, err
	}
	return client.Status(ctx)
}

// do sends one request to the running lab.
func (p *places) do(ctx context.Context, path string, request any) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	return client.Do(ctx, path, request)
}
