package read_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/read"
)

// pagedPods is a client of a member with five pages of pods, whose owner is "job". It records which pages are still in
// memory when the next page is requested.
type pagedPods struct {
	dynamic.NamespaceableResourceInterface
	given []weak.Pointer[unstructured.Unstructured]
	held  []string
}

const pagesOfPods = 5

func (p *pagedPods) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return p
}
func (p *pagedPods) Namespace(string) dynamic.ResourceInterface { return p }

func (p *pagedPods) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errors.New("what is granted is not told")
}

func (p *pagedPods) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	runtime.GC()
	page := len(p.given)
	for i, earlier := range p.given[:max(page-1, 0)] { // the page before may still be in use
		if earlier.Value() != nil {
			p.held = append(p.held, fmt.Sprintf("page %d when page %d is asked for", i, page))
		}
	}
	out := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, 2)}
	for i := range out.Items {
		pod := &out.Items[i]
		pod.Object = map[string]any{"apiVersion": "v1", "kind": "Pod"}
		pod.SetName(fmt.Sprintf("pod-%d-%d", page, i))
		pod.SetOwnerReferences([]metav1.OwnerReference{{UID: "job"}})
	}
	p.given = append(p.given, weak.Make(&out.Items[0]))
	if len(p.given) < pagesOfPods {
		out.SetContinue(strconv.Itoa(page))
	}
	return out, nil
}

func TestPagesAreNotKept(t *testing.T) {
	pods := &pagedPods{}
	found := read.NewFinder(pods).Children(t.Context(), []member.Owner{{Kind: schema.GroupKind{Group: "batch", Kind: "Job"}, Namespace: "shop", UID: "job"}})
	for _, held := range pods.held {
		t.Errorf("still held: %s", held)
	}
	var want []member.Child
	for page := range pagesOfPods {
		for i := range 2 {
			want = append(want, member.Child{Kind: "Pod", Name: fmt.Sprintf("pod-%d-%d", page, i), State: "Pending 0/0"})
		}
	}
	if diff := cmp.Diff(member.Children{Of: map[types.UID][]member.Child{"job": want}}, found); diff != "" {
		t.Error(diff)
	}
}
