package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/lab/build"
	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/process"
	"github.com/hanse-dev/hanse/lab/topology"
)

// Pause is the program that keeps the namespaces of a pod alive.
const Pause = "pause"

// containerdConfig uses version 2 of the format, which containerd 1.6 and all later versions can read.
//
//   - restrict_oom_score_adj is true, because even root cannot lower an OOM score without CAP_SYS_RESOURCE.
//   - The disabled plugins write outside of the node's folders, or need file systems that a lab does not have.
var containerdConfig = template.Must(template.New("").Parse(`version = 2
root = "{{.Root}}"
state = "{{.State}}"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[grpc]
address = "{{.Socket}}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{{.Pause}}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{{.Plugins}}"
conf_dir = "{{.Network}}"
`))

// podNetwork connects pods with a bridge. Packets that leave the pod network get the node's address as source.
const podNetwork = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// Node is the folder and the identity of a cluster's real node.
type Node struct {
	// Name is the name of the real node's Node object in the cluster.
	Name string
	// Dir is the folder of the real node's files.
	Dir string
	// Socket is the socket of containerd. Its folder is visible only in the lab's mount namespace.
	Socket string
	// State is the folder of containerd's state. It is visible only in the lab's mount namespace.
	State string

	cluster *Cluster
	labels  map[string]string
}

// Node returns the real node of a cluster, after it has written the files that the node's commands need.
func (c *Cluster) Node(object topology.Node) (*Node, error) {
	state := filepath.Join("/run/hanse", c.Name)
	n := &Node{
		Name: object.Name, Dir: c.path("node"), State: state, Socket: filepath.Join(state, "containerd.sock"), cluster: c, labels: object.Labels,
	}
	var config strings.Builder
	err := containerdConfig.Execute(&config, map[string]string{
		"Root": n.path("containerd"), "State": filepath.Join(state, "containerd"), "Socket": n.Socket,
		"Pause": Image(Pause), "Plugins": namespaces.CNI, "Network": n.path("cni"),
	})
	if err != nil {
		return nil, fmt.Errorf("configuring containerd of cluster %q: %w", c.Name, err)
	}
	kubelet, err := n.kubeletConfig()
	if err != nil {
		return nil, fmt.Errorf("configuring kubelet of cluster %q: %w", c.Name, err)
	}
	for file, content := range map[string]string{
		n.path("containerd.toml"): config.String(), n.path("kubelet.yaml"): kubelet, n.path("cni", "pods.conflist"): podNetwork,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *Node) path(names ...string) string {
	return filepath.Join(append([]string{n.Dir}, names...)...)
}

// kubeletConfig returns a configuration for both versions of cgroups. It turns evictions off, because the lab shares
// the disk with the rest of the machine. A pod gets a changed Secret within 15 s, not within 90 s, so that the webhooks
// of operators that write their certificates into a Secret start soon.
func (n *Node) kubeletConfig() (string, error) {
	serving, err := n.cluster.CA.Server(Kubelet+"-server", []string{n.cluster.site.server()}, n.Name)
	if err != nil {
		return "", err
	}
	never := map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion":                    "kubelet.config.k8s.io/v1beta1",
		"kind":                          "KubeletConfiguration",
		"containerRuntimeEndpoint":      "unix://" + n.Socket,
		"failCgroupV1":                  false,
		"cgroupDriver":                  "cgroupfs",
		"cgroupRoot":                    n.cluster.site.Node.Cgroup(),
		"cgroupsPerQOS":                 false,
		"enforceNodeAllocatable":        []string{},
		"localStorageCapacityIsolation": false,
		"failSwapOn":                    false,
		"syncFrequency":                 "10s",
		"evictionHard":                  never,
		"imageGCHighThresholdPercent":   100,
		"podLogsDir":                    n.path("logs"),
		"resolvConf":                    "",
		"tlsCertFile":                   serving.CertFile,
		"tlsPrivateKeyFile":             serving.KeyFile,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": n.cluster.CA.File},
		},
		"authorization": map[string]any{"mode": "Webhook"},
	})
	return string(data), err
}

// ContainerdSpec returns the command of containerd. As on any node, the containers continue when containerd ends.
func (n *Node) ContainerdSpec() process.Spec {
	spec := n.cluster.spec(Containerd, "--config="+n.path("containerd.toml"))
	spec.Path = Containerd // containerd comes from a Debian package, not from the lab's components
	return n.restarted(spec)
}

// Specs returns the commands of kubelet and kube-proxy.
func (n *Node) Specs() ([]process.Spec, error) {
	c := n.cluster
	var labels []string
	for key, value := range n.labels {
		if strings.HasPrefix(key, "topology.kubernetes.io/") { // the kubelet sets the other labels itself
			labels = append(labels, key+"="+value)
		}
	}
	programs := map[string][]string{
		Kubelet: {
			"--config=" + n.path("kubelet.yaml"),
			"--root-dir=" + n.path("kubelet"),
			"--cert-dir=" + n.path("kubelet", "pki"),
			"--hostname-override=" + n.Name,
			"--node-ip=" + c.site.server(),
			"--node-labels=" + strings.Join(labels, ","),
		},
		KubeProxy: {
			"--hostname-override=" + n.Name,
			"--proxy-mode=iptables",
			// Without this flag, responses between two pods on the bridge would bypass the rules that translate Service
			// addresses.
			"--masquerade-all",
			// kube-proxy must not set these limits, because they belong to the whole machine and cannot be set in a network
			// namespace.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s",
		},
	}
	var specs []process.Spec
	for _, program := range []string{Kubelet, KubeProxy} {
		kubeconfig, _, err := c.identity(program)
		if err != nil {
			return nil, fmt.Errorf("preparing %s of cluster %q: %w", program, c.Name, err)
		}
		specs = append(specs, n.restarted(c.spec(program, append([]string{"--kubeconfig=" + kubeconfig}, programs[program]...)...)))
	}
	return specs, nil
}

func (n *Node) restarted(spec process.Spec) process.Spec {
	spec = n.cluster.onNode(spec)
	spec.Restart = true
	return spec
}

// Image returns the name of the lab's image of a program, and the path of the program. For an operator, it uses the
// newest version.
func (n *Node) Image(program string) (name, path string, err error) {
	if program == Pause {
		return Image(Pause), filepath.Join(n.cluster.Bin, Pause), nil
	}
	versions, err := build.Versions(n.cluster.Bin, program)
	if err != nil {
		return "", "", err
	}
	newest := versions[len(versions)-1]
	return OperatorImage(program, newest), filepath.Join(n.cluster.Bin, build.Program(program, newest)), nil
}

// ImportCommand returns the command that imports an archive of images.
func (n *Node) ImportCommand(archive string) []string {
	return []string{"ctr", "--address=" + n.Socket, "--namespace=k8s.io", "images", "import", archive}
}
