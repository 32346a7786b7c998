package connect

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
)

const userAgent = "hanse-hub"

// Cluster is one connected member, with the client configurations for writes and watches. It stays valid when the
// credentials change. If the member's address changes, the provider makes a new Cluster.
type Cluster struct {
	// Requests is for single reads and writes: every request ends within 10 seconds, and the size of its response is
	// limited.
	Requests *rest.Config
	// Watches is for watches and paged lists. It has no timeout. The caller must set a deadline for each list, and must
	// end a watch that has delivered no event for too long.
	Watches *rest.Config
	// ID is the UID of the cluster's kube-system namespace.
	ID string
}

func newCluster(l *line, server, id string) *Cluster {
	return &Cluster{Requests: requestConfig(l, server), Watches: watchConfig(l, server), ID: id}
}

// requestConfig returns the client configuration for requests. They go through the line, which is the member's HTTP
// transport and adds the current credentials to each request.
func requestConfig(l *line, server string) *rest.Config {
	config := watchConfig(l, server)
	config.Transport = l.requestTransport()
	config.Timeout = requestTimeout
	return config
}

func watchConfig(l *line, server string) *rest.Config {
	return &rest.Config{
		Host: server, Transport: l.watchTransport(), UserAgent: userAgent, QPS: -1,
		// The HTTP transport to the member accepts only JSON, and no other format of objects.
		ContentConfig: rest.ContentConfig{AcceptContentTypes: asJSON, ContentType: asJSON},
	}
}

func requestClient(l *line) *http.Client {
	return &http.Client{Transport: l.requestTransport(), Timeout: requestTimeout}
}

func probeClient(l *line) *http.Client {
	return &http.Client{Transport: l.probeTransport()}
}

// engagement is the Cluster that the hub's controllers use at present. cancel ends the context that the controllers got
// with it.
type engagement struct {
	cluster *Cluster
	line    *line
	cancel  context.CancelFunc
}

func (e *engagement) end() {
	e.cancel()
	e.line.close()
}
