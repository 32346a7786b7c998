// Command cert-manager is the controller, the webhook and the cainjector of cert-manager in one binary.
//
// Command cert-manager runs the program by whose name it is called: bin/ has a symbolic link for each program. With one
// binary, the common packages are compiled and linked only once. The programs are unchanged.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	cainjector "github.com/cert-manager/cert-manager/cmd/cainjector/app"
	controller "github.com/cert-manager/cert-manager/cmd/controller/app"
	"github.com/cert-manager/cert-manager/cmd/util"
	webhook "github.com/cert-manager/cert-manager/cmd/webhook/app"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// programs has a constructor of the command for each program name. A command ends when the channel stop is closed.
var programs = map[string]func(stop <-chan struct{}) *cobra.Command{
	"cert-manager-controller": controller.NewCommandStartCertManagerController,
	"cert-manager-webhook":    webhook.NewServerCommand,
	"cert-manager-cainjector": func(stop <-chan struct{}) *cobra.Command {
		ctrl.SetLogger(logs.Log)
		return cainjector.NewCommandStartInjectorController(util.ContextWithStopCh(context.Background(), stop), os.Stdout, os.Stderr)
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: call this binary as cert-manager-controller, cert-manager-webhook or cert-manager-cainjector\n", name)
		os.Exit(2)
	}
	stop, exit := util.SetupExitHandler(util.GracefulShutdown)
	defer exit() // exit ends the process with the exit code, so it must run last
	logs.InitLogs(flag.CommandLine)
	defer logs.FlushLogs()
	command := program(stop)
	command.Flags().AddGoFlagSet(flag.CommandLine)
	if err := command.Execute(); err != nil {
		logs.Log.Error(err, "the program ended")
		util.SetExitCode(err)
	}
}
