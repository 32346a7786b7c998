package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestAnAskLastsUntilTheCacheHasTheDecision(t *testing.T) {
	t.Parallel()
	web := key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	tls := key{Kind: "Secret", Namespace: "shop", Name: "tls"}
	binding := func(clusters ...string) *hubv1.ResourceBinding {
		b := hubv1.NewBinding(web.BindingKey()).(*hubv1.ResourceBinding)
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: web.Kind, Name: web.Name}
		b.Spec.References = []hubv1.BindingReference{{Kind: tls.Kind, Name: tls.Name, Path: "/spec/secret"}}
		for _, c := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: c, State: hubv1.TargetPresent})
		}
		return b
	}
	var r references
	before, plan := binding("eu"), binding("eu", "us")
	r.see(changes.Binding{After: before}, nil)
	if !r.ask(tls, web, &plan.Spec) {
		t.Fatal("a new plan does not wait for the decision on the needed object")
	}
	r.see(changes.Binding{Before: before, After: before}, nil) // a change of the status only
	if diff := cmp.Diff(map[key]*hubv1.BindingSpec{web: &plan.Spec}, r.plans(tls)); diff != "" {
		t.Errorf("plans after a change of a row (-want +got):\n%s", diff)
	}
	if waited := r.answer(tls, true, []decide.Referrer{{ID: web, Spec: &before.Spec}}); waited != nil {
		t.Errorf("%v waited for a decision that did not follow the plan", waited)
	}
	if waited := r.answer(tls, true, []decide.Referrer{{ID: web, Spec: &plan.Spec}}); len(waited) != 1 {
		t.Errorf("%v waited, want the object", waited)
	}
	if r.ask(tls, web, &plan.Spec) {
		t.Error("the plan waits although the decision has followed it")
	}
	if len(r.plans(tls)) != 1 {
		t.Error("the plan is forgotten before the cache has it")
	}
	r.see(changes.Binding{Before: before, After: plan}, nil)
	if len(r.plans(tls)) != 0 || len(r.referrersOf(tls)) != 1 {
		t.Errorf("the cache has the decision, and the plans are %v, the referrers %v", r.plans(tls), r.referrersOf(tls))
	}

	other := binding("eu")
	r.ask(tls, web, &other.Spec)
	r.needsNothing(web)
	if len(r.plans(tls)) != 0 {
		t.Error("a plan that is not needed any more stays")
	}
}

func TestADecisionAsksAgainForAnObjectThatDidNotExist(t *testing.T) {
	t.Parallel()
	web := key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	tls := key{Kind: "Secret", Namespace: "shop", Name: "tls"}
	var r references
	spec := &hubv1.BindingSpec{Clusters: []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}}}
	r.ask(tls, web, spec)
	if got := r.needing(tls.GroupKind()); len(got) != 1 {
		t.Errorf("a change of the kind wakes %v, want the object that waits", got)
	}
	if waited := r.answer(tls, false, []decide.Referrer{{ID: web, Spec: spec}}); len(waited) != 1 {
		t.Errorf("%v waited, want the object", waited)
	}
	if !r.ask(tls, web, spec) {
		t.Error("the decision on an object that does not exist counts")
	}
}

func TestObjectsFollowABindingThatIsDeletedByHand(t *testing.T) {
	t.Parallel()
	web := key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	tls := key{Kind: "Secret", Namespace: "shop", Name: "tls"}
	before := hubv1.NewBinding(web.BindingKey()).(*hubv1.ResourceBinding)
	before.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: web.Kind, Name: web.Name}
	before.Spec.References = []hubv1.BindingReference{{Kind: tls.Kind, Name: tls.Name, Path: "/spec/secret"}}
	before.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}}
	for name, tc := range map[string]struct {
		exists bool
		end    func(*references) []key
		want   int
	}{
		"until it is made again":                  {true, func(r *references) []key { return r.see(changes.Binding{After: before}, nil) }, 1},
		"until the object needs nothing":          {true, func(r *references) []key { return r.needsNothing(web) }, 1},
		"not if the hub does not have the object": {false, func(r *references) []key { return []key{tls} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r references
			r.see(changes.Binding{After: before}, nil)
			r.see(changes.Binding{Before: before}, func() bool { return tc.exists })
			if got := r.plans(tls); len(got) != tc.want || len(r.referrersOf(tls)) != 0 {
				t.Errorf("the plans are %v, want %d; the referrers are %v", got, tc.want, r.referrersOf(tls))
			}
			if woken := tc.end(&r); !slices.Contains(woken, tls) || len(r.plans(tls)) != 0 {
				t.Errorf("the end wakes %v, and the plans are %v", woken, r.plans(tls))
			}
		})
	}
}

func TestAWaitIsForgottenWithItsObject(t *testing.T) {
	t.Parallel()
	web := key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	for name, end := range map[string]func(*references){
		"it needs nothing":        func(r *references) { r.needsNothing(web) },
		"its decision is written": func(r *references) { r.waitsNoLonger(web) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r references
			if r.waitedSince(web, now) != now || r.waitedSince(web, now.Add(time.Hour)) != now {
				t.Error("a wait begins anew while it lasts")
			}
			if end(&r); len(r.waits) > 0 {
				t.Errorf("the waits are %v", r.waits)
			}
		})
	}
}
