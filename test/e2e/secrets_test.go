package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestNoValueOfASecretLeavesTheHub places Secrets and Widgets with unique values, and causes many errors while the hub
// logs at the highest verbosity. Then it searches for these values, and for the tokens in use, in the hub's logs,
// events, statuses and metrics, and in the output of hansectl.
func TestNoValueOfASecretLeavesTheHub(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	must(t, suite.hub.Stop())
	var err error
	suite.hub, err = suite.StartHub(ctx, "hub-verbose", "--zap-log-level=9")
	must(t, err)
	t.Cleanup(func() { // restart the hub with the flags that the other tests expect
		_ = suite.hub.Stop()
		startHub(t)
	})

	const inSecret, onMember, inWidget = "canary-of-a-secret", "canary-of-a-member", "canary-of-a-widget"
	secret := secretOf(ns, "sung", inSecret)
	broken := secretOf(ns, "broken", inSecret)
	reported := secretOf(ns, "reported", inSecret)
	wrong := widget(ns, "wrong")
	must(t, unstructured.SetNestedField(wrong.Object, inWidget, "spec", "note"))
	failing := widget(ns, "failing")
	must(t, unstructured.SetNestedField(failing.Object, inWidget, "spec", "note"))

	place(t, ns, "secrets", hubv1.ResourceSelector{Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"mode": "enforce"}}}, hubv1.PlacementSpec{
		Clusters: everyCluster(), StatusAggregation: hubv1.StatusAggregation{HealthExpression: "object.data.password == ''"},
	})
	place(t, ns, "reported", hubv1.ResourceSelector{Kind: "Secret", Name: "reported"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{shanghai}}, Apply: hubv1.ApplyPolicy{Mode: hubv1.ApplyReportOnly},
	})
	placeWidgets(t, ns)
	policy := func(name, kind, group, object string, op hubv1.PatchOperation) {
		p := overrideOf(ns, name, hubv1.OverrideRule{Name: "r", Patches: []hubv1.PatchOperation{op}})
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: group, Kind: kind, Name: object}}
		must(t, suite.Hub.Create(ctx, p))
	}
	policy("refused", "Secret", "", "broken", hubv1.PatchOperation{Op: hubv1.PatchReplace, Path: "/type", Value: &apiextensionsv1.JSON{Raw: []byte(`"kubernetes.io/tls"`)}})
	policy("copied", "Widget", widgetKind.Group, "wrong", hubv1.PatchOperation{Op: hubv1.PatchCopy, From: "/spec/note", Path: "/spec/size"})
	policy("made", "Widget", widgetKind.Group, "failing", hubv1.PatchOperation{Op: hubv1.PatchReplace, Path: "/spec/replicas", Expression: "int(object.spec.note)"})

	theirs := secretOf(ns, "reported", onMember)
	must(t, client.IgnoreAlreadyExists(suite.Members[shanghai].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})))
	must(t, suite.Members[shanghai].Create(ctx, theirs))
	for _, o := range []*unstructured.Unstructured{secret, broken, reported, wrong, failing} {
		if o.GetKind() == "Secret" {
			o.SetLabels(map[string]string{"mode": "enforce"})
		}
		if o == reported {
			o.SetLabels(nil)
		}
		must(t, suite.Hub.Create(ctx, o.DeepCopy()))
	}
	for _, m := range members {
		eventually(t, normal, func() error { return passwordOn(ctx, m, secret, inSecret) })
		eventually(t, normal, func() error { return rowIs(ctx, broken, m, metav1.ConditionFalse, hubv1.ReasonManifestRefused) })
		eventually(t, normal, func() error { return rowIs(ctx, wrong, m, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
		eventually(t, normal, func() error { return rowIs(ctx, failing, m, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	}
	eventually(t, normal, func() error {
		return rowIs(ctx, reported, shanghai, metav1.ConditionFalse, hubv1.ReasonDiffers)
	})
	copied, err := on(ctx, shanghai, secret)
	must(t, err)
	must(t, suite.Members[shanghai].Patch(ctx, copied, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"password":%q}}`, onMember)), client.FieldOwner("kubectl-edit")))
	eventually(t, normal, func() error { return passwordOn(ctx, shanghai, secret, inSecret) })
	eventually(t, normal, func() error { return eventSays(ctx, ns, "DriftCorrected") })
	eventually(t, normal, func() error { return eventSays(ctx, ns, "ApplyFailed") })

	reader := newViewer(t, ns, "reader", getWidgets, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	secrets := canaries(t, inSecret, onMember)
	tokens := tokensInUse(t, reader)
	for _, args := range [][]string{
		{"diff", "secret", "sung"}, {"diff", "secret", "broken"}, {"diff", "secret", "reported"},
		{"status", "secret", "broken"}, {"explain", "secret", "broken"}, {"tree", "secret", "sung"},
		{"explain", "secret", "sung", "--cluster", shanghai, "--fields"}, {"explain", "widget", "wrong", "--cluster", shanghai, "--fields"},
	} {
		out, fault, _ := reader.hansectl(append(args, "-n", ns)...)
		silent(t, "hansectl "+strings.Join(args, " "), out+fault, secrets, tokens)
	}

	fields := canaries(t, inWidget)
	logs, err := filepath.Glob(filepath.Join(suite.Dir, "hub-*.log"))
	must(t, err)
	if len(logs) == 0 {
		t.Fatal("there is no log of a hub")
	}
	for _, path := range logs {
		raw, err := os.ReadFile(path)
		must(t, err)
		silent(t, "log "+filepath.Base(path), string(raw), secrets, tokens, fields)
	}
	for _, list := range []client.ObjectList{
		&corev1.EventList{}, &eventsv1.EventList{}, &hubv1.MemberClusterList{}, &hubv1.PlacementList{}, &hubv1.ClusterPlacementList{},
		&hubv1.OverridePolicyList{}, &hubv1.ClusterOverridePolicyList{}, &hubv1.ResourceBindingList{}, &hubv1.ClusterResourceBindingList{},
	} {
		must(t, suite.Hub.List(ctx, list))
		silent(t, fmt.Sprintf("%T", list), toJSON(t, list), secrets, tokens, fields)
	}
	for _, w := range []*unstructured.Unstructured{wrong, failing} {
		must(t, suite.Hub.Get(ctx, client.ObjectKeyFromObject(w), w))
		silent(t, "status of Widget "+w.GetName(), toJSON(t, w.Object["status"]), secrets, tokens, fields)
	}
	silent(t, "metrics", metricsPage(t), secrets, tokens, fields)

	for _, o := range []*unstructured.Unstructured{secret, broken} {
		must(t, suite.Hub.Delete(ctx, o))
	}
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, secret) })
	}
}

func secretOf(ns, name, password string) *unstructured.Unstructured {
	s := &unstructured.Unstructured{Object: map[string]any{"type": "Opaque", "data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))}}}
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	s.SetNamespace(ns)
	s.SetName(name)
	s.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + password + `"}}`})
	return s
}

// passwordOn returns nil if the copy on the member has this password.
func passwordOn(ctx context.Context, member string, secret *unstructured.Unstructured, want string) error {
	copied, err := on(ctx, member, secret)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	got, _, _ := unstructured.NestedString(copied.Object, "data", "password")
	if got != base64.StdEncoding.EncodeToString([]byte(want)) {
		return fmt.Errorf("on %s: Secret %s has another password", member, secret.GetName())
	}
	return nil
}

// canaries returns each text and its base64 encoding.
func canaries(t *testing.T, texts ...string) (out []string) {
	t.Helper()
	for _, text := range texts {
		out = append(out, text, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return out
}

// tokensInUse returns the tokens of the hub, of the members, and of a user.
func tokensInUse(t *testing.T, user viewer) (out []string) {
	t.Helper()
	var kept corev1.SecretList
	must(t, suite.Hub.List(t.Context(), &kept, client.InNamespace(hubv1.SystemNamespace)))
	paths, err := filepath.Glob(filepath.Join(suite.Dir, "hub-*.kubeconfig"))
	must(t, err)
	var kubeconfigs [][]byte
	for _, path := range append(paths, user.kubeconfig) {
		raw, err := os.ReadFile(path)
		must(t, err)
		kubeconfigs = append(kubeconfigs, raw)
	}
	for _, s := range kept.Items {
		if raw, ok := s.Data["kubeconfig"]; ok {
			kubeconfigs = append(kubeconfigs, raw)
		}
		if key, ok := s.Data["key"]; ok && s.Name == "hanse-secret-key" {
			out = append(out, base64.StdEncoding.EncodeToString(key))
		}
	}
	if len(out) != 1 {
		t.Fatal("there is no key of the digests of Secrets")
	}
	for _, raw := range kubeconfigs {
		config, err := clientcmd.Load(raw)
		if err != nil {
			continue // a test has replaced this kubeconfig with an invalid one
		}
		for _, u := range config.AuthInfos {
			if len(u.Token) > 20 {
				out = append(out, u.Token, u.Token[strings.LastIndex(u.Token, ".")+1:])
			}
		}
	}
	if len(out) < 2*(len(members)+2) {
		t.Fatalf("%d tokens are known, of the hub, a user and %d members", len(out)/2, len(members))
	}
	return out
}

// silent fails the test if a text contains one of the words. It does not print the word.
func silent(t *testing.T, where, text string, words ...[]string) {
	t.Helper()
	for _, all := range words {
		for _, word := range all {
			if i := strings.Index(text, word); i >= 0 {
				t.Errorf("%s tells a value, after %q", where, text[max(0, i-300):i])
			}
		}
	}
}

func metricsPage(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, suite.hub.Metrics, nil)
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	body, err := io.ReadAll(res.Body)
	must(t, errors.Join(err, res.Body.Close()))
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), "hanse_member_watches") {
		t.Fatalf("the metrics page answers %d", res.StatusCode)
	}
	return string(body)
}
