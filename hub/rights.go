package hub

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/hub/grants"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member/read"
)

// addGrants lets the hub notice within two seconds that it may do what its own API server, or that of a member, has
// refused.
func (p *parts) addGrants() error {
	config := rest.CopyConfig(p.process.mgr.GetConfig())
	config.Timeout = answer.Timeout
	client, err := informer.NewClient(config)
	if err != nil {
		return fmt.Errorf("making the client that asks for the rights of the hub: %w", err)
	}
	own := grants.Server{
		Refused: func() []string {
			out := p.controllers.reporter.Refused()
			if len(p.knowledge.store.Forbidden()) > 0 {
				out = append(out, "")
			}
			return out
		},
		Rights: func(ctx context.Context, namespace string) (string, error) {
			return read.Rights(ctx, client, namespace)
		},
		Again: func() {
			p.knowledge.store.RetryForbidden()
			p.controllers.reporter.TryRefused()
		},
	}
	return p.process.mgr.Add(&grants.Watch{Servers: func() map[string]grants.Server {
		servers := map[string]grants.Server{"": own} // no member has an empty name
		p.fleet.each(func(m *memberCluster) { servers[m.name] = p.grantsOn(m) })
		return servers
	}})
}

// grantsOn returns the member as a server that may refuse requests of the hub.
func (p *parts) grantsOn(m *memberCluster) grants.Server {
	return grants.Server{
		Refused: func() []string {
			out := p.controllers.dispatcher.Refused(m.name)
			if len(m.Forbidden()) > 0 {
				out = append(out, "")
			}
			return out
		},
		Rights: m.Finder.Rights,
		Again: func() {
			for _, kind := range m.Forbidden() {
				m.Retry(kind)
			}
			p.controllers.dispatcher.TryRefused(m.name)
		},
	}
}
