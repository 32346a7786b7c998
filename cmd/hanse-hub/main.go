// Command hanse-hub is the hub: it federates the objects that placements select to the member clusters.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hanse-hub:", err)
		os.Exit(1)
	}
}

func run() error {
	var o hub.Options
	var denied string
	var showVersion bool
	flag.StringVar(&o.Namespace, "namespace", hubv1.SystemNamespace, "Namespace of the hub's Leases and of the Secrets with member kubeconfigs.")
	flag.BoolVar(&o.LeaderElection, "leader-elect", false, "Decide where objects go only while holding the Lease hanse-hub; needed with more than one replica.")
	flag.StringVar(&o.Identity, "identity", "", "Identity of this replica, such as the UID of its pod, by which replicas share the members; random if empty.")
	flag.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 turns them off.")
	flag.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "Address of /metrics; 0 turns it off.")
	flag.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics over TLS, to clients that may get the path /metrics.")
	flag.StringVar(&denied, "denied-metadata-prefixes", "", "Label and annotation key prefixes, separated by commas, that never travel to members, beside the built-in ones.")
	flag.BoolVar(&showVersion, "version", false, "Print the version and end.")
	logs := zap.Options{TimeEncoder: zapcore.RFC3339NanoTimeEncoder}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if showVersion {
		fmt.Println(version)
		return nil
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	for p := range strings.SplitSeq(denied, ",") {
		if p = strings.TrimSpace(p); p != "" {
			o.DeniedMetadataPrefixes = append(o.DeniedMetadataPrefixes, p)
		}
	}
	ctrl.SetLogger(newLogger(&logs))
	collectSmallHeapsLess(leastGrowth)

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the hub's API server: %w", err)
	}
	config.UserAgent = "hanse-hub/" + version
	return hub.Run(signals.SetupSignalHandler(), config, o)
}
