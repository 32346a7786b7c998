package hub

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// scalePathHolds is how long an answer is relied on: it is for messages.
const scalePathHolds = time.Minute

// scalePaths say where the definition of a kind has the replicas of its scale subresource. They are asked about kinds whose placement is
// wrong, so what was read is remembered for a while, an error as well.
type scalePaths struct {
	definitions definitions
	clock       clock.PassiveClock

	mu    sync.Mutex
	known map[schema.GroupKind]scalePath
}

type scalePath struct {
	path string
	read time.Time
}

// of returns a JSON path such as ".spec.replicas"; empty if there is none or the definition cannot be read.
func (s *scalePaths) of(ctx context.Context, kind schema.GroupKind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[kind]; ok && s.clock.Since(known.read) < scalePathHolds {
		return known.path
	}
	if s.known == nil {
		s.known = map[schema.GroupKind]scalePath{}
	}
	now := scalePath{path: s.read(ctx, kind), read: s.clock.Now()}
	s.known[kind] = now
	return now.path
}

func (s *scalePaths) read(ctx context.Context, kind schema.GroupKind) string {
	definition, err := s.definitions.of(ctx, kind)
	if err != nil {
		return ""
	}
	for _, v := range definition.Spec.Versions {
		if v.Served && v.Subresources != nil && v.Subresources.Scale != nil {
			return v.Subresources.Scale.SpecReplicasPath
		}
	}
	return ""
}
