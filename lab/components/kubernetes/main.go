// Command kubernetes is etcd, the Kubernetes control plane, kubelet, kube-proxy and kubectl in one binary.
//
// Command kubernetes runs the program by whose name it is called: bin/ has a symbolic link for each program. Linking
// once takes a fifth of the time and disk space of five binaries, and the processes of all clusters share one text
// segment. The programs are unchanged.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // the time zones that CronJobs need

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's authentication plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		serve(apiserver.NewAPIServerCommand)
	case "kube-controller-manager":
		serve(controllermanager.NewControllerManagerCommand)
	case "kube-scheduler":
		serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() })
	case "kubelet":
		serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) })
	case "kube-proxy":
		serve(kubeproxy.NewProxyCommand)
	case "kubectl":
		runKubectl()
	default:
		fmt.Fprintf(os.Stderr, "%s: call this binary as etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, "+
			"kube-proxy or kubectl\n", name)
		os.Exit(2)
	}
}

func serve(command func() *cobra.Command) {
	os.Exit(cli.Run(command()))
}

// runKubectl sets the log verbosity before it builds the command, because the construction of the command already
// searches for plugins and reads the user's preferences.
func runKubectl() {
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) // a bad value is reported by the command itself
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
