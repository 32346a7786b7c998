package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const maxQuoted = 200 // maximum bytes of a server's text in a message

// verdict describes a failed probe. The same fault always gives the same text, without ports and times. Otherwise each
// failed probe would change the status of the MemberCluster.
type verdict struct {
	reason, message string
	atOnce          bool // one probe with this fault suffices to end the link
	answered        bool // the cluster sent a response
	// credentials is True if the cluster accepted the hub's credentials, False if it refused them, and empty if it did not
	// check them.
	credentials metav1.ConditionStatus
	retryAfter  time.Duration
}

// judge converts the error of a probe to a verdict. Its message says what the user can do.
func judge(err error, to member.Connection, timeout time.Duration) verdict {
	var status *statusError
	switch {
	case to.Lanes != nil:
		return judgeLanes(err, to, timeout)
	case errors.As(err, &status):
		return judgeStatus(status, to)
	case errors.Is(err, errStalled):
		return verdict{reason: hubv1.ReasonWatchesStalled, answered: true, credentials: metav1.ConditionTrue,
			message: fmt.Sprintf("%s answers requests, but a watch delivered nothing within %s: look for a proxy or load balancer in between that buffers streams, or for an overloaded API server", to.Server, timeout)}
	case errors.Is(err, errRedirect), errors.Is(err, errStrange):
		return verdict{reason: hubv1.ReasonUnreachable, answered: true,
			message: fmt.Sprintf("%s does not answer like a Kubernetes API server: check the server of the kubeconfig", to.Server)}
	case isCertificateError(err):
		return verdict{reason: hubv1.ReasonCertificateUnknown, atOnce: true,
			message: fmt.Sprintf("the certificate of %s is not trusted (%s); expected one for %s signed by %s: put the cluster's CA into certificate-authority-data, or correct the server",
				to.Server, quoted(certificateError(err), to), expectedName(to), expectedCA(to))}
	case isCertificateRefused(err):
		return verdict{reason: hubv1.ReasonUnauthorized, atOnce: true, answered: true, credentials: metav1.ConditionFalse,
			message: fmt.Sprintf("%s does not accept the client certificate: put a valid one into the Secret; the hub uses it without a restart", to.Server)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return verdict{reason: hubv1.ReasonUnreachable, atOnce: true,
			message: fmt.Sprintf("%s refuses connections: check that its API server runs and listens there", to.Server)}
	case isTimeout(err):
		return verdict{reason: hubv1.ReasonUnreachable,
			message: fmt.Sprintf("%s does not answer within %s: check the address, the network in between and that its API server runs", to.Server, timeout)}
	}
	return verdict{reason: hubv1.ReasonUnreachable,
		message: fmt.Sprintf("%s cannot be reached (%s): check the address, the network in between and that its API server runs", to.Server, quoted(rootCause(err), to))}
}

func judgeStatus(status *statusError, to member.Connection) verdict {
	text := quoted(status.Error(), to)
	switch status.code {
	case http.StatusUnauthorized:
		return verdict{reason: hubv1.ReasonUnauthorized, atOnce: true, answered: true, credentials: metav1.ConditionFalse,
			message: fmt.Sprintf("%s does not accept the credentials of the kubeconfig: its token or client certificate is wrong, expired or revoked; run hansectl rotate NAME --member-kubeconfig FILE, or put a current one into the Secret", to.Server)}
	case http.StatusForbidden:
		return verdict{reason: hubv1.ReasonForbidden, answered: true, credentials: metav1.ConditionTrue,
			message: fmt.Sprintf("%s does not let the hub watch namespaces: install the chart hanse-member there, or grant get and watch on namespaces (%s)", to.Server, text)}
	case http.StatusTooManyRequests:
		return verdict{reason: hubv1.ReasonThrottled, answered: true, retryAfter: status.retryAfter,
			message: fmt.Sprintf("%s is too busy for a watch (429): the hub slows down and tries again; look at the load and the flow control of its API server", to.Server)}
	}
	return verdict{reason: hubv1.ReasonUnreachable, answered: true, retryAfter: status.retryAfter,
		message: fmt.Sprintf("%s answers with an error (%s): check that the address is that of a Kubernetes API server and that it is healthy", to.Server, text)}
}

// judgeLanes is judge for a cluster whose agent connects to the hub.
func judgeLanes(err error, to member.Connection, timeout time.Duration) verdict {
	var status *statusError
	switch {
	case errors.Is(err, member.ErrNoKey):
		return verdict{reason: hubv1.ReasonPendingApproval, atOnce: true, credentials: metav1.ConditionFalse,
			message: "spec.connection.tunnel.keys is empty: the hub accepts no agent. Compare the fingerprint that the agent prints when it starts, and set it there"}
	case errors.Is(err, member.ErrAgentAway):
		return verdict{reason: hubv1.ReasonAgentAway,
			message: "no agent with a key of spec.connection.tunnel.keys is connected: look at the log of hanse-member on the cluster, which says why it does not reach the hub"}
	case errors.As(err, &status):
		return judgeAgentStatus(status, to)
	case errors.Is(err, errStalled):
		return verdict{reason: hubv1.ReasonWatchesStalled, answered: true, credentials: metav1.ConditionTrue,
			message: fmt.Sprintf("the agent answers requests, but a watch delivered nothing within %s: look for an overloaded API server behind it", timeout)}
	case errors.Is(err, errRedirect), errors.Is(err, errStrange):
		return verdict{reason: hubv1.ReasonUnreachable, answered: true, message: "the server behind the agent does not answer like a Kubernetes API server: check the kubeconfig of hanse-member"}
	case isTimeout(err):
		return verdict{reason: hubv1.ReasonUnreachable,
			message: fmt.Sprintf("the agent is connected, but does not answer within %s: look at its log and at the API server behind it", timeout)}
	}
	return verdict{reason: hubv1.ReasonAgentAway, message: fmt.Sprintf("the connection of the agent ended (%s): look at the log of hanse-member on the cluster", quoted(rootCause(err), to))}
}

func judgeAgentStatus(status *statusError, to member.Connection) verdict {
	text := quoted(status.Error(), to)
	switch status.code {
	case http.StatusUnauthorized:
		return verdict{reason: hubv1.ReasonUnauthorized, atOnce: true, answered: true, credentials: metav1.ConditionFalse,
			message: "the cluster does not accept the credentials of its agent: check the kubeconfig or the ServiceAccount of hanse-member"}
	case http.StatusForbidden:
		return verdict{reason: hubv1.ReasonForbidden, answered: true, credentials: metav1.ConditionTrue,
			message: fmt.Sprintf("the account of the agent may not watch namespaces: install the chart hanse-member on the cluster, or grant get and watch on namespaces (%s)", text)}
	case http.StatusTooManyRequests:
		return verdict{reason: hubv1.ReasonThrottled, answered: true, retryAfter: status.retryAfter,
			message: "the cluster is too busy for a watch (429): the hub slows down and tries again; look at the load and the flow control of its API server"}
	}
	return verdict{reason: hubv1.ReasonUnreachable, answered: true, retryAfter: status.retryAfter,
		message: fmt.Sprintf("the agent is connected, but its API server does not answer requests (%s): look at the log of hanse-member and at the API server", text)}
}

// anotherCluster returns the verdict on a cluster whose ID is not the expected one.
func anotherCluster(to member.Connection, found, expected string) verdict {
	return verdict{reason: hubv1.ReasonIdentityChanged, atOnce: true, answered: true, credentials: metav1.ConditionTrue,
		message: fmt.Sprintf("%s is another cluster than before (UID of kube-system %s, expected %s): nothing is read from it or written to it. Make the Secret point to the cluster that joined, or delete this MemberCluster (the objects on its cluster stay by default) and join the other one under a new name",
			to.Server, printable(found), printable(expected))}
}

// claimsToBeTheHub returns the verdict on a cluster that has the hub's ID, although its MemberCluster does not expect
// this ID.
func claimsToBeTheHub(to member.Connection) verdict {
	return verdict{reason: hubv1.ReasonClusterIDClaimed, atOnce: true, answered: true, credentials: metav1.ConditionTrue,
		message: fmt.Sprintf("%s answers with the identity of the hub (the UID of its kube-system): nothing is read from it or written to it. If it is the hub itself, set spec.hub: true; else look for a hostile server, or for a copy of the hub's etcd", to.Server)}
}

// notTheHub returns the verdict on a cluster that does not have the hub's ID, although its MemberCluster expects this
// ID.
func notTheHub(to member.Connection, found string) verdict {
	return verdict{reason: hubv1.ReasonIdentityChanged, atOnce: true, answered: true, credentials: metav1.ConditionTrue,
		message: fmt.Sprintf("%s is not the hub, although spec.hub is true (UID of kube-system %s): nothing is read from it or written to it. Set spec.hub: false, or make the Secret point to the hub",
			to.Server, printable(found))}
}

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var bad x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &bad)
}

// certificateError describes the error of a certificate, without texts that differ each time, such as the current time.
func certificateError(err error) string {
	var bad x509.CertificateInvalidError
	var hostname x509.HostnameError
	switch {
	case errors.As(err, &hostname):
		return "it is for another name"
	case errors.As(err, &bad) && bad.Reason == x509.Expired:
		return "it has expired or is not yet valid"
	case errors.As(err, &bad):
		return bad.Error()
	}
	return "it is signed by an unknown authority"
}

// isCertificateRefused reports whether the server ended the TLS handshake because it does not accept the hub's client
// certificate.
func isCertificateRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}

// rootCause returns the text of the innermost error in err. It leaves out the URL, which the message names elsewhere,
// and the local port, which differs each time.
func rootCause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return err.Error()
}

// quoted prepares the text of a server's answer for a message. It removes the token of the hub from the text, because a
// hostile server may send the token back.
func quoted(text string, to member.Connection) string {
	if to.Credentials.Token != "" {
		text = strings.ReplaceAll(text, to.Credentials.Token, "[token]")
	}
	return printable(text)
}

// printable replaces characters that cannot be printed, and cuts the text.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return hubv1.CutMessage(text, maxQuoted)
}

func expectedName(to member.Connection) string {
	if to.ServerName != "" {
		return to.ServerName
	}
	server, err := url.Parse(to.Server)
	if err != nil {
		return to.Server
	}
	return server.Hostname()
}

func expectedCA(to member.Connection) string {
	block, _ := pem.Decode([]byte(to.CA))
	if block == nil {
		return "the CA of the kubeconfig"
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "the CA of the kubeconfig"
	}
	return fmt.Sprintf("%q", printable(ca.Subject.String()))
}
