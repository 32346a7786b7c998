package console

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/access"
)

const (
	// maxNamespaces is the maximum number of namespaces in the choice on each page. If there are more, the user types the
	// name of one.
	maxNamespaces = 200
	// namespacesLast is how long the namespaces that a user may list are remembered, so that open pages do not list them
	// again after each change.
	namespacesLast = time.Minute
	// maxListings is the maximum number of users whose namespaces are remembered.
	maxListings = 200
)

// listings remembers the namespaces that users may list, by the digest of the token. A user therefore sees only what
// this token may list.
type listings struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]listing
}

type listing struct {
	namespaces []string
	until      time.Time
}

// get returns the namespaces that are remembered for a token. remembered is false if there are none, or if they are
// too old.
func (c *listings) get(token string, now time.Time) (namespaces []string, remembered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, remembered := c.of[sha256.Sum256([]byte(token))]
	return found.namespaces, remembered && now.Before(found.until)
}

func (c *listings) set(token string, namespaces []string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) >= maxListings || c.of == nil {
		c.of = map[[sha256.Size]byte]listing{}
	}
	c.of[sha256.Sum256([]byte(token))] = listing{namespaces, now.Add(namespacesLast)}
}

// namespacesOf returns the namespaces from which a user can choose: those that the user may list. For a ServiceAccount
// that may not list them, it returns the namespace of the account. It returns nil if the user has to type a name.
func (c *Console) namespacesOf(ctx context.Context, s session) []string {
	now := c.opts.Clock.Now()
	if known, remembered := c.listings.get(s.Token, now); remembered {
		return known
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	err := c.users.with(s.Token).List(ctx, list, client.Limit(maxNamespaces))
	if ctx.Err() != nil {
		return nil
	}
	var out []string
	own, isAccount := access.AccountNamespace(s.User)
	switch {
	case err == nil && list.Continue == "":
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
	case err != nil && isAccount:
		out = []string{own}
	}
	slices.Sort(out)
	c.listings.set(s.Token, out, now)
	return out
}

// withChosen returns the namespaces with the chosen one, which may be missing among them.
func withChosen(namespaces []string, chosen string) []string {
	if len(namespaces) == 0 || chosen == "" || slices.Contains(namespaces, chosen) {
		return namespaces
	}
	out := append(slices.Clone(namespaces), chosen)
	slices.Sort(out)
	return out
}

// shortUser returns the name of a user as pages show it: NAMESPACE/NAME for a ServiceAccount, and otherwise the whole
// name.
func shortUser(user string) string {
	if rest, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		return strings.Replace(rest, ":", "/", 1)
	}
	return user
}
