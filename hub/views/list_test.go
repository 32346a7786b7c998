package views_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// These are the rights of users who list or view objects of members.
var (
	listPods      = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "secrets", "nodes"}, Verbs: []string{"list"}}
	readMembers   = rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"read"}}
	viewNamespace = rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"resourcebindings"}, Verbs: []string{"view"}}
	readNamespace = rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"resourcebindings"}, Verbs: []string{"read"}}
)

func TestWhoMayListObjectsOfMembers(t *testing.T) {
	w := newWorld(t)
	everywhere := append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...)
	admin := w.user("admin", nil, everywhere)
	viewer := w.user("viewer", nil, append([]rbacv1.PolicyRule{listPods}, viewAll...))
	kindless := w.user("kindless", nil, append([]rbacv1.PolicyRule{readMembers}, viewAll...))
	tenant := w.user("tenant", []rbacv1.PolicyRule{viewNamespace, readNamespace, listPods}, nil)
	reader := w.user("reader", []rbacv1.PolicyRule{viewNamespace, listPods}, nil)
	pods, nodes := wire.ListRequest{Kind: "Pod"}, wire.ListRequest{Kind: "Node"}
	for name, tc := range map[string]struct {
		token     string
		namespace string
		in        wire.ListRequest
		refused   string // part of the refusal; empty if the request reaches the member
	}{
		"an admin, of a namespace":                             {admin, w.ns, pods, ""},
		"an admin, of all namespaces":                          {admin, "", pods, ""},
		"an admin, of a kind without a namespace":              {admin, "", nodes, ""},
		"a user who may view members, and not read them":       {viewer, w.ns, pods, "needs the verb read on the MemberCluster"},
		"a user who may read members, and not list the kind":   {kindless, w.ns, pods, "may not list pods in namespace " + w.ns + " on the hub"},
		"a tenant, of the namespace":                           {tenant, w.ns, pods, ""},
		"a tenant, of all namespaces":                          {tenant, "", pods, "needs the verb view on the MemberCluster"},
		"a tenant, of another namespace":                       {tenant, "kube-system", pods, "needs the verb view on the MemberCluster"},
		"a tenant, of a kind without a namespace":              {tenant, w.ns, nodes, "nodes is cluster-scoped"},
		"a tenant who may view the namespace, and not read it": {reader, w.ns, pods, "ask for the ClusterRole hanse-read in namespace " + w.ns},
	} {
		t.Run(name, func(t *testing.T) {
			w.members[here].lists = nil
			err := w.askIn(tc.token, here, wire.List, tc.namespace, tc.in, &wire.ListAnswer{})
			asked := len(w.members[here].lists)
			switch {
			case tc.refused == "" && (err != nil || asked != 1):
				t.Errorf("the member is asked %d times: %v", asked, err)
			case tc.refused != "" && (err == nil || asked > 0 || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("the member is asked %d times: %v", asked, err)
			}
			if asked == 1 && w.members[here].lists[0].Namespace != tc.namespace {
				t.Errorf("asked for %+v", w.members[here].lists[0])
			}
		})
	}
}

func TestAListIsAskedForWithinBounds(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	for name, tc := range map[string]struct {
		in   wire.ListRequest
		want string
	}{
		"no kind":              {wire.ListRequest{}, "names no kind"},
		"an unknown kind":      {wire.ListRequest{Group: "example.com", Kind: "Nothing"}, "the hub does not serve Nothing.example.com"},
		"an unknown version":   {wire.ListRequest{Kind: "Pod", Version: "v9"}, "the hub does not serve Pod at version"},
		"too many":             {wire.ListRequest{Kind: "Pod", Most: 501}, "at most 500"},
		"a negative number":    {wire.ListRequest{Kind: "Pod", Most: -1}, "at most 500"},
		"no selector":          {wire.ListRequest{Kind: "Pod", LabelSelector: "a=b=c"}, "label selector is invalid"},
		"a very long selector": {wire.ListRequest{Kind: "Pod", LabelSelector: "a=" + strings.Repeat("b", 5000)}, "more than 4096 bytes"},
		"a very long name":     {wire.ListRequest{Kind: "Pod", Name: strings.Repeat("b", 5000)}, "names no kind"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.ask(token, here, wire.List, tc.in, &wire.ListAnswer{})
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if asked := w.members[here].lists; asked != nil {
		t.Errorf("asked for %+v", asked)
	}
	in := wire.ListRequest{Kind: "Pod", Version: "v1", Name: "web-0", LabelSelector: "app=web", Most: 7, Whole: true}
	must(t, w.askIn(token, here, wire.List, w.ns, in, &wire.ListAnswer{}))
	want := member.ListIntent{
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespace: w.ns, Name: "web-0", LabelSelector: "app=web", Limit: 7, Whole: true,
	}
	if diff := cmp.Diff([]member.ListIntent{want}, w.members[here].lists); diff != "" {
		t.Error(diff)
	}
}

func TestListedSecretsHaveNoValues(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	w.members[elsewhere].listed.Objects = []map[string]any{{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aGlkZGVu"}, "stringData": "aGlkZGVu",
		"metadata": map[string]any{"name": "password", "annotations": map[string]any{"last-applied": "aGlkZGVu"}},
	}}
	var out wire.ListAnswer
	// This request is passed to another replica.
	must(t, w.ask(token, elsewhere, wire.List, wire.ListRequest{Kind: "Secret", Whole: true}, &out))
	if text := fmt.Sprint(out.Objects); len(out.Objects) != 1 || strings.Contains(text, "aGlkZGVu") || !strings.Contains(text, "password:***") {
		t.Errorf("got %s", text)
	}
}

func TestAMemberThatDoesNotAnswerAListIsToldWithoutItsText(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		fails error
		code  int32
		want  string
	}{
		"not granted":    {apierrors.NewForbidden(pods, "", errors.New("private")), http.StatusForbidden, "pods of cluster cn-sha-1: not granted to the hub: see the values of the chart hanse-member"},
		"too large":      {&answer.TooLargeError{What: "the answer", Bound: "8 MiB"}, http.StatusBadGateway, "pods of cluster cn-sha-1: the answer is larger than 8 MiB: narrow the request"},
		"something else": {fmt.Errorf("%w: it is not a table", member.ErrUnreadable), http.StatusBadGateway, "pods of cluster cn-sha-1: the answer cannot be read: it is not a table"},
		"an error":       {apierrors.NewInternalError(errors.New("private")), http.StatusServiceUnavailable, "pods of cluster cn-sha-1: its API server answers InternalError"},
		"no answer":      {errors.New("dial private: refused"), http.StatusServiceUnavailable, "pods of cluster cn-sha-1: its API server does not answer"},
		"no link":        {member.ErrNotConnected, http.StatusServiceUnavailable, "the cluster is not connected: see hansectl clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			w.members[here].fails = tc.fails
			err := w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &wire.ListAnswer{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != tc.code || status.Status().Message != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
	w.members[here].fails = apierrors.NewNotFound(pods, "")
	var out wire.ListAnswer
	must(t, w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &out))
	if !out.NotServed {
		t.Errorf("got %+v", out)
	}
}

func TestAnAnswerThatIsTooLargeIsNotCut(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	grows := map[string]any{"text": strings.Repeat("<", 4<<20)} // each character becomes six bytes of JSON
	for _, cluster := range []string{here, elsewhere} {
		w.members[cluster].listed.Objects = []map[string]any{grows}
		err := w.ask(token, cluster, wire.List, wire.ListRequest{Kind: "Pod", Whole: true}, &wire.ListAnswer{})
		if err == nil || err.Error() != "the answer is larger than 16 MiB: narrow the request" {
			t.Errorf("%s: got %v", cluster, err)
		}
	}
}

func TestAHangingMemberDelaysAListForSecondsAlone(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	w.members[here].wait = make(chan struct{})
	err := w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &wire.ListAnswer{})
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}

func TestNoNameOrNamespaceLeadsToAnotherObject(t *testing.T) {
	w := newWorld(t)
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods, listEvents, getLogs}, append(viewAll, getAll...)...))
	refuses := func(what, namespace string, in any, want string) {
		t.Helper()
		err := w.askIn(token, here, what, namespace, in, nil)
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for _, hostile := range []string{"..", "../../secrets/x", "..%2f..%2fsecrets", "%2e%2e"} {
		refuses(wire.List, hostile, wire.ListRequest{Kind: "Pod"}, fmt.Sprintf("namespace %q is not valid", hostile))
		refuses(wire.List, w.ns, wire.ListRequest{Kind: "Pod", Name: hostile}, fmt.Sprintf("name %q is not valid", hostile))
		for _, object := range []wire.Object{{Kind: "ConfigMap", Namespace: w.ns, Name: hostile}, {Kind: "ConfigMap", Namespace: hostile, Name: "a"}} {
			refuses(wire.Copy, "", wire.CopyRequest{Object: object}, fmt.Sprintf("%q is not valid", hostile))
			refuses(wire.Events, "", wire.EventsRequest{Object: object}, fmt.Sprintf("%q is not valid", hostile))
			refuses(wire.Logs, "", wire.LogsRequest{Object: object}, fmt.Sprintf("%q is not valid", hostile))
		}
	}
	if m := w.members[here]; m.lists != nil || m.asked != nil || m.about != nil || m.logs != nil {
		t.Errorf("the member is asked: %+v", m)
	}
}

func TestAUserWithoutTheVerbReadLearnsNothingOfKinds(t *testing.T) {
	w := newWorld(t)
	viewer := w.user("viewer", nil, append([]rbacv1.PolicyRule{listPods}, viewAll...))
	for _, in := range []wire.ListRequest{{Kind: "Pod"}, {Kind: "Node"}, {Group: "example.com", Kind: "Nothing"}} {
		if err := w.askIn(viewer, here, wire.List, w.ns, in, nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb read") {
			t.Errorf("%s: got %v", in.Kind, err)
		}
	}
}

func TestAKindIsListedAtAVersionThatTheMemberServes(t *testing.T) {
	w := newWorld(t)
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: here}}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: here}}}
	must(t, hub.Create(t.Context(), c))
	t.Cleanup(func() { must(t, hub.Delete(context.WithoutCancel(t.Context()), c)) })
	token := w.user("admin", nil, append([]rbacv1.PolicyRule{readMembers, listPods}, viewAll...))
	for want, served := range map[string][]string{"v1": {"v2", "v1"}, "v3": {"v3", "v2"}} {
		c.Status.APIResources = []hubv1.ServedKind{{Kind: "Pod", Versions: served}}
		must(t, hub.Status().Update(t.Context(), c))
		w.members[here].lists = nil
		must(t, w.ask(token, here, wire.List, wire.ListRequest{Kind: "Pod"}, &wire.ListAnswer{}))
		if got := w.members[here].lists[0].Kind.Version; got != want {
			t.Errorf("of %v: listed at %s", served, got)
		}
	}
}
