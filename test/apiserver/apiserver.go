// Package apiserver runs a real kube-apiserver with its own etcd for tests. The environment variable KUBEBUILDER_ASSETS
// names the folder of the two programs; `make test-envtest` sets it. If the variable is not set, the tests that need
// the programs are skipped.
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

// Needed skips a test if the programs are not installed. The test itself must call it: Go reruns a cached test after a
// change of the environment only if the test has read the variable.
func Needed(t *testing.T) {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Skip(assets + " is not set: no API server to test against; `make test-envtest` sets it")
	}
}

// Run runs the tests of a package with an API server. It sets config to the administrator's config, without a rate
// limit. Run returns the exit code of the process.
func Run(m *testing.M, environment *envtest.Environment, config **rest.Config) int {
	if os.Getenv(assets) == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	c, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		_ = environment.Stop() // otherwise the programs would outlive the test, and `go test` would wait for their output
		return 1
	}
	defer func() { _ = environment.Stop() }()
	c.QPS = -1
	*config = c
	return m.Run()
}

// Hub returns an environment that serves the kinds of Hanse and the kinds in the folders.
func Hub(folders ...string) *envtest.Environment {
	return &envtest.Environment{
		CRDDirectoryPaths: append(folders, filepath.Join(Root(), "charts", "hanse-hub", "files", "crds")), ErrorIfCRDPathMissing: true,
	}
}

// Root returns the path of the repository's root folder, relative to the folder of the test's package.
func Root() string {
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root
		}
		root = filepath.Join("..", root)
	}
}
