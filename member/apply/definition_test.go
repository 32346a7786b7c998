package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// aDefinition applies a CustomResourceDefinition of a kind that no other test uses, and waits until the server serves
// it. After that, it applies the change to the definition. It returns a client for the objects of the kind, and the
// intent to delete the definition.
func (w *world) aDefinition(change func(*apiextensionsv1.CustomResourceDefinition)) (dynamic.NamespaceableResourceInterface, member.WithdrawIntent) {
	w.Helper()
	n := counter.Add(1)
	d := definition(fmt.Sprintf("Gizmo%d", n), fmt.Sprintf("gizmo%ds", n))
	manifest := func() *unstructured.Unstructured {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			w.Fatal(err)
		}
		return object(definitionKind, "", d.Name, map[string]any{"spec": fields["spec"]})
	}
	w.apply(w.intentOf(manifest(), "d1"), written)
	objects := w.admin.Resource(schema.GroupVersionResource{Group: d.Spec.Group, Version: "v1", Resource: d.Spec.Names.Plural})
	if err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := objects.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}); err != nil {
		w.Fatalf("waiting until the server serves %s: %v", d.Name, err)
	}
	if change != nil {
		change(d)
		w.apply(w.intentOf(manifest(), "d2"), written)
	}
	return objects, member.WithdrawIntent{GVK: definitionKind, Owner: identity(manifest()), OwnerUID: ownerUID, Policy: hubv1.RemovalDelete}
}

// gizmo creates an object of the definition's kind.
func (w *world) gizmo(objects dynamic.NamespaceableResourceInterface, in member.WithdrawIntent, name string) {
	w.Helper()
	plural, _, _ := strings.Cut(in.Owner.Name, ".")
	kind := strings.TrimSuffix(strings.ToUpper(plural[:1])+plural[1:], "s")
	u := object(schema.GroupVersionKind{Group: widget.Group, Version: "v1", Kind: kind}, w.ns, name, nil)
	if _, err := objects.Namespace(w.ns).Create(w.Context(), u, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// isDefined reports whether the definition exists on the member and is not being deleted.
func (w *world) isDefined(in member.WithdrawIntent) bool {
	w.Helper()
	d, err := w.objects(definitionKind, "").Get(w.Context(), in.Owner.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil && d.GetDeletionTimestamp() == nil
}

var definitionStays = failed(hubv1.ReasonDefinitionKept, member.RetrySoon)

func TestADefinitionWithObjectsIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	objects, in := w.aDefinition(nil)
	// The watch has delivered the definition, and no object of its kind.
	in.Seen = w.seen(definitionKind, "", in.Owner.Name).Seen
	w.gizmo(objects, in, "a")
	w.gizmo(objects, in, "b")
	out := w.withdrawAsking(in, definitionStays, http.MethodGet, http.MethodGet)
	if !strings.Contains(out.Message, "there are objects of Gizmo") || !strings.Contains(out.Message, " (2, such as "+w.ns+"/a): delete them") {
		t.Error(out.Message)
	}
	if err := objects.Namespace(w.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.withdraw(in, result{metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, true, member.RetrySlowly})
	if w.isDefined(in) {
		t.Error("the definition stays without objects")
	}
}

func TestADefinitionWhoseObjectsCannotBeListedIsNotDeleted(t *testing.T) {
	tests := map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		answer *answer
		want   result
		says   string
	}{
		"because the member does not grant it": {
			answer: status(http.StatusForbidden, metav1.Status{Reason: metav1.StatusReasonForbidden,
				Message: `gizmos.shop.example.com is forbidden: User "u" cannot list resource "gizmos" in API group "shop.example.com" at the cluster scope`}),
			want: definitionStays, says: "the hub may not list gizmos.shop.example.com on this cluster",
		},
		"because the webhook that converts them does not answer": {
			answer: status(http.StatusInternalServerError, metav1.Status{Reason: metav1.StatusReasonInternalError, Message: "conversion webhook for shop.example.com/v1 failed"}),
			want:   definitionStays, says: "its objects cannot be listed: the cluster answered 500: conversion webhook",
		},
		"because it serves no version": {
			change: func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false },
			want:   definitionStays, says: "it serves no version",
		},
		"because the server wants fewer requests": {
			answer: status(http.StatusTooManyRequests, metav1.Status{Reason: metav1.StatusReasonTooManyRequests}),
			want:   failed(hubv1.ReasonThrottled, member.RetryAfter), says: "fewer requests",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, in := w.aDefinition(tc.change)
			w.intercept = func(r *http.Request) *answer {
				if r.Method == http.MethodDelete {
					t.Error("the definition was deleted")
				}
				if strings.HasPrefix(r.URL.Path, "/apis/shop.example.com/") {
					return tc.answer
				}
				return nil
			}
			if out := w.withdraw(in, tc.want); !strings.Contains(out.Message, tc.says) {
				t.Error(out.Message)
			}
			if !w.isDefined(in) {
				t.Error("the definition is gone")
			}
		})
	}
}

func TestADefinitionWithObjectsIsOrphaned(t *testing.T) {
	w := newWorld(t)
	objects, in := w.aDefinition(nil)
	w.gizmo(objects, in, "a")
	in.Policy = hubv1.RemovalOrphan
	w.withdraw(in, withdrawn)
	if !w.isDefined(in) {
		t.Error("the definition is gone")
	}
}

func TestADefinitionWithoutAVersionThatTheClusterStoresIsRefused(t *testing.T) {
	w := newWorld(t)
	_, in := w.aDefinition(nil)
	d := definition("Gizmo", "gizmos")
	d.Spec.Versions[0].Name = "v2"
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	live, err := w.objects(definitionKind, "").Get(t.Context(), in.Owner.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := live.Object["spec"].(map[string]any)
	newer, _ := fields["spec"].(map[string]any)
	newer["names"] = spec["names"]
	out := w.apply(w.intentOf(object(definitionKind, "", in.Owner.Name, map[string]any{"spec": newer}), "d2"), failed(hubv1.ReasonStoredVersionKept, member.RetrySlowly))
	for _, part := range []string{`stores objects at "v1", which`, "remove it from status.storedVersions of " + in.Owner.Name} {
		if !strings.Contains(out.Message, part) {
			t.Errorf("the message lacks %q: %s", part, out.Message)
		}
	}
}

func TestObjectsAreListedAtTheVersionThatIsStored(t *testing.T) {
	w := newWorld(t)
	_, in := w.aDefinition(func(d *apiextensionsv1.CustomResourceDefinition) {
		newer := *d.Spec.Versions[0].DeepCopy()
		newer.Name = "v2"
		d.Spec.Versions[0].Storage = false
		d.Spec.Versions = append(d.Spec.Versions, newer)
	})
	var listed []string
	w.intercept = func(r *http.Request) *answer {
		if strings.HasPrefix(r.URL.Path, "/apis/shop.example.com/") {
			listed = append(listed, r.URL.Path)
			return &answer{http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}`}
		}
		return nil
	}
	out := w.withdraw(in, definitionStays)
	if !strings.Contains(out.Message, "objects of Gizmo") || !strings.Contains(out.Message, "(such as a)") {
		t.Error(out.Message)
	}
	if len(listed) != 1 || !strings.HasPrefix(listed[0], "/apis/shop.example.com/v2/gizmo") {
		t.Errorf("the lists were %v", listed)
	}
}
