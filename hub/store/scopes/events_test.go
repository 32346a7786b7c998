package scopes

import (
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
)

func TestLastIsTheObjectOfEveryEvent(t *testing.T) {
	t.Parallel()
	tests := map[string]any{
		"an event with its object":              "object",
		"a deletion that the watch did not see": toolscache.DeletedFinalStateUnknown{Key: "a/b", Obj: "object"},
	}
	for name, event := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Last(event); got != "object" {
				t.Errorf("%v, want the object", got)
			}
		})
	}
}
