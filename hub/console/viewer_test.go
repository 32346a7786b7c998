package console

import (
	"os"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rulesIn returns the rules of a ClusterRole in a file of this repository. The file may be a template of a chart, or a
// script with YAML in it, of which each line is indented by a tab.
func rulesIn(t *testing.T, path, name string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	templated := regexp.MustCompile(`(?m)^.*\{\{.*$`)
	for _, document := range regexp.MustCompile(`(?m)^\t?---$|<<-EOF$|^EOF$`).Split(string(text), -1) {
		document = strings.ReplaceAll("\n"+templated.ReplaceAllString(document, ""), "\n\t", "\n")
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &role) == nil && role.Kind == "ClusterRole" && role.Name == name {
			return role.Rules
		}
	}
	t.Fatalf("%s has no ClusterRole %s", path, name)
	return nil
}

// TestTheViewerOfTheDemoMeetsNoWarning opens the pages with the rights that hack/demo.sh grants. ConfigMaps stand for
// the demo's Prometheuses, which this API server does not know.
func TestTheViewerOfTheDemoMeetsNoWarning(t *testing.T) {
	onHub := rulesIn(t, "../../charts/hanse-hub/templates/console.yaml", "hanse-fleet-view")
	inNamespace := rulesIn(t, "../../hack/demo.sh", "demo-prometheuses")
	for i := range inNamespace {
		if inNamespace[i].Resources[0] == "prometheuses" {
			inNamespace[i].APIGroups, inNamespace[i].Resources = []string{""}, []string{"configmaps"}
		}
	}
	w := newWorld(t)
	good, bad := w.cluster("good", "eu", metav1.ConditionTrue), w.cluster("bad", "cn", metav1.ConditionFalse)
	w.place("settings", healthyOn(good), refusedOn(bad, "a reason"))
	w.serveViews(map[string]*stubMember{good: {}, bad: {}})
	b := w.user(inNamespace, onHub)
	for _, path := range []string{
		"/", "/?view=table", "/?namespace=" + w.ns, "/objects", "/rollouts", "/operators", "/whatif", "/clusters/" + good, objectQuery(w, "settings"),
		objectQuery(w, "settings", "cluster", good), objectQuery(w, "settings", "tree", "*"),
	} {
		page := b.get(path)
		page.shows(t, "<h1>")
		page.hides(t, `class="missing"`, `class="fault"`)
	}
}
