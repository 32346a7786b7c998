package views_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/view/wire"
)

// prove creates a proof, by which a user without a token shows its identity to the hub. It calls change, unless change
// is nil, before it creates the proof's CertificateSigningRequest as the user.
func (w *world) prove(user string, change func(*certificatesv1.CertificateSigningRequest)) *views.Proof {
	w.Helper()
	config := rest.CopyConfig(hubConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"tellers"}}
	as, err := client.New(config, client.Options{Scheme: hub.Scheme()})
	must(w.T, err)
	proof, err := views.NewProof()
	must(w.T, err)
	if change != nil {
		change(proof.Request)
	}
	must(w.T, as.Create(w.Context(), proof.Request))
	return proof
}

func TestAUserWithoutATokenIsTheAuthorOfARequest(t *testing.T) {
	w := newWorld(t)
	w.members[here].live = configMap("red")
	viewing := append([]rbacv1.PolicyRule{getConfigMaps}, chartRole(t, "hanse-view")...)
	requesting := []rbacv1.PolicyRule{{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}}}
	jane, joe := w.ns+"-jane", w.ns+"-joe"
	subject := func(kind, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}}
	}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-request"}, Rules: requesting},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-request"}, Subjects: append(subject("User", jane), subject("User", joe)...),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns + "-request"},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "views"}, Rules: viewing},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "views"}, Subjects: subject("User", jane),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "views"},
		},
	} {
		must(t, hub.Create(t.Context(), o))
	}
	apiserver.AwaitRights(t, hubConfig, jane, w.ns, viewing...)
	apiserver.AwaitRights(t, hubConfig, joe, "", requesting...)
	apiserver.AwaitRights(t, hubConfig, jane, "", requesting...)
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	ask := func(token, cluster string) error {
		var answer wire.CopyAnswer
		if err := w.askIn(token, cluster, wire.Copy, w.ns, request, &answer); err != nil {
			return err
		}
		if diff := cmp.Diff(w.members[cluster].live.Object, answer.Object); diff != "" {
			t.Error(diff)
		}
		return nil
	}
	signed := func(p *views.Proof, cluster string) string {
		body, err := json.Marshal(request)
		must(t, err)
		token, err := p.Token(wire.PathIn(cluster, wire.Copy, w.ns), body, time.Now())
		must(t, err)
		return token
	}
	proof := w.prove(jane, nil)
	w.members[elsewhere].live = configMap("blue")
	for _, cluster := range []string{here, elsewhere} { // another replica also reads the CertificateSigningRequest
		must(t, ask(signed(proof, cluster), cluster))
	}
	token := signed(proof, here)
	if err := ask(signed(w.prove(joe, nil), here), here); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"`+joe+`" needs the verb view`) {
		t.Errorf("another user: %v", err)
	}
	ofJoe := w.prove(joe, nil)
	ofJoe.Request = proof.Request
	parts := strings.Split(token, ".")
	signer := w.prove(jane, func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "example.com/other" })
	claimed := w.prove(joe, func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Username, r.Spec.Groups = jane, []string{"system:masters"}
	})
	denied := w.prove(jane, nil)
	denied.Request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No", LastUpdateTime: metav1.Now(),
	}}
	must(t, hub.SubResource("approval").Update(t.Context(), denied.Request))
	deleted := w.prove(jane, nil)
	must(t, hub.Delete(t.Context(), deleted.Request))
	recreated := w.prove(jane, nil)
	recreated.Request.UID = "another"
	ofBody, err := proof.Token(wire.PathIn(here, wire.Copy, w.ns), []byte("{}"), time.Now())
	must(t, err)
	old, err := json.Marshal(map[string]any{"name": proof.Request.Name, "uid": proof.Request.UID})
	must(t, err)
	tests := map[string]struct {
		token   string
		refused func(error) bool
		says    string
	}{
		"a request of another user, with a key of one's own": {signed(ofJoe, here), apierrors.IsUnauthorized, "the signature does not match the key"},
		"a request for another signer":                       {signed(signer, here), apierrors.IsUnauthorized, "does not have the UID of the proof, or the signerName"},
		"a request that names another user":                  {signed(claimed, here), apierrors.IsForbidden, `"` + joe + `" needs the verb view`},
		"a request that is denied":                           {signed(denied, here), apierrors.IsUnauthorized, "is Denied or Failed"},
		"a request that is gone":                             {signed(deleted, here), apierrors.IsUnauthorized, "does not exist"},
		"a request that was made again under the same name":  {signed(recreated, here), apierrors.IsUnauthorized, "does not have the UID of the proof, or the signerName"},
		"a proof of a request about another cluster":         {signed(proof, elsewhere), apierrors.IsUnauthorized, "is for another request"},
		"a proof of another body":                            {ofBody, apierrors.IsUnauthorized, "is for another request body"},
		"a proof of an older hansectl":                       {"csr." + base64.RawURLEncoding.EncodeToString(old) + ".", apierrors.IsUnauthorized, "this hansectl is older than the hub"},
		"a proof without a signature":                        {parts[0] + "." + parts[1], apierrors.IsUnauthorized, "the signature does not match the key"},
		"a proof that says nothing":                          {"csr.", apierrors.IsUnauthorized, "cannot be read"},
		"a proof that is no text":                            {"csr.%.%", apierrors.IsUnauthorized, "cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := ask(tc.token, here); !tc.refused(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
