package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// nameLabel is the label with which the chart marks the pods of the hub.
	nameLabel = "app.kubernetes.io/name"
	// consolePortName is the name of the console's port in a pod.
	consolePortName = "console"
	// openWithin is how long a connection to a pod may take.
	openWithin = 30 * time.Second
)

// tunnel forwards connections to the console in a pod of the hub, through the API server. It uses one pod at a time.
type tunnel struct {
	config *rest.Config
	pods   client.Reader
	out    io.Writer // for messages about the connection
	// local is the address on this machine whose connections are forwarded to the pod. It is nil while there is no
	// connection to a pod.
	local atomic.Pointer[string]
}

// pod chooses a Ready pod of the hub that has a console. It returns the name of the pod and the port of the console.
func (t *tunnel) pod(ctx context.Context) (name string, port int32, err error) {
	var list corev1.PodList
	if err := t.pods.List(ctx, &list, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels{nameLabel: hubName}); err != nil {
		return "", 0, fmt.Errorf("looking for pods of the hub: %w", err)
	}
	if len(list.Items) == 0 {
		return "", 0, errors.New("no pod of the hub is in namespace " + hubv1.SystemNamespace +
			": if the hub runs elsewhere, open the address of its flag --console-bind-address")
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	ready := false
	for i := range list.Items {
		p := &list.Items[i]
		if !p.DeletionTimestamp.IsZero() || !podutils.IsPodReady(p) {
			continue
		}
		ready = true
		for _, container := range p.Spec.Containers {
			for _, found := range container.Ports {
				if found.Name == consolePortName {
					return p.Name, found.ContainerPort, nil
				}
			}
		}
	}
	if ready {
		return "", 0, errors.New("the hub runs without a console: set console.enabled of the chart hanse-hub")
	}
	return "", 0, fmt.Errorf("no pod of the hub is ready: see kubectl get pods -n %s -l %s=%s", hubv1.SystemNamespace, nameLabel, hubName)
}

// open connects to a pod. When the connection ends, the channel gets the error.
func (t *tunnel) open(ctx context.Context, pod string, port int32) (<-chan error, error) {
	dialer, err := t.dialer(pod)
	if err != nil {
		return nil, fmt.Errorf("connecting to pod %s: %w", pod, err)
	}
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("connecting to pod %s: %w", pod, err)
	}
	fmt.Fprintf(t.out, "Connecting to pod %s/%s, for at most %s\n", hubv1.SystemNamespace, pod, openWithin)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return nil, fmt.Errorf("connecting to pod %s: %w", pod, err)
	case <-ctx.Done():
		close(stop)
		return nil, ctx.Err()
	case <-time.After(openWithin):
		close(stop)
		return nil, fmt.Errorf("connecting to pod %s: no answer within %s", pod, openWithin)
	}
	context.AfterFunc(ctx, func() { close(stop) })
	ports, err := forwarder.GetPorts()
	if err != nil {
		return nil, fmt.Errorf("connecting to pod %s: %w", pod, err)
	}
	local := fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
	t.local.Store(&local)
	return ended, nil
}

// dialer returns a dialer that connects to a pod by websockets. If the API server or a proxy does not support
// websockets, the dialer uses SPDY.
func (t *tunnel) dialer(pod string) (httpstream.Dialer, error) {
	to, _, err := rest.DefaultServerUrlFor(t.config)
	if err != nil {
		return nil, err
	}
	to = to.JoinPath("api", "v1", "namespaces", hubv1.SystemNamespace, "pods", pod, "portforward")
	transport, upgrader, err := spdy.RoundTripperFor(t.config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, t.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// keep connects to a pod again each time the connection ends, until ctx ends.
func (t *tunnel) keep(ctx context.Context, ended <-chan error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		t.local.Store(nil)
		if ctx.Err() == nil {
			fmt.Fprintln(t.out, "The connection to the pod has ended")
		}
		for ended = nil; ended == nil; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookEvery):
			}
			pod, port, err := t.pod(ctx)
			if err == nil {
				ended, err = t.open(ctx, pod, port)
			}
			if err != nil {
				fmt.Fprintf(t.out, "warning: %v\n", err)
			} else {
				fmt.Fprintln(t.out, "Connected again")
			}
		}
	}
}

var errNoConnection = errors.New("no pod of the hub is connected")

// transport sends requests through the tunnel to the pod. It does not check the certificate of the pod, because few
// users may read its CA. The connection is safe nevertheless: hansectl checks the certificate of the API server, and
// the API server connects only to this pod.
func (t *tunnel) transport() http.RoundTripper {
	return &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
		TLSHandshakeTimeout: openWithin,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			local := t.local.Load()
			if local == nil {
				return nil, errNoConnection
			}
			var d net.Dialer
			return d.DialContext(ctx, network, *local)
		},
	}
}
