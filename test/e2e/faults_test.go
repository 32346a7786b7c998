package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestOneBadMemberDoesNotDisturbOthers breaks one member with one fault after the other. The other members must get
// changes in the normal time. The copies on the broken member must stay, and must be up to date soon after the fault
// ends.
func TestOneBadMemberDoesNotDisturbOthers(t *testing.T) {
	faults := map[string]struct {
		begin, end func(t *testing.T)
	}{
		"its API server hangs (SIGSTOP)": {
			begin: func(t *testing.T) { lab(t, "pause", frankfurt) },
			end:   func(t *testing.T) { lab(t, "resume", frankfurt) },
		},
		"it is killed": {
			begin: func(t *testing.T) { lab(t, "kill", frankfurt) },
			end:   func(t *testing.T) { lab(t, "start", frankfurt) },
		},
		"its packets are dropped":         proxyFault("blackhole"),
		"its lists hang":                  proxyFault("hang-list"),
		"it answers 429 to everything":    proxyFault("status", "429", "--retry-after", "5s"),
		"half of its answers are 500":     proxyFault("status", "500", "--percent", "50"),
		"every request takes 5 s":         proxyFault("delay", "5s"),
		"its discovery is empty (status)": proxyFault("status", "503"),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			ns := namespace(t)
			w := widget(ns, "before")
			placeWidgets(t, ns)
			must(t, suite.Hub.Create(ctx, w))
			for _, m := range members {
				eventually(t, time.Minute, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
			}
			uids := memberUIDs(ctx, t, ns)
			t.Cleanup(func() {
				fault.end(t)
				mendMember(t, frankfurt)
			})
			fault.begin(t)
			for i := range 20 {
				must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("during-%02d", i))))
			}
			must(t, suite.Hub.Patch(ctx, widget(ns, "before"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
			for _, m := range []string{singapore, shanghai} {
				eventually(t, normal, func() error { return replicasOn(ctx, m, w, 4) })
				for i := range 20 {
					eventually(t, normal, func() error { return replicasOn(ctx, m, widget(ns, fmt.Sprintf("during-%02d", i)), 3) })
				}
			}
			fault.end(t)
			mendMember(t, frankfurt)
			eventually(t, 2*time.Minute, func() error { return allApplied(ctx, ns, 21) })
			must(t, replicasOn(ctx, frankfurt, w, 4))
			for name, uid := range uids {
				if now := memberUIDs(ctx, t, ns)[name]; now != uid {
					t.Errorf("%s was deleted during the fault", name)
				}
			}
		})
	}
}

func proxyFault(mode ...string) struct{ begin, end func(t *testing.T) } {
	return struct{ begin, end func(t *testing.T) }{
		begin: func(t *testing.T) { must(t, suite.Fault(t.Context(), frankfurt, mode...)) },
		end:   func(*testing.T) {}, // mendMember ends this fault
	}
}

// TestAMemberThatIsAwayKeepsItsLastRow checks the row of a member that does not respond.
func TestAMemberThatIsAwayKeepsItsLastRow(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "away")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	// A ConfigMap has no metadata.generation from which the hub could detect a change.
	config := configMap(ns, "away")
	place(t, ns, "configs", hubv1.ResourceSelector{Kind: "ConfigMap", Name: config.GetName()}, hubv1.PlacementSpec{Clusters: everyCluster()})
	must(t, suite.Hub.Create(ctx, config))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
		eventually(t, normal, func() error { return rowIs(ctx, config, m, metav1.ConditionTrue, "") })
	}
	breakMember(t, singapore, "blackhole")
	must(t, suite.Hub.Patch(ctx, config.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"changed"}}`))))
	eventually(t, normal, func() error {
		return errors.Join(rowIs(ctx, config, singapore, metav1.ConditionFalse, hubv1.ReasonPending), rowSays(ctx, config, singapore, "not applied yet"))
	})
	eventually(t, time.Minute, func() error { return rowIs(ctx, w, singapore, metav1.ConditionUnknown, hubv1.ReasonUnreachable) })
	b, err := bindingOf(ctx, w)
	must(t, err)
	row := b.BindingStatus().Row(singapore)
	if row.UID == "" || row.Digest == "" || row.LastObservedTime == nil || row.Message == "" {
		t.Errorf("the row of a cluster that is away has lost what was known, or says nothing: %+v", row)
	}
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionUnknown, "")
	})
	mendMember(t, singapore)
	eventually(t, time.Minute, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	eventually(t, time.Minute, func() error { return rowIs(ctx, config, singapore, metav1.ConditionTrue, "") })
}

func lab(t *testing.T, args ...string) {
	t.Helper()
	// The context has no cancel, because clean-ups use this function, too.
	_, err := suite.LabCommand(context.WithoutCancel(t.Context()), args...)
	must(t, err)
}

// TestACopyThatTheHubMayNotWatchIsNotShownAsHealthy removes the hub's right to watch Widgets on one member. A watch
// that is already open stays open, so the test restarts the member's API server.
func TestACopyThatTheHubMayNotWatchIsNotShownAsHealthy(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "unseen")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, time.Minute, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
	t.Cleanup(func() {
		mayWatchWidgets(t, true)
		mendMember(t, frankfurt)
	})
	mayWatchWidgets(t, false)
	lab(t, "kill", frankfurt)
	lab(t, "start", frankfurt)
	eventually(t, time.Minute, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, hubv1.ReasonForbidden) })
	must(t, memberReady(ctx, frankfurt))
	b, err := bindingOf(ctx, w)
	must(t, err)
	if row := b.BindingStatus().Row(frankfurt); row.Health != hubv1.HealthUnknown || row.LastObservedTime == nil {
		t.Errorf("the row does not say since when the copy is not observed: %+v", row)
	}
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionUnknown, "")
	})
	mayWatchWidgets(t, true)
	eventually(t, 2*time.Minute, func() error { // the hub retries this watch once a minute
		b, err := bindingOf(ctx, w)
		if err != nil {
			return err
		}
		if row := b.BindingStatus().Row(frankfurt); row.LastObservedTime != nil || row.Reason == hubv1.ReasonForbidden {
			return fmt.Errorf("the row is not live: %+v", row)
		}
		return nil
	})
}

// mayWatchWidgets grants the hub the right to list and watch Widgets in Frankfurt, or revokes it.
func mayWatchWidgets(t *testing.T, may bool) {
	t.Helper()
	// The context has no cancel, because clean-ups use this function, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), normal)
	defer cancel()
	role := &rbacv1.ClusterRole{}
	must(t, suite.Members[frankfurt].Client.Get(ctx, types.NamespacedName{Name: "hanse"}, role))
	for i := range role.Rules {
		if rule := &role.Rules[i]; slices.Contains(rule.Resources, "widgets") {
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == "list" || verb == "watch" })
			if may {
				rule.Verbs = append(rule.Verbs, "list", "watch")
			}
		}
	}
	must(t, suite.Members[frankfurt].Client.Update(ctx, role))
}
