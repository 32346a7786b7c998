// Package plane prepares the folder of a cluster and the command lines of its components.
//
// Package plane decides which commands to run, and writes the files that the commands need. It starts no process.
package plane

import (
	"fmt"
	"path/filepath"

	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/pki"
	"github.com/hanse-dev/hanse/lab/process"
)

// These are the names of the components of a cluster, such as etcd, as users write them on the command line.
const (
	Etcd               = "etcd"
	APIServer          = "kube-apiserver"
	ControllerManager  = "kube-controller-manager"
	Scheduler          = "kube-scheduler"
	Kwok               = "kwok"
	Containerd         = "containerd"
	Kubelet            = "kubelet"
	KubeProxy          = "kube-proxy"
	PrometheusOperator = "prometheus-operator"
)

// Ports returns the TCP port for a purpose, such as "NAME/proxy" for the fault proxy of the cluster NAME. The port of a
// purpose never changes.
type Ports func(purpose string) (int, error)

// Site has the addresses at which a cluster listens.
type Site struct {
	// Address is the IP address of the lab. Etcds and fault proxies listen there, and API servers of clusters without a
	// real node.
	Address string
	// Node is the network namespace of the real node and of its cluster's control plane. It is nil if the cluster has no
	// real node.
	Node *namespaces.Node
}

// server returns the IP address of the API server.
func (s Site) server() string {
	if s.Node != nil {
		return s.Node.Address()
	}
	return s.Address
}

// Cluster is the folder and the identity of one cluster.
type Cluster struct {
	Name, Dir, Bin      string
	Server, ProxyServer string // https URLs
	ProxyAddress        string
	CA, FrontCA         *pki.CA
	Serving, Admin      pki.Cert
	FrontProxy          pki.Cert
	ServiceAccountKey   string

	site    Site
	apiPort int
}

// Prepare returns a cluster. It creates the cluster's folder and certificates if they do not exist.
func Prepare(dir, bin, name string, site Site, ports Ports) (*Cluster, error) {
	c := &Cluster{Name: name, Dir: filepath.Join(dir, name), Bin: bin, site: site}
	proxyPort, err := ports(name + "/proxy")
	if err != nil {
		return nil, err
	}
	if c.apiPort, err = ports(name + "/" + APIServer); err != nil {
		return nil, err
	}
	c.Server = fmt.Sprintf("https://%s:%d", site.server(), c.apiPort)
	c.ProxyAddress = fmt.Sprintf("%s:%d", site.Address, proxyPort)
	c.ProxyServer = "https://" + c.ProxyAddress
	if err := c.certify(); err != nil {
		return nil, fmt.Errorf("preparing cluster %q: %w", name, err)
	}
	for file, server := range map[string]string{c.Kubeconfig(): c.Server, c.ProxyKubeconfig(): c.ProxyServer} {
		if err := pki.WriteKubeconfig(file, name, server, c.CA, c.Admin); err != nil {
			return nil, err
		}
	}
	return c, writeAuditPolicy(c.path("audit-policy.yaml"))
}

func (c *Cluster) certify() (err error) {
	dir := c.path("pki")
	if c.CA, err = pki.Authority(dir, "ca"); err != nil {
		return err
	}
	if c.FrontCA, err = pki.Authority(dir, "front-proxy-ca"); err != nil {
		return err
	}
	addresses := []string{c.site.Address, c.site.server(), serviceAddress}
	if c.Serving, err = c.CA.Server("server", addresses, "kubernetes", "kubernetes.default", "kubernetes.default.svc"); err != nil {
		return err
	}
	if c.Admin, err = c.CA.Client("admin", "lab-admin", "system:masters"); err != nil {
		return err
	}
	if c.FrontProxy, err = c.FrontCA.Client("front-proxy-client", frontProxyUser); err != nil {
		return err
	}
	c.ServiceAccountKey, err = pki.SigningKey(dir, "service-account")
	return err
}

// Network returns the network namespace of the cluster's real node. It is nil if the cluster has none.
func (c *Cluster) Network() *namespaces.Node { return c.site.Node }

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

// Kubeconfig returns the administrator's kubeconfig for the API server.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// ProxyKubeconfig returns the administrator's kubeconfig for the fault proxy.
func (c *Cluster) ProxyKubeconfig() string { return c.path("proxy.kubeconfig") }

// AuditLog returns the file of the API server's audit log.
func (c *Cluster) AuditLog() string { return c.path("audit.log") }

// Log returns the log file of a component.
func (c *Cluster) Log(component string) string { return c.path(component + ".log") }

func (c *Cluster) spec(program string, args ...string) process.Spec {
	return process.Spec{
		Name: c.Name + "/" + program,
		Path: filepath.Join(c.Bin, program),
		Args: args,
		Dir:  c.Dir,
		Log:  c.Log(program),
	}
}

// onNode changes the command so that it runs in the network namespace of the real node. Without a real node, it returns
// the command unchanged.
func (c *Cluster) onNode(spec process.Spec) process.Spec {
	if c.site.Node != nil {
		command := c.site.Node.Command(spec.Path, spec.Args...)
		spec.Path, spec.Args = command[0], command[1:]
	}
	return spec
}

// identity writes a kubeconfig with a client certificate for a component. The certificate grants all rights, because
// the lab does not test its own components.
func (c *Cluster) identity(component string) (kubeconfig string, cert pki.Cert, err error) {
	cert, err = c.CA.Client(component, "system:"+component, "system:masters")
	if err != nil {
		return "", cert, err
	}
	kubeconfig = c.path(component + ".kubeconfig")
	return kubeconfig, cert, pki.WriteKubeconfig(kubeconfig, c.Name, c.Server, c.CA, cert)
}
