package supervise

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

// node is the running containerd of a real node. Its kubelet and kube-proxy are in the workloads of the cluster.
type node struct {
	*plane.Node
	network    *namespaces.Node
	containerd *process.Process
}

func newNode(c *cluster) (*node, error) {
	prepared, err := c.plane.Node(c.topology.NodeObjects()[0])
	return &node{Node: prepared, network: c.plane.Network()}, err
}

// start starts containerd and imports the pause image, which every pod needs.
func (n *node) start(ctx context.Context, s starting) error {
	var err error
	if n.containerd, err = s.starter.Start(n.ContainerdSpec()); err != nil {
		return err
	}
	return await(ctx, n.containerd, func(ctx context.Context) error { return n.load(ctx, plane.Pause) })
}

// load imports an image into containerd. source is the path of an archive, or the name of a program of the lab.
func (n *node) load(ctx context.Context, source string) error {
	if !filepath.IsAbs(source) {
		name, program, err := n.Image(source)
		if err != nil {
			return err
		}
		archive := filepath.Join(n.Dir, source+".tar")
		if err := plane.WriteImage(archive, name, program); err != nil {
			return err
		}
		source = archive
	}
	command := n.ImportCommand(source)
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("importing %s: %w: %s", source, err, bytes.TrimSpace(out))
	}
	return nil
}

// end kills containerd and all containers of a node whose kubelet has ended. Then it removes the node's mounts and the
// state of containerd.
func (n *node) end() {
	if n.containerd != nil {
		n.containerd.Kill(syscall.SIGKILL)
	}
	for _, pid := range append(n.shims(), namespaces.Processes(n.network.Cgroup())...) {
		if id, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(id, syscall.SIGKILL) // the process may have ended already
		}
	}
	_ = namespaces.Detach(n.Dir)
	_ = namespaces.Detach(n.State)
	_ = os.RemoveAll(n.State)
}

// shims returns the process ids of the node's containerd-shim processes, which are the parents of its containers. A
// shim process keeps running after containerd was killed.
func (n *node) shims() []string {
	var pids []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		data, _ := os.ReadFile(file) // empty if the process has ended
		if strings.Contains(string(data), "containerd-shim") && strings.Contains(string(data), n.Socket) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
