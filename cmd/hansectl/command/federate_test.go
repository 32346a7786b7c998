package command

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/release"
	"github.com/hanse-dev/hanse/view/wire"
)

// installed stores a release of a chart of this repository, as helm does.
func installed(t *testing.T, s server, chart string, values map[string]any) {
	t.Helper()
	r := release.Release{Name: "hanse", Namespace: hubv1.SystemNamespace, Revision: 2, Values: values}
	root := filepath.Join("..", "..", "..", "charts", chart)
	must(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case err != nil:
			return err
		case path == "Chart.yaml":
			return yaml.Unmarshal(text, &r.Chart.Metadata)
		case path == "values.yaml":
			return yaml.Unmarshal(text, &r.Chart.Defaults)
		case path == "values.schema.json":
			r.Chart.Schema = text
		case strings.HasPrefix(path, "templates/"):
			r.Chart.Templates = append(r.Chart.Templates, release.File{Name: path, Data: text})
		case strings.HasPrefix(path, "files/"):
			r.Chart.Files = append(r.Chart.Files, release.File{Name: path, Data: text})
		}
		return nil
	}))
	text, err := json.Marshal(r)
	must(t, err)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	_, err = zipped.Write(text)
	must(t, errors.Join(err, zipped.Close()))
	apply(t, s, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "sh.helm.release.v1.hanse.v2", Labels: release.DeployedLabels()},
		Type:       release.SecretType, Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(out.Bytes()))},
	})
}

// playedHelm puts a helm into PATH that records its arguments and the values. It returns what it has recorded.
func playedHelm(t *testing.T) func() string {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\nfor a in \"$@\"; do\n  case \"$before\" in --values) cat \"$a\" >>'" + log + "' ;; *) echo \"$a\" >>'" + log + "' ;; esac\n  before=$a\ndone\n"
	must(t, os.WriteFile(filepath.Join(dir, "helm"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		text, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return string(text)
	}
}

func TestFederateChangesTheValueOfTheRelease(t *testing.T) {
	fresh(t)
	installed(t, onHub, "hanse-hub", map[string]any{"replicas": 0, "federatedKinds": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}}})
	helm := playedHelm(t)

	t.Run("a dry run shows the rights and changes nothing", func(t *testing.T) {
		out, err := hansectl(t, "federate", "workloads", "config", "--dry-run=client")
		must(t, err)
		wants(t, out, "release hanse                      revision 2 of chart hanse-hub", "+ get, list, watch on apps/daemonsets, apps/deployments, apps/statefulsets",
			"+ patch on apps/daemonsets/status", "secrets")
		if strings.Contains(out, "configmaps") || helm() != "" {
			t.Errorf("the output is\n%s", out)
		}
	})
	t.Run("without a confirmation nothing is changed", func(t *testing.T) {
		_, err := hansectl(t, "federate", "secrets")
		refused(t, err, "pass --yes to confirm")
		if ran := helm(); ran != "" {
			t.Errorf("helm ran: %s", ran)
		}
	})
	t.Run("helm gets all entries", func(t *testing.T) {
		out, err := hansectl(t, "federate", "deploy", "secrets", "--status", "--yes")
		must(t, err)
		wants(t, out, "upgraded: federatedKinds has 2 new kinds")
		const want = `federatedKinds:
- apiGroups:
  - ""
  resources:
  - configmaps
- apiGroups:
  - apps
  resources:
  - deployments
  status: true
- apiGroups:
  - ""
  resources:
  - secrets
  status: true
`
		ran := helm()
		wants(t, ran, "upgrade\nhanse\n", "hanse-hub.tgz\n", "--namespace\nhanse-system\n--reuse-values\n", "--kubeconfig\n"+onHub.kubeconfig)
		_, values, _ := strings.Cut(ran, "--values\n")
		values, _, _ = strings.Cut(values, "--kubeconfig")
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	})
	t.Run("kinds that the hub reads already change nothing", func(t *testing.T) {
		out, err := hansectl(t, "federate", "cm")
		must(t, err)
		wants(t, out, "the hub may read these kinds already")
	})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a kind that the hub does not serve": {[]string{"deploymnts"}, "the hub does not serve deploymnts: install its CustomResourceDefinition there first; did you mean deployments or deployment?"},
		"a kind of Hanse":                    {[]string{"placements.hanse.dev"}, "the hub's own kinds never go to members"},
		"no kind":                            {nil, "requires at least 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hansectl(t, append([]string{"federate"}, tc.args...)...)
			refused(t, err, tc.want)
		})
	}
	t.Run("of a release of Flux the values are printed", func(t *testing.T) {
		apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: hubName, Labels: map[string]string{
			"helm.toolkit.fluxcd.io/name": "hanse", "helm.toolkit.fluxcd.io/namespace": "flux-system",
		}}})
		out, err := hansectl(t, "federate", "secrets", "--yes")
		must(t, err)
		wants(t, out, "It is owned by Flux, HelmRelease flux-system/hanse. Commit this value:\nfederatedKinds:\n", "- configmaps", "- secrets")
		if ran := helm(); ran != "" {
			t.Errorf("helm ran: %s", ran)
		}
	})
}

func TestFederateOfAHubWithoutARelease(t *testing.T) {
	fresh(t)
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: hubName, Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "hanse:rbac.authorization.k8s.io/ClusterRole:/hanse-hub"}}})
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: federatedRole}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
	}})
	out, err := hansectl(t, "federate", "config")
	must(t, err)
	wants(t, out, "+ secrets", "It is owned by Argo CD, Application hanse. Add these entries to its values, and commit them:\nfederatedKinds:\n- apiGroups:\n  - \"\"\n  resources:\n  - secrets\n")
	if strings.Contains(out, "configmaps") {
		t.Errorf("got\n%s", out)
	}
}

func TestFederateGrantsKindsOnMembers(t *testing.T) {
	fresh(t)
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: hubName}})
	_, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--grant", "configmaps", "--wait=false")
	must(t, err)
	must(t, report(t.Context(), "cn-sha-1", metav1.ConditionTrue, hubv1.ReasonConnected, memberID(t)))
	memberOf(t, "eu-fra-1", nil)
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var q wire.ListRequest
		must(t, json.Unmarshal(body, &q))
		if cluster != "eu-fra-1" || what != wire.List || q.Most != 1 {
			t.Errorf("asked %s of %s: %s", what, cluster, body)
		}
		if q.Kind == "Secret" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(ungrantedText))
		}
		return wire.ListAnswer{}, nil
	})
	out, err := h.hansectl("federate", "config", "--members", "all", "--member-kubeconfig", onMember.kubeconfig, "--token-file", planFile(t, "token"), "--yes")
	must(t, err)
	wants(t, out, "Member cn-sha-1 at ", "+ secrets", "grants configmaps, secrets", "Member eu-fra-1\n", "hansectl join eu-fra-1 --member-kubeconfig FILE --grant secrets\n")
	var role rbacv1.ClusterRole
	must(t, onMember.Get(t.Context(), client.ObjectKey{Name: accountName}, &role))
	if got := kindsToWrite(role.Rules); strings.Join(got, " ") != "configmaps secrets" {
		t.Errorf("the member grants %v", got)
	}
	out, err = h.hansectl("federate", "config", "--members", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--yes")
	must(t, err)
	wants(t, out, "the member grants these kinds already")
	_, err = h.hansectl("federate", "config", "--members", "eu-fra-1", "--member-kubeconfig", onMember.kubeconfig)
	refused(t, err, "it is for none of the chosen members")
	_, err = h.hansectl("federate", "config", "--members", "eu-far-1")
	refused(t, err, "no MemberCluster is named eu-far-1: there are cn-sha-1, eu-fra-1")
}
