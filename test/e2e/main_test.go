// Package e2e runs a hub and three members in different regions on the lab, and checks what users see. The charts
// install the hub's and the members' permissions, and the hub process has the ServiceAccount of its chart. The tests
// act as administrators.
//
// The suite needs the variables HANSE_LAB, HANSE_BIN and HANSE_HELM, which `make test-e2e` sets. Without them, no test
// runs.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/test/fleet"
)

// The members in lab/topologies/e2e.yaml.
const (
	shanghai  = "cn-sha-1"
	singapore = "ap-se-1"
	frankfurt = "eu-fra-1"
)

var members = []string{singapore, shanghai, frankfurt} // sorted by name, like the rows of a binding

// kinds are the kinds on which the charts grant rights in this suite.
var kinds = []fleet.Kind{
	{APIGroups: []string{"test.hanse.dev"}, Resources: []string{"widgets"}, Status: true},
	{APIGroups: []string{"monitoring.coreos.com"}, Resources: []string{"prometheuses"}, Status: true},
	{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Status: true},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}},
	{APIGroups: []string{"test.hanse.dev"}, Resources: []string{"sprockets"}},
	{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}},
	{APIGroups: []string{"test.hanse.dev"}, Resources: []string{"gadgets"}},
	{APIGroups: []string{"test.hanse.dev"}, Resources: []string{"valves"}},
}

// grantedKinds are the kinds on which the members grant rights: all kinds of the hub, and Trinkets. The hub does not
// federate Trinkets, it only checks whether a member has objects of this kind.
func grantedKinds() []fleet.Kind {
	out := slices.Clone(kinds)
	for i, k := range out {
		if slices.Equal(k.Resources, []string{"gadgets"}) {
			out[i].Resources = []string{"gadgets", "trinkets"}
		}
	}
	return out
}

// suite is the fleet that all tests share. Each test uses its own namespace. A test that breaks a member or the hub
// also mends it.
var suite struct {
	*fleet.Fleet
	hub *fleet.HubProcess
	// audited is the number of bytes of the hub's audit log that the suite compares with the roles. 0 means the whole log.
	audited int64
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
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run() // `go test -list` needs no fleet
	}
	config, ok := fleet.FromEnvironment(root)
	if !ok || testing.Short() {
		fmt.Println("skipped: the end-to-end suite runs with make test-e2e")
		return 0
	}
	config.Topology = filepath.Join(root, "lab", "topologies", "e2e.yaml")
	if config.Dir, err = os.MkdirTemp("", "hanse-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	interrupted, end := fleet.UntilInterrupted(config, kindPageLab(config.Dir), operatorsLab(config.Dir), config.Dir)
	ctx, cancel := context.WithTimeout(interrupted, 40*time.Minute)
	defer cancel()
	code := 1
	defer func() {
		end()
		if runningBrowser.Browser != nil {
			_ = runningBrowser.Stop()
		}
		if suite.hub != nil {
			_ = suite.hub.Kill()
		}
		if suite.Fleet != nil {
			_ = suite.Down(context.Background()) // the lab must end after a time-out, too
		}
		if code == 0 {
			_ = os.RemoveAll(config.Dir)
		}
	}()
	if err := setUp(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, "setting up the fleet:", err)
		return code
	}
	code = m.Run()
	if code != 0 && suite.hub != nil {
		fmt.Fprintf(os.Stderr, "end of the hub's log:\n%s\n", suite.hub.LogTail())
	}
	return code
}

// kindPageLab returns the folder of the lab that TestTheKindPageRunsOnTheLab starts beside the suite's lab.
func kindPageLab(suiteDir string) string { return filepath.Join(suiteDir, "kind-page") }

// setUp starts the lab, applies the CRDs, installs the charts, joins the members, starts the hub, and waits until every
// member is ready.
func setUp(ctx context.Context, config fleet.Config) error {
	begin := time.Now()
	say := func(what string) { fmt.Printf("[%3.0fs] %s\n", time.Since(begin).Seconds(), what) }
	say("starting the lab")
	f, err := fleet.Up(ctx, config)
	suite.Fleet = f // also after an error, so that the fleet can be ended
	if err != nil {
		return err
	}
	f.Agents = true
	say("installing CRDs and charts")
	if err := applyCRD(ctx, f.Hub.Client, "testdata/widget-crd.yaml"); err != nil {
		return err
	}
	if err := f.InstallHub(ctx, kinds); err != nil {
		return err
	}
	for _, name := range members {
		if err := applyCRD(ctx, f.Members[name].Client, "testdata/widget-crd.yaml"); err != nil {
			return err
		}
		if err := f.InstallMember(ctx, f.Members[name], grantedKinds()); err != nil {
			return err
		}
		if err := f.Join(ctx, f.Members[name], nil); err != nil {
			return err
		}
	}
	say("starting the hub")
	if suite.hub, err = f.StartHub(ctx, "hub-a"); err != nil {
		return err
	}
	for _, name := range members {
		if err := poll(ctx, 30*time.Second, func() error { return memberReady(ctx, name) }); err != nil {
			return err
		}
	}
	say("the fleet is ready")
	return nil
}

// applyCRD applies the CRD in a file and waits until the API server serves it.
func applyCRD(ctx context.Context, c client.Client, path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", path, err)
	}
	return poll(ctx, 20*time.Second, func() error {
		var served apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, types.NamespacedName{Name: crd.GetName()}, &served); err != nil {
			return err
		}
		for _, cond := range served.Status.Conditions {
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("CRD %s is not established", crd.GetName())
	})
}
