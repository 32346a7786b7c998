package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hanse-dev/hanse/lab/namespaces"
)

const nodeTopology = `clusters:
- {name: pods, region: eu, zones: [eu-a], nodes: real, controllers: true}
- {name: objects, nodes: 1}
`

const podManifest = `apiVersion: v1
kind: Pod
metadata: {name: idle, namespace: default}
spec:
  containers:
  - {name: idle, image: "hanse.dev/pause:lab", imagePullPolicy: Never}
`

// TestRealNode runs a pod, kills the lab, and checks that nothing is left on the machine.
func TestRealNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	if err := namespaces.Possible(); err != nil {
		if os.Getenv("HANSE_REAL_NODES") == "require" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s, topology := newSmoke(t, nodeTopology)
	t.Cleanup(func() { s.ok("down") })
	s.ok("up", "--topology", topology)
	s.podsRun()
	s.imagesAreLoadedIntoRealNodes()
	s.podsOutliveContainerd()
	s.killedLabLeavesNoProcess()
	s.ok("up")
	s.kubectl("pods", "wait", "pod/idle", "--for=condition=Ready", "--timeout=60s")
	s.endedLabLeavesNothing()
}

func (s *smoke) podsRun() {
	manifest := filepath.Join(s.t.TempDir(), "pod.yaml")
	if err := os.WriteFile(manifest, []byte(podManifest), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.kubectl("pods", "apply", "-f", manifest)
	s.kubectl("pods", "wait", "pod/idle", "--for=condition=Ready", "--timeout=60s")
	s.kubectl("pods", "logs", "idle") // the API server fetches logs from the kubelet, whose certificate it verifies
	const labels = `jsonpath={.items[*].metadata.labels.topology\.kubernetes\.io/region} {.items[*].metadata.labels.topology\.kubernetes\.io/zone}`
	if got := s.kubectl("pods", "get", "nodes", "-o", labels); got != "eu eu-a" {
		s.t.Errorf("the node has the region and zone %q, want eu eu-a", got)
	}
}

func (s *smoke) imagesAreLoadedIntoRealNodes() {
	s.ok("load", "pods", s.pauseImage())
	for _, test := range []struct{ cluster, image, want string }{
		{"pods", "/no/such/file", "no such file"}, {"objects", "prometheus-operator", "no real node"}, {"nowhere", "prometheus-operator", "it has: objects, pods"},
	} {
		out, err := s.run(s.lab, "--dir", s.dir, "load", test.cluster, test.image)
		if err == nil || !strings.Contains(out, test.want) {
			s.t.Errorf("loading %s into %s: %v: %s; want %q", test.image, test.cluster, err, out, test.want)
		}
	}
}

// pauseImage returns the path of an image archive that the lab made for itself.
func (s *smoke) pauseImage() string { return filepath.Join(s.dir, "pods", "node", "pause.tar") }

func (s *smoke) podsOutliveContainerd() {
	const started = "jsonpath={.status.containerStatuses[0].state.running.startedAt}"
	before := s.kubectl("pods", "get", "pod", "idle", "-o", started)
	s.ok("kill", "pods", "--component", "containerd")
	s.ok("start", "pods", "--component", "containerd")
	s.eventually("containerd answers", func() bool {
		_, err := s.run(s.lab, "--dir", s.dir, "load", "pods", s.pauseImage())
		return err == nil
	})
	if after := s.kubectl("pods", "get", "pod", "idle", "-o", started); after != before {
		s.t.Errorf("the container was started at %s, and after the end of containerd at %s", before, after)
	}
}

// killedLabLeavesNoProcess kills only the supervisor. Containers and shims are not its children, but must end as well.
func (s *smoke) killedLabLeavesNoProcess() {
	supervisor := s.status().Supervisor
	ours := pidNamespace(strconv.Itoa(supervisor))
	if ours == "" || ours == pidNamespace("self") {
		s.t.Fatalf("the supervisor %d has no process namespace of its own: %q", supervisor, ours)
	}
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the end of every process in the lab's namespace", func() bool {
		processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
		for _, p := range processes {
			if pidNamespace(filepath.Base(p)) == ours {
				return false
			}
		}
		return true
	})
}

// pidNamespace returns the PID namespace of a process. It is empty if the process has ended.
func pidNamespace(pid string) string {
	name, _ := os.Readlink(filepath.Join("/proc", pid, "ns", "pid"))
	return name
}

func (s *smoke) endedLabLeavesNothing() {
	host, _, _ := strings.Cut(strings.TrimPrefix(s.status().Clusters[0].Server, "https://10."), ".")
	name := "hanse-lab-" + host
	if _, err := net.InterfaceByName(name); err != nil {
		s.t.Errorf("a lab that runs has the interface %s: %v", name, err)
	}
	s.ok("down")
	if _, err := net.InterfaceByName(name); err == nil {
		s.t.Errorf("the interface %s is left", name)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + name); len(left) > 0 {
		s.t.Errorf("cgroups are left: %v", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(string(mounts), s.dir) {
		s.t.Errorf("mounts are left:\n%s", mounts)
	}
	if _, err := os.Stat(s.dir); err == nil {
		s.t.Errorf("the folder %s is left", s.dir)
	}
}
