package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestABadKubeconfigIsRefusedInClearWords joins a member with each kind of invalid credentials.
func TestABadKubeconfigIsRefusedInClearWords(t *testing.T) {
	valid := func(t *testing.T) *clientcmdapi.Config {
		t.Helper()
		token, err := suite.Members[shanghai].Token(t.Context(), "hanse")
		must(t, err)
		raw, err := suite.Members[shanghai].KubeconfigFor(token, true)
		must(t, err)
		config, err := clientcmd.Load(raw)
		must(t, err)
		return config
	}
	edited := func(edit func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo)) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			config := valid(t)
			edit(config.Clusters[shanghai], config.AuthInfos["hanse"])
			raw, err := clientcmd.Write(*config)
			must(t, err)
			return raw
		}
	}
	tests := map[string]struct {
		kubeconfig func(*testing.T) []byte // nil means that the member has no Secret
		reason     string
		words      string // text in the condition's message
	}{
		"an address where nobody listens": {
			kubeconfig: edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://127.0.0.1:1" }),
			reason:     hubv1.ReasonUnreachable, words: "127.0.0.1:1",
		},
		"the CA of another cluster": {
			kubeconfig: func(t *testing.T) []byte {
				config := valid(t)
				other, err := suite.Members[frankfurt].KubeconfigFor("t", true)
				must(t, err)
				wrong, err := clientcmd.Load(other)
				must(t, err)
				config.Clusters[shanghai].CertificateAuthorityData = wrong.Clusters[frankfurt].CertificateAuthorityData
				raw, err := clientcmd.Write(*config)
				must(t, err)
				return raw
			},
			reason: hubv1.ReasonCertificateUnknown, words: "CA",
		},
		"a token that the cluster does not take": {
			kubeconfig: edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "revoked" }),
			reason:     hubv1.ReasonUnauthorized, words: "token",
		},
		"something that is not YAML": {
			kubeconfig: func(*testing.T) []byte { return []byte("{not: [yaml") },
			reason:     hubv1.ReasonKubeconfigInvalid, words: "kubeconfig",
		},
		"a kubeconfig with exec": {
			kubeconfig: edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
			}),
			reason: hubv1.ReasonKubeconfigRefused, words: "exec",
		},
		"a kubeconfig with auth-provider": {
			kubeconfig: edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "gcp"}
			}),
			reason: hubv1.ReasonKubeconfigRefused, words: "auth-provider",
		},
		"a kubeconfig with a file path": {
			kubeconfig: edited(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", "/etc/passwd" }),
			reason:     hubv1.ReasonKubeconfigRefused, words: "tokenFile",
		},
		"a kubeconfig with proxy-url": {
			kubeconfig: edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://127.0.0.1:3128" }),
			reason:     hubv1.ReasonKubeconfigRefused, words: "proxy-url",
		},
		"a kubeconfig with insecure-skip-tls-verify": {
			kubeconfig: edited(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
			}),
			reason: hubv1.ReasonKubeconfigRefused, words: "insecure-skip-tls-verify",
		},
		"no Secret": {reason: hubv1.ReasonSecretMissing, words: "hanse-system/bad-"},
		"a cluster that is a member already": {
			kubeconfig: edited(func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}),
			reason:     hubv1.ReasonDuplicateCluster, words: shanghai,
		},
	}
	i := 0
	for name, tc := range tests {
		i++
		member := fmt.Sprintf("bad-%d", i)
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.kubeconfig != nil {
				secret := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: member},
					Data:       map[string][]byte{"kubeconfig": tc.kubeconfig(t)},
				}
				must(t, suite.Hub.Create(ctx, secret))
				t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), secret) })
			}
			mcl := &hubv1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: member},
				Spec: hubv1.MemberClusterSpec{
					Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: member}}},
					AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromNone},
				},
			}
			must(t, suite.Hub.Create(ctx, mcl))
			t.Cleanup(func() {
				ctx := context.WithoutCancel(ctx)
				_ = suite.Hub.Delete(ctx, mcl)
				must(t, poll(ctx, normal, func() error {
					if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(mcl), &hubv1.MemberCluster{}); err == nil {
						return fmt.Errorf("MemberCluster %s hangs", member)
					}
					return nil
				}))
			})
			eventually(t, normal, func() error {
				if err := memberCondition(ctx, member, hubv1.ConditionReady, metav1.ConditionFalse, tc.reason); err != nil {
					return err
				}
				return messageHas(ctx, member, tc.words)
			})
		})
	}
	for _, m := range members {
		eventually(t, normal, func() error { return memberReady(t.Context(), m) })
	}
}

func messageHas(ctx context.Context, member, words string) error {
	var mcl hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: member}, &mcl); err != nil {
		return err
	}
	for _, c := range mcl.Status.Conditions {
		if c.Type == hubv1.ConditionReady && strings.Contains(c.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("no message of %s holds %q: %+v", member, words, mcl.Status.Conditions)
}

// TestABadManifestFailsInItsRowOnly creates one invalid object or policy at a time. A valid object in the same
// namespace must still be applied.
func TestABadManifestFailsInItsRowOnly(t *testing.T) {
	override := func(rule hubv1.OverrideRule) func(*testing.T, string) {
		return func(t *testing.T, ns string) {
			rule.Name = "bad-rule"
			must(t, suite.Hub.Create(t.Context(), &hubv1.OverridePolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bad-policy"},
				Spec: hubv1.OverridePolicySpec{
					ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: widgetKind.Group, Kind: widgetKind.Kind, Name: "bad"}},
					Rules:             []hubv1.OverrideRule{rule},
				},
			}))
		}
	}
	tests := map[string]struct {
		spoil  func(t *testing.T, ns string)
		reason string
		words  []string
	}{
		"a JSON pointer that does not exist": {
			spoil:  override(hubv1.OverrideRule{Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/missing/deep", Value: &apiextensionsv1.JSON{Raw: []byte(`1`)}}}}),
			reason: hubv1.ReasonOverrideInvalid, words: []string{"bad-policy", "bad-rule", "/spec/missing"},
		},
		"a merge patch of the identity": {
			spoil:  override(hubv1.OverrideRule{MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"metadata":{"name":"other"}}`)}}),
			reason: hubv1.ReasonOverrideInvalid, words: []string{"bad-policy", "bad-rule", "/metadata/name"},
		},
		"a value that the member's schema refuses": {
			spoil:  override(hubv1.OverrideRule{Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/replicas", Value: &apiextensionsv1.JSON{Raw: []byte(`-5`)}}}}),
			reason: hubv1.ReasonOverrideInvalid, words: []string{"/spec/replicas", "not -5", "OverridePolicy"},
		},
		"a field that the member's schema does not have": {
			spoil:  override(hubv1.OverrideRule{Patches: []hubv1.PatchOperation{{Op: hubv1.PatchAdd, Path: "/spec/unheard", Value: &apiextensionsv1.JSON{Raw: []byte(`"of"`)}}}}),
			reason: hubv1.ReasonFieldsNotServed, words: []string{"spec.unheard"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			ns := namespace(t)
			bad, good := widget(ns, "bad"), widget(ns, "good")
			placeWidgets(t, ns, shanghai)
			must(t, suite.Hub.Create(ctx, bad))
			must(t, suite.Hub.Create(ctx, good))
			eventually(t, normal, func() error { return allAppliedOn(ctx, shanghai, bad, good) })
			tc.spoil(t, ns)
			eventually(t, normal, func() error { return rowIs(ctx, bad, shanghai, metav1.ConditionFalse, tc.reason) })
			b, err := bindingOf(ctx, bad)
			must(t, err)
			for _, want := range tc.words {
				if got := b.BindingStatus().Row(shanghai).Message; !strings.Contains(got, want) {
					t.Errorf("the message does not name %q: %s", want, got)
				}
			}
			must(t, replicasOn(ctx, shanghai, bad, 3)) // the copy stays as it was
			must(t, suite.Hub.Patch(ctx, widget(ns, "good"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
			eventually(t, normal, func() error { return replicasOn(ctx, shanghai, good, 4) })
		})
	}
}

func allAppliedOn(ctx context.Context, member string, objs ...*unstructured.Unstructured) error {
	for _, o := range objs {
		if err := rowIs(ctx, o, member, metav1.ConditionTrue, ""); err != nil {
			return err
		}
	}
	return nil
}

func TestAPatchOfAForbiddenPathIsRefusedAtAdmission(t *testing.T) {
	ns := namespace(t)
	for _, path := range []string{"/metadata/name", "/kind", "/status/replicas", "/metadata/labels/hanse.dev~1hub", "/metadata/finalizers"} {
		err := suite.Hub.Create(t.Context(), &hubv1.OverridePolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "forbidden"},
			Spec: hubv1.OverridePolicySpec{
				ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
				Rules: []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{
					{Op: hubv1.PatchReplace, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}},
				}}},
			},
		})
		if err == nil || !strings.Contains(err.Error(), "cannot be patched") {
			t.Errorf("%s: got %v, want a refusal", path, err)
		}
	}
}

func TestASelectorForAKindThatTheHubDoesNotServeSaysSo(t *testing.T) {
	ns := namespace(t)
	p := place(t, ns, "unknown", hubv1.ResourceSelector{APIGroup: "no.such.group", Kind: "Nothing"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	eventually(t, normal, func() error {
		return placementCondition(t.Context(), p, hubv1.ConditionAccepted, metav1.ConditionFalse, hubv1.ReasonKindNotServed, "Nothing")
	})
}

func TestANamespaceThatIsTerminatingOnAMemberIsWaitedFor(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	must(t, suite.Members[shanghai].Create(ctx, held))
	// The finalizer of this ConfigMap keeps the namespace terminating until the test removes the finalizer.
	blocker := configMap(ns, "blocker")
	blocker.SetFinalizers([]string{"test.hanse.dev/hold"})
	must(t, suite.Members[shanghai].Create(ctx, blocker))
	must(t, suite.Members[shanghai].Delete(ctx, held))
	w := widget(ns, "patient")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonNamespaceTerminate)
	})
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	must(t, suite.Members[shanghai].Patch(ctx, blocker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(t, 2*time.Minute, func() error { return replicasOn(ctx, shanghai, w, 3) })
}

// placementCondition returns nil if the placement has the condition with this status and reason, and its message
// contains the words.
func placementCondition(ctx context.Context, p *hubv1.Placement, conditionType string, status metav1.ConditionStatus, reason, words string) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	for _, c := range now.Status.Conditions {
		if c.Type == conditionType && c.Status == status && c.Reason == reason && strings.Contains(c.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("placement %s: conditions are %+v, want %s %s %s %q", p.Name, now.Status.Conditions, conditionType, status, reason, words)
}
