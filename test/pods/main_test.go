// Package pods installs Hanse as users do: with helm, with the default values of the charts, and on nodes that run
// pods. The tests upgrade the hub from an older commit while objects change. The tests also roll the hub back, drain
// its node and uninstall it.
//
// The suite needs real nodes of the lab and five variables that `make test-pods` sets: HANSE_LAB, HANSE_BIN,
// HANSE_HELM, HANSE_IMAGES and HANSE_OLDER. HANSE_IMAGES is the folder with this commit's images. HANSE_OLDER is a
// folder with charts, images and hansectl of the commit in hack/upgrade-from. If real nodes cannot run on the machine,
// the tests are skipped, or fail if HANSE_REAL_NODES is "require".
package pods

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// The members in lab/topologies/pods.yaml. The first member has a real node.
const (
	frankfurt = "eu-fra-1"
	shanghai  = "cn-sha-1"
	singapore = "ap-se-1"
)

var members = []string{frankfurt, shanghai, singapore}

// kinds has the kinds that both charts grant to the hub in this suite.
var kinds = []fleet.Kind{
	{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}},
	{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}, Status: true},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"certificates", "issuers"}, Status: true},
	{APIGroups: []string{"monitoring.coreos.com"}, Resources: []string{"prometheuses"}, Status: true},
}

// suite is the fleet of all tests.
var suite struct {
	*fleet.Fleet
	images, older string // folders with the images of this version and of an older one
	impossible    string // the reason why the fleet cannot run; empty if it runs
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	root, err := filepath.Abs("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config, ok := fleet.FromEnvironment(root)
	suite.images, suite.older = os.Getenv("HANSE_IMAGES"), os.Getenv("HANSE_OLDER")
	if !ok || suite.images == "" || suite.older == "" || testing.Short() {
		fmt.Println("skipped: the suite runs with make test-pods")
		return 0
	}
	if out, err := exec.Command(config.Lab, "check").CombinedOutput(); err != nil {
		suite.impossible = string(out)
		if os.Getenv("HANSE_REAL_NODES") == "require" {
			fmt.Fprintf(os.Stderr, "HANSE_REAL_NODES is require: %s", out)
			return 1
		}
		return m.Run()
	}
	config.Topology = filepath.Join(root, "lab", "topologies", "pods.yaml")
	if config.Dir, err = os.MkdirTemp("", "hanse-pods-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	interrupted, end := fleet.UntilInterrupted(config, config.Dir)
	ctx, cancel := context.WithTimeout(interrupted, 5*time.Minute)
	defer cancel()
	code := 1
	defer func() {
		end()
		if suite.Fleet != nil {
			_ = suite.Down(context.Background()) // also after a timeout
		}
		if code == 0 {
			_ = os.RemoveAll(config.Dir)
		}
	}()
	if suite.Fleet, err = fleet.Up(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, "starting the lab:", err)
		return code
	}
	code = m.Run()
	return code
}
