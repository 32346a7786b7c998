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
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/inputs"
	"github.com/hanse-dev/hanse/hub/memberview"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/view"
)

// every stands for all clusters of an object, in a query.
const every = "*"

// objectBody is the body of the page of an object.
type objectBody struct {
	ID     hubv1.ObjectIdentity
	Status view.Status
	Now    time.Time
	// Cluster to which the page is narrowed; empty for all.
	Cluster string
	// Explanation is nil if the decision cannot be replayed, and Fields are nil without a Cluster.
	Explanation *view.Explanation
	Fields      *view.Fields
	// Events of the hub, and of the members that were asked.
	Events *view.Events
	onMembers

	query url.Values
}

// rowsOnPage is the number of clusters on one page of an object.
const rowsOnPage = 100

// objectRow is the row of a cluster.
type objectRow struct {
	view.Row
	Text view.RowText
}

// rowsOfPage has one page of rows, and its place among all.
type rowsOfPage[T any] struct {
	Rows []T
	// All is the number of all rows. Previous and Next are the paths of the pages beside; empty if there is none.
	All            int
	Previous, Next string
}

// pageOf returns the page of rows that a parameter of the query names.
func pageOf[T any](b objectBody, parameter string, all []T) rowsOfPage[T] {
	page, _ := strconv.Atoi(b.query.Get(parameter)) // any other text is the first page
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

// Rows are the clusters that hold the object, the worst first, or the one to which the page is narrowed.
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

// Elsewhere are the clusters that do not get the object, or the one to which the page is narrowed.
func (b objectBody) Elsewhere() rowsOfPage[view.ExplainedCluster] {
	var all []view.ExplainedCluster
	for _, c := range b.Explanation.Clusters {
		if b.Cluster == c.Cluster || b.Cluster == "" && c.Result != view.Selected {
			all = append(all, c)
		}
	}
	return pageOf(b, "elsewhere", all)
}

// With returns the path of this page with other parameters. An empty value removes its parameter.
func (b objectBody) With(pairs ...string) string { return with("/object", b.query, pairs...) }

// onMembers are the parts of the page that members have answered, because the user has asked for them.
type onMembers struct {
	Diff *view.ClusterDiff
	Tree *view.TreeObject
	// Notes are about clusters that did not answer, or not wholly.
	Notes []view.ClusterNote
	// Asked is true if the page has asked a member. It does not change by itself then.
	Asked bool
}

// objectReader reads the page of an object.
type objectReader struct {
	*visit
	id      hubv1.ObjectIdentity
	object  *unstructured.Unstructured // nil if it is deleted
	binding hubv1.BindingObject        // nil if there is none
	unread  bool                       // object has only what the binding tells
}

func objectPage(ctx context.Context, v *visit) (*page, error) {
	query := v.URL.Query()
	r := &objectReader{visit: v, id: hubv1.ObjectIdentity{
		Group: query.Get("group"), Kind: query.Get("kind"), Namespace: v.namespace, Name: query.Get("name"),
	}}
	if r.id.Kind == "" || r.id.Name == "" {
		return nil, fmt.Errorf("%w object without a kind and a name", errNotFound)
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
	}
	if decision != nil {
		e := view.Explain(*decision, decide.Replay(*decision), body.Cluster)
		body.Explanation = &e
	}
	body.Events.Sort()
	p := &page{Title: r.id.String(), Nav: "objects", template: "object", Scope: in(r.id.Namespace), Body: body}
	if body.Asked {
		p.Scope = ""
	}
	return p, nil
}

// read reads the object and its binding. Without the right to read the object, the binding tells what it knows.
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
		r.object, r.unread = view.Unread(r.binding), true
		return nil
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

// hubObject returns nil if the hub does not have the object.
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
	delete(annotations, hubv1.BundleAnnotation) // only objects of bundles have it, and the hub sets it
	object.SetAnnotations(annotations)
	return object, nil
}

func (r *objectReader) status(ctx context.Context) (view.Status, error) {
	members, err := r.user.members(ctx)
	if err != nil {
		return view.Status{}, err
	}
	status := view.Of(view.StatusInput{ID: r.id, Object: r.object, Binding: r.binding, Members: members, Now: r.now})
	if r.binding != nil {
		return status, nil
	}
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

// inputs returns the inputs of the decision; nil if there is no decision to replay, or if they cannot be read.
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
		return nil, r.user.unlessForbidden(err, "You do not see why the object is on these clusters")
	}
	return &in, nil
}

// hubEvents adds the events about the hub object, and about its binding.
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
		err := r.user.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())}, client.Limit(mostEvents))
		if err := r.user.unlessForbidden(err, "You do not see the events of the hub"); err != nil {
			return fmt.Errorf("listing events in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			to.AddHub(list.Items[i])
		}
	}
	return nil
}

// mostEvents are read of one object of the hub.
const mostEvents = 200

// holders are the clusters that hold the object, or the one that the query names.
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

// askMembers adds the parts that the query asks of members. They share the time limit of eachMember.
func (r *objectReader) askMembers(ctx context.Context, body *objectBody, in *decide.Input) {
	ctx, cancel := context.WithTimeout(ctx, r.membersWithin)
	defer cancel()
	object := memberview.ObjectOf(r.id)
	ofOne := func(parameter string) string { // which has no answer for every cluster
		return strings.TrimPrefix(body.query.Get(parameter), every)
	}
	var notes [4][]view.ClusterNote
	var parts sync.WaitGroup
	part := func(i int, named string, ask func(ctx context.Context, cluster string) error) {
		if named == "" {
			return
		}
		body.Asked = true
		parts.Go(func() { notes[i] = r.eachMember(ctx, r.holders(named), ask) })
	}
	var onMember *unstructured.Unstructured
	if in != nil {
		part(0, ofOne("cluster"), func(ctx context.Context, cluster string) (err error) {
			onMember, err = r.copy(ctx, cluster, object)
			return err
		})
	}
	part(1, ofOne("diff"), func(ctx context.Context, cluster string) error {
		var answer memberview.DiffAnswer
		err := r.user.views.Ask(ctx, cluster, memberview.Diff, r.id.Namespace, memberview.DiffRequest{Object: object}, &answer)
		if err == nil {
			diff := view.DiffOf(cluster, r.id, answer, nil)
			body.Diff = &diff
		}
		return err
	})
	var mu sync.Mutex
	tree := view.TreeOf(view.PlacementName{}, []hubv1.BindingObject{r.binding}, r.holders(body.query.Get("tree")), 1)
	part(2, body.query.Get("tree"), func(ctx context.Context, cluster string) error {
		var answer memberview.ChildrenAnswer
		request := memberview.ChildrenRequest{Objects: []memberview.Object{object}}
		err := r.user.views.Ask(ctx, cluster, memberview.Children, r.id.Namespace, request, &answer)
		mu.Lock()
		defer mu.Unlock()
		tree.Grow(cluster, answer.Objects)
		for _, note := range answer.Notes {
			body.Notes = append(body.Notes, view.ClusterNote{Cluster: cluster, Note: note})
		}
		return err
	})
	part(3, body.query.Get("events"), func(ctx context.Context, cluster string) error {
		var answer memberview.EventsAnswer
		err := r.user.views.Ask(ctx, cluster, memberview.Events, r.id.Namespace, memberview.EventsRequest{Object: object}, &answer)
		mu.Lock()
		defer mu.Unlock()
		body.Events.Add(cluster, answer)
		return err
	})
	parts.Wait()
	if body.query.Get("tree") != "" {
		body.Tree = &tree.Objects[0]
	}
	if in != nil && body.Cluster != "" {
		body.Fields = r.fields(in, body.Cluster, onMember, notes[0])
	}
	body.Notes = slices.Concat(body.Notes, notes[1], notes[2], notes[3], body.Events.Notes)
}

// copy reads the copy on a member, which names the managers of fields.
func (r *objectReader) copy(ctx context.Context, cluster string, object memberview.Object) (*unstructured.Unstructured, error) {
	var answer memberview.CopyAnswer
	if err := r.user.views.Ask(ctx, cluster, memberview.Copy, r.id.Namespace, memberview.CopyRequest{Object: object}, &answer); err != nil {
		return nil, err
	}
	switch {
	case answer.Object != nil:
		return &unstructured.Unstructured{Object: answer.Object}, nil
	case answer.Refused != nil:
		return nil, errors.New(answer.Refused.Reason + ": " + answer.Refused.Message)
	}
	return nil, errors.New("there is no copy")
}

// fields tells who set each field on a cluster; nil if the cluster is not known. It has fewer details without the copy.
func (r *objectReader) fields(in *decide.Input, cluster string, onMember *unstructured.Unstructured, notes []view.ClusterNote) *view.Fields {
	i := slices.IndexFunc(in.Facts.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == cluster })
	if i < 0 {
		return nil
	}
	fields := view.FieldsOf(*in, in.Facts.Overrides, in.Facts.Clusters[i], onMember)
	switch {
	case len(notes) > 0:
		fields.Note = "the copy could not be read: " + notes[0].Note
	case onMember == nil:
		fields.Note = "the object does not go to this cluster: these fields are what it would have there"
	}
	return fields
}
