package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeyFollowsTheSourceAndNothingElse(t *testing.T) {
	source := copySource(t)
	before := mustKey(t, source)
	if again := mustKey(t, source); again != before {
		t.Fatalf("equal source gave %s and %s", before, again)
	}
	if elsewhere := mustKey(t, copySource(t)); elsewhere != before {
		t.Errorf("another folder gave %s and %s", before, elsewhere)
	}
	file := filepath.Join(source, "kwok", "go.mod")
	data, err := os.ReadFile(file)
	check(t, err)
	check(t, os.WriteFile(file, append(data, '\n'), 0o600))
	if mustKey(t, source) == before {
		t.Error("a changed go.mod gave the same key")
	}
}

func TestAComponentOnDemandIsBuiltForThoseWhoNameIt(t *testing.T) {
	source := copySource(t)
	before, named := mustKey(t, source), mustKey(t, source, CertManager)
	file := filepath.Join(source, CertManager, "go.mod")
	data, err := os.ReadFile(file)
	check(t, err)
	check(t, os.WriteFile(file, append(data, '\n'), 0o600))
	if mustKey(t, source) != before {
		t.Error("its go.mod changed the key of what every lab needs")
	}
	if mustKey(t, source, CertManager) == named {
		t.Error("its go.mod did not change its own key")
	}
	if _, err := needed([]string{CertManager, "nothing"}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("an unknown name gives %v", err)
	}
}

func TestStampsAreFilledFromTheVersion(t *testing.T) {
	j := job{component: component{stamps: map[string]string{"a.v": "{version}", "b.r": "{release}", "c.m": "{major}-{minor}", "d.f": "clean"}}}
	want := []string{"-X", "a.v=v1.36.3", "-X", "b.r=1.36.3", "-X", "c.m=1-36", "-X", "d.f=clean"}
	if diff := cmp.Diff(want, j.stamp("v1.36.3")); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsOfAnOperatorAreInOrder(t *testing.T) {
	bin := t.TempDir()
	for _, program := range []string{"op-v0.10.0", "op-v0.9.1", "op-v0.9.0", "other-v1.0.0", "kubectl"} {
		check(t, os.WriteFile(filepath.Join(bin, program), nil, 0o600))
	}
	got, err := Versions(bin, "op")
	if diff := cmp.Diff([]string{"v0.9.0", "v0.9.1", "v0.10.0"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Versions(bin, "none"); err == nil {
		t.Error("an operator without programs has versions")
	}
}

func TestMeterKeepsTheEndOfTheOutput(t *testing.T) {
	var out strings.Builder
	m := newMeter(&out, "x", 3)
	for _, part := range []string{"one\ntw", "o\n", "error: broken"} {
		_, err := m.Write([]byte(part))
		check(t, err)
	}
	m.stop(nil)
	if got, want := string(m.tail()), "one\ntwo\nerror: broken"; got != want {
		t.Errorf("tail is %q, want %q", got, want)
	}
}

// All components that every lab needs must require the same version of the Kubernetes libraries, so that the libraries
// are compiled only once.
func TestComponentsAgreeOnKubernetesLibraries(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the go command")
	}
	versions := map[string][]string{}
	for _, c := range components {
		if c.module == "" || c.onDemand {
			continue // the component uses no Kubernetes library, or is compiled only on demand
		}
		cmd := exec.Command("go", "list", "-m", "k8s.io/api", "k8s.io/client-go", "k8s.io/apimachinery")
		cmd.Dir = filepath.Join("..", "components", c.name)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		out, err := cmd.Output()
		check(t, err)
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line) // path, version and perhaps a replacement
			versions[fields[len(fields)-1]] = append(versions[fields[len(fields)-1]], c.name)
		}
	}
	if len(versions) != 1 {
		t.Errorf("several versions: %v", versions)
	}
}

// All versions of an operator must require equal versions of all other modules, so that the older version is compiled
// in seconds.
func TestVersionsOfAnOperatorShareTheirLibraries(t *testing.T) {
	libraries := func(folder string) (out []string) {
		data, err := os.ReadFile(filepath.Join("..", "components", folder, "go.mod"))
		check(t, err)
		for line := range strings.Lines(string(data)) {
			if !strings.Contains(line, "prometheus-operator") {
				out = append(out, line)
			}
		}
		return out
	}
	if diff := cmp.Diff(libraries("prometheus-operator"), libraries("prometheus-operator-older")); diff != "" {
		t.Errorf("the modules differ (-newer +older):\n%s", diff)
	}
}

func copySource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "components"))))
	return dir
}

func mustKey(t *testing.T, source string, names ...string) string {
	t.Helper()
	all, err := needed(names)
	check(t, err)
	k, err := key(source, all)
	check(t, err)
	return k
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
