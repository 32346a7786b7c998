package provider

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestWhichMembersAreServed(t *testing.T) {
	ca := newServer(t, "uid-1").ca()
	good := func() map[string][]byte {
		return map[string][]byte{ServerKey: []byte("https://203.0.113.7:6443/"), CAKey: []byte(ca), TokenKey: []byte("secret-token")}
	}
	with := func(key, value string) map[string][]byte {
		data := good()
		data[key] = []byte(value)
		return data
	}
	direct := hubv1.ConnectionDirect
	tests := map[string]struct {
		connection hubv1.ConnectionType
		edit       func(*hubv1.MemberCluster)
		data       map[string][]byte // nil: there is no Secret
		reason     string            // empty: it is served
		says       string
	}{
		"a member with credentials is":             {connection: direct, data: good()},
		"a tunnelled one with an address, too":     {connection: hubv1.ConnectionTunnel, data: good()},
		"a tunnelled one without is not":           {connection: hubv1.ConnectionTunnel, reason: ReasonNotThroughTunnel, says: "not served through the tunnel"},
		"one without a Secret is not":              {connection: direct, reason: ReasonNoCredentials, says: "Secret isolate/eu"},
		"one that the hub has not reached yet":     {connection: direct, data: good(), edit: func(c *hubv1.MemberCluster) { c.Status.ClusterID = "" }, reason: ReasonNotIdentified},
		"one that is being deleted":                {connection: direct, data: good(), edit: func(c *hubv1.MemberCluster) { c.DeletionTimestamp = &metav1.Time{} }, reason: ReasonLeaving},
		"an address without TLS":                   {connection: direct, data: with(ServerKey, "http://203.0.113.7"), reason: ReasonCredentialsInvalid, says: "server is not a URL"},
		"an address with a password":               {connection: direct, data: with(ServerKey, "https://a:b@203.0.113.7"), reason: ReasonCredentialsInvalid, says: "has a user"},
		"a certificate that is none":               {connection: direct, data: with(CAKey, "PEM"), reason: ReasonCredentialsInvalid, says: "ca.crt"},
		"an empty token":                           {connection: direct, data: with(TokenKey, ""), reason: ReasonCredentialsInvalid, says: "token is empty"},
		"a token with the line break of a command": {connection: direct, data: with(TokenKey, "secret-token\n"), reason: ReasonCredentialsInvalid, says: "line break"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
			cluster.Spec.Connection.Type, cluster.Status.ClusterID = tc.connection, "uid-1"
			if tc.edit != nil {
				tc.edit(cluster)
			}
			var secret *corev1.Secret
			if tc.data != nil {
				secret = &corev1.Secret{Data: tc.data}
			}
			w, f := decide(cluster, secret, "isolate")
			if (f == nil) != (tc.reason == "") {
				t.Fatalf("got %v", f)
			}
			if f == nil {
				if w.to.server != "https://203.0.113.7:6443" || w.clusterID != "uid-1" {
					t.Errorf("reached by %v", w)
				}
				return
			}
			if f.reason != tc.reason || !strings.Contains(f.message, tc.says) || strings.Contains(f.message, "secret-token") {
				t.Errorf("got %s: %s", f.reason, f.message)
			}
		})
	}
	if _, f := decide(nil, nil, "isolate"); f == nil || f.reason != ReasonUnknown {
		t.Errorf("without a MemberCluster: %v", f)
	}
}

func TestThePathOfAListNamesItsResource(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                             "pods",
		"/api/v1/namespaces":                       "namespaces",
		"/api/v1/namespaces/shop":                  "",
		"/api/v1/namespaces/shop/pods":             "pods",
		"/api/v1/namespaces/shop/pods/web":         "",
		"/apis/apps/v1/deployments":                "deployments.apps",
		"/apis/apps/v1/namespaces/x/deployments":   "deployments.apps",
		"/apis/apps/v1/namespaces/x/deployments/y": "",
		"/apis/apps/v1":                            "",
		"/apis":                                    "",
		"/version":                                 "",
	} {
		if got := listed(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
