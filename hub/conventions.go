package hub

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/member/health"
)

// conventionsHold is how long those of a kind are relied on: definitions change when an operator is upgraded.
const conventionsHold = 10 * time.Minute

// conventions are what the hub's definitions tell of how the statuses of kinds are read. It is the hub that is asked, once for all
// members: a path that a member's objects do not have says nothing of them.
type conventions struct {
	definitions definitions
	clock       clock.PassiveClock

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kindConventions
}

type kindConventions struct {
	mu    sync.Mutex // held by whoever asks; the rest is guarded by conventions.mu
	known health.Conventions
	read  time.Time // zero before the first answer
	again bool      // they are being asked for once more
}

func (c *conventions) kind(gvk schema.GroupVersionKind) *kindConventions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[schema.GroupVersionKind]*kindConventions{}
	}
	if c.kinds[gvk] == nil {
		c.kinds[gvk] = &kindConventions{}
	}
	return c.kinds[gvk]
}

// of answers from memory: those of a kind that nobody has learned are empty. Old ones are learned anew meanwhile.
func (c *conventions) of(gvk schema.GroupVersionKind) health.Conventions {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[gvk]
	if k == nil {
		return health.Conventions{}
	}
	if !k.again && !k.read.IsZero() && c.clock.Since(k.read) >= conventionsHold {
		k.again = true
		go func() {
			c.learn(context.Background(), gvk)
			c.mu.Lock()
			defer c.mu.Unlock()
			k.again = false
		}()
	}
	return k.known
}

// learn asks the hub unless it was asked lately. A definition that cannot be read leaves what is known as it is: an object is judged by
// less then, which is what happens to one without a definition.
func (c *conventions) learn(ctx context.Context, gvk schema.GroupVersionKind) health.Conventions {
	k := c.kind(gvk)
	k.mu.Lock()
	defer k.mu.Unlock()
	c.mu.Lock()
	known, fresh := k.known, !k.read.IsZero() && c.clock.Since(k.read) < conventionsHold
	c.mu.Unlock()
	if fresh {
		return known
	}
	if now, ok := c.ask(ctx, gvk); ok {
		c.mu.Lock()
		k.known, k.read = now, c.clock.Now()
		c.mu.Unlock()
		return now
	}
	return known
}

func (c *conventions) ask(ctx context.Context, gvk schema.GroupVersionKind) (health.Conventions, bool) {
	definition, err := c.definitions.of(ctx, gvk.GroupKind(), gvk.Version)
	if err != nil {
		return health.Conventions{}, apierrors.IsNotFound(err)
	}
	return health.ReadConventions(definition, gvk.Version), true
}
