package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/console"
	"github.com/hanse-dev/hanse/test/fleet"
)

// kindPage runs the commands of docs/kind.md on a separate lab. The run differs from the page only in the following
// points:
//
//   - The commands kind, make and sudo are replaced, because the lab already has the clusters, and the suite has built
//     all programs.
//   - The files of prometheus-operator come from the lab instead of from the network.
//   - No kubelet runs on the hub. The chart is therefore installed with replicas=0 and without the uninstall hook, and
//     the hub runs as a process. `hansectl tree` connects to this process directly, because the API server forwards
//     requests only to pods.
//   - A member's address is an address of this machine, not the name of a container.
type kindPage struct {
	*fleet.Fleet
	folder      string // working folder of the commands
	hub         *fleet.HubProcess
	substitutes *strings.Replacer
	output      bytes.Buffer // output of the last command
}

func TestTheKindPageRunsOnTheLab(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	config := suite.Config
	config.Dir, config.Topology = kindPageLab(suite.Dir), filepath.Join("testdata", "kind-topology.yaml")
	f, err := fleet.Up(ctx, config)
	must(t, err)
	page := &kindPage{Fleet: f, folder: t.TempDir()}
	t.Cleanup(func() {
		if page.hub != nil {
			_ = page.hub.Kill()
		}
		_ = f.Down(context.WithoutCancel(ctx))
	})
	shell, err := page.prepare(ctx)
	must(t, err)
	text, err := os.ReadFile("../../docs/kind.md")
	must(t, err)
	blocks := console.Blocks(string(text))
	if len(blocks) < 6 {
		t.Fatalf("the page has %d blocks only", len(blocks))
	}
	for _, block := range blocks {
		begin := time.Now()
		script, err := syntax.NewParser().Parse(strings.NewReader(block), "docs/kind.md")
		must(t, err)
		if strings.Contains(block, "kubectl delete prometheus") {
			page.hasRun(ctx, t)
		}
		if err := shell.Run(ctx, script); err != nil {
			t.Fatalf("running a block of docs/kind.md: %v\n%s\noutput of its last command:\n%s", err, block, page.output.String())
		}
		t.Logf("%.1f s: %s", time.Since(begin).Seconds(), strings.TrimSpace(block))
	}
	eventually(t, normal, func() error {
		for name, member := range f.Members {
			if err := member.Get(ctx, client.ObjectKey{Namespace: "monitoring", Name: "web"}, prometheus()); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s still has the copy: %w", name, err)
			}
		}
		return nil
	})
}

// hasRun checks the result that the page promises: 3 replicas in Frankfurt, 5 in Shanghai, and 8 on the hub.
func (p *kindPage) hasRun(ctx context.Context, t *testing.T) {
	t.Helper()
	for name, want := range map[string]int64{"": 8, "cn-sha-1": 5, "eu-fra-1": 3} {
		cluster := p.Hub
		if name != "" {
			cluster = p.Members[name]
		}
		eventually(t, normal, func() error {
			o := prometheus()
			if err := cluster.Get(ctx, client.ObjectKey{Namespace: "monitoring", Name: "web"}, o); err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas"); got != want {
				return fmt.Errorf("%s has %d replicas, want %d", cluster.Name, got, want)
			}
			return nil
		})
	}
}

func prometheus() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("monitoring.coreos.com/v1")
	o.SetKind("Prometheus")
	return o
}

// prepare creates the working folder and the shell for the commands of the page.
func (p *kindPage) prepare(ctx context.Context) (*interp.Runner, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	bin, err := p.LabCommand(ctx, "build", "--print-bin")
	if err != nil {
		return nil, err
	}
	for name, target := range map[string]string{"bin": p.Bin, "charts": filepath.Join(root, "charts"), "docs": filepath.Join(root, "docs")} {
		if err := os.Symlink(target, filepath.Join(p.folder, name)); err != nil {
			return nil, err
		}
	}
	const source = "https://raw.githubusercontent.com/prometheus-operator/prometheus-operator/v0.88.0/"
	pairs := []string{}
	for from, plurals := range map[string][]string{
		"bundle.yaml": nil, "example/prometheus-operator-crd/monitoring.coreos.com_prometheuses.yaml": {"prometheuses"},
	} {
		crds, err := p.LabCommand(ctx, append([]string{"crds", "prometheus-operator"}, plurals...)...)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(p.folder, filepath.Base(from))
		if err := os.WriteFile(file, []byte(crds), 0o600); err != nil {
			return nil, err
		}
		pairs = append(pairs, source+from, file)
	}
	for name, member := range p.Members {
		pairs = append(pairs, "https://"+name+"-control-plane:6443", member.Server)
	}
	p.substitutes = strings.NewReplacer(pairs...)
	path := []string{strings.TrimSpace(bin), filepath.Dir(p.Helm), os.Getenv("PATH")}
	return interp.New(
		interp.Dir(p.folder), interp.StdIO(nil, &p.output, &p.output), interp.Params("-e"), interp.ExecHandlers(p.handle),
		interp.Env(expand.ListEnviron(append(os.Environ(), "PATH="+strings.Join(path, ":"), "HOME="+p.folder)...)),
	)
}

var errUnknownCommand = errors.New("this test does not know how to run the command")

// handle runs one command of the page, or its substitute.
func (p *kindPage) handle(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		p.output.Reset()
		name := args[0]
		args = slices.Clone(args)
		for i := range args {
			args[i] = p.substitutes.Replace(args[i])
		}
		switch name {
		case "sudo", "make":
			return nil
		case "kind":
			return p.kind(args[1:])
		case "helm":
			args = append(args, "--set", "replicas=0,uninstallHook.enabled=false")
		case "hansectl":
			if args[1] == "tree" {
				args = append(args, "--hub-endpoint", p.hub.View)
			}
		case "kubectl":
		default:
			return fmt.Errorf("running %s: %w", name, errUnknownCommand)
		}
		if err := next(ctx, args); err != nil {
			return fmt.Errorf("running %s: %w", strings.Join(args, " "), err)
		}
		if name != "helm" {
			return nil
		}
		return p.startHub(ctx)
	}
}

// startHub starts the hub and returns when it leads. This corresponds to the page, where the pods of the chart become
// ready after some seconds.
func (p *kindPage) startHub(ctx context.Context) error {
	var err error
	if p.hub, err = p.StartHub(ctx, "hub-a"); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, normal, true, func(ctx context.Context) (bool, error) {
		var lease coordinationv1.Lease
		err := p.Hub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-hub"}, &lease)
		return ptr.Deref(lease.Spec.HolderIdentity, "") != "", client.IgnoreNotFound(err)
	})
}

// kind replaces the command kind. To create a cluster, it writes the kubeconfig of the lab's cluster with this name. To
// load images or delete clusters, it does nothing. It accepts the flags of kind that the page uses.
func (p *kindPage) kind(args []string) error {
	flags := pflag.NewFlagSet("kind", pflag.ContinueOnError)
	name, kubeconfig := flags.String("name", "", ""), flags.String("kubeconfig", "", "")
	flags.Duration("wait", 0, "")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("running kind %s: %w", strings.Join(args, " "), err)
	}
	switch command := strings.Join(flags.Args()[:2], " "); command {
	case "create cluster":
		cluster := p.Members[*name]
		if *name == p.Hub.Name {
			cluster = p.Hub
		}
		if cluster == nil {
			return fmt.Errorf("kind create cluster --name %s: %w", *name, errUnknownCommand)
		}
		text, err := os.ReadFile(cluster.Kubeconfig)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(p.folder, *kubeconfig), text, 0o600)
	case "load image-archive":
		archive := flags.Arg(2)
		if *name != p.Hub.Name || filepath.Dir(archive) != "bin/images" || len(flags.Args()) != 3 {
			return fmt.Errorf("kind %s: %w", strings.Join(args, " "), errUnknownCommand)
		}
		return nil
	case "delete clusters":
		return nil
	default:
		return fmt.Errorf("kind %s: %w", command, errUnknownCommand)
	}
}
