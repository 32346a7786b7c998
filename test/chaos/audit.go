package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Causes are the reasons for which the hub may delete copies. The run records a cause before it does what causes the
// deletion.
type Causes struct {
	mu  sync.Mutex
	all []cause
}

// cause permits one deletion of each copy that it matches. Empty fields match everything.
type cause struct {
	at     time.Time
	member string
	key    Key
	what   string
}

func (c cause) matches(d Deletion) bool {
	return (c.member == "" || c.member == d.Member) && (c.key.Kind == "" || c.key.Kind == d.Key.Kind) &&
		(c.key.Namespace == "" || c.key.Namespace == d.Key.Namespace) && (c.key.Name == "" || c.key.Name == d.Key.Name) && c.at.Before(d.At)
}

// Add records a cause. An empty member means each member, and empty fields of the key match each kind or name.
func (c *Causes) Add(at time.Time, member string, k Key, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cause{at: at, member: member, key: k, what: what})
}

// Clear forgets all causes, when a round has converged: no later deletion may refer to them.
func (c *Causes) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}

// Without returns the deletions without a cause. The n-th deletion of the same copy needs n causes that are older than
// it.
func (c *Causes) Without(deletions []Deletion) []Deletion {
	c.mu.Lock()
	defer c.mu.Unlock()
	type copyID struct {
		member string
		key    Key
	}
	seen := map[copyID]int{}
	var out []Deletion
	deletions = slices.Clone(deletions)
	slices.SortStableFunc(deletions, func(a, b Deletion) int { return a.At.Compare(b.At) })
	for _, d := range deletions {
		id := copyID{d.Member, d.Key}
		causes := 0
		for _, k := range c.all {
			if k.matches(d) {
				causes++
			}
		}
		if causes <= seen[id] {
			out = append(out, d)
			continue
		}
		seen[id]++
	}
	return out
}

// Deletion is a request by which the hub deleted a copy on a member.
type Deletion struct {
	At     time.Time
	Member string
	Key    Key
}

func (d Deletion) String() string {
	return fmt.Sprintf("%s %s on %s", d.At.Format("15:04:05.000"), d.Key, d.Member)
}

// auditLog reads the deletions in the audit log of a member, each of them once.
type auditLog struct {
	member, path, user string
	read               int64 // bytes
}

// auditEvent has the fields of an audit event that auditLog reads.
type auditEvent struct {
	Verb, Stage, RequestURI string
	StageTimestamp          metav1.MicroTime
	User                    struct{ Username string }
	ObjectRef               struct{ Resource, Namespace, Name string }
	ResponseStatus          struct{ Code int }
}

// deletions returns the successful deletions of the hub since the last call. A request for a collection has no name, so
// no cause matches it by name.
func (a *auditLog) deletions() ([]Deletion, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log of %s: %w", a.member, err)
	}
	var out []Deletion
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // an incomplete line is read with the next call
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", a.member, err)
		}
		a.read += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			continue // an API server that was killed leaves a part of a line
		}
		kind := kindOfResource[e.ObjectRef.Resource]
		if e.Stage != "ResponseComplete" || !strings.HasPrefix(e.Verb, "delete") || e.User.Username != a.user || e.ResponseStatus.Code >= 300 ||
			strings.Contains(e.RequestURI, "dryRun") || kind == "" || !slices.Contains(Namespaces, e.ObjectRef.Namespace) {
			continue
		}
		out = append(out, Deletion{At: e.StageTimestamp.Time, Member: a.member, Key: Key{Kind: kind, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}})
	}
}
