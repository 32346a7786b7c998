package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hubPod creates a pod of the hub on a node.
func hubPod(t *testing.T, name, node string, ready bool, ports ...corev1.ContainerPort) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name, Labels: map[string]string{nameLabel: hubName}},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64), Containers: []corev1.Container{{Name: "hub", Image: "hub", Ports: ports}}},
	}
	apply(t, onHub, p)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}}
	must(t, onHub.Status().Update(t.Context(), p))
	return p
}

var consolePort = corev1.ContainerPort{Name: "console", ContainerPort: 8445}

func TestTheDashboardNamesTheFault(t *testing.T) {
	fresh(t)
	apply(t, onHub, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "viewer"}})
	_, err := hansectl(t, "dashboard", "--service-account", "viewer")
	refused(t, err, `--service-account "viewer": want NAMESPACE/NAME`, "see 'hansectl dashboard --help'")
	exits(t, err, 2)
	_, err = hansectl(t, "dashboard", "--port", "70000")
	refused(t, err, "--port 70000: want 0 to 65535")
	_, err = hansectl(t, "dashboard", "--no-token", "--service-account", "default/viewer")
	refused(t, err, "exclude each other")

	_, err = hansectl(t, "dashboard")
	refused(t, err, "no pod of the hub is in namespace hanse-system", "--console-bind-address")
	hubPod(t, "hanse-hub-a", "", false, consolePort)
	_, err = hansectl(t, "dashboard")
	refused(t, err, "no pod of the hub is ready: see kubectl get pods -n hanse-system -l app.kubernetes.io/name=hanse-hub")
	hubPod(t, "hanse-hub-b", "", true, corev1.ContainerPort{Name: "metrics", ContainerPort: 8443})
	_, err = hansectl(t, "dashboard")
	refused(t, err, "set console.enabled of the chart hanse-hub")
	hubPod(t, "hanse-hub-c", "", true, consolePort)
	_, err = hansectl(t, "dashboard")
	refused(t, err, "your kubeconfig has no bearer token", "pass --service-account NAMESPACE/NAME, or --no-token")
	_, err = hansectl(t, "dashboard", "--service-account", "default/nobody")
	refused(t, err, `requesting a token of ServiceAccount default/nobody: serviceaccounts "nobody" not found`)

	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	_, err = hansectl(t, "dashboard", "--no-token", "--port", fmt.Sprint(taken.Addr().(*net.TCPAddr).Port))
	refused(t, err, "listening for your browser", "address already in use")
	out, err := hansectl(t, "dashboard", "--service-account", "default/viewer")
	refused(t, err, "connecting to pod hanse-hub-c", "does not have a host assigned")
	wants(t, out, "Connecting to pod hanse-system/hanse-hub-c, for at most 30s")
}

func TestTheDashboardNamesTheRightThatIsMissing(t *testing.T) {
	fresh(t)
	hubPod(t, "hanse-hub-a", "", true, consolePort)
	name := metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "pods-of-the-dashboard"}
	_, err := hansectl(t, "dashboard", "--no-token", "--as", "jane")
	refused(t, err, `looking for pods of the hub: pods is forbidden: User "jane" cannot list resource "pods"`)
	apply(t, onHub, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}})
	apply(t, onHub, &rbacv1.RoleBinding{
		ObjectMeta: name, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "jane"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
	})
	must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: hubv1.SystemNamespace, Verb: "list", Resource: "pods",
		}}}
		return onHub.Create(ctx, review) == nil && review.Status.Allowed, nil
	}))
	_, err = hansectl(t, "dashboard", "--as", "jane")
	refused(t, err, "does not belong to the impersonated user", "--service-account NAMESPACE/NAME, or --no-token")
	_, err = hansectl(t, "dashboard", "--no-token", "--as", "jane")
	refused(t, err, "connecting to pod hanse-hub-a", `User "jane" cannot create resource "pods/portforward"`)
}

// kubelet forwards the ports of pods to addresses of this machine. The API server uses it as the kubelet of a node.
type kubelet struct {
	*testing.T
	node string

	mu          sync.Mutex
	pods        map[string]string // addresses of pods, by pod name
	connections map[string]httpstream.Connection
}

func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	k := &kubelet{T: t, node: "node-of-the-dashboard", pods: map[string]string{}, connections: map[string]httpstream.Connection{}}
	server := httptest.NewTLSServer(http.HandlerFunc(k.forward))
	t.Cleanup(server.Close)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	apply(t, onHub, node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(server.Listener.Addr().(*net.TCPAddr).Port)
	must(t, onHub.Status().Update(t.Context(), node))
	return k
}

// runs makes the pod serve at an address.
func (k *kubelet) runs(pod, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[pod] = address
}

// cut ends the connection to a pod.
func (k *kubelet) cut(pod string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	must(k.T, k.connections[pod].Close())
}

func (k *kubelet) forward(w http.ResponseWriter, r *http.Request) {
	pod := path.Base(r.URL.Path)
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		k.Errorf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	streams := make(chan httpstream.Stream, 100)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	k.mu.Lock()
	address := k.pods[pod]
	k.connections[pod] = connection
	k.mu.Unlock()
	faults := map[string]httpstream.Stream{} // error streams, by request ID
	for {
		select {
		case <-connection.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				faults[id] = s
				continue
			}
			if port := s.Headers().Get(corev1.PortHeader); port != fmt.Sprint(consolePort.ContainerPort) {
				k.Errorf("port %s is forwarded", port)
			}
			go connectStream(s, faults[id], address)
		}
	}
}

// connectStream connects the stream to an address.
func connectStream(data, fault httpstream.Stream, address string) {
	defer fault.Close()
	defer data.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		_, _ = io.WriteString(fault, err.Error())
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, data)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(data, to)
}

// linesOf collects the output of a command, and signals each write.
type linesOf struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (l *linesOf) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// find waits until the output matches, and returns the groups of the match.
func (l *linesOf) find(t *testing.T, pattern string) []string {
	t.Helper()
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
			return found
		}
		select {
		case <-l.changed:
		case <-t.Context().Done():
			t.Fatalf("no %q in:\n%s", pattern, text)
		}
	}
}

func TestTheDashboardLeadsToAPodOfTheHubAndToTheNextOneAfterIt(t *testing.T) {
	fresh(t)
	console := playedConsole(t)
	k := newKubelet(t)
	first := hubPod(t, "hanse-hub-1", k.node, true, consolePort)
	k.runs(first.Name, console.Listener.Addr().String())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "viewer"}}
	apply(t, onHub, account)

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, ended := &linesOf{changed: make(chan struct{}, 1)}, make(chan error, 1)
	root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	root.SetArgs([]string{"dashboard", "--service-account", "default/viewer", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir()})
	go func() { ended <- root.ExecuteContext(ctx) }()

	base := out.find(t, `The console is at (http://127\.0\.0\.1:\d+) until you press Ctrl-C`)[1]
	token := out.find(t, `ServiceAccount default/viewer, which is valid until \S+:\n\n(\S+)\n`)[1]
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	must(t, onHub.Create(t.Context(), review))
	if review.Status.User.Username != "system:serviceaccount:default:viewer" {
		t.Errorf("the token is of %+v", review.Status)
	}
	if got := send(t, http.DefaultClient, http.MethodGet, base, nil); got.status != http.StatusOK {
		t.Fatalf("got %d: %s", got.status, got.text)
	}

	second := hubPod(t, "hanse-hub-2", k.node, true, consolePort)
	k.runs(second.Name, console.Listener.Addr().String())
	must(t, onHub.Delete(t.Context(), first))
	k.cut(first.Name)
	out.find(t, "The connection to the pod has ended\nConnecting to pod hanse-system/hanse-hub-2, for at most 30s\nConnected again\n")
	if got := send(t, http.DefaultClient, http.MethodGet, base, nil); got.status != http.StatusOK {
		t.Errorf("from the next pod: %d: %s", got.status, got.text)
	}
	interrupt()
	must(t, <-ended)
}
