// Package namespaces gives a lab with real nodes Linux namespaces of its own: for processes, mounts and network.
//
// The supervisor is process 1 of these namespaces. When it ends for any reason, the kernel kills every process in them,
// including containers and their shims, and removes mounts, interfaces, routes and iptables rules. Only empty cgroups
// can remain. Enter removes them at the next start, and Leave removes them at a regular end.
//
// The lab's network is 10.N.0.0/16. N is the first number from 200 on for which the machine has no route:
//
//	10.N.0.1  the machine's end of the veth pair hanse-lab-N
//	10.N.0.2  the lab: etcds, fault proxies, and clusters without a real node
//	10.N.S.1  the lab's end of the veth pair to the real node with slot S
//	10.N.S.2  the node and its control plane, in a network namespace below the lab's
package namespaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	firstNetwork = 200
	networks     = 50
	uplink       = "uplink" // the lab's end of the veth pair to the machine
	cgroups      = "/sys/fs/cgroup"
)

// hidden are folders of the machine over which the lab mounts empty folders, because containerd, kubelet and CNI use
// fixed paths in them.
var hidden = []string{"/run", "/var/lib", "/var/log"}

// Lab identifies the namespaces of a lab.
type Lab struct {
	// PID is the supervisor's process id outside of the namespaces.
	PID int `json:"pid"`
	// Number is the N in the lab's network 10.N.0.0/16. It is at least 200.
	Number int `json:"number"`
}

// Address returns the lab's own IPv4 address.
func (l Lab) Address() string { return l.host(0, 2) }

// Cgroup returns the path of the parent cgroup of all containers. It is the same in each hierarchy.
func (l Lab) Cgroup() string { return fmt.Sprintf("/hanse-lab-%d", l.Number) }

func (l Lab) host(slot, end int) string { return fmt.Sprintf("10.%d.%d.%d", l.Number, slot, end) }

func (l Lab) link() string { return fmt.Sprintf("hanse-lab-%d", l.Number) }

// Start starts cmd as process 1 of new namespaces, and connects the namespaces with the machine's network. cmd must
// call Enter first. dir is the lab's folder. If an earlier start used this folder, number must be the Number of that
// start, because files in the folder contain the lab's addresses. If number is 0, Start chooses a free number.
func Start(cmd *exec.Cmd, dir string, number int) error {
	if err := Possible(); err != nil {
		return err
	}
	handover, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = handover.Close() }() // if this file closes without a line, Enter fails
	lab, err := connect(cmd.Process.Pid, dir, number)
	if err == nil {
		err = json.NewEncoder(handover).Encode(lab)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("connecting the lab's network: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return nil
}

// connect creates the veth pair between the machine and the process's namespace, and the machine's route to the lab.
func connect(pid int, dir string, number int) (Lab, error) {
	first, last := firstNetwork, firstNetwork+networks-1
	if number != 0 {
		first, last = number, number
		if err := (Lab{Number: number}).removeStale(dir); err != nil {
			return Lab{}, err
		}
	}
	for n := first; n <= last; n++ {
		lab := Lab{PID: pid, Number: n}
		free, err := lab.free()
		if err != nil {
			return Lab{}, err
		}
		if !free {
			continue
		}
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: uplink, PeerNamespace: netlink.NsPid(pid)}
		veth.Name = lab.link()
		if err := netlink.LinkAdd(veth); errors.Is(err, unix.EEXIST) {
			continue // another lab took this number first
		} else if err != nil {
			return Lab{}, fmt.Errorf("making the interface %s: %w", lab.link(), err)
		}
		if err := netlink.LinkSetAlias(veth, dir); err != nil {
			return Lab{}, fmt.Errorf("naming the lab of the interface %s: %w", lab.link(), err)
		}
		if err := configure(lab.link(), lab.host(0, 1)); err != nil {
			return Lab{}, err
		}
		return lab, route(lab.link(), lab.subnet(), lab.Address())
	}
	return Lab{}, fmt.Errorf("no network is free from 10.%d.0.0/16 to 10.%d.0.0/16: other labs or routes of the machine use them", first, last)
}

// removeStale deletes the veth pair of a killed lab in dir. The kernel itself would remove it only after the open
// connections have timed out, which may take minutes.
func (l Lab) removeStale(dir string) error {
	link, err := netlink.LinkByName(l.link())
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the interface %s: %w", l.link(), err)
	}
	if link.Attrs().Alias != dir {
		return nil
	}
	return disconnect(l.link())
}

func (l Lab) subnet() *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, byte(l.Number), 0, 0).To4(), Mask: net.CIDRMask(16, 32)}
}

// free reports whether the machine has no route into the lab's network.
func (l Lab) free() (bool, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return false, fmt.Errorf("listing the routes of the machine: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones > 0 && (l.subnet().Contains(r.Dst.IP) || r.Dst.Contains(l.subnet().IP)) {
			return false, nil
		}
	}
	return true, nil
}

// Enter completes the namespaces of a process that Start started. dir is the lab's folder.
func Enter(dir string) (Lab, error) {
	var lab Lab
	if err := json.NewDecoder(os.Stdin).Decode(&lab); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("its parent ended")
		}
		return lab, fmt.Errorf("entering namespaces: %w", err)
	}
	for _, folder := range hidden {
		if strings.HasPrefix(dir, folder+"/") {
			return lab, fmt.Errorf("a lab with real nodes cannot be in %s, because it hides %s; use --dir", dir, folder)
		}
	}
	if err := mount(); err != nil {
		return lab, err
	}
	if err := lab.removeCgroups(); err != nil { // a lab that was killed may have left them
		return lab, err
	}
	if err := configure("lo", ""); err != nil {
		return lab, err
	}
	if err := configure(uplink, lab.host(0, 2)); err != nil {
		return lab, err
	}
	if err := route(uplink, nil, lab.host(0, 1)); err != nil {
		return lab, err
	}
	return lab, forward()
}

// mount makes the mounts private. It mounts /proc for the new process ids, and an empty folder over each folder in
// hidden.
func mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, folder := range hidden {
		if err := unix.Mount("hanse-lab", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return fmt.Errorf("mounting an empty folder over %s: %w", folder, err)
		}
	}
	return nil
}

// Leave kills all other processes in the namespaces, detaches all mounts in dir, and removes the cgroups and the veth
// pair, so that dir can be deleted. Only process 1 may call it.
func (l Lab) Leave(dir string) error {
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing the processes of the lab: %w", err)
	}
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			break
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the processes of the lab: %w", err)
		}
	}
	return errors.Join(Detach(dir), l.removeCgroups(), disconnect(uplink))
}

// Detach detaches all mounts in dir.
func Detach(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var faults []error
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth field is the mount point
		if len(fields) < 5 || !strings.HasPrefix(fields[4], dir+"/") {
			continue
		}
		err := unix.Unmount(fields[4], unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL means that it was detached together with a mount above it
			faults = append(faults, fmt.Errorf("detaching %s: %w", fields[4], err))
		}
	}
	return errors.Join(faults...)
}

func (l Lab) removeCgroups() error { return RemoveCgroup(l.Cgroup()) }

// hierarchies returns the root folders of the cgroup hierarchies: one for each controller with cgroups version 1, or a
// single one with version 2.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}
	}
	found, _ := filepath.Glob(filepath.Join(cgroups, "*")) // the pattern is valid
	return found
}

// Processes returns the ids of the processes in a cgroup and in all cgroups below it.
func Processes(cgroup string) []string {
	var pids []string
	for _, hierarchy := range hierarchies() {
		_ = filepath.WalkDir(filepath.Join(hierarchy, cgroup), func(path string, _ os.DirEntry, err error) error {
			if err == nil && filepath.Base(path) == "cgroup.procs" {
				data, _ := os.ReadFile(path) // a cgroup that was just removed has no processes
				pids = append(pids, strings.Fields(string(data))...)
			}
			return nil
		})
	}
	return pids
}

// RemoveCgroup removes a cgroup without processes, and all cgroups below it, from every hierarchy.
func RemoveCgroup(cgroup string) error {
	var faults []error
	for _, hierarchy := range hierarchies() {
		var folders []string
		_ = filepath.WalkDir(filepath.Join(hierarchy, cgroup), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append([]string{path}, folders...) // children first
			}
			return nil
		})
		for _, folder := range folders {
			if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
				faults = append(faults, fmt.Errorf("removing cgroup %s: %w", folder, err))
			}
		}
	}
	return errors.Join(faults...)
}
