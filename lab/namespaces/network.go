package namespaces

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Node is the network namespace of a real node.
type Node struct {
	// Name is the name of the network namespace in /run/netns.
	Name string
	// Slot is the third number of the node's IP addresses, from 1 to 254.
	Slot int

	lab Lab
}

// Node returns the network namespace of a real node. slot is the third number of the node's IP addresses. Node.Open
// creates the namespace.
func (l Lab) Node(name string, slot int) Node { return Node{Name: name, Slot: slot, lab: l} }

// Address returns the node's IPv4 address.
func (n Node) Address() string { return n.lab.host(n.Slot, 2) }

// Cgroup returns the path of the cgroup of the node's containers.
func (n Node) Cgroup() string { return filepath.Join(n.lab.Cgroup(), n.Name) }

// Path returns the file that keeps the namespace alive.
func (n Node) Path() string { return filepath.Join("/run/netns", n.Name) }

// Command returns the command line that runs a program in the namespace. The program has the process id of the command.
// It uses nsenter, because `ip netns exec` would mount a /sys without cgroups.
func (n Node) Command(program string, args ...string) []string {
	return append([]string{"nsenter", "--net=" + n.Path(), "--", program}, args...)
}

// Open creates the network namespace and connects it with the lab's namespace.
func (n Node) Open() error {
	handle, err := n.create()
	if err != nil {
		return fmt.Errorf("making the network namespace of node %q: %w", n.Name, err)
	}
	defer func() { _ = handle.Close() }()
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: uplink, PeerNamespace: netlink.NsFd(handle)}
	veth.Name = n.link()
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("making the interface %s of node %q: %w", n.link(), n.Name, err)
	}
	if err := configure(n.link(), n.lab.host(n.Slot, 1)); err != nil {
		return err
	}
	return n.within(handle, func() error {
		if err := configure("lo", ""); err != nil {
			return err
		}
		if err := configure(uplink, n.Address()); err != nil {
			return err
		}
		return errors.Join(route(uplink, nil, n.lab.host(n.Slot, 1)), forward())
	})
}

// Close removes the name of the namespace. The namespace ends with its last process.
func (n Node) Close() error {
	if _, err := os.Stat(n.Path()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(disconnect(n.link()), netns.DeleteNamed(n.Name))
}

func (n Node) link() string { return fmt.Sprintf("node-%d", n.Slot) }

// create creates the named namespace and returns the calling thread to the lab's namespace.
func (n Node) create() (handle netns.NsHandle, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends in the new namespace
		handle, err = netns.NewNamed(n.Name)
	}()
	<-done
	return handle, err
}

// within calls f on a new thread in the namespace. The thread ends after f.
func (n Node) within(handle netns.NsHandle, f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = netns.Set(handle); err == nil {
			err = f()
		}
	}()
	<-done
	if err != nil {
		return fmt.Errorf("configuring the network of node %q: %w", n.Name, err)
	}
	return nil
}

// configure sets an interface up. If address is not empty, it adds the address with a prefix of 30 bits.
func configure(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the interface %s: %w", name, err)
	}
	if address != "" {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(30, 32)}}
		if err := netlink.AddrAdd(link, a); err != nil {
			return fmt.Errorf("adding the address %s to the interface %s: %w", address, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting the interface %s up: %w", name, err)
	}
	return nil
}

// disconnect deletes an interface, and thereby also the other end of its veth pair.
func disconnect(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("deleting the interface %s: %w", name, err)
	}
	return nil
}

// route adds a route to a network, or the default route, through an interface.
func route(name string, to *net.IPNet, gateway string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the interface %s: %w", name, err)
	}
	err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: net.ParseIP(gateway)})
	if err != nil {
		return fmt.Errorf("adding a route through %s: %w", gateway, err)
	}
	return nil
}

// forward enables packet forwarding in the network namespace of the calling thread.
func forward() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
		return fmt.Errorf("forwarding packets in the lab: %w", err)
	}
	return nil
}
