package connect

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const userAgent = "hanse-hub"

// Cluster is one connected member as consumers get it. It outlives a change of credentials; a change of address gives a
// new one. Its cache is never started, and its client reads from the server: what is watched is the consumer's to
// decide.
type Cluster struct {
	cluster.Cluster
	// Requests is for gets and writes: every request ends within 10 seconds and its answer is bounded.
	Requests *rest.Config
	// Watches is for watches and paged lists: it has no time-out, so the caller sets a deadline on each list and an idle
	// deadline on each watch.
	Watches *rest.Config
	// ID is the UID of the cluster's kube-system namespace.
	ID string
}

func newCluster(l *line, server, id string, scheme *runtime.Scheme, log logr.Logger) (*Cluster, error) {
	requests, watches := requestConfig(l, server), watchConfig(l, server)
	inner, err := cluster.New(requests, func(o *cluster.Options) {
		o.Scheme = scheme
		o.Logger = log
		o.HTTPClient = requestClient(l)
		o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			options.Cache = nil
			return client.New(config, options)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of cluster at %s: %w", server, err)
	}
	return &Cluster{Cluster: inner, Requests: requests, Watches: watches, ID: id}, nil
}

// The configs carry the line as their transport and no credentials, so that none can be read from them.
func requestConfig(l *line, server string) *rest.Config {
	config := watchConfig(l, server)
	config.Transport = l.requestTransport()
	config.Timeout = requestTimeout
	return config
}

func watchConfig(l *line, server string) *rest.Config {
	return &rest.Config{
		Host: server, Transport: l.watchTransport(), UserAgent: userAgent, QPS: -1,
		ContentConfig: rest.ContentConfig{AcceptContentTypes: asJSON, ContentType: asJSON}, // the transport refuses any other format
	}
}

func requestClient(l *line) *http.Client {
	return &http.Client{Transport: l.requestTransport(), Timeout: requestTimeout}
}

func probeClient(l *line) *http.Client {
	return &http.Client{Transport: l.probeTransport()}
}

// engagement is a cluster that was handed to the consumers, until cancel.
type engagement struct {
	cluster *Cluster
	line    *line
	cancel  context.CancelFunc
}

func (e *engagement) end() {
	e.cancel()
	e.line.close()
}
