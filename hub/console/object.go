package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// every is the value of a query parameter that selects all clusters with a copy of the object.
const every = "*"

// objectBody has the data for the template of an object's page.
type objectBody struct {
	ID     hubv1.ObjectIdentity
	Status view.Status
	Now    time.Time
	// Cluster is the only cluster that the page shows. It is empty if the page shows all clusters.
	Cluster string
	// Explanation says why each cluster gets the object or not. It is nil if the object is being deleted or has no
	// binding. It is also nil if the console cannot read all data from which the hub decides.
	Explanation *view.Explanation
	// Fields says who has set each field of the copy on the cluster FieldsOf: the page's only cluster, or the one with the
	// worst copy. Only for the page's only cluster, it also says who manages the fields on the member.
	Fields   *view.Fields
	FieldsOf string
	// Events are the object's events on the hub, and those on the members that answer requests for this page.
	Events *view.Events
	// Picture shows the way from the object to its clusters, and to the objects of the clusters that are not well. owned
	// has the answers of the members that were asked for it.
	Picture *picture
	owned   map[string]view.TreeCluster
	onMembers

	query url.Values
}

// rowsOnPage is the number of clusters on one page of an object.
const rowsOnPage = 100

// objectRow is the row of one cluster in the table on an object's page.
type objectRow struct {
	view.Row
	Text view.RowText
}

// rowsOfPage has one page of the rows of a table, and links to the pages before and after it.
type rowsOfPage[T any] struct {
	Rows []T
	// All is the number of rows on all pages. Previous and Next are the paths of the pages before and after. They are
	// empty if there is no such page.
	All            int
	Previous, Next string
}

// pageOf returns one page of all rows. The value of the given query parameter is the number of this page.
func pageOf[T any](b objectBody, parameter string, all []T) rowsOfPage[T] {
	page, _ := strconv.Atoi(b.query.Get(parameter)) // any other text gives the first page
	page = min(max(page, 1), max((len(all)+rowsOnPage-1)/rowsOnPage, 1))
	out := rowsOfPage[T]{Rows: all[(page-1)*rowsOnPage : min(page*rowsOnPage, len(all))], All: len(all)}
	if page > 1 {
		out.Previous = b.With(parameter, strconv.Itoa(page-1))
	}
	if page*rowsOnPage < len(all) {
		out.Next = b.With(parameter, strconv.Itoa(page+1))
	}
	return out
}

// Rows returns one page of the rows of clusters with a copy, the worst state first. If Cluster is set, it returns only
// the row of this cluster.
func (b objectBody) Rows() rowsOfPage[objectRow] {
	var all []objectRow
	for _, row := range b.Status.Clusters {
		if b.Cluster == "" || b.Cluster == row.Cluster {
			all = append(all, objectRow{row, b.Status.TextOf(row, b.Now)})
		}
	}
	slices.SortStableFunc(all, func(x, y objectRow) int { return cmp.Compare(x.Copy(), y.Copy()) })
	return pageOf(b, "page", all)
}

// Elsewhere returns one page of the clusters that do not get the object, each with the reason. If Cluster is set, it
// returns only this cluster.
func (b objectBody) Elsewhere() rowsOfPage[view.ExplainedCluster] {
	var all []view.ExplainedCluster
	for _, c := range b.Explanation.Clusters {
		if b.Cluster == c.Cluster || b.Cluster == "" && c.Result != view.Selected {
			all = append(all, c)
		}
	}
	return pageOf(b, "elsewhere", all)
}

// With returns the path of this page, with the query parameters changed as the pairs of names and values say. An empty
// value removes the parameter.
func (b objectBody) With(pairs ...string) string { return with("/object", b.query, pairs...) }

// onMembers has the parts of an object's page that the hub reads from members. The hub asks members only if the user
// requests these parts.
type onMembers struct {
	Diff      *view.ClusterDiff
	Tree      *view.TreeObject
	TreeNotes []view.ClusterNote
	Logs      *objectLogs
	// MayLogs is true if the page offers the logs of pods.
	MayLogs bool
	// Asked is true if the page shows data that the hub has just requested from a member. Such a page does not load again
	// by itself.
	Asked bool
}

// objectReader reads the inputs of an object's page.
type objectReader struct {
	*visit
	id      hubv1.ObjectIdentity
	object  *unstructured.Unstructured // nil if the object is deleted
	binding hubv1.BindingObject        // nil if the object has no binding
	unread  bool                       // true: object has only the data from the binding
}

func objectPage(ctx context.Context, v *visit) (*page, error) {
	query := v.URL.Query()
	r := &objectReader{visit: v, id: hubv1.ObjectIdentity{
		Group: query.Get("group"), Kind: query.Get("kind"), Namespace: v.namespace, Name: query.Get("name"),
	}}
	if r.id.Kind == "" || r.id.Name == "" {
		return nil, fmt.Errorf("%w object for this address: the parameters kind and name are required", errNotFound)
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	body := objectBody{ID: r.id, Now: v.now, Cluster: query.Get("cluster"), Events: &view.Events{}, query: query}
	var err error
	if body.Status, err = r.status(ctx); err != nil {
		return nil, err
	}
	decision, err := r.inputs(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.hubEvents(ctx, body.Events); err != nil {
		return nil, err
	}
	if r.binding != nil {
		r.askMembers(ctx, &body, decision)
		if len(body.Status.Clusters) > 0 && body.Cluster == "" {
			body.draw()
			body.render(decision)
		}
	}
	if decision != nil {
		e := view.Explain(*decision, decide.Replay(*decision), body.Cluster)
		body.Explanation = &e
	}
	body.Events.Sort()
	p := &page{Title: titleOf(r.id), Nav: "objects", template: "object", Scope: in(r.id.Namespace), Crumbs: objectCrumbs(r.id), Body: body}
	if body.Asked {
		p.Scope = ""
	}
	return p, nil
}

// read reads the object and its binding. If the user may not read the object, the page shows only data of the binding.
func (r *objectReader) read(ctx context.Context) error {
	binding := hubv1.NewBinding(r.id.BindingKey())
	err := r.user.Get(ctx, r.id.BindingKey(), binding)
	switch {
	case err == nil && hubv1.ObjectOf(binding) == r.id:
		r.binding = binding
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading the binding of %s: %w", r.id, err)
	}
	if r.binding != nil && r.binding.BindingSpec().ObjectRef.Bundle != nil {
		return r.readBundled(ctx, *r.binding.BindingSpec().ObjectRef.Bundle)
	}
	r.object, err = r.hubObject(ctx)
	if apierrors.IsForbidden(err) && r.binding != nil {
		r.user.note("You do not see the object itself: " + err.Error())
		r.object, r.unread, err = view.Unread(r.binding), true, nil
	}
	if err == nil && r.object == nil && r.binding == nil {
		err = fmt.Errorf("%w %s", errNotFound, r.id)
	}
	return err
}

// readBundled reads an object of a bundle in the form in which the hub would store it. If the object cannot be read,
// the page shows only data of the binding.
func (r *objectReader) readBundled(ctx context.Context, of hubv1.BundleReference) error {
	b, err := inputs.Bundle(ctx, r.user, of)
	if err == nil && b == nil {
		return nil // the object is deleted together with its bundle
	}
	if err == nil {
		if unstored := view.Unstored(b); unstored != "" {
			r.user.note(unstored)
		}
		r.object, err = inputs.SourceOn(ctx, r.user, noCharts).Object(b, r.binding)
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) || apierrors.IsUnauthorized(err) {
		return err
	}
	if err != nil {
		r.user.note(whyHidden + ": " + err.Error())
		r.object, r.unread = view.Unread(r.binding), true
	}
	return nil
}

// whyHidden begins the note for a user who may not read everything from which the hub decides which clusters get the
// object.
const whyHidden = "You do not see why the object is on these clusters"

// noCharts returns an error instead of rendering the chart of an operator. Rendering cannot be interrupted, and may use
// all memory of the hub.
func noCharts(o *hubv1.FederatedOperator, _ inputs.Source) (inputs.Rendered, error) {
	return inputs.Rendered{}, fmt.Errorf("the console renders no charts: use hansectl explain for objects of %s", hubv1.ReferenceTo(o))
}

// hubObject reads the object from the hub. It returns nil if the hub does not have it.
func (r *objectReader) hubObject(ctx context.Context) (*unstructured.Unstructured, error) {
	mapping, err := r.user.RESTMapper().RESTMapping(r.id.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", r.id.GroupKind(), err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.user.Get(ctx, client.ObjectKey{Namespace: r.id.Namespace, Name: r.id.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.id, err)
	}
	annotations := object.GetAnnotations()
	delete(annotations, hubv1.BundleAnnotation) // only the hub sets it, and only on objects of bundles
	object.SetAnnotations(annotations)
	return object, nil
}

func (r *objectReader) status(ctx context.Context) (view.Status, error) {
	members, err := r.user.members(ctx)
	if err != nil {
		return view.Status{}, err
	}
	in := view.StatusInput{ID: r.id, Object: r.object, Binding: r.binding, Members: members, Now: r.now}
	if r.binding != nil {
		set, err := r.user.setRolloutOf(ctx, r.binding)
		if err != nil {
			return view.Status{}, err
		}
		if set != nil {
			in.BundleRollout = view.RolloutOfBundle(set.Bundle, set, nil)
		}
		return view.Of(in), nil
	}
	status := view.Of(in)
	around := view.Surroundings{}
	around.Placements, err = scopes.PlacementsFor(ctx, r.user, r.id.Namespace)
	if err := r.user.unlessForbidden(err, "You do not see all placements"); err != nil {
		return status, err
	}
	if r.id.Namespace != "" {
		var ns corev1.Namespace
		err := r.user.Get(ctx, client.ObjectKey{Name: r.id.Namespace}, &ns)
		if err := r.user.unlessForbidden(err, "Labels of the namespace are not considered"); err != nil {
			return status, fmt.Errorf("reading namespace %s: %w", r.id.Namespace, err)
		}
		around.NamespaceLabels = ns.Labels
	}
	status.NotFederated = view.WhyNot(r.id, r.object, around)
	return status, nil
}

// inputs returns everything from which the hub decides which clusters get the object. It returns nil if the object has
// no binding or is being deleted, or if something cannot be read.
func (r *objectReader) inputs(ctx context.Context) (*decide.Input, error) {
	if r.binding == nil || r.object == nil || r.unread || r.object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	reader := inputs.Reader{Client: r.user, Unless: r.user.unlessForbidden, Count: func(ctx context.Context) (map[string]int, error) {
		counts := map[string]int{}
		err := r.user.eachBinding(ctx, "", func(b hubv1.BindingObject) {
			for _, t := range b.BindingSpec().Clusters {
				if t.State == hubv1.TargetPresent {
					counts[t.Name]++
				}
			}
		})
		return counts, err
	}}
	in, err := reader.Read(ctx, r.object, r.binding, r.now)
	if err != nil {
		return nil, r.user.unlessForbidden(err, whyHidden)
	}
	return &in, nil
}

// hubEvents adds the hub's events about the object and about its binding.
func (r *objectReader) hubEvents(ctx context.Context, to *view.Events) error {
	namespace := r.id.Namespace
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	var of []client.Object
	if r.object != nil {
		of = append(of, r.object)
	}
	if r.binding != nil {
		of = append(of, r.binding)
	}
	for _, o := range of {
		var list corev1.EventList
		err := r.user.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())}, client.Limit(maxEvents))
		if err := r.user.unlessForbidden(err, "You do not see the events of the hub"); err != nil {
			return fmt.Errorf("listing events in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			to.AddHub(list.Items[i])
		}
	}
	return nil
}

// maxEvents is the maximum number of events that are read for one object of the hub.
const maxEvents = 200

// holders returns the clusters that the binding names. If named is a cluster's name instead of "*", it returns only
// this cluster, or nothing if the binding does not name this cluster.
func (r *objectReader) holders(named string) []string {
	var out []string
	for _, t := range r.binding.BindingSpec().Clusters {
		if named == every || named == t.Name {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}

// askMembers requests the parts of the page that the query asks for from members, and adds them to the page. All
// requests share one timeout.
func (r *objectReader) askMembers(ctx context.Context, body *objectBody, in *decide.Input) {
	ctx, cancel := context.WithTimeout(ctx, r.membersWithin)
	defer cancel()
	ask, unwell := r.questions(), body.unwell()
	var parts sync.WaitGroup
	part := func(named string, read func(clusters []string)) {
		if named != "" && named != every {
			named = strings.Join(r.holders(named), "")
		}
		if named != "" {
			body.Asked = true
			parts.Go(func() { read(r.holders(named)) })
		}
	}
	// Fields and differences are shown only for a single cluster. Therefore the function one returns an empty name for
	// "*", which means all clusters.
	one := func(named string) string { return strings.TrimPrefix(named, every) }
	if in != nil {
		part(one(body.Cluster), func(clusters []string) { body.Fields, body.FieldsOf = r.fields(ctx, ask, in, clusters[0]), clusters[0] })
	}
	part(one(body.query.Get("diff")), func(clusters []string) { body.Diff = r.diff(ctx, ask, clusters[0]) })
	part(body.query.Get("tree"), func(clusters []string) { body.Tree, body.TreeNotes = r.tree(ctx, ask, clusters) })
	part(one(body.query.Get("logs")), func(clusters []string) { body.Logs = r.logs(ctx, ask, clusters[0]) })
	if ask.views != nil {
		parts.Go(func() { body.MayLogs = r.mayLogs(ctx) })
	}
	part(body.query.Get("events"), func(clusters []string) { r.events(ctx, ask, clusters, body.Events) })
	if body.Cluster == "" && len(unwell) > 0 && ask.views != nil {
		parts.Go(func() { body.owned = r.owned(ctx, ask, unwell) })
	}
	parts.Wait()
}

func (r *objectReader) diff(ctx context.Context, ask *questions, cluster string) *view.ClusterDiff {
	var answer wire.DiffAnswer
	fault := ask.one(ctx, cluster, func(ctx context.Context, cluster string) error {
		request := wire.DiffRequest{Object: wire.ObjectOf(r.id)}
		return ask.views.Ask(ctx, cluster, wire.Diff, r.id.Namespace, request, &answer)
	})
	diff := view.DiffOf(cluster, r.id, answer, fault)
	return &diff
}

func (r *objectReader) tree(ctx context.Context, ask *questions, clusters []string) (*view.TreeObject, []view.ClusterNote) {
	tree := view.TreeOf(view.PlacementName{}, []hubv1.BindingObject{r.binding}, clusters, 1)
	object := wire.ObjectOf(r.id)
	var mu sync.Mutex
	var notes []view.ClusterNote
	notAsked := ask.each(ctx, clusters, func(ctx context.Context, cluster string) error {
		var answer wire.ChildrenAnswer
		request := wire.ChildrenRequest{Objects: []wire.Object{object}}
		err := ask.views.Ask(ctx, cluster, wire.Children, r.id.Namespace, request, &answer)
		mu.Lock()
		defer mu.Unlock()
		tree.Grow(cluster, answer.Objects)
		for _, note := range answer.Notes {
			notes = append(notes, view.ClusterNote{Cluster: cluster, Note: note})
		}
		return err
	})
	for _, n := range notAsked {
		tree.Grow(n.Cluster, []wire.ObjectChildren{{Object: object, Refused: &wire.Reason{Message: n.Note}}})
	}
	return &tree.Objects[0], notes
}

// owned asks members for the objects that controllers made for the copies, for the picture.
func (r *objectReader) owned(ctx context.Context, ask *questions, clusters []string) map[string]view.TreeCluster {
	ctx, cancel := context.WithTimeout(ctx, drawnWithin)
	defer cancel()
	tree, _ := r.tree(ctx, ask, clusters)
	out := map[string]view.TreeCluster{}
	for _, c := range tree.Clusters {
		out[c.Cluster] = c
	}
	return out
}

func (r *objectReader) events(ctx context.Context, ask *questions, clusters []string, to *view.Events) {
	var mu sync.Mutex
	to.NotAsked = ask.each(ctx, clusters, func(ctx context.Context, cluster string) error {
		var answer wire.EventsAnswer
		request := wire.EventsRequest{Object: wire.ObjectOf(r.id)}
		err := ask.views.Ask(ctx, cluster, wire.Events, r.id.Namespace, request, &answer)
		mu.Lock()
		defer mu.Unlock()
		to.Add(cluster, answer)
		return err
	})
}

// fields returns the author of each field of the copy on a cluster: an override rule, or a field manager. It returns
// nil if the cluster is not known. If the copy cannot be read, the result has no field managers.
func (r *objectReader) fields(ctx context.Context, ask *questions, in *decide.Input, cluster string) *view.Fields {
	i := slices.IndexFunc(in.Facts.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == cluster })
	if i < 0 {
		return nil
	}
	var answer wire.CopyAnswer
	fault := ask.one(ctx, cluster, func(ctx context.Context, cluster string) error {
		request := wire.CopyRequest{Object: wire.ObjectOf(r.id)}
		return ask.views.Ask(ctx, cluster, wire.Copy, r.id.Namespace, request, &answer)
	})
	var onMember *unstructured.Unstructured
	switch {
	case answer.Object != nil:
		onMember = &unstructured.Unstructured{Object: answer.Object}
	case fault == nil && answer.Refused != nil:
		fault = errors.New(answer.Refused.Reason + ": " + answer.Refused.Message)
	}
	fields := view.FieldsOf(*in, in.Facts.Overrides, in.Facts.Clusters[i], onMember)
	if fault != nil {
		fields.Note = "the copy could not be read: " + fault.Error()
	}
	return fields
}
