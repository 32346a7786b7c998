package guard

import (
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAConfirmationIsForTheRemovalsThatAreHeldNow(t *testing.T) {
	m := &hubv1.MemberCluster{}
	if held, confirmed := Held(m); held != nil || confirmed {
		t.Errorf("without removals: %v, %t", held, confirmed)
	}
	m.Status.RemovalHeld = &hubv1.RemovalHeld{ID: "a"}
	m.Annotations = map[string]string{}
	held, confirmed := Held(m)
	if held == nil || confirmed {
		t.Errorf("before a confirmation: %v, %t", held, confirmed)
	}
	Confirm(held)(m.Annotations)
	if _, confirmed := Held(m); !confirmed {
		t.Error("the confirmation does not count")
	}
	m.Status.RemovalHeld = &hubv1.RemovalHeld{ID: "b"}
	if _, confirmed := Held(m); confirmed {
		t.Error("the confirmation counts for later removals")
	}
}
