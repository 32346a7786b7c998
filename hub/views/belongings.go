package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

const (
	// MaxLines is the maximum number of lines of one log in one answer.
	MaxLines = 10_000
	// maxLogs is the maximum number of logs in one answer. maxLogBytes is the maximum size of each log in bytes.
	maxLogs     = 20
	maxLogBytes = 100 << 10
)

// belongings are the copy of a hub object on a member, and the objects that controllers on the member have made for
// this copy, such as its pods.
type belongings struct {
	placed
	member   Member
	copied   member.Involved
	children []member.Child
	notes    []string
}

// noCopy returns the reason for an empty answer: the member has no copy of the hub object. The hub recognises a copy by
// its UID, so that it does not read another object of the same name.
func noCopy(id hubv1.ObjectIdentity, cluster string) *wire.Reason {
	return &wire.Reason{Reason: hubv1.ReasonMissing, Message: fmt.Sprintf("the hub knows of no copy of %s on cluster %s", id, cluster)}
}

// belonging finds the copy of a hub object, and the objects that controllers made for this copy. The user needs the
// right to get the hub object, and the given right in its namespace. If the member has no copy, b is nil, and refused
// has the reason.
func (v *View) belonging(ctx context.Context, q *question, o wire.Object, right authorizationv1.ResourceAttributes) (b *belongings, refused *wire.Reason, err error) {
	p, err := v.find(ctx, q, o)
	if err != nil {
		return nil, nil, err
	}
	right.Namespace = namespaceOf(p.id)
	if err := v.demand(ctx, q.who, right); err != nil {
		return nil, nil, err
	}
	row := p.binding.BindingStatus().Row(q.cluster)
	if row == nil || row.UID == "" {
		return nil, noCopy(p.id, q.cluster), nil
	}
	m, err := v.member(ctx, q, true, p)
	if err != nil {
		return nil, nil, err
	}
	found := m.Children(ctx, []member.Owner{{Kind: p.id.GroupKind(), Namespace: p.id.Namespace, UID: row.UID}})
	b = &belongings{placed: p, member: m, children: found.Of[row.UID], notes: found.Notes}
	b.copied = member.Involved{Group: p.id.Group, Kind: p.id.Kind, Name: p.id.Name, UID: row.UID}
	return b, nil, nil
}

// namespaceOf returns the namespace that has the events about an object. For a cluster-scoped object, this is the
// namespace default.
func namespaceOf(id hubv1.ObjectIdentity) string {
	return cmp.Or(id.Namespace, metav1.NamespaceDefault)
}

// each calls visit for every child, which is an object that a controller has made for a copy. It also visits the
// children of each child, at all levels.
func each(children []member.Child, visit func(member.Child)) {
	for _, c := range children {
		visit(c)
		each(c.Children, visit)
	}
}

// events handles an EventsRequest. It returns the events about a copy, and about the objects that controllers made for
// the copy.
func (v *View) events(ctx context.Context, q *question) (any, error) {
	var in wire.EventsRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	b, refused, err := v.belonging(ctx, q, in.Object, authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "events"})
	if err != nil || refused != nil {
		return wire.EventsAnswer{Refused: refused}, err
	}
	about := []member.Involved{b.copied}
	each(b.children, func(c member.Child) {
		about = append(about, member.Involved{Group: c.Group, Kind: c.Kind, Name: c.Name})
	})
	found, err := b.member.Events(q.keep(ctx), namespaceOf(b.id), about)
	if err != nil {
		return nil, v.unread(q.cluster, schema.GroupResource{Resource: "events"}, err)
	}
	return wire.EventsAnswer{Events: found.Items, More: found.More, Notes: b.notes}, nil
}

// logs handles a LogsRequest. It returns the logs of the pods that controllers made for a copy, or of the copy itself
// if it is a pod.
func (v *View) logs(ctx context.Context, q *question) (any, error) {
	var in wire.LogsRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	if in.Lines < 0 || in.Lines > MaxLines {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a request may ask for at most %d lines", MaxLines))
	}
	if in.Container != "" && len(validation.IsDNS1123Label(in.Container)) > 0 {
		return nil, apierrors.NewBadRequest("the request names no container")
	}
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	b, refused, err := v.belonging(ctx, q, in.Object, authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "pods", Subresource: "log"})
	if err != nil || refused != nil {
		return wire.LogsAnswer{Refused: refused}, err
	}
	wanted, notes := b.containers(in.Container)
	answer := wire.LogsAnswer{Notes: append(b.notes, notes...)}
	for _, w := range wanted {
		w.Lines, w.Bytes = cmp.Or(in.Lines, MaxLines), maxLogBytes
		for _, since := range in.Since {
			if since.Pod == w.Pod && since.Container == w.Container {
				w.Since = since.Time
			}
		}
		found, err := b.member.Log(ctx, w)
		out := wire.ContainerLog{Pod: w.Pod, Container: w.Container, Text: found.Text, Cut: found.Cut}
		switch {
		case apierrors.IsForbidden(err):
			return nil, v.unread(q.cluster, schema.GroupResource{Resource: "pods/log"}, err)
		case apierrors.IsNotFound(err):
			continue // the pod was deleted after the hub had seen it
		case err != nil:
			out.Error = logFault(err)
		}
		answer.Logs = append(answer.Logs, out)
	}
	return answer, nil
}

// containers returns the containers whose logs are to be read. If only is set, it returns the container with this name
// in each pod; otherwise, all containers. If the copy itself is a pod and only is empty, the member chooses the pod's
// only container. notes say which logs are left out, or why there are none.
func (b *belongings) containers(only string) (out []member.LogIntent, notes []string) {
	add := func(pod string, uid types.UID, names []string) {
		for _, name := range names {
			out = append(out, member.LogIntent{Namespace: b.id.Namespace, Pod: pod, UID: uid, Container: name})
		}
	}
	pods := 0
	if b.id.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		pods++
		add(b.id.Name, b.copied.UID, []string{only}) // an empty name: the member chooses the pod's only container
	}
	each(b.children, func(c member.Child) {
		if c.Group != "" || c.Kind != "Pod" {
			return
		}
		pods++
		names := c.Containers
		if only != "" {
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != only })
		}
		add(c.Name, c.UID, names)
	})
	switch {
	case len(out) > maxLogs:
		advice := "name one by --container"
		if only != "" {
			advice = "read the others by kubectl logs on the member"
		}
		notes = append(notes, fmt.Sprintf("%d containers have logs, and only the first %d are read: %s", len(out), maxLogs, advice))
		out = out[:maxLogs]
	case pods > 0 && len(out) == 0:
		notes = append(notes, fmt.Sprintf("no pod has a container %q", only))
	case pods == 0:
		notes = append(notes, "no pods belong to the object")
	}
	return out, notes
}

// logFault returns why a log could not be read. If the member answers BadRequest, such as for a container that has not
// started, it returns the member's text, because only this text has the container's state.
func logFault(err error) string {
	var status apierrors.APIStatus
	if apierrors.IsBadRequest(err) && errors.As(err, &status) {
		return member.Line(status.Status().Message, 256)
	}
	return causeOf(err)
}
