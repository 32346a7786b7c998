// Package pki creates the certificates, keys and kubeconfigs of one lab cluster.
//
// Each file is written once and then read, so that a cluster keeps its identity after a restart. Keys are ECDSA P-256,
// because such keys are fast to create and all components accept them.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// CA signs certificates. File is the path of its own certificate.
type CA struct {
	File string
	PEM  []byte

	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// Cert has the paths of a certificate and its key.
type Cert struct {
	CertFile, KeyFile string
}

// Authority returns the CA with this name in dir. It creates the CA if it does not exist.
func Authority(dir, name string) (*CA, error) {
	files := pair(dir, name)
	if !exists(files.KeyFile) {
		template := &x509.Certificate{
			Subject:               pkix.Name{CommonName: name},
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
			IsCA:                  true,
			BasicConstraintsValid: true,
		}
		if err := write(files, template, nil, nil); err != nil {
			return nil, fmt.Errorf("making authority %q: %w", name, err)
		}
	}
	loaded, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading authority %q: %w", name, err)
	}
	ca := &CA{File: files.CertFile, dir: dir, cert: loaded.Leaf, key: loaded.PrivateKey.(crypto.Signer)}
	ca.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: loaded.Leaf.Raw})
	return ca, nil
}

// Pool returns a certificate pool with only this CA.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Server returns a certificate for a server on the loopback addresses and on the given IP addresses. names are
// additional DNS names.
func (ca *CA) Server(name string, addresses []string, names ...string) (Cert, error) {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, address := range addresses {
		ips = append(ips, net.ParseIP(address))
	}
	return ca.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: ips,
	})
}

// Client returns a certificate that identifies a user and its groups to a Kubernetes API server.
func (ca *CA) Client(file, user string, groups ...string) (Cert, error) {
	return ca.issue(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (ca *CA) issue(file string, template *x509.Certificate) (Cert, error) {
	files := pair(ca.dir, file)
	if exists(files.KeyFile) {
		return files, nil
	}
	if err := write(files, template, ca.cert, ca.key); err != nil {
		return Cert{}, fmt.Errorf("issuing certificate %q: %w", file, err)
	}
	return files, nil
}

// TLS loads the certificate and its key.
func (c Cert) TLS() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
}

// SigningKey returns the path of a private key that signs ServiceAccount tokens. It creates the key if it does not
// exist.
func SigningKey(dir, name string) (string, error) {
	file := filepath.Join(dir, name+".key")
	if exists(file) {
		return file, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making key %q: %w", name, err)
	}
	return file, writeKey(file, key)
}

// write signs template with parent, or with its own key if parent is nil. It writes the key file last, so that an
// existing key file means a complete pair.
func write(files Cert, template, parent *x509.Certificate, signer crypto.Signer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // the clock of a machine that was paused may be behind
	template.NotAfter = time.Now().Add(validity)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(files.CertFile), 0o700); err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(files.CertFile, block, 0o600); err != nil {
		return err
	}
	return writeKey(files.KeyFile, key)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func pair(dir, name string) Cert {
	return Cert{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, os.ErrNotExist)
}
