package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/lab/build"
)

const deployedTopology = `clusters:
- {name: eu-1, nodes: 1, controllers: true, deployedOperators: [prometheus-operator]}
`

// TestDeployedOperator deploys prometheus-operator by the lab's chart, and checks its process and its pod.
func TestDeployedOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	s, topology := newSmoke(t, deployedTopology)
	t.Cleanup(func() { s.ok("down") })
	s.ok("up", "--topology", topology)
	s.operatorIs("waiting for a pod of its Deployment")

	s.operatorNeedsItsCRDs()
	s.operatorRunsAsItsServiceAccount()
	s.operatorsPodFollowsTheProcess()
	s.scaledOperatorEnds()
	s.unknownVersionOfTheOperatorIsNotReady()
	s.eachVersionOfTheOperatorHasItsProcess()
	s.deletedOperatorEnds()
}

// TestChartOfAnOperator makes a chart twice and compares the bytes. Then it reads the chart with hansectl, and makes
// the chart of an older version.
func TestChartOfAnOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("builds hansectl")
	}
	s, _ := newSmoke(t, deployedTopology)
	chart, again := s.chart(), s.chart()
	first, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two charts of one operator differ")
	}
	rights := s.repository("go", "run", "./cmd/hansectl", "operators", "rbac", chart, "-n", "monitoring")
	for _, want := range []string{"name: prometheus-operator", "- prometheuses/status", "- deployments"} {
		if !strings.Contains(rights, want) {
			t.Errorf("the rights for the chart are\n%s\nwant them with %q", rights, want)
		}
	}
	definitions := s.repository("go", "run", "./cmd/hansectl", "operators", "crds", chart)
	if got := strings.Count(definitions, "kind: CustomResourceDefinition"); got != 10 {
		t.Errorf("the chart has %d CRDs, want 10", got)
	}
	versions := s.operatorVersions()
	older := strings.TrimSpace(s.ok("chart", "prometheus-operator", "--out", t.TempDir(), "--version", versions[0]))
	if got, want := filepath.Base(older), "prometheus-operator-"+strings.TrimPrefix(versions[0], "v")+".tgz"; got != want {
		t.Errorf("the chart of the older version is %s, want %s", got, want)
	}
	if crds := s.ok("crds", "prometheus-operator", "--version", versions[0]); crds == s.ok("crds", "prometheus-operator") {
		t.Error("both versions have equal CRDs")
	}
	if _, err := s.run(s.lab, "chart", "prometheus-operator", "--version", "v0.0.1"); err == nil {
		t.Error("the chart of an unknown version is made")
	}
}

// chart writes the chart of prometheus-operator to a temporary folder and returns its path.
func (s *smoke) chart() string {
	return strings.TrimSpace(s.ok("chart", "prometheus-operator", "--out", s.t.TempDir()))
}

// operatorManifests renders the chart as a release in the namespace monitoring, without its CRDs.
func (s *smoke) operatorManifests() string {
	return s.repository("hack/tool.sh", "helm", "template", "prometheus-operator", s.chart(), "--namespace=monitoring")
}

// repository runs a program of the repository in the repository's root folder, and returns its stdout.
func (s *smoke) repository(program string, args ...string) string {
	s.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stderr = "..", &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return string(out)
}

const kubeconfigOfPods = "eu-1/prometheus-operator/*.kubeconfig"

func (s *smoke) operatorNeedsItsCRDs() {
	s.kubectl("eu-1", "create", "namespace", "monitoring")
	s.kubectl("eu-1", "apply", "-f", s.write("operator.yaml", s.operatorManifests()))
	s.operatorIs("waiting for the CRDs of prometheuses, servicemonitors, podmonitors, probes, prometheusrules")
	if got := s.operatorPod("{.status.phase} {.status.podIP}"); !strings.HasPrefix(got, "Running 10.") || s.operatorReady() != "False" {
		s.t.Errorf("the pod of an operator that waits is %q, and Ready is %s", got, s.operatorReady())
	}
	s.kubectl("eu-1", "apply", "--server-side", "-f", s.write("crds.yaml", s.ok("crds", "prometheus-operator")))
	s.operatorIs("running")
	s.kubectl("eu-1", "rollout", "status", "deployment/prometheus-operator", "-n", "monitoring", "--timeout=60s")
}

// operatorRunsAsItsServiceAccount checks that the operator has the identity of the chart's ServiceAccount, and that the
// rights of this account suffice to create the StatefulSet of a Prometheus.
func (s *smoke) operatorRunsAsItsServiceAccount() {
	identities, err := filepath.Glob(filepath.Join(s.dir, kubeconfigOfPods))
	if err != nil || len(identities) != 1 {
		s.t.Fatalf("the operator has the kubeconfigs %v: %v", identities, err)
	}
	out, err := s.run(filepath.Join(s.bin, "kubectl"), "--kubeconfig", identities[0], "auth", "whoami")
	if err != nil || !strings.Contains(out, "system:serviceaccount:monitoring:prometheus-operator") {
		s.t.Errorf("the operator's kubeconfig says: %v\n%s", err, out)
	}
	const prometheus = `apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: shop, namespace: monitoring}
spec: {replicas: 1}
`
	s.kubectl("eu-1", "apply", "-f", s.write("prometheus.yaml", prometheus))
	s.eventually("the StatefulSet of a Prometheus", func() bool {
		return strings.Contains(s.kubectl("eu-1", "get", "statefulsets", "-n", "monitoring", "-o", "name"), "prometheus-shop")
	})
}

func (s *smoke) operatorsPodFollowsTheProcess() {
	for _, step := range []struct{ action, state, ready string }{
		{"kill", "killed", "False"}, {"start", "running", "True"}, {"pause", "paused", "False"}, {"resume", "running", "True"},
	} {
		s.ok(step.action, "eu-1", "--component", "prometheus-operator")
		s.operatorIs(step.state)
		s.eventually("Ready="+step.ready+" after "+step.action, func() bool { return s.operatorReady() == step.ready })
	}
}

func (s *smoke) scaledOperatorEnds() {
	s.kubectl("eu-1", "scale", "deployment/prometheus-operator", "-n", "monitoring", "--replicas=0")
	s.operatorIs("waiting for a pod of its Deployment")
	s.kubectl("eu-1", "scale", "deployment/prometheus-operator", "-n", "monitoring", "--replicas=2")
	s.operatorIs("running")
	s.kubectl("eu-1", "rollout", "status", "deployment/prometheus-operator", "-n", "monitoring", "--timeout=60s")
}

func (s *smoke) unknownVersionOfTheOperatorIsNotReady() {
	s.operatorImage("v0.0.1")
	s.eventually("a pod whose image is missing", func() bool {
		return strings.Contains(s.operatorPod("{.status.containerStatuses[*].state.waiting.reason}"), "ImagePullBackOff")
	})
	s.operatorIs("running") // because pods of the previous version still run
	s.kubectl("eu-1", "delete", "replicasets", "--all", "-n", "monitoring")
	s.operatorIs("waiting for a pod of its Deployment")
	if ready := s.operatorReady(); strings.Contains(ready, "True") {
		s.t.Errorf("pods with an unknown version of the operator have Ready %s", ready)
	}
}

func (s *smoke) eachVersionOfTheOperatorHasItsProcess() {
	for _, version := range s.operatorVersions() {
		s.operatorImage(version)
		s.operatorIs("running")
		s.kubectl("eu-1", "rollout", "status", "deployment/prometheus-operator", "-n", "monitoring", "--timeout=60s")
		log, err := os.ReadFile(filepath.Join(s.dir, "eu-1", "prometheus-operator.log"))
		if err != nil {
			s.t.Fatal(err)
		}
		last := string(log)[max(0, bytes.LastIndex(log, []byte("Starting Prometheus Operator"))):]
		if want := "(version=" + strings.TrimPrefix(version, "v") + ","; !strings.Contains(last, want) {
			s.t.Errorf("with the image of %s, the process says %.200q, want %q", version, last, want)
		}
	}
}

// operatorVersions returns the operator versions of the lab, the oldest first.
func (s *smoke) operatorVersions() []string {
	s.t.Helper()
	versions, err := build.Versions(s.bin, "prometheus-operator")
	if err != nil || len(versions) < 2 {
		s.t.Fatalf("the lab has the versions %v, want two: %v", versions, err)
	}
	return versions
}

// operatorImage sets the tag of the image in the operator's Deployment.
func (s *smoke) operatorImage(tag string) {
	s.t.Helper()
	s.kubectl("eu-1", "set", "image", "deployment/prometheus-operator", "-n", "monitoring", "*=hanse.dev/prometheus-operator:"+tag)
}

func (s *smoke) deletedOperatorEnds() {
	s.kubectl("eu-1", "delete", "deployment", "prometheus-operator", "-n", "monitoring")
	s.operatorIs("waiting for a pod of its Deployment")
}

// operatorIs waits until `lab status` shows this state and reason of the operator.
func (s *smoke) operatorIs(want string) {
	s.t.Helper()
	s.eventually("the operator that is "+want, func() bool {
		for _, c := range s.status().Clusters[0].Components {
			if c.Name == "prometheus-operator" {
				return strings.HasPrefix(c.State+" "+c.Reason, want)
			}
		}
		return false
	})
}

// operatorReady returns the status of the condition Ready of each pod of the operator.
func (s *smoke) operatorReady() string {
	return s.operatorPod(`{.status.conditions[?(@.type=="Ready")].status}`)
}

func (s *smoke) operatorPod(path string) string {
	const pods = "app.kubernetes.io/name=prometheus-operator"
	template := fmt.Sprintf("jsonpath={range .items[*]}%s {end}", path)
	return strings.TrimSpace(s.kubectl("eu-1", "get", "pods", "-n", "monitoring", "-l", pods, "-o", template))
}

func (s *smoke) write(name, text string) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}
