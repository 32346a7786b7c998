package plane

import (
	"fmt"
	"os"

	"github.com/hanse-dev/hanse/lab/process"
)

const (
	frontProxyUser = "front-proxy-client"
	serviceNetwork = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // the cluster IP of the Service kubernetes
)

// auditPolicy logs only requests of Hanse's ServiceAccounts, because a test compares these requests with the RBAC
// rules.
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

// APIServerSpec returns the command of the API server. It keeps its objects in store under the cluster's prefix.
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
		"--audit-log-mode=blocking", // the API server writes the log entry before it sends the response
		"--audit-log-maxsize=0",     // one file, never rotated

		// This check lists all data in etcd every five minutes. With many API servers on few cores, all checks would run at
		// about the same time, and would distort measurements.
		"--feature-gates=DetectCacheInconsistency=false",
	}
	if !controllers {
		// This plugin taints new nodes. Without controllers, nothing would remove the taint.
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
