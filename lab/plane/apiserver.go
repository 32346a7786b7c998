package plane

import (
	"fmt"
	"os"

	"github.com/hanse-dev/hanse/lab/process"
)

const (
	frontProxyUser = "front-proxy-client"
	serviceNetwork = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes
)

// auditPolicy records only the requests of Hanse's ServiceAccounts: a test compares them with the rights from RBAC.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:hanse-system"]
- level: None
`

func writeAuditPolicy(file string) error {
	if err := os.WriteFile(file, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing audit policy: %w", err)
	}
	return nil
}

// APIServerSpec returns the command of the API server, which keeps its objects in store under its own prefix.
func (c *Cluster) APIServerSpec(store *Store, controllers bool) process.Spec {
	args := []string{
		"--etcd-servers=" + store.ClientURL,
		"--etcd-prefix=" + c.EtcdPrefix(),
		"--etcd-cafile=" + store.CA.File,
		"--etcd-certfile=" + store.Client.CertFile,
		"--etcd-keyfile=" + store.Client.KeyFile,
		"--bind-address=" + c.site.server(),
		"--advertise-address=" + c.site.server(),
		fmt.Sprintf("--secure-port=%d", c.apiPort),
		"--service-cluster-ip-range=" + serviceNetwork,

		"--tls-cert-file=" + c.Serving.CertFile,
		"--tls-private-key-file=" + c.Serving.KeyFile,
		"--client-ca-file=" + c.CA.File,
		"--requestheader-client-ca-file=" + c.FrontCA.File,
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.FrontProxy.CertFile,
		"--proxy-client-key-file=" + c.FrontProxy.KeyFile,

		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.ServiceAccountKey,
		"--service-account-signing-key-file=" + c.ServiceAccountKey,

		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(),
		"--audit-log-format=json",
		"--audit-log-mode=blocking", // when a response is sent, its request is in the log
		"--audit-log-maxsize=0",     // one file, never rotated

		// The check lists all data in etcd every five minutes. Many servers on few cores would run it at about the same
		// time after their start, and distort measurements.
		"--feature-gates=DetectCacheInconsistency=false",
	}
	if !controllers {
		// No controller would remove the taint that this plugin puts on new nodes.
		args = append(args, "--disable-admission-plugins=TaintNodesByCondition")
	}
	if c.site.Node == nil {
		return c.spec(APIServer, append(args, "--endpoint-reconciler-type=none")...)
	}
	args = append(args,
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority="+c.CA.File,
		"--kubelet-client-certificate="+c.Admin.CertFile,
		"--kubelet-client-key="+c.Admin.KeyFile,
	)
	return c.onNode(c.spec(APIServer, args...))
}

// EtcdPrefix returns the prefix of the cluster's objects in its etcd.
func (c *Cluster) EtcdPrefix() string { return "/" + c.Name }
