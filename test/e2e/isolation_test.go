package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTwoBadMembersDoNotDisturbOthers breaks two of three members at once in different ways. The third member must get
// all new and changed objects in the normal time, and the other two after their faults end.
func TestTwoBadMembersDoNotDisturbOthers(t *testing.T) {
	tests := map[string][2][]string{
		"one black-holed, one hangs its lists": {{"blackhole"}, {"hang-list"}},
		"one hangs its lists, one answers 429": {{"hang-list"}, {"status", "429", "--retry-after", "5s"}},
		"one answers 429, one is slow":         {{"status", "429", "--retry-after", "5s"}, {"delay", "3s"}},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			ns := namespace(t)
			old := widget(ns, "old")
			placeWidgets(t, ns)
			must(t, suite.Hub.Create(ctx, old))
			for _, m := range members {
				eventually(t, normal, func() error { return rowIs(ctx, old, m, metav1.ConditionTrue, "") })
			}
			breakMember(t, frankfurt, faults[0]...)
			breakMember(t, singapore, faults[1]...)
			const objects = 30
			for i := range objects {
				must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("new-%02d", i))))
			}
			must(t, suite.Hub.Patch(ctx, widget(ns, "old"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
			eventually(t, normal, func() error { return replicasOn(ctx, shanghai, old, 4) })
			for i := range objects {
				eventually(t, normal, func() error { return replicasOn(ctx, shanghai, widget(ns, fmt.Sprintf("new-%02d", i)), 3) })
			}
			must(t, suite.Hub.Delete(ctx, widget(ns, "new-00")))
			eventually(t, normal, func() error { return goneFrom(ctx, shanghai, widget(ns, "new-00")) })
			mendMember(t, frankfurt)
			mendMember(t, singapore)
			eventually(t, 2*time.Minute, func() error { return allApplied(ctx, ns, objects) })
			for _, m := range members {
				must(t, replicasOn(ctx, m, old, 4))
			}
		})
	}
}
