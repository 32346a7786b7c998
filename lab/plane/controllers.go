package plane

import (
	"fmt"
	"path/filepath"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/process"
)

// ControllerSpecs returns the commands that make workloads run: kube-controller-manager, kube-scheduler, and kwok,
// unless the cluster has a real node with a kubelet. stages are the files of kwok's Stages. kwok does not set the
// condition Ready of the pods of deployedOperators, because the lab sets it.
func (c *Cluster) ControllerSpecs(stages, deployedOperators []string) ([]process.Spec, error) {
	names := []string{ControllerManager, Scheduler}
	programs := map[string][]string{
		ControllerManager: {
			"--leader-elect=false",
			"--secure-port=0",
			"--service-account-private-key-file=" + c.ServiceAccountKey,
			"--root-ca-file=" + c.CA.File,
			// On a busy machine, late heartbeats could make a node not Ready. Its pods would become not Ready, and without a
			// kubelet they would stay so.
			"--node-monitor-grace-period=24h", "--node-startup-grace-period=24h",
		},
		Scheduler: {"--leader-elect=false", "--secure-port=0"},
	}
	if c.site.Node == nil {
		config, err := c.kwokConfig(stages, deployedOperators)
		if err != nil {
			return nil, fmt.Errorf("configuring kwok of cluster %q: %w", c.Name, err)
		}
		names = append(names, Kwok)
		programs[Kwok] = []string{"--manage-all-nodes=true", "--node-port=0", "--config=" + config}
	}
	var specs []process.Spec
	for _, program := range names {
		kubeconfig, _, err := c.identity(program)
		if err != nil {
			return nil, fmt.Errorf("preparing %s of cluster %q: %w", program, c.Name, err)
		}
		spec := c.onNode(c.spec(program, append([]string{"--kubeconfig=" + kubeconfig}, programs[program]...)...))
		spec.Restart = true
		specs = append(specs, spec)
	}
	return specs, nil
}

// operatorSpec returns the command of one version of prometheus-operator.
func (c *Cluster) operatorSpec(version string, args ...string) process.Spec {
	spec := c.spec(PrometheusOperator, args...)
	spec.Path = filepath.Join(c.Bin, build.Program(PrometheusOperator, version))
	return spec
}

// OperatorSpec returns the command of the newest prometheus-operator. The operator gets client certificates, because it
// accepts no kubeconfig.
func (c *Cluster) OperatorSpec(ports Ports) (process.Spec, error) {
	_, cert, err := c.identity(PrometheusOperator)
	if err != nil {
		return process.Spec{}, fmt.Errorf("preparing %s of cluster %q: %w", PrometheusOperator, c.Name, err)
	}
	address, err := c.operatorAddress(ports)
	if err != nil {
		return process.Spec{}, err
	}
	versions, err := build.Versions(c.Bin, PrometheusOperator)
	if err != nil {
		return process.Spec{}, err
	}
	spec := c.operatorSpec(versions[len(versions)-1],
		"--apiserver="+c.Server,
		"--ca-file="+c.CA.File,
		"--cert-file="+cert.CertFile,
		"--key-file="+cert.KeyFile,
		listenFlag+"="+address,
	)
	spec = c.onNode(spec)
	spec.Restart = true
	return spec, nil
}

// listenFlag is the flag of prometheus-operator for the address of its web server.
const listenFlag = "--web.listen-address"

// operatorAddress returns the address at which prometheus-operator listens.
func (c *Cluster) operatorAddress(ports Ports) (string, error) {
	port, err := ports(c.Name + "/" + PrometheusOperator)
	return fmt.Sprintf("%s:%d", c.site.server(), port), err
}
