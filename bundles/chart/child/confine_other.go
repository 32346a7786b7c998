//go:build !linux

package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

var errSystem = errors.New("a process can be limited on Linux only")

func command(context.Context) (*exec.Cmd, error) { return nil, errSystem }

// confine always fails on this operating system, so that no chart is rendered without limits.
func confine() error { return errSystem }

// overCPU returns a channel that never gets a signal.
func overCPU() <-chan os.Signal { return nil }
