package connect

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/internal/answer"
)

const userAgent = "hanse-hub"

// Cluster is one connected member, with the client configurations for writes, reads and watches. It stays valid when
// the credentials change. If the member's address changes, the provider makes a new Cluster.
type Cluster struct {
	// Requests is for single reads and writes: every request ends within 10 seconds, and the size of its response is
	// limited.
	Requests *rest.Config
	// Reads is for lists, discovery, schemas, views and logs. It has the limits of Requests, and connections of its own:
	// large answers, or answers that never end, do not delay writes and watches.
	Reads *rest.Config
	// Watches is for watches and paged lists. It has no timeout. The caller must set a deadline for each list, and must
	// end a watch that has delivered no event for too long.
	Watches *rest.Config
	// Retained limits the memory of the data that the hub keeps of the cluster.
	Retained *answer.Retained
	// ID is the UID of the cluster's kube-system namespace.
	ID string
}

func newCluster(l *line, server, id string) *Cluster {
	return &Cluster{Requests: limitedConfig(l.requestTransport(), l, server), Reads: limitedConfig(l.readTransport(), l, server), Watches: watchConfig(l, server), Retained: l.retained, ID: id}
}

// limitedConfig returns the client configuration for requests with a timeout. They go through the line, which is the
// member's HTTP transport and adds the current credentials to each request.
func limitedConfig(transport http.RoundTripper, l *line, server string) *rest.Config {
	config := watchConfig(l, server)
	config.Transport = transport
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

func readClient(l *line) *http.Client {
	return &http.Client{Transport: l.readTransport(), Timeout: requestTimeout}
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
