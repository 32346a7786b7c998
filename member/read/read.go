package read

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

const (
	// pageSize is the number of objects that one request asks for.
	pageSize = 100
	// maxListBytes is the maximum size of all objects of a list, in bytes of the member's answer.
	maxListBytes = 8 << 20
	// maxPages is the maximum number of requests for a list.
	maxPages = 20
	// maxColumns, maxColumnLength and maxCellLength limit the size of a table.
	maxColumns      = 50
	maxColumnLength = 64
	maxCellLength   = 256
)

// ofPage has the limits of one page. For comparison, a page of 100 pods has about 500 KiB.
var ofPage = answer.Bounds{Bytes: maxListBytes, Values: 1 << 17}

const (
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	asJSON     = "application/json"
)

var (
	errNoList  = fmt.Errorf("%w: it is not a list", member.ErrUnreadable)
	errNoTable = fmt.Errorf("%w: it is not a table", member.ErrUnreadable)
)

// Reader reads from one member. It keeps no state.
type Reader struct{ client rest.Interface }

// New returns a Reader. Every request of the client has a timeout.
func New(client rest.Interface) *Reader { return &Reader{client} }

// get returns a request for objects of a resource. The namespace becomes a part of the request path. client-go checks
// it, so that a request with an invalid namespace fails and does not reach another resource.
func (r *Reader) get(resource schema.GroupVersionResource, namespace string) *rest.Request {
	root := []string{"apis", resource.Group, resource.Version}
	if resource.Group == "" {
		root = []string{"api", resource.Version}
	}
	request := r.client.Get().AbsPath(root...).Resource(resource.Resource)
	if namespace == "" {
		return request
	}
	return request.Namespace(namespace)
}

// List lists objects of a kind. It implements a method of member.Reader.
func (r *Reader) List(ctx context.Context, in member.ListIntent) (member.Listed, error) {
	ctx = answer.Within(ctx, ofPage)
	l := &list{in: in}
	options := metav1.ListOptions{LabelSelector: in.LabelSelector}
	if in.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, in.Name).String()
	}
	accept, add := asTable, l.addRows
	if in.Whole {
		accept, add = asJSON, l.addObjects
	}
	for pages := 1; ; pages++ {
		options.Limit = int64(min(pageSize, in.Limit-l.found))
		next, err := page(ctx, r.get(in.Kind.GroupVersion().WithResource(in.Resource), in.Namespace), accept, options, add)
		if err != nil {
			return member.Listed{}, err
		}
		if l.full() || next != "" && pages == maxPages {
			l.out.More = l.out.More || next != ""
			return l.out, nil
		}
		if options.Continue = next; next == "" {
			return l.out, nil
		}
	}
}

// page requests one page and calls add with its body. add returns the token of the next page. ctx carries the limits of
// the answer.
func page(
	ctx context.Context, request *rest.Request, accept string, options metav1.ListOptions, add func(body []byte) (next string, err error),
) (next string, err error) {
	body, err := request.SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).
		SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	return add(body)
}

// list is the state of one call of List.
type list struct {
	in    member.ListIntent
	out   member.Listed
	found int
	bytes int
}

func (l *list) full() bool { return l.found >= l.in.Limit || l.bytes >= maxListBytes }

// take counts an object and reports whether the list keeps it. It drops an object with another name or namespace than
// requested. A hostile member may send such an object, and the user may have no right to it.
func (l *list) take(name, namespace string) bool {
	if len(name) > hubv1.MaxNameLength || len(namespace) > hubv1.MaxNameLength {
		return false
	}
	if l.in.Name != "" && name != l.in.Name || l.in.Namespace != "" && namespace != l.in.Namespace {
		return false
	}
	if l.found == l.in.Limit { // the member ignores the limit of the request
		l.out.More = true
		return false
	}
	l.found++
	return true
}

// objects is one page of a list of whole objects.
type objects struct {
	Metadata metav1.ListMeta  `json:"metadata"`
	Items    []map[string]any `json:"items"`
}

func (l *list) addObjects(body []byte) (next string, err error) {
	var got objects
	if err := utiljson.Unmarshal(body, &got); err != nil {
		return "", errNoList
	}
	l.bytes += len(body)
	for _, item := range got.Items {
		o := unstructured.Unstructured{Object: item}
		if item == nil || !l.take(o.GetName(), o.GetNamespace()) {
			continue
		}
		// The items of a list have no kind. The caller needs the kind to find Secrets, whose values it removes.
		o.SetGroupVersionKind(l.in.Kind)
		o.SetManagedFields(nil)
		l.out.Objects = append(l.out.Objects, o.Object)
	}
	return got.Metadata.Continue, nil
}

// table is one page of a list as a table.
type table struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Kind     string          `json:"kind"`
	Columns  []struct {
		Name     string `json:"name"`
		Priority int    `json:"priority"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata struct {
				Name            string `json:"name"`
				Namespace       string `json:"namespace"`
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

func (l *list) addRows(body []byte) (next string, err error) {
	var got table
	if err := utiljson.Unmarshal(body, &got); err != nil || got.Kind != "Table" {
		return "", errNoTable
	}
	l.bytes += len(body)
	columns := got.Columns[:min(len(got.Columns), maxColumns)]
	if l.out.Columns == nil {
		for _, c := range columns {
			l.out.Columns = append(l.out.Columns, member.Column{Name: member.Line(c.Name, maxColumnLength), Wide: c.Priority > 0})
		}
	}
	for _, row := range got.Rows {
		about := row.Object.Metadata
		if !l.take(about.Name, about.Namespace) {
			continue
		}
		out := member.ListedRow{
			Namespace: member.Line(about.Namespace, hubv1.MaxNameLength), Name: member.Line(about.Name, hubv1.MaxNameLength),
			ResourceVersion: member.Line(about.ResourceVersion, hubv1.MaxUIDLength), Cells: make([]string, len(l.out.Columns)),
		}
		for i := range min(len(out.Cells), len(row.Cells)) {
			if row.Cells[i] != nil {
				out.Cells[i] = member.Line(fmt.Sprint(row.Cells[i]), maxCellLength)
			}
		}
		l.out.Rows = append(l.out.Rows, out)
	}
	return got.Metadata.Continue, nil
}
