package provider

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// SecretType is the type of the Secrets with a consumer's credentials. Each has the name of a MemberCluster.
	SecretType corev1.SecretType = "hanse.dev/consumer"
	// ServerKey has the https URL of the member's API server.
	ServerKey = "server"
	// CAKey has certificates in PEM. One of them must have signed the server's certificate.
	CAKey = "ca.crt"
	// TokenKey has a token of the consumer's ServiceAccount on the member. The provider renews it.
	TokenKey = "token"
)

// Reasons why a cluster is not served, or not as it should be.
const (
	ReasonServed             = "Served"
	ReasonNoCredentials      = "NoCredentials"
	ReasonCredentialsInvalid = "CredentialsInvalid"
	ReasonCredentialsRefused = "CredentialsRefused"
	ReasonNotThroughTunnel   = "NotServedThroughTheTunnel"
	ReasonNotIdentified      = "NotIdentified"
	ReasonWrongCluster       = "WrongCluster"
	ReasonUnreachable        = "Unreachable"
	ReasonNotEngaged         = "NotEngaged"
	ReasonRenewalFailed      = "RenewalFailed"
	ReasonLacksRights        = "LacksRights"
	ReasonLeaving            = "Leaving"
	ReasonUnknown            = "Unknown"
)

// faultError says why a cluster is not served. It never contains a token.
type faultError struct{ reason, message string }

func (f *faultError) Error() string { return f.message }

func faultf(reason, format string, args ...any) *faultError {
	return &faultError{reason: reason, message: fmt.Sprintf(format, args...)}
}

// connection is how the consumer reaches a member.
type connection struct{ server, ca, token string }

// String hides the token from logs.
func (c connection) String() string { return c.server }

// want is what the hub says of a member.
type want struct {
	// uid and clusterID identify the MemberCluster and the cluster. If one of them changes, it is another member.
	uid       types.UID
	clusterID string
	to        connection
}

// decide returns how to reach the member of a MemberCluster, or why it is not served. An absent object is nil.
func decide(cluster *hubv1.MemberCluster, secret *corev1.Secret, namespace string) (want, *faultError) {
	switch {
	case cluster == nil:
		return want{}, faultf(ReasonUnknown, "the hub has no MemberCluster of this name")
	case cluster.DeletionTimestamp != nil:
		return want{}, faultf(ReasonLeaving, "the MemberCluster is being deleted")
	case secret == nil && cluster.Spec.Connection.Type == hubv1.ConnectionTunnel:
		return want{}, faultf(ReasonNotThroughTunnel,
			"not served through the tunnel: if the controllers reach the cluster, make Secret %s/%s with its address", namespace, cluster.Name)
	case secret == nil:
		return want{}, faultf(ReasonNoCredentials, "no Secret %s/%s of type %s: make it with %s, %s and %s",
			namespace, cluster.Name, SecretType, ServerKey, CAKey, TokenKey)
	case cluster.Status.ClusterID == "":
		return want{}, faultf(ReasonNotIdentified, "the hub does not know the ID of the cluster yet: see the condition Ready of the MemberCluster")
	}
	to := connection{server: strings.TrimRight(string(secret.Data[ServerKey]), "/"), ca: string(secret.Data[CAKey]), token: string(secret.Data[TokenKey])}
	if f := to.check(); f != nil {
		return want{}, faultf(ReasonCredentialsInvalid, "Secret %s/%s: %s", namespace, cluster.Name, f)
	}
	return want{uid: cluster.UID, clusterID: cluster.Status.ClusterID, to: to}, nil
}

// check returns what is wrong with a connection. Tokens are only sent to a server that the provider can verify.
func (c connection) check() error {
	server, err := url.Parse(c.server)
	switch {
	case err != nil || server.Scheme != "https" || server.Hostname() == "":
		return fmt.Errorf("%s is not a URL like https://203.0.113.7:6443", ServerKey)
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return fmt.Errorf("%s has a user, a query or a fragment: write it like https://203.0.113.7:6443", ServerKey)
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(c.ca)):
		return fmt.Errorf("%s has no certificate in PEM", CAKey)
	case c.token == "":
		return fmt.Errorf("%s is empty", TokenKey)
	case strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%s has a space, a line break or another character that no token has", TokenKey)
	}
	return nil
}
