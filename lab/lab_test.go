package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/lab/control"
)

const smokeTopology = `clusters:
- {name: hub, hub: true}
- {name: eu-1, region: eu, zones: [eu-a, eu-b], nodes: 2}
`

// asLab is the variable with which the test binary runs as the command lab. With -race, the race detector then also
// covers the supervisor. A change of the lab's code changes this binary, so go test does not reuse an old result.
const asLab = "LAB_TEST_AS_LAB"

func TestMain(m *testing.M) {
	if os.Getenv(asLab) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// smoke is a lab in a temporary folder. The tests drive it through its command, as users do.
type smoke struct {
	t        *testing.T
	lab, dir string
	bin      string
}

// TestLab starts a hub and a member without controllers, and uses every function of the lab once. The first run on a
// machine compiles Kubernetes.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	s, topology := newSmoke(t, smokeTopology)
	t.Cleanup(func() { s.ok("down") })
	s.ok("up", "--topology", topology)

	s.upIsIdempotent(topology)
	s.nodesCarryTheirPlace()
	s.tokensWorkAndAreAudited()
	s.proxySpeaksForItsClients()
	s.killedAPIServerComesBackAtItsAddress()
	s.removedClusterLeavesNothing()
	s.nothingOutlivesAKilledSupervisor(topology)
}

// newSmoke returns a lab that is not started yet, and the path of its topology file.
func newSmoke(t *testing.T, content string) (s *smoke, topology string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asLab, "true")
	t.Setenv("GORACE", "atexit_sleep_ms=0") // without it, every command takes a second to end
	s = &smoke{t: t, lab: exe, dir: filepath.Join(t.TempDir(), "run")}
	topology = filepath.Join(t.TempDir(), "topology.yaml")
	if err := os.WriteFile(topology, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// The lab is built in this process, so that the test cache of go notices changes of the files that the build reads.
	built, err := (&places{components: "components"}).build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.bin = built.Bin()
	return s, topology
}

func (s *smoke) upIsIdempotent(topology string) {
	before := s.status()
	out := s.ok("up", "--topology", topology)
	if !strings.Contains(out, "hub: is up already") || !strings.Contains(out, "eu-1: is up already") {
		s.t.Errorf("a second up says:\n%s", out)
	}
	for i, c := range s.status().Clusters {
		if c.Components[0].PID != before.Clusters[i].Components[0].PID {
			s.t.Errorf("a second up restarted %s", c.Name)
		}
	}
}

func (s *smoke) nodesCarryTheirPlace() {
	columns := `custom-columns=:metadata.labels.topology\.kubernetes\.io/region,:metadata.labels.topology\.kubernetes\.io/zone,:status.conditions[?(@.type=="Ready")].status,:status.capacity.cpu,:spec.taints`
	got := strings.Join(strings.Fields(s.kubectl("eu-1", "get", "nodes", "--no-headers", "-o", columns)), " ")
	if want := "eu eu-a True 32 <none> eu eu-b True 32 <none>"; got != want {
		s.t.Errorf("nodes are %q, want %q", got, want)
	}
	if got := strings.TrimSpace(s.kubectl("hub", "get", "nodes", "-o", "name")); got != "" {
		s.t.Errorf("the hub has nodes: %s", got)
	}
}

// tokensWorkAndAreAudited sends a request with a ServiceAccount token through the proxy, as Hanse does.
func (s *smoke) tokensWorkAndAreAudited() {
	for _, args := range []string{
		"create namespace hanse-system", "create serviceaccount hanse -n hanse-system",
		"create role reader -n hanse-system --verb=get --resource=configmaps",
		"create rolebinding reader -n hanse-system --role=reader --serviceaccount=hanse-system:hanse",
	} {
		s.kubectl("eu-1", strings.Fields(args)...)
	}
	token := strings.TrimSpace(s.kubectl("eu-1", "create", "token", "hanse", "-n", "hanse-system"))
	var eu control.Cluster
	for _, c := range s.status().Clusters {
		if c.Name == "eu-1" {
			eu = c
		}
	}
	asHanse := func(args ...string) (string, error) {
		all := append([]string{"--server", eu.ProxyServer, "--certificate-authority", eu.CAFile, "--token", token, "-n", "hanse-system"}, args...)
		return s.run(filepath.Join(s.bin, "kubectl"), append(all, "--kubeconfig=/dev/null")...)
	}
	if out, err := asHanse("auth", "whoami"); err != nil || !strings.Contains(out, "system:serviceaccount:hanse-system:hanse") {
		s.t.Errorf("the token says: %v\n%s", err, out)
	}
	if out, err := asHanse("get", "secrets"); err == nil || !strings.Contains(out, "Forbidden") {
		s.t.Errorf("a forbidden read says: %v\n%s", err, out)
	}
	log, err := os.ReadFile(eu.AuditLog)
	if err != nil {
		s.t.Fatal(err)
	}
	var forbidden int
	for line := range bytes.Lines(log) {
		var event struct {
			User           struct{ Username string }
			ObjectRef      struct{ Resource string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			s.t.Fatalf("audit log: %v in %s", err, line)
		}
		if event.User.Username != "system:serviceaccount:hanse-system:hanse" {
			s.t.Errorf("the audit log has a request of %s", event.User.Username)
		}
		if event.ObjectRef.Resource == "secrets" && event.ResponseStatus.Code == 403 {
			forbidden++
		}
	}
	if forbidden == 0 {
		s.t.Errorf("the audit log does not have the forbidden read:\n%s", log)
	}
}

func (s *smoke) proxySpeaksForItsClients() {
	proxied := func(args ...string) (string, error) {
		config := strings.TrimSpace(s.ok("kubeconfig", "eu-1", "--proxy"))
		return s.run(filepath.Join(s.bin, "kubectl"), append([]string{"--kubeconfig", config, "--request-timeout=2s"}, args...)...)
	}
	if out, err := proxied("auth", "whoami"); err != nil || !strings.Contains(out, "lab-admin") {
		s.t.Errorf("whoami through the proxy: %v\n%s", err, out)
	}
	timedOut := "(?i)timeout|deadline exceeded" // kubectl prints one of the two
	for _, test := range []struct{ fault, want string }{
		{"status 500", "fault injected"}, {"hang-list nodes", timedOut}, {"blackhole", timedOut}, {"reset", "reset"},
	} {
		s.ok(append([]string{"fault", "eu-1"}, strings.Fields(test.fault)...)...)
		out, err := proxied("get", "nodes")
		if err == nil || !regexp.MustCompile(test.want).MatchString(out) {
			s.t.Errorf("under fault %s: %v\n%s", test.fault, err, out)
		}
		if got := s.status().Clusters[1].Fault; !strings.HasPrefix(got, test.fault) {
			s.t.Errorf("status shows fault %q, want %q", got, test.fault)
		}
		s.kubectl("eu-1", "get", "nodes") // without the proxy, the API server is reachable
	}
	s.ok("fault", "eu-1", "none")
	if out, err := proxied("get", "nodes"); err != nil {
		s.t.Errorf("after the faults: %v\n%s", err, out)
	}
}

func (s *smoke) killedAPIServerComesBackAtItsAddress() {
	s.ok("kill", "eu-1")
	status := s.status().Clusters[1]
	if status.Ready || status.Components[0].State != "killed" {
		s.t.Errorf("after the kill: %+v", status)
	}
	s.ok("start", "eu-1")
	s.eventually("the API server", func() bool { return s.status().Clusters[1].Ready })
	s.ok("pause", "eu-1")
	if s.status().Clusters[1].Ready {
		s.t.Error("a paused API server is ready")
	}
	s.ok("resume", "eu-1")
	s.kubectl("eu-1", "get", "nodes")
}

func (s *smoke) removedClusterLeavesNothing() {
	s.ok("add", "extra")
	s.kubectl("extra", "create", "namespace", "left-over")
	s.ok("remove", "extra")
	s.ok("add", "extra")
	if out := s.kubectl("extra", "get", "namespaces", "-o", "name"); strings.Contains(out, "left-over") {
		s.t.Errorf("a new cluster has the namespaces of an old one:\n%s", out)
	}
	s.ok("remove", "extra")
}

func (s *smoke) nothingOutlivesAKilledSupervisor(topology string) {
	s.kubectl("hub", "create", "namespace", "kept")
	s.ok("run", "sleeper", "--", "sleep", "600")
	status := s.status()
	var pids []int
	for _, c := range status.Clusters {
		pids = append(pids, c.Components[0].PID)
	}
	for _, e := range status.Etcds {
		pids = append(pids, e.PID)
	}
	pids = append(pids, status.Extra[0].PID)
	if err := syscall.Kill(status.Supervisor, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	for _, pid := range pids {
		s.eventually("the end of every process", func() bool { return gone(pid) })
	}
	s.ok("up", "--topology", topology)
	if again := s.status(); again.Clusters[0].Server != status.Clusters[0].Server {
		s.t.Errorf("the hub moved from %s to %s", status.Clusters[0].Server, again.Clusters[0].Server)
	}
	s.kubectl("hub", "get", "namespace", "kept")
}

// gone returns true if the process has ended. It also returns true for a zombie.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func (s *smoke) status() control.Status {
	s.t.Helper()
	var status control.Status
	if err := json.Unmarshal([]byte(s.ok("status", "-o", "json")), &status); err != nil {
		s.t.Fatal(err)
	}
	return status
}

// ok runs a lab command and returns its output. It fails the test if the command fails.
func (s *smoke) ok(args ...string) string {
	s.t.Helper()
	out, err := s.run(s.lab, append([]string{"--dir", s.dir}, args...)...)
	if err != nil {
		s.t.Fatalf("lab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *smoke) kubectl(cluster string, args ...string) string {
	s.t.Helper()
	config := filepath.Join(s.dir, cluster, "kubeconfig")
	out, err := s.run(filepath.Join(s.bin, "kubectl"), append([]string{"--kubeconfig", config}, args...)...)
	if err != nil {
		s.t.Fatalf("kubectl %s in %s: %v\n%s", strings.Join(args, " "), cluster, err, out)
	}
	return out
}

// run returns the program's stdout if it succeeds, and stdout and stderr if it fails.
func (s *smoke) run(program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

func (s *smoke) eventually(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}
