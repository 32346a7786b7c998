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

// DeployedOperator runs prometheus-operator for a pod on a node of kwok. kwok runs no containers, so the lab starts the
// operator as an ordinary process.
type DeployedOperator struct {
	// HealthURL is the URL at which a healthy process responds with status 200.
	HealthURL string

	cluster  *Cluster
	address  string
	dir      string
	versions []string // the versions that the lab can run
}

// DeployedOperator returns the operator after it has created the folder for the identities of the pods.
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

// Runs reports whether the pod has an image of prometheus-operator in a version that the lab can run.
func (d *DeployedOperator) Runs(pod kube.Pod) bool {
	_, version := d.container(pod)
	return version != ""
}

// container returns the container with the lab's image of prometheus-operator, and the version of this image.
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

// Spec returns the process for a pod that the lab can run: the program has the version of the image, the pod's
// identity, and the container's arguments and literal environment variables.
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

// WriteIdentity writes the kubeconfig of a pod, and a separate file with a token of the pod's ServiceAccount. It
// replaces the token file atomically, because the process may read the file at the same time.
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

// podFlags are the flags of prometheus-operator that refer to files or the address of a pod. The value is true if the
// flag's value may be a separate argument.
var podFlags = map[string]bool{
	"web.listen-address": true, "web.enable-tls": false, "web.cert-file": true, "web.key-file": true, "web.client-ca-file": true,
	"apiserver": true, "ca-file": true, "cert-file": true, "key-file": true, "tls-insecure": false,
}

// outsidePod returns the arguments without podFlags.
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
