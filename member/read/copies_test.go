package read_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/member/read"
)

const hubUID = "hub-1"

var widgets = discovery.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "shop", Version: "v1", Kind: "Widget"}, Resource: "widgets"}

// fakeMember is a client that answers with pages, and with the rights of the hub on the member.
type fakeMember struct {
	dynamic.NamespaceableResourceInterface
	rules  []any                                   // nil if the member reports no rules
	pages  map[string][]*unstructured.Unstructured // by the name of the resource, two objects per page
	errors map[string]error                        // the errors of list requests
	asked  []string
	at     string
}

// Resource implements dynamic.Interface.
func (m *fakeMember) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	on := *m
	on.at = r.Resource
	m.asked = append(m.asked, r.Resource)
	return &on
}

// Create answers a SelfSubjectRulesReview.
func (m *fakeMember) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	if err := m.errors[m.at]; err != nil {
		return nil, err
	}
	if m.rules == nil {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"incomplete": true}}}, nil
	}
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"resourceRules": m.rules}}}, nil
}

const perPage = 2

// List implements dynamic.ResourceInterface.
func (m *fakeMember) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := m.errors[m.at]; err != nil {
		return nil, err
	}
	if options.LabelSelector != hubv1.HubLabel+"="+hubUID || options.Limit == 0 {
		return nil, fmt.Errorf("asked for %+v", options)
	}
	from, _ := strconv.Atoi(options.Continue)
	all := m.pages[m.at]
	out := &unstructured.UnstructuredList{}
	for _, o := range all[from:min(from+perPage, len(all))] {
		out.Items = append(out.Items, *o)
	}
	if from+perPage < len(all) {
		out.SetContinue(strconv.Itoa(from + perPage))
	}
	return out, nil
}

func (m *fakeMember) lister() *read.Lister {
	return read.NewLister(read.ListerOptions{
		Client: m, HubUID: hubUID,
		Groups: func(context.Context) ([]string, error) { return []string{"", "shop"}, nil },
		Kinds: func(_ context.Context, group string) ([]discovery.Kind, error) {
			if group == "broken" {
				return nil, errors.New("no answer")
			}
			if group != "shop" {
				return []discovery.Kind{{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods"}}, nil
			}
			return []discovery.Kind{widgets}, nil
		},
	})
}

// grants returns a rule that lets the hub list and write a resource.
func grants(group, resource string) any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"get", "list", "patch"}}
}

// copied returns the metadata of a copy, as an item of a metadata list.
func copied(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}}
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID("uid-" + "1")
	o.SetResourceVersion("7")
	o.SetCreationTimestamp(metav1.Unix(1000, 0))
	o.SetLabels(map[string]string{hubv1.HubLabel: hubUID})
	o.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: "shop/Widget/shop/" + name + "/template", hubv1.SourceAnnotation: "3;10-a"})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: hubv1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}})
	return o
}

func everything(member.Copy) (bool, error) { return true, nil }

func copyNames(found member.Copies) []string {
	var out []string
	for _, c := range found.Copies {
		out = append(out, c.Object.Name)
	}
	return out
}

func TestCopiesAreObjectsThatTheHubApplied(t *testing.T) {
	edit := func(name string, f func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := copied(name)
		f(o)
		return o
	}
	m := &fakeMember{rules: []any{grants("shop", "widgets")}, pages: map[string][]*unstructured.Unstructured{"widgets": {
		copied("one"),
		edit("a-child-with-the-marks-of-its-owner", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: "shop/Widget/shop/one/template"})
		}),
		edit("restored-by-a-backup-tool", func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }),
		edit("of-another-hub", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{hubv1.HubLabel: "hub-2"}) }),
		edit("being-deleted", func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }),
		edit("without-marks", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }),
		edit("with-\x1b[31mcolours", func(*unstructured.Unstructured) {}),
		copied("two"),
	}}}
	found, err := m.lister().Copies(t.Context(), 100, everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, copyNames(found)); diff != "" || len(found.Notes) > 0 {
		t.Errorf("%s %v", diff, found.Notes)
	}
	want := member.Copy{
		GVK: widgets.GroupVersionKind, Object: hubv1.ObjectIdentity{Group: "shop", Kind: "Widget", Namespace: "shop", Name: "one"},
		UID: "uid-1", ResourceVersion: "7", Created: time.Unix(1000, 0), Source: found.Copies[0].Source,
	}
	if diff := cmp.Diff(want, found.Copies[0]); diff != "" || want.Source.String() != "3;10-a" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"selfsubjectrulesreviews", "widgets", "widgets", "widgets", "widgets"}, m.asked); diff != "" {
		t.Errorf("asked for other lists than those that are granted: %s", diff)
	}
}

func TestIfItsRightsAreNotKnownInFullEveryKindIsTried(t *testing.T) {
	m := &fakeMember{
		pages:  map[string][]*unstructured.Unstructured{"widgets": {copied("one")}},
		errors: map[string]error{"pods": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)},
	}
	found, err := m.lister().Copies(t.Context(), 100, everything)
	if diff := cmp.Diff([]string{"one"}, copyNames(found)); err != nil || diff != "" || len(found.Notes) > 0 {
		t.Errorf("%v %s %v", err, diff, found.Notes)
	}
}

func TestAMemberThatDoesNotAnswerAboutRightsIsAskedForNoList(t *testing.T) {
	m := &fakeMember{errors: map[string]error{"selfsubjectrulesreviews": apierrors.NewInternalError(errors.New("no answer"))}}
	if _, err := m.lister().Copies(t.Context(), 100, everything); err == nil {
		t.Error("it is an answer")
	}
	if diff := cmp.Diff([]string{"selfsubjectrulesreviews"}, m.asked); diff != "" {
		t.Error(diff)
	}
}

func TestListsAreBounded(t *testing.T) {
	m := &fakeMember{rules: []any{grants("shop", "widgets")}, pages: map[string][]*unstructured.Unstructured{"widgets": nil}}
	for i := range 20 {
		m.pages["widgets"] = append(m.pages["widgets"], copied(fmt.Sprintf("w-%d", i)))
	}
	found, err := m.lister().Copies(t.Context(), 3, func(c member.Copy) (bool, error) { return c.Object.Name != "w-1", nil })
	if diff := cmp.Diff([]string{"w-0", "w-2", "w-3"}, copyNames(found)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff([]string{"there may be more than 3: the rest is not listed"}, found.Notes); diff != "" {
		t.Error(diff)
	}
	if len(m.asked) != 3 {
		t.Errorf("asked %v: pages were read that are not needed", m.asked)
	}
}

func TestAKindThatCannotBeListedIsNamed(t *testing.T) {
	m := &fakeMember{
		rules:  []any{grants("broken", "x"), grants("", "pods"), grants("shop", "widgets")},
		pages:  map[string][]*unstructured.Unstructured{"widgets": {copied("one")}},
		errors: map[string]error{"pods": apierrors.NewInternalError(errors.New("etcd at https://10.0.0.1 is away"))},
	}
	found, err := m.lister().Copies(t.Context(), 100, everything)
	if diff := cmp.Diff([]string{"one"}, copyNames(found)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff([]string{`group "broken": its kinds could not be read: the cluster did not answer`, "pods: could not be listed: InternalError"}, found.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasFoundInTimeIsListed(t *testing.T) {
	m := &fakeMember{rules: []any{grants("shop", "widgets")}, pages: map[string][]*unstructured.Unstructured{
		"widgets": {copied("one"), copied("two"), copied("three")},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	found, err := m.lister().Copies(ctx, 100, func(c member.Copy) (bool, error) {
		if c.Object.Name == "two" {
			cancel()
			m.errors = map[string]error{"widgets": ctx.Err()}
		}
		return true, nil
	})
	if diff := cmp.Diff([]string{"one", "two"}, copyNames(found)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff([]string{"the cluster took too long: the rest is not listed"}, found.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorOfTheCallerEndsTheListing(t *testing.T) {
	m := &fakeMember{rules: []any{grants("shop", "widgets")}, pages: map[string][]*unstructured.Unstructured{"widgets": {copied("one")}}}
	away := errors.New("the hub cannot be read")
	if _, err := m.lister().Copies(t.Context(), 100, func(member.Copy) (bool, error) { return false, away }); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}
