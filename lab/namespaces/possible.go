package namespaces

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CNI is the folder of the network plugins in Debian's package.
const CNI = "/usr/lib/cni"

var (
	programs = []string{"containerd", "containerd-shim-runc-v2", "runc", "ctr", "iptables", "nsenter", "mount", "umount"}
	plugins  = []string{"bridge", "host-local", "loopback", "portmap"}
)

// Possible returns nil if this machine can run real nodes. Otherwise its error lists every reason.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes cannot run here: they need root")
	}
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	for _, plugin := range plugins {
		if _, err := os.Stat(filepath.Join(CNI, plugin)); err != nil {
			missing = append(missing, filepath.Join(CNI, plugin))
		}
	}
	var reasons []error
	if len(missing) > 0 {
		reasons = append(reasons, fmt.Errorf("missing %s; hack/node-packages.sh installs them on Debian", strings.Join(missing, ", ")))
	}
	_, one := os.Stat(filepath.Join(cgroups, "memory"))
	_, two := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	if one != nil && two != nil {
		reasons = append(reasons, fmt.Errorf("no cgroups in %s", cgroups))
	}
	try := exec.Command("true")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	if err := try.Run(); err != nil {
		reasons = append(reasons, fmt.Errorf("no new namespaces: %w", err))
	}
	if len(reasons) > 0 {
		return fmt.Errorf("real nodes cannot run here: %w", errors.Join(reasons...))
	}
	return nil
}
