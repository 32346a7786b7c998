package view

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// BundleSummary summarises a bundle.
type BundleSummary struct {
	Kind       string             `json:"kind"`
	Name       string             `json:"name"`
	Namespace  string             `json:"namespace,omitempty"`
	Generation int64              `json:"generation"`
	Stored     int32              `json:"stored"`
	Placed     int32              `json:"placed"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Unstored says why the hub has not stored the objects of the bundle's newest generation. It is empty if the hub has
	// stored them.
	Unstored string `json:"unstored,omitempty"`
}

// SummaryOfBundle returns the summary of a bundle.
func SummaryOfBundle(b hubv1.BundleObject) *BundleSummary {
	status := b.BundleStatus()
	of := hubv1.OfBundle(b)
	return &BundleSummary{
		Kind: of.Kind, Name: of.Name, Namespace: of.Namespace, Generation: b.GetGeneration(), Stored: status.Objects, Placed: status.Placed,
		Conditions: status.Conditions, Unstored: Unstored(b),
	}
}

// Unstored returns why the hub has not stored the objects of a bundle's newest generation. It returns an empty text if
// the hub has stored them.
func Unstored(b hubv1.BundleObject) string {
	name := hubv1.OfBundle(b).String()
	c := meta.FindStatusCondition(b.BundleStatus().Conditions, hubv1.ConditionStored)
	switch {
	case c == nil || b.BundleStatus().ObservedGeneration < b.GetGeneration():
		return fmt.Sprintf("generation %d of %s is not stored yet: the hub still sends the objects of the last stored generation", b.GetGeneration(), name)
	case c.Status != metav1.ConditionTrue:
		return fmt.Sprintf("generation %d of %s is not stored: %s: %s", b.GetGeneration(), name, c.Reason, c.Message)
	}
	return ""
}

func (b *BundleSummary) write(w io.Writer) {
	fmt.Fprintf(w, "%s %s   generation %d   objects %d   placed %d\n", b.Kind, qualified(b.Namespace, b.Name), b.Generation, b.Stored, b.Placed)
	for _, c := range b.Conditions {
		fmt.Fprintln(w, printable(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, why(c.Reason, c.Message))))
	}
	line(w, "Note", b.Unstored)
}

// BundleOf returns the bundle that contains the object, such as "Bundle shop/web". It returns an empty text for an
// object of the hub.
func BundleOf(ref hubv1.ObjectReference) string {
	if ref.Bundle == nil {
		return ""
	}
	return ref.Bundle.String()
}

// bundleIn returns a bundle's name as a suffix of an object's name, such as " (Bundle shop/web)". It returns an empty
// text if bundle is empty, which means an object of the hub.
func bundleIn(bundle string) string {
	if bundle == "" {
		return ""
	}
	return " (" + bundle + ")"
}

// UnplacedOf returns the summary of a bundle's object that has no binding.
func UnplacedOf(id hubv1.ObjectIdentity) ObjectSummary {
	return ObjectSummary{
		Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Reason: hubv1.ReasonNotSelected, Message: "no placement selects the object, or the hub has not stored the object yet",
	}
}

// NewestGeneration returns the newest generation of an object that its binding records. It returns 0 if the binding
// records none, as for a bundle's object that no cluster holds yet. Only the hub then knows the generation.
func NewestGeneration(b hubv1.BindingObject) int64 {
	newest := int64(0)
	for _, row := range b.BindingStatus().Clusters {
		newest = max(newest, row.Generation)
	}
	for _, r := range b.BindingSpec().Revisions {
		newest = max(newest, r.Generation)
	}
	return newest
}

// Unread returns a substitute for an object that the caller cannot read, such as an object of a bundle. The substitute
// has only the data in the binding: kind, name, UID and generation.
func Unread(b hubv1.BindingObject) *unstructured.Unstructured {
	ref, id := b.BindingSpec().ObjectRef, hubv1.ObjectOf(b)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(ref.GroupVersionKind())
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	u.SetUID(ref.UID)
	u.SetGeneration(NewestGeneration(b))
	if ref.Bundle != nil {
		u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: *ref.Bundle}.Annotation()})
	}
	return u
}
