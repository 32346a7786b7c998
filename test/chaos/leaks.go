package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// usage is the sum over all replicas, because members move between replicas.
type usage struct {
	Goroutines float64
	// Heap is the live heap after a garbage collection, in bytes.
	Heap float64
}

func (u usage) String() string {
	return fmt.Sprintf("%.0f goroutines, %.1f MiB of live heap", u.Goroutines, u.Heap/(1<<20))
}

// Leaked returns an error if the usage at the end is not near that at the start. Goroutines vary by the streams of open
// connections: one that a fault broke keeps its goroutines until the time-out. The heap varies by the objects that the
// plan left, by the caches of connections, and by the lists that a replica keeps of members that it gave away.
func Leaked(before, after usage) error {
	var errs []error
	if most := before.Goroutines*1.25 + 50; after.Goroutines > most {
		errs = append(errs, fmt.Errorf("%.0f goroutines after %.0f: more than %.0f", after.Goroutines, before.Goroutines, most))
	}
	if most := before.Heap*1.5 + 16<<20; after.Heap > most {
		errs = append(errs, fmt.Errorf("%.1f MiB of heap after %.1f: more than %.1f", after.Heap/(1<<20), before.Heap/(1<<20), most/(1<<20)))
	}
	return errors.Join(errs...)
}

// collections is the number of garbage collections of each replica of which measure takes the lowest values.
const collections = 3

// measure reads the metrics of each replica until it has collected its garbage some times. Reading the metrics
// allocates the memory that triggers the next collection.
func (r *run) measure(ctx context.Context) (usage, error) {
	var sum usage
	for name, h := range r.servers.replicas.all() {
		least, cycles := usage{}, map[float64]bool{}
		for began := time.Now(); len(cycles) <= collections; sleep(ctx, 10*time.Millisecond) {
			page, err := metrics(ctx, h.Metrics, "go_goroutines", "go_gc_heap_live_bytes", "go_gc_cycles_total_gc_cycles_total")
			if err != nil {
				return sum, fmt.Errorf("measuring %s: %w", name, err)
			}
			if time.Since(began) > 10*time.Minute {
				return sum, fmt.Errorf("measuring %s: fewer than %d garbage collections in 10 minutes", name, collections)
			}
			now := usage{Goroutines: page["go_goroutines"], Heap: page["go_gc_heap_live_bytes"]}
			if len(cycles) == 0 {
				least = now
			}
			cycles[page["go_gc_cycles_total_gc_cycles_total"]] = true
			least.Goroutines, least.Heap = min(least.Goroutines, now.Goroutines), min(least.Heap, now.Heap)
		}
		sum.Goroutines += least.Goroutines
		sum.Heap += least.Heap
	}
	return sum, nil
}

// metrics returns the values of metrics without labels.
func metrics(ctx context.Context, url string, names ...string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	page, err := fleet.Page(ctx, url)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, name := range names {
		samples, err := fleet.Samples(page, name)
		if err != nil {
			return nil, err
		}
		if len(samples) != 1 {
			return nil, fmt.Errorf("metric %s has %d samples", name, len(samples))
		}
		out[name] = samples[0].Value
	}
	return out, nil
}
