package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

func boundTo(name string, status hubv1.StatusAggregation) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Name, b.Namespace = name, "shop"
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: "Machine", Name: name}
	spec := hubv1.PlacementSpec{StatusAggregation: status}
	if text := spec.Settings(); text != "" {
		b.Annotations = map[string]string{hubv1.SettingsAnnotation: text}
	}
	return b
}

func seen(t *testing.T, s *StatusSettings, b hubv1.BindingObject) {
	t.Helper()
	s.BindingChanged(t.Context(), changes.Binding{After: b, Parts: changes.Added})
}

func TestStatusSettingsAreThoseOfTheBinding(t *testing.T) {
	var changed []string
	w := NewStatusSettings()
	w.OnChange(func(id hubv1.ObjectIdentity) { changed = append(changed, id.Name) })
	running := hubv1.StatusAggregation{HealthExpression: "object.status.mode == 'run'"}
	reduced := hubv1.StatusAggregation{Reducers: []hubv1.StatusReducer{{Path: "/status/used", Reducer: hubv1.ReducerSum}}}
	a, b := hubv1.ObjectOf(boundTo("a", running)), hubv1.ObjectOf(boundTo("b", running))

	for _, name := range []string{"a", "b", "a"} {
		seen(t, w, boundTo(name, running))
	}
	seen(t, w, boundTo("c", hubv1.StatusAggregation{Mode: hubv1.StatusBindingOnly}))
	if w.Of(a) == nil || w.Of(a).Expression == nil || w.Of(a) != w.Of(b) {
		t.Errorf("equal settings are not one: %v and %v", w.Of(a), w.Of(b))
	}
	if got := w.Of(hubv1.ObjectOf(boundTo("c", running))); got != nil {
		t.Errorf("settings of an object whose placement has none: %v", got)
	}
	seen(t, w, boundTo("a", reduced))
	if got := w.Of(a); got.Expression != nil || !cmp.Equal(got.Paths, []string{"/status/used"}) {
		t.Errorf("after a change of the placement: %+v", got)
	}
	for _, gone := range []hubv1.BindingObject{boundTo("a", reduced), boundTo("b", running)} {
		w.BindingChanged(t.Context(), changes.Binding{Before: gone, Parts: changes.Deleted})
	}
	if w.Of(a) != nil || w.Of(b) != nil || len(w.all) != 0 || !w.none.Load() {
		t.Errorf("settings of bindings that are gone: %v, %v, %v", w.Of(a), w.Of(b), w.all)
	}
	if diff := cmp.Diff([]string{"a", "b", "a", "a", "b"}, changed); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
}

func TestAnExpressionThatCannotBeReadIsASettingAllTheSame(t *testing.T) {
	w := NewStatusSettings()
	seen(t, w, boundTo("a", hubv1.StatusAggregation{HealthExpression: "object."}))
	if got := w.Of(hubv1.ObjectOf(boundTo("a", hubv1.StatusAggregation{}))); got == nil || got.Expression == nil {
		t.Errorf("settings %v: the object would be judged as if its placement set nothing", got)
	}
}
