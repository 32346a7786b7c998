package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// page has the data of a page for its template.
type page struct {
	Title string
	// Nav is the entry of the navigation that is highlighted.
	Nav string
	// Scope selects the changes after which the page loads again, see live.go.
	Scope scope
	// Onward is the path that the browser loads next. It is empty for most pages.
	Onward string
	// Crumbs are the pages above this one. It is empty for the pages of the navigation.
	Crumbs []crumb
	// Body is the data of the page's template.
	Body any

	template string
}

// crumb is a page above the shown one, or a part of its name. Path is empty for a part without a page.
type crumb struct{ Path, Title string }

// frame has the data of the template that all pages share.
type frame struct {
	*page
	// User is the name of the user on the hub's API server, and Short is its short form.
	User, Short string
	CSRF        string
	Now         time.Time
	Notes       []string
	// Page is the path of the page, without its query.
	Page string
	// Namespace is the only namespace of the pages. It is empty if the pages show all namespaces.
	Namespace string
	// Namespaces are the namespaces from which the user can choose. It is empty if they are not known, or too many.
	Namespaces []string
	Links      []link
}

// link is a link in the navigation, which all pages share.
type link struct{ Nav, Path, Title string }

var links = []link{
	{"fleet", "/", "Fleet"},
	{"objects", "/objects", "Objects"},
	{"rollouts", "/rollouts", "Rollouts"},
	{"operators", "/operators", "Operators"},
	{"whatif", "/whatif", "What if"},
}

//go:embed templates
var sources embed.FS

// templates has the template of each page, by name. Each of them includes the frame, which is the part that all pages
// share.
var templates = parse("signin", "fault", "onward", "fleet",
	"rollouts", "rollout", "rolloutobject", "operators", "whatif",
	"choose", "matrix", "object", "cluster",
)

func parse(names ...string) map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(functions).ParseFS(sources, "templates/frame.html", "templates/parts.html"))
	out := map[string]*template.Template{}
	for _, name := range names {
		out[name] = template.Must(template.Must(frame.Clone()).ParseFS(sources, "templates/"+name+".html"))
	}
	return out
}

// functions are the functions that templates may call. A function that needs the current time takes it as an argument,
// because templates are parsed only once.
var functions = template.FuncMap{
	"ago":              ago,
	"plural":           plural,
	"plain":            plain,
	"short":            short,
	"clusterState":     clusterState,
	"healthState":      healthState,
	"resultState":      resultState,
	"rolloutState":     rolloutState,
	"waveClusterState": waveClusterState,
	"waveState":        waveState,
	"copyState":        copyState,
	"childState":       childState,
	"path":             pathOf,
	"objectPath":       objectPath,
	"problemPath":      problemPath,
	"conditions":       conditionsOf,
	"difference":       differenceOf,
	"seconds":          func(n int32) string { return duration.HumanDuration(time.Duration(n) * time.Second) },
}

// maxTextLength is the maximum length of an object's text on a page. Without this limit, the author of an object could
// make the page arbitrarily large.
const maxTextLength = 2000

// maxNameLength is the maximum length of an object's name in a row, so that a row has a few lines.
const maxNameLength = 72

// plain returns a text of an object without characters that do not print, cut to maxTextLength characters.
func plain(text string) string { return view.Printable(hubv1.CutMessage(text, maxTextLength)) }

// short returns a name as plain does, cut to maxNameLength characters: for a row, whose link leads to the whole name.
func short(name string) string { return view.Printable(hubv1.CutMessage(name, maxNameLength)) }

// ago returns the time since t in words, such as 5m or 3d. The text is empty if t is not known. A script updates the
// text on an open page.
func ago(t *metav1.Time, now time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	stamp, age := t.UTC().Format(time.RFC3339), duration.HumanDuration(max(now.Sub(t.Time), 0))
	return template.HTML(fmt.Sprintf(`<time class="age" datetime="%[1]s" title="%[1]s">%[2]s</time>`, stamp, age))
}

// state is how a page shows a state: by a colour, a sign and a word. Each of the three is enough alone, also for users
// who do not see colours. Class names the colour and the sign, and is one of signs.
type state struct{ Class, Word string }

// signs are the classes of states, from the loudest to the quietest. The first four need a user.
var signs = []string{"down", "bad", "unknown", "held", "run", "todo", "off", "ok"}

// cell is a state as a small square with a link. Quiet is true if the cause of the state is loud elsewhere on the page.
type cell struct {
	Class, Path, Label string
	Quiet              bool
}

// clusterState returns the display of a cluster's state.
func clusterState(c view.Cluster) state {
	switch {
	case c.Leaving:
		return state{"off", "leaving"}
	case c.Ready == string(metav1.ConditionFalse) && c.Reason != hubv1.ReasonUnreachable:
		return state{"down", "not ready"}
	case !c.Live:
		return state{"unknown", "unknown"}
	case c.Draining:
		return state{"off", "draining"}
	case c.Cordoned:
		return state{"off", "cordoned"}
	}
	return state{"ok", "ready"}
}

// smallPage is the size of a small page, such as that to sign in, in bytes.
const smallPage = 4 << 10

// render returns the HTML of a page.
func (p *page) render(v *visit) ([]byte, error) {
	f := frame{
		page: p, User: v.session.User, Short: shortUser(v.session.User), CSRF: v.session.CSRF, Now: v.now, Page: v.URL.Path,
		Namespace: v.namespace, Namespaces: v.namespaces, Links: links,
	}
	if v.user != nil {
		f.Notes = slices.Compact(slices.Sorted(slices.Values(v.user.notes)))
	}
	out := bytes.NewBuffer(make([]byte, 0, smallPage))
	if err := templates[p.template].ExecuteTemplate(out, "frame.html", f); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", p.template, err)
	}
	return out.Bytes(), nil
}

// errNotFound is the error for an object that does not exist on the hub.
var errNotFound = errors.New("the hub has no")

// refuse answers with an error page. If the API server does not accept the token, the session ends.
func (c *Console) refuse(w http.ResponseWriter, v *visit, err error) {
	switch {
	case apierrors.IsUnauthorized(err):
		c.toSignIn(w, v.Request, errExpired)
	case errors.Is(err, errNeedsNamespace):
		c.choose(w, v)
	case errors.Is(err, errNoRight), apierrors.IsForbidden(err):
		c.fail(w, v, http.StatusForbidden, err)
	case apierrors.IsNotFound(err), errors.Is(err, errNotFound):
		c.fail(w, v, http.StatusNotFound, err)
	case errors.Is(err, errRefused), apierrors.IsConflict(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		c.fail(w, v, http.StatusConflict, err)
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err):
		c.fail(w, v, http.StatusGatewayTimeout, err)
	default:
		if v.Context().Err() != nil {
			return // the browser has closed the connection
		}
		c.opts.Logger.Error(err, "Answering a request of a browser", "path", v.URL.Path)
		c.fail(w, v, http.StatusBadGateway, err)
	}
}

// noPage answers a request for a path that has no page.
func noPage(_ context.Context, v *visit) (*page, error) {
	return nil, fmt.Errorf("%w page %s", errNotFound, v.URL.Path)
}

var errUnreachable = errors.New("the hub's API server does not answer: reload the page in a few seconds")

// fault has the data for the template of an error page.
type fault struct {
	Status  string
	Message string
	Advice  string
}

// adviceOn says for which role a user may ask who lacks a right. namespace is the namespace of the page, if it has one.
func adviceOn(err error, namespace string) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Group != hubv1.GroupVersion.Group {
		return "Ask an administrator of the hub for this right."
	}
	if namespace != "" {
		return "Ask for the ClusterRole hanse-view in namespace " + namespace + "."
	}
	return "Ask for the ClusterRole hanse-view in the namespace, or for the whole hub."
}

func (c *Console) fail(w http.ResponseWriter, v *visit, status int, err error) {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = errUnreachable // the original error has an address inside the cluster
	}
	body := fault{Status: http.StatusText(status), Message: err.Error()}
	if status == http.StatusForbidden && apierrors.IsForbidden(err) {
		body.Advice = adviceOn(err, v.namespace)
	}
	p := &page{Title: body.Status, template: "fault", Body: body}
	answer, rendering := p.render(v)
	if rendering != nil {
		c.opts.Logger.Error(rendering, "Rendering an error")
		http.Error(w, body.Status, status)
		return
	}
	send(w, status, answer)
}
