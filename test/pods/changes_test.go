package pods

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

const (
	loaded     = "loaded" // the namespace of the objects that are changed
	objects    = 200
	changeEach = 200 * time.Millisecond
)

func loadedName(i int) string { return fmt.Sprintf("c-%03d", i%objects) }

// change is a value that was written to an object.
type change struct {
	object, value string
}

// changes records when changes of objects on the hub were written, and when each change arrived on each member.
type changes struct {
	written  map[change]time.Time
	arrived  map[string]map[change]time.Time // times at which each change arrived, by member
	last     map[string]string               // last change, by object
	versions map[string]map[string]int       // number of versions of a copy since the first change, by member and object
	requests map[string]int                  // number of requests before the first change, by member
	mu       sync.Mutex
	watches  []watch.Interface
	watching sync.WaitGroup
}

// next is the value of the next change, which is used only once.
var next int

// changed runs do while objects are being changed. It then checks that the last change of each object arrived on every
// member, and that no change arrived too late. It also checks that the hub wrote no copy more often than its object
// changed.
func changed(t *testing.T, do func()) {
	t.Helper()
	c := &changes{
		written: map[change]time.Time{}, arrived: map[string]map[change]time.Time{}, last: map[string]string{},
		versions: map[string]map[string]int{}, requests: map[string]int{},
	}
	for _, name := range members {
		c.observe(t, suite.Members[name])
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	writing := make(chan error, 1)
	go func() { writing <- c.write(ctx) }()
	do()
	end()
	must(t, <-writing)
	eventually(t, c.complete)
	for _, w := range c.watches {
		w.Stop()
	}
	c.watching.Wait()
	c.check(t)
}

// observe records the changes that arrive on a member.
func (c *changes) observe(t *testing.T, member *fleet.Cluster) {
	t.Helper()
	c.requests[member.Name] = writesOn(t, member, "configmaps", loaded)
	clients, err := client.NewWithWatch(member.Config, client.Options{Scheme: fleet.Scheme()})
	must(t, err)
	w, err := clients.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(loaded))
	must(t, err)
	seen, versions, last := map[change]time.Time{}, map[string]int{}, map[string]*corev1.ConfigMap{}
	c.arrived[member.Name], c.versions[member.Name] = seen, versions
	c.watches = append(c.watches, w)
	c.watching.Go(func() {
		for event := range w.ResultChan() {
			if config, ok := event.Object.(*corev1.ConfigMap); ok {
				c.mu.Lock()
				if event.Type != watch.Added && !sentByAnotherVersion(last[config.Name], config) { // the watch starts with the existing copies
					versions[config.Name]++
				}
				last[config.Name] = config
				key := change{config.Name, config.Data["value"]}
				if _, ok := seen[key]; !ok {
					seen[key] = time.Now()
				}
				c.mu.Unlock()
			}
		}
	})
}

// sentByAnotherVersion reports whether only one of two versions of a copy names its decision, and nothing else differs.
// If a pod of another version of the hub ends during a write, the next pod sends the write again. Older versions do not
// name the decision.
func sentByAnotherVersion(before, after *corev1.ConfigMap) bool {
	_, named := before.Annotations[hubv1.DecisionAnnotation]
	if _, names := after.Annotations[hubv1.DecisionAnnotation]; named == names {
		return false
	}
	rest := func(c *corev1.ConfigMap) *corev1.ConfigMap {
		c = c.DeepCopy()
		c.ResourceVersion, c.ManagedFields = "", nil
		delete(c.Annotations, hubv1.DecisionAnnotation)
		return c
	}
	return equality.Semantic.DeepEqual(rest(before), rest(after))
}

// write changes the objects in turn until ctx ends.
func (c *changes) write(ctx context.Context) error {
	tick := time.NewTicker(changeEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next++
		key := change{loadedName(next), strconv.Itoa(next)}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: loaded, Name: key.object}}
		patch := fmt.Appendf(nil, `{"data":{"value":%q}}`, key.value)
		begin := time.Now()
		if err := suite.Hub.Patch(context.WithoutCancel(ctx), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("changing %s: %w", key.object, err)
		}
		c.mu.Lock()
		c.written[key], c.last[key.object] = begin, key.value
		c.mu.Unlock()
	}
}

// complete returns nil if every member has the last value of every changed object.
func (c *changes) complete() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, seen := range c.arrived {
		for object, value := range c.last {
			if _, ok := seen[change{object, value}]; !ok {
				return fmt.Errorf("%s has not got %s with value %s", name, object, value)
			}
		}
	}
	return nil
}

// maxGap is the longest time that a change may take while the hub's pods are replaced on a busy machine. A lost
// change would take longer. The end-to-end test TestAnotherReplicaTakesOver checks that a replica hands over at once.
const maxGap = 30 * time.Second

func (c *changes) check(t *testing.T) {
	t.Helper()
	for _, name := range members {
		var longest time.Duration
		changes := map[string]int{}
		for key, at := range c.written {
			if arrived, ok := c.arrived[name][key]; ok { // otherwise a newer value of the object replaced the change
				longest = max(longest, arrived.Sub(at))
			}
		}
		requests := writesOn(t, suite.Members[name], "configmaps", loaded) - c.requests[name]
		t.Logf("%s: %d changes, the longest took %.1f s; the hub sent %d writes", name, len(c.written), longest.Seconds(), requests)
		if longest > maxGap {
			t.Errorf("%s: a change took %s to arrive, want at most %s", name, longest, maxGap)
		}
		for key := range c.written {
			changes[key.object]++
		}
		// If a pod ends during a write, the next pod sends the write again without an effect. Therefore the test counts
		// versions, not requests.
		for object, versions := range c.versions[name] {
			if versions > changes[object] {
				t.Errorf("%s: the copy %s had %d versions for %d changes", name, object, versions, changes[object])
			}
		}
	}
}

// writesOn returns the number of successful writes to a resource in a namespace. It reads the audit log of the member,
// which has only the requests of Hanse's ServiceAccounts.
func writesOn(t *testing.T, member *fleet.Cluster, resource, namespace string) int {
	t.Helper()
	file, err := os.Open(member.AuditLog)
	must(t, err)
	defer func() { _ = file.Close() }()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb, RequestURI string
			ObjectRef        struct{ Namespace, Resource string }
			ResponseStatus   struct{ Code int }
		}
		must(t, json.Unmarshal(lines.Bytes(), &event))
		reads := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
		dry := strings.Contains(event.RequestURI, "dryRun=")
		if !reads && !dry && event.ObjectRef.Namespace == namespace && event.ObjectRef.Resource == resource && event.ResponseStatus.Code < 300 {
			count++
		}
	}
	must(t, lines.Err())
	return count
}
