package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWrittenStatusIsRememberedOnlyAsLongAsItIsNeeded(t *testing.T) {
	status := map[string]any{"replicas": int64(3)}
	tests := map[string]struct {
		before merged
		cached string // resourceVersion of the hub object in the cache
		want   merged
	}{
		"until the cache has it": {
			merged{resourceVersion: "7", result: status}, "6", merged{resourceVersion: "7", result: status},
		},
		"not when the cache has it": {
			merged{resourceVersion: "7", result: status}, "7", merged{resourceVersion: "7"},
		},
		"not when the cache has a later one": {
			merged{resourceVersion: "7", result: status}, "8", merged{resourceVersion: "7"},
		},
		"as long as the server makes something else of what is sent": {
			merged{resourceVersion: "7", result: status, sent: map[string]any{}}, "8", merged{resourceVersion: "7", result: status, sent: map[string]any{}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.before.seen(tc.cached), cmp.AllowUnexported(merged{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
