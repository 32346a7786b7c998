// Command hansectl joins clusters to a hub, shows where objects run, and uninstalls a hub without changing its members.
// If it is installed as kubectl-hanse, users can also call it as `kubectl hanse`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/hanse-dev/hanse/cmd/hansectl/command"
)

// version is the version of hansectl. The build sets it.
var version = "unknown"

func main() {
	klog.SetLogger(logr.Discard()) // client-go logs the errors that it also returns
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	name := "hansectl"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		name = "kubectl hanse"
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	ran, err := command.New(name, version, streams).ExecuteContextC(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if err == nil {
		return
	}
	switch {
	case interrupted && errors.Is(err, context.Canceled) && command.Reads(ran):
		fmt.Fprintf(os.Stderr, "%s: interrupted\n", name)
	case interrupted && errors.Is(err, context.Canceled):
		fmt.Fprintf(os.Stderr, "%s: interrupted; changes made so far stay\n", name)
	case err.Error() != "":
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
		if advice := command.Advice(err); advice != "" {
			fmt.Fprintln(os.Stderr, advice)
		}
	}
	os.Exit(command.ExitCode(err))
}
