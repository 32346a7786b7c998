package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
)

// users sends the requests of all users by one client. A client for each user would cost most of the memory of a
// sign-in, also of one with a token that the API server does not know.
type users struct {
	client    client.Client
	transport http.RoundTripper
}

func newUsers(config *rest.Config, mapper meta.RESTMapper) (*users, error) {
	config = rest.AnonymousClientConfig(config)
	config.UserAgent = "hanse-hub/console"
	config.QPS = -1 // the API server limits the requests (priority and fairness)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	u := &users{}
	var err error
	if u.transport, err = rest.TransportFor(config); err == nil {
		u.client, err = client.New(config, client.Options{HTTPClient: &http.Client{Transport: u}, Scheme: scheme, Mapper: mapper})
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub's API server for users of the console: %w", err)
	}
	return u, nil
}

// tokenKey is the key of a user's token in the context of a request.
type tokenKey struct{}

var errNoUser = errors.New("a request to the hub's API server has no user")

// RoundTrip implements http.RoundTripper. It adds the token of the user to each request.
func (u *users) RoundTrip(r *http.Request) (*http.Response, error) {
	token, ok := r.Context().Value(tokenKey{}).(string)
	if !ok {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errNoUser
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return u.transport.RoundTrip(r)
}

// acting puts the token of a user into the context of each request of the shared client. A request of any other method
// has no user, so that RoundTrip refuses it.
type acting struct {
	client.Client
	token string
}

func (a acting) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, tokenKey{}, a.token)
}

// Get implements client.Reader.
func (a acting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return a.Client.Get(a.in(ctx), key, o, opts...)
}

// List implements client.Reader.
func (a acting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return a.Client.List(a.in(ctx), list, opts...)
}

// Create implements client.Writer.
func (a acting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return a.Client.Create(a.in(ctx), o, opts...)
}

// Update implements client.Writer.
func (a acting) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return a.Client.Update(a.in(ctx), o, opts...)
}

// Patch implements client.Writer.
func (a acting) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return a.Client.Patch(a.in(ctx), o, patch, opts...)
}

// user reads and writes objects of the hub with the token of a user.
type user struct {
	client.Client
	// views sends requests about members to package views. It is nil if the hub does not answer such requests.
	views *views.Client
	// cache is the hub's cache of bindings. If it is nil, the user reads bindings from the API server.
	cache client.Reader
	// notes are sentences that say which parts of a page are missing.
	notes []string
}

// with returns the user with this token.
func (u *users) with(token string) *user { return &user{Client: acting{u.client, token}} }

// narrowed returns the user for a page about one namespace. If the user may not list clusters and policies, package
// views supplies them with only the fields that concern the namespace. If namespace is empty, the page shows all
// namespaces, and the user reads everything directly.
func (u *user) narrowed(namespace string, viewer *views.Client) *user {
	u.views = viewer
	if namespace != "" {
		u.Client = &views.Narrowed{
			Client: u.Client, Namespace: namespace, Note: u.note,
			Views: func(context.Context) (*views.Client, error) {
				if viewer == nil {
					return nil, views.ErrNoViews
				}
				return viewer, nil
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
