// Package control is the interface between the lab's commands and the supervisor of a running lab.
//
// The commands and the supervisor of a lab use HTTP over a unix socket in the lab's folder. The socket is opened
// through /proc/self/fd, because the path of the folder may be longer than a socket address can be.
package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/hanse-dev/hanse/lab/faultproxy"
	"github.com/hanse-dev/hanse/lab/topology"
)

// ErrNotRunning means that no supervisor answers in the lab's folder.
var ErrNotRunning = errors.New("no lab is running")

// The HTTP paths of the control API, by which commands send requests to the supervisor of a lab.
const (
	StatusPath = "/status"
	UpPath     = "/up"
	RemovePath = "/remove"
	SignalPath = "/signal"
	FaultPath  = "/fault"
	LoadPath   = "/load"
	RunPath    = "/run"
	DownPath   = "/down"
)

// Up is the request to start clusters. It does not change running clusters.
type Up struct {
	Topology topology.Topology `json:"topology"`
	Bin      string            `json:"bin"`
	Stages   []string          `json:"stages"`
}

// Progress is one line of the response to an Up. The last line may contain an error.
type Progress struct {
	Line  string `json:"line,omitempty"`
	Error string `json:"error,omitempty"`
}

// Remove is the request to stop a cluster and delete all its data, or to stop an extra process.
type Remove struct {
	Name string `json:"name"`
}

// Signal is the request for an action on a component of a cluster, or on an extra process.
type Signal struct {
	Name      string `json:"name"`
	Component string `json:"component,omitempty"`
	Action    Action `json:"action"`
}

// Action is what a Signal does to a process.
type Action string

// The actions.
const (
	Kill   Action = "kill"
	Start  Action = "start"
	Pause  Action = "pause"
	Resume Action = "resume"
)

// Fault is the request to set the fault of a cluster's proxy.
type Fault struct {
	Name  string           `json:"name"`
	Fault faultproxy.Fault `json:"fault"`
}

// Load is the request to import images into the real node of a cluster. Each image is the path of an archive, or the
// name of an operator of the lab.
type Load struct {
	Name   string   `json:"name"`
	Images []string `json:"images"`
}

// Run is the request to start an extra process. This process belongs to no cluster and ends with the lab.
type Run struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir"`
}

// Down is the request to end the lab. Unless Keep is true, all files in its folder are deleted.
type Down struct {
	Keep bool `json:"keep,omitempty"`
}

// Status is what `lab status -o json` prints.
type Status struct {
	Dir        string      `json:"dir"`
	Bin        string      `json:"bin"`
	Supervisor int         `json:"supervisor"` // process id of the supervisor
	Busy       bool        `json:"busy"`       // true while clusters are started or removed
	Clusters   []Cluster   `json:"clusters"`
	Etcds      []Etcd      `json:"etcds"`
	Extra      []Component `json:"extra,omitempty"`
}

// Cluster is the state of one cluster in a Status.
type Cluster struct {
	Name            string      `json:"name"`
	Hub             bool        `json:"hub"`
	Region          string      `json:"region,omitempty"`
	Zones           []string    `json:"zones,omitempty"`
	Nodes           int         `json:"nodes"`
	Ready           bool        `json:"ready"` // true if the API server's /readyz reports ready now
	Server          string      `json:"server"`
	ProxyServer     string      `json:"proxyServer"`
	Kubeconfig      string      `json:"kubeconfig"`
	ProxyKubeconfig string      `json:"proxyKubeconfig"`
	CAFile          string      `json:"caFile"`
	AuditLog        string      `json:"auditLog"`
	Etcd            string      `json:"etcd"`
	EtcdPrefix      string      `json:"etcdPrefix"`
	Fault           string      `json:"fault"`
	Components      []Component `json:"components"`
}

// Component is the state of one process.
type Component struct {
	Name   string `json:"name"`
	PID    int    `json:"pid,omitempty"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // how the process ended, or what it waits for
	Log    string `json:"log"`
}

// Etcd is the state of one etcd. Its metrics can be read without a certificate.
type Etcd struct {
	Name       string `json:"name"`
	ClientURL  string `json:"clientURL"`
	MetricsURL string `json:"metricsURL"`
	CAFile     string `json:"caFile"`
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	Component
}

// Listen opens the control socket in a lab's folder. It replaces a socket that an ended supervisor left behind.
func Listen(dir string) (net.Listener, error) {
	folder, path, err := socket(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replacing the control socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err == nil {
		listener.(*net.UnixListener).SetUnlinkOnClose(false) // the path is valid only while the folder is open
	}
	return listener, err
}

// socket returns a short path of the control socket. The path is valid while the returned folder is open.
func socket(dir string) (folder *os.File, path string, err error) {
	if folder, err = os.Open(dir); err != nil {
		return nil, "", err
	}
	return folder, fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), SocketName), nil
}

// SocketName is the file name of the control socket.
const SocketName = "control.sock"

// Client sends requests to the supervisor of one lab.
type Client struct {
	dir  string
	http http.Client
}

// NewClient returns a client for the lab in dir.
func NewClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		folder, path, err := socket(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = folder.Close() }()
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{dir: dir, http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Status returns the state of the lab.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	res, err := c.post(ctx, StatusPath, struct{}{})
	if err != nil {
		return status, err
	}
	defer func() { _ = res.Body.Close() }()
	return status, json.NewDecoder(res.Body).Decode(&status)
}

// Do sends a request and returns when the supervisor has carried it out.
func (c *Client) Do(ctx context.Context, path string, request any) error {
	res, err := c.post(ctx, path, request)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Follow sends a request and prints the progress that the supervisor reports until it is done.
func (c *Client) Follow(ctx context.Context, path string, request any, out io.Writer) error {
	res, err := c.post(ctx, path, request)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return fmt.Errorf("reading the supervisor's progress: %w", err)
		}
		if p.Error != "" {
			return errors.New(p.Error)
		}
		fmt.Fprintln(out, p.Line)
	}
	return lines.Err()
}

func (c *Client) post(ctx context.Context, path string, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if unreachable := (*net.OpError)(nil); errors.As(err, &unreachable) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNotRunning, c.dir)
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		message, _ := io.ReadAll(res.Body) // without a body, the status code still tells that the request failed
		return nil, errors.New(string(bytes.TrimSpace(message)))
	}
	return res, nil
}
