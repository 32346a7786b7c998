package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server is an API server that allows a right unless the test denies it, as "verb resource.group namespace name".
type server struct {
	client.Writer
	denied []string
	away   error

	mu  sync.Mutex
	who []authenticationv1.UserInfo
}

// Create implements client.Writer.
func (s *server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review := o.(*authorizationv1.SubjectAccessReview)
	a := review.Spec.ResourceAttributes
	right := strings.TrimSpace(strings.Join([]string{a.Verb, schema.GroupResource{Group: a.Group, Resource: a.Resource}.String(), a.Namespace, a.Name}, " "))
	review.Status.Allowed = true
	for _, denied := range s.denied {
		review.Status.Allowed = review.Status.Allowed && right != denied
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	extra := map[string]authenticationv1.ExtraValue{}
	for k, v := range review.Spec.Extra {
		extra[k] = authenticationv1.ExtraValue(v)
	}
	s.who = append(s.who, authenticationv1.UserInfo{Username: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups, Extra: extra})
	return s.away
}

func need(verb, group, resource, namespace, why string) Need {
	return Need{Right: authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}, Why: why}
}

func TestMissingRightsAreNamedByResource(t *testing.T) {
	t.Parallel()
	needs := []Need{
		need("create", "", "namespaces", "", ""), need("get", "", "namespaces", "", ""),
		need("create", "apps", "deployments", "shop", ""), need("delete", "apps", "deployments", "shop", ""), need("create", "apps", "statefulsets", "shop", ""),
		need("bind", "apps", "statefulsets", "shop", "a reason"),
	}
	alice := authenticationv1.UserInfo{Username: "alice", UID: "u", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}
	tests := map[string]struct{ denied, want []string }{
		"nothing":                  {},
		"a right on the cluster":   {[]string{"get namespaces"}, []string{"get namespaces in the whole cluster"}},
		"all rights of a resource": {[]string{"create deployments.apps shop", "delete deployments.apps shop"}, []string{"create, delete deployments.apps in namespace shop"}},
		"rights of two resources": {
			[]string{"create deployments.apps shop", "create statefulsets.apps shop"},
			[]string{"create deployments.apps in namespace shop", "create statefulsets.apps in namespace shop"},
		},
		"two reasons": {
			[]string{"create statefulsets.apps shop", "bind statefulsets.apps shop"},
			[]string{"create statefulsets.apps in namespace shop", "bind statefulsets.apps in namespace shop: a reason"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{denied: tc.denied}
			got, err := Missing(t.Context(), s, alice, needs)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			for _, who := range s.who {
				if diff := cmp.Diff(alice, who); diff != "" {
					t.Fatalf("another user is asked about (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestARightThatCannotBeAskedForIsAnError(t *testing.T) {
	t.Parallel()
	away := errors.New("it is away")
	missing, err := Missing(t.Context(), &server{away: away}, authenticationv1.UserInfo{Username: "alice"}, []Need{need("get", "apps", "deployments", "shop", "")})
	const want = "asking whether alice may get deployments.apps in namespace shop: it is away"
	if !errors.Is(err, away) || err.Error() != want || missing != nil {
		t.Errorf("missing are %q, %v, want %s", missing, err, want)
	}
}

func TestObjectsThatGiveRightsNeedMore(t *testing.T) {
	t.Parallel()
	tests := map[schema.GroupKind][]string{
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               {"escalate roles shop"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        {"escalate clusterroles"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"bind roles shop", "bind clusterroles shop"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"bind clusterroles"},
		{Group: "apps", Kind: "Role"}:                                    nil,
		{Group: "rbac.authorization.k8s.io", Kind: "Other"}:              nil,
		{Group: "rbac.authorization.k8s.io", Kind: "*"}: {
			"escalate roles shop", "escalate clusterroles", "bind roles shop", "bind clusterroles shop", "bind clusterroles",
		},
		{Group: "apps", Kind: "*"}: nil,
	}
	for kind, want := range tests {
		var got []string
		for _, right := range Granting(kind, "shop") {
			got = append(got, strings.TrimSpace(right.Verb+" "+right.Resource+" "+right.Namespace))
			if right.Group != "rbac.authorization.k8s.io" {
				t.Errorf("%s: the right is %+v", kind, right)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}
