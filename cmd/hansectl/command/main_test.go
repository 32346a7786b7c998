package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hanse-dev/hanse/test/apiserver"
)

// server is a real API server, with the credentials of an admin.
type server struct {
	client.Client
	kubeconfig string // path of the kubeconfig
	env        *envtest.Environment
}

// Two servers serve all tests: one hub and one member. Neither has controllers, so the tests act as the controllers.
var onHub, onMember server

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "hansectl")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	onHub.env = apiserver.Hub()
	onMember.env = &envtest.Environment{}
	defer func() { _ = errors.Join(onHub.env.Stop(), onMember.env.Stop()) }()
	if err := errors.Join(onHub.start(filepath.Join(dir, "hub.kubeconfig")), onMember.start(filepath.Join(dir, "member.kubeconfig"))); err != nil {
		fmt.Fprintln(os.Stderr, "starting the servers of the test:", err)
		return 1
	}
	return m.Run()
}

func (s *server) start(kubeconfig string) error {
	config, err := s.env.Start()
	if err != nil {
		return err
	}
	config.QPS = -1
	if s.Client, err = newClient(config); err != nil {
		return err
	}
	admin, err := s.env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, config)
	if err != nil {
		return err
	}
	text, err := admin.KubeConfig()
	if err != nil {
		return err
	}
	s.kubeconfig = kubeconfig
	return os.WriteFile(kubeconfig, text, 0o600)
}

func needServers(t *testing.T) {
	t.Helper()
	apiserver.Needed(t)
}

// hansectl runs a command on the hub.
func hansectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return run(t, append(args, "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir())...)
}
