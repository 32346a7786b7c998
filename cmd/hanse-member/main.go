// Command hanse-member is the agent of a member that the hub does not reach: it connects to the hub, and passes the
// hub's requests on to the API server of its cluster.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/hanse-dev/hanse/member/agent"
	"github.com/hanse-dev/hanse/member/handshake"
)

// version is the version of the agent. The build sets it.
var version = "unknown"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hanse-member:", err)
		os.Exit(1)
	}
}

// settings are the flags of the command.
type settings struct {
	name, hub, hubKeys, keyFile, keySecret, joinToken, probes string
}

// addTo adds the flags to a set.
func (s *settings) addTo(f *flag.FlagSet) {
	f.StringVar(&s.name, "name", "", "Name of the MemberCluster of this cluster on the hub. Required.")
	f.StringVar(&s.hub, "hub", "", "Host and port at which the hub listens for agents, such as hub.example.com:8446. Required.")
	f.StringVar(&s.hubKeys, "hub-key", "",
		"Fingerprint of the hub's key, as hansectl join NAME --tunnel prints it; a comma separates the present and the next one. Required.")
	f.StringVar(&s.keyFile, "key-file", "", "File with the private key of this agent, in PEM. Required without --key-secret.")
	f.StringVar(&s.keySecret, "key-secret", "", "Secret in the namespace hanse-system with the private key of this agent, which makes it if it does not exist. "+
		"The requests of the hub then have tokens of the ServiceAccount hanse, which are bound to this Secret.")
	f.StringVar(&s.joinToken, "join-token-file", "", "File with the token of hansectl join NAME --tunnel. With it, the agent asks for the approval of its key while the hub does not know the key. "+
		"The file may be missing.")
	f.StringVar(&s.probes, "health-probe-bind-address", "0", "Address of the probe /readyz, which succeeds while the agent is connected to the hub. 0 turns it off.")
}

func run() error {
	var s settings
	s.addTo(flag.CommandLine)
	makeKey := flag.Bool("make-key", false, "Write a new key to --key-file, if the file does not exist, print the fingerprint of the key, and exit.")
	showVersion := flag.Bool("version", false, "Print the version and exit.")
	logs := zap.Options{TimeEncoder: zapcore.RFC3339NanoTimeEncoder}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	switch {
	case *showVersion:
		fmt.Println(version)
		return nil
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *makeKey:
		return makeKeyFile(os.Stdout, s.keyFile)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server of this cluster: %w", err)
	}
	return connect(signals.SetupSignalHandler(), config, s)
}

// connect connects the cluster of config to the hub until ctx ends.
func connect(ctx context.Context, config *rest.Config, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	certificate, config, err := s.identity(ctx, config)
	if err != nil {
		return err
	}
	server, transport, err := apiServer(config)
	if err != nil {
		return err
	}
	logger := ctrl.Log.WithName("agent")
	logger.Info("Connecting to the hub", "name", s.name, "hub", s.hub, "fingerprint", handshake.Fingerprint(certificate.Leaf), "server", server.Host, "version", version)
	join, err := s.join(server, transport)
	if err != nil {
		return err
	}
	proxy, err := s.proxy()
	if err != nil {
		return err
	}
	connection := agent.New(agent.Options{
		Name: s.name, Hub: s.hub, Proxy: proxy, HubKeys: strings.Split(s.hubKeys, ","), Certificate: certificate,
		Server: server, Transport: transport, Join: join, Instance: rand.Text(), Logger: logger,
	})
	end, err := serveProbe(s.probes, connection.Ready)
	if err != nil {
		return err
	}
	defer end()
	connection.Run(ctx)
	return nil
}

// proxy returns the proxy to the hub that the environment variables HTTPS_PROXY and NO_PROXY name, or nil.
func (s settings) proxy() (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: s.hub}})
	if err != nil {
		return nil, fmt.Errorf("HTTPS_PROXY is %w: want http://HOST:PORT", errFlag) // the parser's text may have a password
	}
	return proxy, nil
}

// serveProbe answers /readyz at an address, until the returned function is called.
func serveProbe(address string, ready func() bool) (end func(), err error) {
	if address == "0" || address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not connected to the hub", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadTimeout: probeTimeout, WriteTimeout: probeTimeout, MaxHeaderBytes: 8 << 10}
	go func() { _ = server.Serve(listener) }() // it ends with end
	return func() { _ = server.Close() }, nil
}

const probeTimeout = 5 * time.Second

// identity returns the certificate with the agent's key, and the credentials for the requests of the hub.
func (s settings) identity(ctx context.Context, config *rest.Config) (tls.Certificate, *rest.Config, error) {
	if s.keySecret != "" {
		return fromSecret(ctx, config, s.keySecret)
	}
	pem, err := os.ReadFile(s.keyFile)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("reading --key-file: %w", err)
	}
	certificate, err := handshake.Certificate(pem)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("--key-file %s: %w", s.keyFile, err)
	}
	return certificate, config, nil
}

var errFlag = errors.New("not possible")

// check returns an error for a flag that is missing or wrong.
func (s settings) check() error {
	if faults := validation.IsDNS1123Label(s.name); len(faults) > 0 {
		return fmt.Errorf("--name %q: %w: %s", s.name, errFlag, faults[0])
	}
	_, port, err := net.SplitHostPort(s.hub)
	if _, fault := strconv.ParseUint(port, 10, 16); err != nil || fault != nil {
		return fmt.Errorf("--hub %q: %w: want host:port", s.hub, errFlag)
	}
	for key := range strings.SplitSeq(s.hubKeys, ",") {
		if !handshake.IsFingerprint(key) {
			return fmt.Errorf("--hub-key %q: %w: want SHA256: and 43 characters", s.hubKeys, errFlag)
		}
	}
	if (s.keyFile == "") == (s.keySecret == "") {
		return fmt.Errorf("--key-file %q with --key-secret %q: %w: want one of them; hanse-member --make-key --key-file FILE writes a file", s.keyFile, s.keySecret, errFlag)
	}
	return nil
}

// apiServer returns the address of the API server, and the transport that adds the credentials of the agent.
func apiServer(config *rest.Config) (*url.URL, http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // answers pass as they are
	if config.Proxy == nil {         // HTTPS_PROXY is for the hub only
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	if server.Scheme != "https" {
		return nil, nil, fmt.Errorf("the API server %s is %w: credentials are only sent over TLS", server.Host, errFlag)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client of the API server: %w", err)
	}
	return &url.URL{Scheme: server.Scheme, Host: server.Host, Path: strings.TrimSuffix(server.Path, "/")}, transport, nil
}

// makeKeyFile writes a new key to the file, unless it exists, and prints the fingerprint of the key in it.
func makeKeyFile(out io.Writer, file string) error {
	if file == "" {
		return fmt.Errorf("--make-key is %w without --key-file", errFlag)
	}
	pem, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if pem, err = handshake.NewKey(); err == nil {
			err = os.WriteFile(file, pem, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("making the key: %w", err)
	}
	certificate, err := handshake.Certificate(pem)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintln(out, handshake.Fingerprint(certificate.Leaf))
	return nil
}
