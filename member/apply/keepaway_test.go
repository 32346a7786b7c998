package apply_test

import (
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestACopyThatIsGoneIsKeptAway(t *testing.T) {
	w := newWorld(t)
	in := w.intent(map[string]any{"size": int64(1)}, "d1")
	out := w.apply(in, written)
	in.KeepAway = true
	if again := w.applier.Apply(t.Context(), in); again.Reason != hubv1.ReasonApplied || again.Wrote {
		t.Errorf("a copy that is there: %+v", again)
	}
	w.delete()
	for name, observed := range map[string]string{"read first": "", "written as it was observed": out.ResourceVersion} {
		in.Observed = observed
		if gone := w.applier.Apply(t.Context(), in); gone.Reason != hubv1.ReasonNotRecreated || gone.Wrote || gone.Retry != member.RetryNever {
			t.Errorf("%s: %+v", name, gone)
		}
	}
}
