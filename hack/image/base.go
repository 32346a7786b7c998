package image

import (
	"bytes"
	"encoding/pem"
	"io"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Files of the base layer, at the paths where Go's crypto/x509 and os/user look for them.
const (
	rootsFile  = "/etc/ssl/certs/ca-certificates.crt"
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// RootsModule is the Go module with the certificates of the base layer. go.mod pins its version.
const RootsModule = "golang.org/x/crypto/x509roots/fallback"

// WriteBase writes the base layer as a tar archive. It contains the certificates of public authorities, and the user
// and the group nonroot.
func WriteBase(w io.Writer) error {
	return pack(w, base())
}

// base returns the folders and files of the base layer. The layer has no /tmp, because the binaries write no temporary
// files, and the chart makes their root file system read-only.
func base() []entry {
	return []entry{
		{name: "/etc/", mode: 0o755},
		{name: groupFile, mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: passwdFile, mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{name: "/etc/ssl/", mode: 0o755},
		{name: "/etc/ssl/certs/", mode: 0o755},
		{name: rootsFile, mode: 0o644, content: roots()},
	}
}

// roots returns the certificates in PEM that Mozilla trusts unconditionally. Mozilla trusts some authorities only for
// certificates issued before a date. A PEM file cannot express that, so these authorities are left out.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}
