package apply_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
)

func (w *world) viewed() member.ViewIntent {
	return member.ViewIntent{GVK: widget, Owner: identity(object(widget, w.ns, "web", nil)), OwnerUID: ownerUID}
}

// refusedAs fails the test unless the outcome is a refusal with this reason.
func refusedAs(t *testing.T, got *member.Outcome, reason string) {
	t.Helper()
	if got == nil || got.Reason != reason {
		t.Errorf("got %+v, want %s", got, reason)
	}
}

func TestViewShowsTheCopyOfTheHubObjectAlone(t *testing.T) {
	w := newWorld(t)
	w.noWrites()
	if _, out := w.applier.View(t.Context(), w.viewed()); out == nil || out.Reason != hubv1.ReasonMissing {
		t.Errorf("what is not there: got %+v", out)
	}
	theirs := w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(7)})))
	live, out := w.applier.View(t.Context(), w.viewed())
	refusedAs(t, out, hubv1.ReasonAlreadyExists)
	if live != nil {
		t.Errorf("what is not Hanse's is shown: %v", live)
	}
	w.intercept = nil
	in := w.intent(map[string]any{"size": int64(7)}, "d1")
	in.Adoption = hubv1.AdoptionAlways
	w.apply(in, written)
	w.noWrites()
	live, out = w.applier.View(t.Context(), w.viewed())
	if out != nil || live.GetUID() != theirs.GetUID() || len(live.GetManagedFields()) == 0 {
		t.Errorf("got %+v %+v", live, out)
	}
	other := w.viewed()
	other.Owner.Name = "another"
	other.OwnerUID = "template-2"
	if _, out = w.applier.View(t.Context(), other); out == nil || out.Reason != hubv1.ReasonMissing {
		t.Errorf("the copy of another object: got %+v", out)
	}
	_, out = w.as(apiServer, "hub-2").View(t.Context(), w.viewed())
	refusedAs(t, out, hubv1.ReasonOwnedByOther)
	_, out = apply.New("hub", true, nil, resolve, hubUID, nil, ignored).View(t.Context(), w.viewed())
	refusedAs(t, out, hubv1.ReasonIsTemplate)
}

func TestPreviewIsWhatApplyWouldMakeOfTheCopy(t *testing.T) {
	size := func(u *unstructured.Unstructured) any {
		if u == nil {
			return nil
		}
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "size")
		return value
	}
	w := newWorld(t)
	w.noWrites()
	p := w.applier.Preview(t.Context(), w.intent(map[string]any{"size": int64(3)}, "d1"))
	if p.Refused != nil || p.Before != nil || size(p.After) != int64(3) {
		t.Errorf("a new object: got %+v", p)
	}
	p = w.applier.Preview(t.Context(), w.intent(map[string]any{"size": int64(11)}, "d1"))
	refusedAs(t, p.Refused, hubv1.ReasonManifestRefused)

	w.intercept = nil
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	w.edit(`{"spec": {"size": 5, "note": "theirs"}}`)
	w.noWrites()
	p = w.applier.Preview(t.Context(), w.intent(map[string]any{"size": int64(4)}, "d2"))
	if p.Refused != nil || size(p.Before) != int64(5) || size(p.After) != int64(4) {
		t.Errorf("a copy that exists: got %+v", p)
	}
	if note, _, _ := unstructured.NestedString(p.After.Object, "spec", "note"); note != "theirs" {
		t.Errorf("what is not the hub's would change: %v", p.After)
	}

	t.Run("a conflict that is only reported is told with what would be written", func(t *testing.T) {
		in := w.intent(map[string]any{"size": int64(4)}, "d2")
		in.FieldConflict = hubv1.FieldConflictReport
		p := w.applier.Preview(t.Context(), in)
		refusedAs(t, p.Refused, hubv1.ReasonFieldConflict)
		if size(p.After) != int64(4) {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("so is a pause", func(t *testing.T) {
		w.edit(`{"metadata": {"annotations": {"hanse.dev/pause": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}}}`)
		p := w.applier.Preview(t.Context(), w.intent(map[string]any{"size": int64(4)}, "d2"))
		refusedAs(t, p.Refused, hubv1.ReasonPaused)
		if size(p.After) != int64(4) {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("what is left to the member stays", func(t *testing.T) {
		in := w.intent(map[string]any{"size": int64(4)}, "d2")
		in.MemberOwned = []string{"/spec/size"}
		if p := w.applier.Preview(t.Context(), in); size(p.After) != int64(5) {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("what is not Hanse's is told apart, with what taking it over would write", func(t *testing.T) {
		w := newWorld(t)
		w.noWrites()
		w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(7)})))
		for adoption, reason := range map[hubv1.Adoption]string{
			hubv1.AdoptionNever: hubv1.ReasonAlreadyExists, hubv1.AdoptionIfNoDiff: hubv1.ReasonAlreadyExists, hubv1.AdoptionAlways: "",
		} {
			in := w.intent(map[string]any{"size": int64(3)}, "d1")
			in.Adoption = adoption
			p := w.applier.Preview(t.Context(), in)
			if !p.Unadopted || p.InSync || size(p.Before) != int64(7) || size(p.After) != int64(3) {
				t.Errorf("%s: got %+v", adoption, p)
			}
			if reason == "" && p.Refused != nil || reason != "" && (p.Refused == nil || p.Refused.Reason != reason) {
				t.Errorf("%s: got %+v, want the reason %q", adoption, p.Refused, reason)
			}
		}
		in := w.intent(map[string]any{"size": int64(7)}, "d1")
		in.Adoption = hubv1.AdoptionIfNoDiff
		if p := w.applier.Preview(t.Context(), in); !p.Unadopted || p.Refused != nil {
			t.Errorf("an equal object: got %+v", p)
		}
	})
	t.Run("the object of another hub is not shown", func(t *testing.T) {
		p := w.as(apiServer, "hub-2").Preview(t.Context(), w.intent(map[string]any{"size": int64(3)}, "d1"))
		refusedAs(t, p.Refused, hubv1.ReasonOwnedByOther)
		if p.Before != nil || p.After != nil {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("without its namespace it is shown as it would be sent", func(t *testing.T) {
		in := w.intentOf(object(widget, "not-there", "web", spec(map[string]any{"size": int64(3)})), "d1")
		in.CreateNamespace = true
		p := w.applier.Preview(t.Context(), in)
		if p.Refused != nil || size(p.After) != int64(3) {
			t.Errorf("got %+v", p)
		}
		in.CreateNamespace = false
		refusedAs(t, w.applier.Preview(t.Context(), in).Refused, hubv1.ReasonNamespaceMissing)
	})
	if len(w.wrote) != 1 {
		t.Errorf("dry runs are told as writes: %v", w.wrote)
	}
}
