// Package fleet runs a hub and its members on the lab, for tests and benchmarks. It installs them as users do: it
// installs both charts with helm, and runs the hub process with the chart's ServiceAccount. Of Hanse's own code, it
// uses only the API types.
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Config has the paths of the programs, the charts, and the topology file.
type Config struct {
	Lab      string // the binary of the lab
	Bin      string // folder with the binaries hanse-hub and hansectl
	Helm     string // the binary of helm
	Charts   string // folder with both charts
	Dir      string // folder for the state of the lab; created if it is missing
	Topology string // topology file
	Log      io.Writer
}

// FromEnvironment reads HANSE_LAB, HANSE_BIN and HANSE_HELM. ok is false if one of them is not set. root is the folder
// of the repository.
func FromEnvironment(root string) (c Config, ok bool) {
	c = Config{
		Lab: os.Getenv("HANSE_LAB"), Bin: os.Getenv("HANSE_BIN"), Helm: os.Getenv("HANSE_HELM"),
		Charts: filepath.Join(root, "charts"), Log: os.Stderr,
	}
	return c, c.Lab != "" && c.Bin != "" && c.Helm != ""
}

// Fleet is a running lab.
type Fleet struct {
	Config
	Hub     *Cluster
	Members map[string]*Cluster
	// HubEtcdMetrics and MemberEtcdMetrics are the URLs of the metrics pages of the hub's etcd and of the members'
	// shared etcd.
	HubEtcdMetrics, MemberEtcdMetrics string
	// Agents lets the hub listen for agents of members: InstallHub sets the value of the chart, and each hub process has a
	// port.
	Agents bool
}

// Cluster is one control plane, with the access of an administrator, which bypasses the fault proxy.
type Cluster struct {
	Name   string
	Region string
	// Kubeconfig is the path of the administrator's kubeconfig. ProxyKubeconfig is the path of a kubeconfig that
	// connects through the fault proxy.
	Kubeconfig, ProxyKubeconfig string
	Server, ProxyServer         string
	CAFile                      string
	AuditLog                    string
	Config                      *rest.Config
	client.Client               // a client without a cache
}

// Scheme returns a scheme with the kinds of Kubernetes and of Hanse.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s) // an error is only possible if a kind is registered twice
	_ = apiextensionsv1.AddToScheme(s)
	_ = hubv1.AddToScheme(s)
	return s
}

// labStatus has the fields of `lab status -o json` that this package uses.
type labStatus struct {
	Clusters []struct {
		Name, Region, Server, ProxyServer, Kubeconfig, ProxyKubeconfig, CAFile, AuditLog string
		Hub                                                                              bool
	}
	Etcds []struct{ Name, MetricsURL string }
}

// Up starts the lab. If the lab in Dir already runs, Up uses it. If the lab runs but its state cannot be read, Up
// returns a fleet together with the error, so that the caller can stop the lab.
func Up(ctx context.Context, c Config) (*Fleet, error) {
	f := &Fleet{Config: c, Members: map[string]*Cluster{}}
	if _, err := f.LabCommand(ctx, "up", "--topology", c.Topology); err != nil {
		return nil, err
	}
	return f, f.refresh(ctx)
}

// refresh reads the state of the lab.
func (f *Fleet) refresh(ctx context.Context) error {
	out, err := f.LabCommand(ctx, "status", "-o", "json")
	if err != nil {
		return err
	}
	var status labStatus
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return fmt.Errorf("reading the lab's status: %w", err)
	}
	for _, s := range status.Clusters {
		config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", s.Name, err)
		}
		config.QPS = -1
		cl, err := client.New(config, client.Options{Scheme: Scheme()})
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", s.Name, err)
		}
		cluster := &Cluster{
			Name: s.Name, Region: s.Region, Kubeconfig: s.Kubeconfig, ProxyKubeconfig: s.ProxyKubeconfig, Server: s.Server, ProxyServer: s.ProxyServer,
			CAFile: s.CAFile, AuditLog: s.AuditLog, Config: config, Client: cl,
		}
		if s.Hub {
			f.Hub = cluster
			continue
		}
		f.Members[s.Name] = cluster
	}
	for _, e := range status.Etcds {
		if e.Name == "hub" || strings.Contains(e.Name, "hub") {
			f.HubEtcdMetrics = e.MetricsURL
		} else {
			f.MemberEtcdMetrics = e.MetricsURL
		}
	}
	if f.Hub == nil {
		return errors.New("the topology has no hub")
	}
	return nil
}

// Down stops the lab.
func (f *Fleet) Down(ctx context.Context) error {
	_, err := f.LabCommand(ctx, "down")
	return err
}

// LabCommand runs the binary of the lab for this lab, and returns its output.
func (f *Fleet) LabCommand(ctx context.Context, args ...string) (string, error) {
	return f.run(ctx, nil, f.Lab, append(args, "--dir", f.Dir)...)
}

// Fault sets a fault on the member's proxy, such as ("cn-sha-1", "delay", "5s"). The mode "none" ends the fault.
func (f *Fleet) Fault(ctx context.Context, member string, mode ...string) error {
	_, err := f.LabCommand(ctx, append([]string{"fault", member}, mode...)...)
	return err
}

// Hansectl runs hansectl as an administrator of the hub, and returns its standard output.
func (f *Fleet) Hansectl(ctx context.Context, args ...string) (string, error) {
	return f.run(ctx, nil, filepath.Join(f.Bin, "hansectl"), append(args, "--kubeconfig", f.Hub.Kubeconfig)...)
}

// Kubectl runs the lab's kubectl as an administrator of a cluster, and returns its standard output.
func (f *Fleet) Kubectl(ctx context.Context, c *Cluster, args ...string) (string, error) {
	bin, err := f.run(ctx, nil, f.Lab, "build", "--print-bin")
	if err != nil {
		return "", err
	}
	cache := []string{"KUBECACHEDIR=" + filepath.Join(f.Dir, "kubectl")}
	return f.run(ctx, cache, filepath.Join(strings.TrimSpace(bin), "kubectl"), append(args, "--kubeconfig", c.Kubeconfig)...)
}

// HelmCommand runs helm as an administrator of a cluster, and returns its standard output.
func (f *Fleet) HelmCommand(ctx context.Context, c *Cluster, args ...string) (string, error) {
	home := filepath.Join(f.Dir, "helm")
	env := []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	return f.run(ctx, env, f.Helm, append(args, "--kubeconfig", c.Kubeconfig)...)
}

// run runs a program and returns its standard output. An error contains the end of the program's output.
func (f *Fleet) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("running %s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, tail(stdout.String()+stderr.String(), 2000))
	}
	return stdout.String(), nil
}

func tail(s string, limit int) string {
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = "... " + s[len(s)-limit:]
	}
	return s
}
