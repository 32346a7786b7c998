package plane

import (
	"fmt"
	"os"

	"github.com/hanse-dev/hanse/lab/process"
)

const frontProxyUser = "front-proxy-client"

// auditPolicy records what Hanse does with the ServiceAccounts of its namespace, and nothing else:
// a test compares it with what RBAC grants.
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

// APIServerSpec is the command of the API server, which keeps its objects in store under its own prefix.
func (c *Cluster) APIServerSpec(store *Store, controllers bool) process.Spec {
	args := []string{
		"--etcd-servers=" + store.ClientURL,
		"--etcd-prefix=" + c.EtcdPrefix(),
		"--etcd-cafile=" + store.CA.File,
		"--etcd-certfile=" + store.Client.CertFile,
		"--etcd-keyfile=" + store.Client.KeyFile,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.apiPort),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",

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
		"--audit-log-mode=blocking", // an answered request is in the log
		"--audit-log-maxsize=0",     // one file, never rotated

		// The check lists all that is in etcd every five minutes. Many servers on few cores would each begin it at about the
		// same time after their start, and whoever measures would take it for something that happened then.
		"--feature-gates=DetectCacheInconsistency=false",
	}
	if !controllers {
		// Nobody would ever take the taint off again that it puts on new nodes.
		args = append(args, "--disable-admission-plugins=TaintNodesByCondition")
	}
	return c.spec(APIServer, args...)
}

// EtcdPrefix is where the cluster's objects are in its etcd.
func (c *Cluster) EtcdPrefix() string { return "/" + c.Name }
