package hub

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/member/discovery"
)

// fakeLinks returns the same link state for every member, or no link if state is nil.
type fakeLinks struct {
	member.Links
	state *member.LinkState
}

func (f *fakeLinks) State(string) (member.LinkState, bool) {
	if f.state == nil {
		return member.LinkState{}, false
	}
	return *f.state, true
}

// hanging is a member that accepts lists and watches, and never answers them.
type hanging struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	asked chan struct{}
}

func (h *hanging) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return h
}

func (h *hanging) Namespace(string) dynamic.ResourceInterface { return h }

func (h *hanging) List(ctx context.Context, _ metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, h.hang(ctx)
}

func (h *hanging) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	return nil, h.hang(ctx)
}

func (h *hanging) hang(ctx context.Context) error {
	h.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestTheWatchesOfAMemberThatIsBackAreResumed(t *testing.T) {
	f := &fleet{members: map[string]*memberCluster{}}
	asked := map[string]chan struct{}{"back": make(chan struct{}, 10), "other": make(chan struct{}, 10)}
	for name := range asked {
		client := &hanging{asked: asked[name]}
		f.members[name] = &memberCluster{
			name:  name,
			kinds: discovery.New(t.Context(), discovery.Options{Definitions: client}),
			Observer: cache.New(t.Context(), cache.Options{Cluster: name, Client: client,
				Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
					return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, nil
				},
			}),
		}
		f.members[name].Observe(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{Name: "binding"})
		<-asked[name]
	}
	f.resume("back")
	f.resume("unknown")
	select {
	case <-asked["back"]:
	case <-time.After(10 * time.Second):
		t.Error("the member that is back is not asked again")
	}
	if n := len(asked["other"]); n > 0 {
		t.Errorf("the other member is asked %d times more", n)
	}
}

func TestLinkLog(t *testing.T) {
	up := &member.LinkState{Ready: metav1.ConditionTrue, Reason: hubv1.ReasonConnected}
	down := &member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}
	denied := &member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnauthorized}
	tests := map[string]struct {
		before       []*member.LinkState // earlier states of the link; nil: no link
		now          *member.LinkState
		moved, ready bool
	}{
		"the first that is heard of a link is news":              {now: up, moved: true, ready: true},
		"a link that stays as it was has not moved":              {before: []*member.LinkState{up}, now: up, ready: true},
		"one that is lost has moved":                             {before: []*member.LinkState{up}, now: down, moved: true},
		"one that is down for another reason has moved":          {before: []*member.LinkState{down}, now: denied, moved: true},
		"one that was ended has moved":                           {before: []*member.LinkState{up}, moved: true},
		"one that was ended and made anew is news, though up":    {before: []*member.LinkState{up, nil}, now: up, moved: true, ready: true},
		"one that was ended and made anew is news, also if down": {before: []*member.LinkState{down, nil}, now: down, moved: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			links := &fakeLinks{}
			l := &linkLog{links: links, last: map[string]string{}}
			for _, s := range tc.before {
				links.state = s
				l.moved("eu")
			}
			links.state = tc.now
			if moved, ready := l.moved("eu"); moved != tc.moved || ready != tc.ready {
				t.Errorf("moved %v, ready %v; want %v, %v", moved, ready, tc.moved, tc.ready)
			}
		})
	}
}
