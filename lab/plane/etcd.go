package plane

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hanse-dev/hanse/lab/pki"
	"github.com/hanse-dev/hanse/lab/process"
)

// StorePurpose is the prefix of the purposes for which an etcd gets its ports, such as "etcd hub/client". No cluster
// can have a name with this prefix, because the prefix contains a space.
const StorePurpose = "etcd "

// Store is one etcd and its identity.
type Store struct {
	Name, Dir, Bin        string
	ClientURL, MetricsURL string
	CA                    *pki.CA
	Client                pki.Cert

	serving pki.Cert
	peerURL string
}

// PrepareStore returns an etcd that listens at this IP address. It creates the etcd's folder and certificates if they
// do not exist.
func PrepareStore(dir, bin, name, address string, ports Ports) (*Store, error) {
	s := &Store{Name: name, Dir: filepath.Join(dir, name), Bin: bin}
	for purpose, url := range map[string]*string{"client": &s.ClientURL, "peer": &s.peerURL, "metrics": &s.MetricsURL} {
		port, err := ports(StorePurpose + name + "/" + purpose)
		if err != nil {
			return nil, err
		}
		scheme := "https"
		if purpose == "metrics" {
			scheme = "http" // tests read the metrics without a certificate
		}
		*url = fmt.Sprintf("%s://%s:%d", scheme, address, port)
	}
	var err error
	if s.CA, err = pki.Authority(filepath.Join(s.Dir, "pki"), "ca"); err != nil {
		return nil, fmt.Errorf("preparing etcd %q: %w", name, err)
	}
	if s.serving, err = s.CA.Server("server", []string{address}); err != nil {
		return nil, fmt.Errorf("preparing etcd %q: %w", name, err)
	}
	if s.Client, err = s.CA.Client("client", "kube-apiserver"); err != nil {
		return nil, fmt.Errorf("preparing etcd %q: %w", name, err)
	}
	return s, os.MkdirAll(filepath.Join(s.Dir, "data"), 0o700)
}

// Spec returns the command of the etcd. The etcd does not sync to disk: its data survives a kill of the process, but
// not a crash of the machine.
func (s *Store) Spec() process.Spec {
	args := []string{
		"--name=" + s.Name,
		"--data-dir=" + filepath.Join(s.Dir, "data"),
		"--listen-client-urls=" + s.ClientURL,
		"--advertise-client-urls=" + s.ClientURL,
		"--listen-peer-urls=" + s.peerURL,
		"--initial-advertise-peer-urls=" + s.peerURL,
		"--initial-cluster=" + s.Name + "=" + s.peerURL,
		"--listen-metrics-urls=" + s.MetricsURL,
		"--unsafe-no-fsync=true",
		"--client-cert-auth", "--peer-client-cert-auth",
		"--log-level=warn",
	}
	for _, prefix := range []string{"--", "--peer-"} {
		args = append(args,
			prefix+"cert-file="+s.serving.CertFile, prefix+"key-file="+s.serving.KeyFile, prefix+"trusted-ca-file="+s.CA.File)
	}
	return process.Spec{Name: "etcd " + s.Name, Path: filepath.Join(s.Bin, Etcd), Args: args, Dir: s.Dir, Log: filepath.Join(s.Dir, "etcd.log")}
}
