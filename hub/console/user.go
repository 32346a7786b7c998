package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/memberview"
)

// users makes a client for the token of each user. The clients share their connections.
type users struct {
	config    *rest.Config
	transport http.RoundTripper
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
}

func newUsers(config *rest.Config, mapper meta.RESTMapper) (*users, error) {
	u := &users{config: rest.AnonymousClientConfig(config), scheme: runtime.NewScheme(), mapper: mapper}
	u.config.UserAgent = "hanse-hub/console"
	u.config.QPS = -1 // the API server limits the requests (priority and fairness)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(u.scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	var err error
	if u.transport, err = rest.TransportFor(u.config); err != nil {
		return nil, fmt.Errorf("connecting to the hub's API server for users of the console: %w", err)
	}
	return u, nil
}

// user reads and writes objects of the hub with the token of a user.
type user struct {
	client.Client
	// views sends requests about members to package memberview. It is nil if the hub does not answer such requests.
	views *memberview.Client
	// cache is the hub's cache of bindings. If it is nil, the user reads bindings from the API server.
	cache client.Reader
	// notes are sentences that say which parts of a page are missing.
	notes []string
}

// bearer adds the token of a user to each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// with returns the user with this token.
func (u *users) with(token string) *user {
	c, err := client.New(u.config, client.Options{
		HTTPClient: &http.Client{Transport: bearer{token, u.transport}}, Scheme: u.scheme, Mapper: u.mapper,
	})
	if err != nil {
		panic(err) // the config was accepted by newUsers
	}
	return &user{Client: c}
}

// narrowed returns the user for a page about one namespace. If the user may not list clusters and policies, package
// memberview supplies them with only the fields that concern the namespace. If namespace is empty, the page shows all
// namespaces, and the user reads everything directly.
func (u *user) narrowed(namespace string, views *memberview.Client) *user {
	u.views = views
	if namespace != "" {
		u.Client = &memberview.Narrowed{
			Client: u.Client, Namespace: namespace, Note: u.note,
			Views: func(context.Context) (*memberview.Client, error) {
				if views == nil {
					return nil, memberview.ErrNoViews
				}
				return views, nil
			},
		}
	}
	return u
}

// note adds a sentence that says which part of the page is missing.
func (u *user) note(text string) {
	first := min(1, len(text))
	u.notes = append(u.notes, strings.ToUpper(text[:first])+text[first:])
}
