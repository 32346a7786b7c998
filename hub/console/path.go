package console

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view"
)

// pathOf returns a path with a query from pairs of names and values. Empty values are left out.
func pathOf(path string, pairs ...string) string {
	query := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		query.Del(pair[0])
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// with returns a path with the parameters of a query. The given pairs replace parameters of the same name. Empty values
// are left out.
func with(path string, query url.Values, replaced ...string) string {
	var pairs []string
	for name := range query {
		pairs = append(pairs, name, query.Get(name))
	}
	return pathOf(path, append(pairs, replaced...)...)
}

// objectPath returns the path of the page of an object, which may be a MemberCluster. It is empty if there is no such
// page. namespace is the namespace to which the user's pages are restricted.
func objectPath(id hubv1.ObjectIdentity, namespace string) string {
	switch {
	case id.Kind == "":
		return ""
	case id.Group == hubv1.GroupVersion.Group && id.Kind == "MemberCluster":
		return pathOf("/clusters/"+url.PathEscape(id.Name), "namespace", namespace)
	}
	return pathOf("/object", "group", id.Group, "kind", id.Kind, "namespace", id.Namespace, "name", id.Name)
}

// problemPath returns the path of the page with the details of a problem: the cluster, the object, the rollout, the
// held removals, or the objects of the placement. It is empty if there is no such page.
func problemPath(p view.Problem, namespace string) string {
	switch p.Topic {
	case view.TopicRemoval:
		return pathOf("/rollouts", "namespace", namespace) + "#held"
	case view.TopicKind:
		return pathOf("/objects", "kind", p.Of, "namespace", namespace)
	case view.TopicRollout:
		if of, name, ok := placementOf(p.Of); ok {
			return rolloutPath(of, name)
		}
		return rolloutObjectPath(p.ID.Namespace, p.ID.BindingName())
	}
	// The parameter "placement" of the page /objects has the same form as p.Of, such as "Placement NAMESPACE/NAME".
	if strings.HasPrefix(p.Of, "Placement ") || strings.HasPrefix(p.Of, "ClusterPlacement ") {
		return pathOf("/objects", "placement", p.Of, "namespace", namespace)
	}
	return objectPath(p.ID, namespace)
}

// copyState returns the display of a copy's state.
func copyState(s rollup.CopyState) state {
	switch s {
	case rollup.CopyNotApplied:
		return state{"down", "not applied"}
	case rollup.CopyDegraded:
		return state{"bad", "degraded"}
	case rollup.CopyUnknown:
		return state{"unknown", "unknown"}
	case rollup.CopyProgressing:
		return state{"run", "progressing"}
	case rollup.CopyLeaving:
		return state{"off", "leaving"}
	case rollup.CopyHealthy:
		return state{"ok", "healthy"}
	}
	return state{}
}

// condition has the data of an object's condition for a template.
type condition struct {
	metav1.Condition
	Since template.HTML
}

func conditionsOf(all []metav1.Condition, now time.Time) []condition {
	var out []condition
	for _, c := range all {
		out = append(out, condition{c, ago(&c.LastTransitionTime, now)})
	}
	return out
}

// namespaceChoice has the data for the template of the page on which a user enters a namespace.
type namespaceChoice struct {
	Path string
	// Own is the namespace of the user's ServiceAccount, if it is the only namespace that is known.
	Own string
	// Keep has all query parameters of the requested page except the namespace.
	Keep []parameter
}

type parameter struct{ Name, Value string }

// choose asks a user who may not see all namespaces to enter a namespace.
func (c *Console) choose(w http.ResponseWriter, v *visit) {
	body := namespaceChoice{Path: v.URL.Path}
	query := v.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "namespace" {
			body.Keep = append(body.Keep, parameter{name, query.Get(name)})
		}
	}
	if len(v.namespaces) == 1 {
		body.Own = v.namespaces[0]
	}
	v.user = nil // the page shows no notes about missing rights to single kinds
	answer, err := (&page{Title: "Choose a namespace", template: "choose", Body: body}).render(v)
	if err != nil {
		c.opts.Logger.Error(err, "Rendering the choice of a namespace")
		http.Error(w, "the console cannot show the page", http.StatusInternalServerError)
		return
	}
	send(w, http.StatusOK, answer)
}
