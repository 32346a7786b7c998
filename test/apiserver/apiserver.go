// Package apiserver gives tests a real kube-apiserver with its own etcd. `make test-envtest` sets the folder of the
// programs in the environment variable KUBEBUILDER_ASSETS. Without it, tests that need the programs are skipped.
package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const assets = "KUBEBUILDER_ASSETS"

// Needed skips a test if there are no programs. It must be called in the test, because reads of the environment in
// TestMain do not count for cached results.
func Needed(t *testing.T) {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Skip(assets + " is not set: no API server to test against; `make test-envtest` sets it")
	}
}

// Run runs the tests of a package with an API server. config is set to its administrator's config, without a limit on
// requests. Run returns the exit code of the process.
func Run(m *testing.M, environment *envtest.Environment, config **rest.Config) int {
	if os.Getenv(assets) == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	c, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		_ = environment.Stop() // else the programs outlive the test, and `go test` waits for their output
		return 1
	}
	defer func() { _ = environment.Stop() }()
	c.QPS = -1
	*config = c
	return m.Run()
}

// Hub returns an environment that serves the kinds of Hanse and those of the folders.
func Hub(folders ...string) *envtest.Environment {
	return &envtest.Environment{
		CRDDirectoryPaths: append(folders, filepath.Join(Root(), "charts", "hanse-hub", "files", "crds")), ErrorIfCRDPathMissing: true,
	}
}

// Root returns the folder of the repository, from the folder of the test's package.
func Root() string {
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root
		}
		root = filepath.Join("..", root)
	}
}
