package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/kube"
	"github.com/hanse-dev/hanse/lab/pki"
	"github.com/hanse-dev/hanse/lab/process"
)

// DeployedOperator is prometheus-operator as the process of a pod on kwok.
type DeployedOperator struct {
	// HealthURL is the address at which the process answers while it is healthy.
	HealthURL string

	cluster  *Cluster
	address  string
	dir      string
	versions []string // that the lab can run
}

// DeployedOperator prepares the folder for the identities of the pods.
func (c *Cluster) DeployedOperator(ports Ports) (*DeployedOperator, error) {
	address, err := c.operatorAddress(ports)
	if err != nil {
		return nil, err
	}
	versions, err := build.Versions(c.Bin, PrometheusOperator)
	if err != nil {
		return nil, err
	}
	d := &DeployedOperator{
		HealthURL: "http://" + address + "/healthz", cluster: c, address: address, dir: c.path(PrometheusOperator), versions: versions,
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing %s of cluster %q: %w", PrometheusOperator, c.Name, err)
	}
	return d, nil
}

// Runs reports whether a pod has an image of prometheus-operator that the lab can run.
func (d *DeployedOperator) Runs(pod kube.Pod) bool {
	_, version := d.container(pod)
	return version != ""
}

// container returns the container with the lab's image of prometheus-operator, and the version of that.
func (d *DeployedOperator) container(pod kube.Pod) (kube.Container, string) {
	for _, container := range pod.Spec.Containers {
		for _, version := range d.versions {
			if container.Image == OperatorImage(PrometheusOperator, version) {
				return container, version
			}
		}
	}
	return kube.Container{}, ""
}

// Spec returns the command of a pod that the lab can run: the program of the image's version. It has the pod's own
// identity, and the arguments and the literal environment variables of the container.
func (d *DeployedOperator) Spec(pod kube.Pod) process.Spec {
	container, version := d.container(pod)
	spec := d.cluster.operatorSpec(version, append(outsidePod(container.Args), listenFlag+"="+d.address)...)
	for _, variable := range container.Env {
		if variable.Value != "" {
			spec.Env = append(spec.Env, variable.Name+"="+variable.Value)
		}
	}
	spec.Env = append(spec.Env, "KUBECONFIG="+d.path(pod, "kubeconfig"))
	spec.Restart = true
	return spec
}

// WriteIdentity writes the kubeconfig of a pod, with a token of its ServiceAccount in a file of its own. A process may
// read that file at the same time.
func (d *DeployedOperator) WriteIdentity(pod kube.Pod, token string) error {
	file := d.path(pod, "token")
	if err := os.WriteFile(file+".partial", []byte(token), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".partial", file); err != nil {
		return err
	}
	return pki.WriteTokenKubeconfig(d.path(pod, "kubeconfig"), d.cluster.Name, d.cluster.Server, d.cluster.CA, file)
}

func (d *DeployedOperator) path(pod kube.Pod, extension string) string {
	return filepath.Join(d.dir, pod.Metadata.UID+"."+extension)
}

// podFlags are the flags of prometheus-operator that name files or the address of a pod. The value is true if the flag
// may have its argument behind it.
var podFlags = map[string]bool{
	"web.listen-address": true, "web.enable-tls": false, "web.cert-file": true, "web.key-file": true, "web.client-ca-file": true,
	"apiserver": true, "ca-file": true, "cert-file": true, "key-file": true, "tls-insecure": false,
}

// outsidePod returns the arguments that a process outside of a pod can use.
func outsidePod(args []string) []string {
	var kept []string
	skip := false
	for _, arg := range args {
		if skip {
			skip = false
			continue
		}
		name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		takesArgument, dropped := podFlags[name]
		if dropped && strings.HasPrefix(arg, "-") {
			skip = takesArgument && !joined
			continue
		}
		kept = append(kept, arg)
	}
	return kept
}
