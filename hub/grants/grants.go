// Package grants notices when an API server gives the hub rights that it lacked. No event tells the hub about such a
// change. So while an API server refuses requests of the hub, this package asks for the hub's rights every AskEvery.
// If they changed, the refused requests are made again at once.
//
// It asks with a SelfSubjectRulesReview, which every account may create. Thus the hub needs no right to read roles, and
// it does not matter which role or binding gave the right. The hub's tries after its usual pauses stay, because an
// authorizer other than RBAC may not list its rules.
package grants

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// AskEvery is the pause between two questions to an API server that refuses requests.
	AskEvery = time.Second
	// answerWithin is how long the hub waits for an answer.
	answerWithin = 5 * time.Second
	// asksAtOnce is the maximum number of concurrent questions.
	asksAtOnce = 16
	// asksPerSecond bounds the questions to all API servers. If more servers refuse requests, each is asked more rarely.
	asksPerSecond = 100
	// maxNamespaces is the maximum number of namespaces of a server for which its rules are asked.
	maxNamespaces = 8
)

// Server is one API server that may refuse requests of the hub: that of the hub, or that of a member.
type Server struct {
	// Refused returns the namespaces of the requests that the server refuses for lack of a right. An empty namespace
	// stands for requests without a namespace, or in all namespaces.
	Refused func() []string
	// Rights returns the hub's rights in a namespace, as a text that is equal for equal rights.
	Rights func(ctx context.Context, namespace string) (string, error)
	// Again makes the refused requests again.
	Again func()
}

// Watch asks the servers for the hub's rights until its context ends.
type Watch struct {
	// Servers returns the API servers by name.
	Servers func() map[string]Server

	mu    sync.Mutex
	known map[string]map[string]string // rights by server and namespace, while the server refuses requests
}

// NeedLeaderElection returns false, because every replica has requests of its own.
func (*Watch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error {
	timer := time.NewTimer(AskEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		asked := w.round(ctx)
		timer.Reset(max(AskEvery, time.Duration(asked)*time.Second/asksPerSecond))
	}
}

// round asks each server that refuses requests. It returns the number of questions.
func (w *Watch) round(ctx context.Context) (asked int) {
	servers := w.Servers()
	w.mu.Lock()
	for name := range w.known {
		if _, found := servers[name]; !found {
			delete(w.known, name)
		}
	}
	w.mu.Unlock()
	var asking errgroup.Group
	asking.SetLimit(asksAtOnce)
	for name, s := range servers {
		namespaces := namespacesOf(s)
		if asked += len(namespaces); len(namespaces) == 0 {
			w.store(name, nil)
			continue
		}
		asking.Go(func() error {
			w.ask(ctx, name, s, namespaces)
			return nil
		})
	}
	_ = asking.Wait() // no error: a failed question is logged
	return asked
}

// namespacesOf returns the namespaces for which a server is asked, sorted.
func namespacesOf(s Server) []string {
	namespaces := slices.Clone(s.Refused())
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	return namespaces[:min(len(namespaces), maxNamespaces)]
}

// ask asks one server. It makes the refused requests again if the rights in a namespace differ from the last answer.
// It does so after the first answer, too, because the rights may have come between the refusal and this answer.
func (w *Watch) ask(ctx context.Context, name string, s Server, namespaces []string) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	rights := map[string]string{}
	for _, namespace := range namespaces {
		text, err := s.Rights(ctx, namespace)
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Asking for the rights of the hub failed", "cluster", name, "namespace", namespace, "error", err.Error())
			return
		}
		rights[namespace] = text
	}
	if w.store(name, rights) {
		s.Again()
	}
}

// store keeps the rights on a server. It reports whether a namespace is new, or has other rights than before.
func (w *Watch) store(name string, rights map[string]string) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.known[name]
	for namespace, text := range rights {
		earlier, found := before[namespace]
		changed = changed || !found || earlier != text
	}
	if w.known == nil {
		w.known = map[string]map[string]string{}
	}
	if w.known[name] = rights; rights == nil {
		delete(w.known, name)
	}
	return changed
}
