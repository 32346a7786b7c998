package decide

import (
	"strings"
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// undoes requests an undo, as hansectl rollout undo does.
func (f *fleetOfSet) undoes(revision int64) {
	annotations := map[string]string{}
	rollout.Undo(revision, f.now)(annotations)
	f.undo = annotations[hubv1.RolloutUndoAnnotation]
}

// numberOf returns the number of the stored revision of the bundle with the list of the given content.
func (f *fleetOfSet) numberOf(deployment string) int64 {
	for _, r := range f.spec.Revisions {
		for id, part := range f.lists[r.List] {
			if short(id) == "Deployment/m" && f.parts[part].Object["spec"].(map[string]any)["content"] == deployment {
				return r.Number
			}
		}
	}
	f.t.Fatalf("no revision has Deployment/m %s: %+v", deployment, f.spec.Revisions)
	return 0
}

func TestAnUndoReturnsTheWholeBundleWaveByWave(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	f.brings(contentOne)
	f.settles()
	f.brings(contentTwo)
	f.permits()
	f.settles()
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasTwo, "b": hasTwo, "c": hasTwo})

	f.undoes(f.numberOf("1"))
	f.permits()
	seen := map[string]bool{}
	for range 80 {
		f.round(nil)
		seen[f.on("a")+"|"+f.on("b")+"|"+f.on("c")] = true
	}
	for _, state := range []string{hasBack + "|" + hasTwo + "|" + hasTwo, hasBack + "|" + hasBack + "|" + hasTwo} {
		if !seen[state] {
			t.Errorf("the clusters did not return wave by wave: %v", seen)
		}
	}
	f.settles()
	f.is(hubv1.RolloutRolledBack, "", map[string]string{"a": hasBack, "b": hasBack, "c": hasBack})
	if r := f.spec.Rollout; r.Failed != 0 || r.RolledBack != 0 || !strings.Contains(r.Message, rollout.StillHas(r.Newest)) {
		t.Errorf("the rollout is %+v", r)
	}

	for object, want := range map[string]string{"CustomResourceDefinition/x": "2", "Deployment/m": "1"} {
		parts := HeldParts(f.spec, f.lists, hubv1.IdentityOf(manifestOf(object, "")))
		if len(parts) != 1 || f.parts[parts[0]].Object["spec"].(map[string]any)["content"] != want {
			t.Errorf("the clusters hold the contents %v of %s, want %s", parts, object, want)
		}
	}

	policy := &hubv1.ClusterOverridePolicy{} // changes the rules of the Deployment, and not the bundle
	policy.Name, policy.UID = "more", "o"
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "apps", Kind: "Deployment"}}
	policy.Spec.Rules = []hubv1.OverrideRule{{Name: "all", Labels: map[string]string{"more": "yes"}}}
	f.overrides = []hubv1.OverridePolicyObject{policy}
	f.settles()
	f.is(hubv1.RolloutRolledBack, "", map[string]string{"a": hasBack, "b": hasBack, "c": hasBack})

	f.brings(map[string]string{"ClusterRole/r": "1", "Deployment/m": "3", "CustomResourceDefinition/x": "3"})
	f.permits()
	f.settles()
	third := "ClusterRole/r=1 CustomResourceDefinition/x=3 Deployment/m=3"
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": third, "b": third, "c": third})
}

func TestTheEndOfAnUndoBringsTheNewestContentAgain(t *testing.T) {
	f := newFleetOfSet(t, hubv1.FailureRollback)
	f.brings(contentOne)
	f.settles()
	f.brings(contentTwo)
	f.permits()
	f.settles()
	f.undoes(f.numberOf("1"))
	f.permits()
	f.settles()
	f.undo = ""
	f.permits()
	f.settles()
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasTwo, "b": hasTwo, "c": hasTwo})

	f.undoes(99)
	f.round(nil)
	f.is(hubv1.RolloutComplete, "", map[string]string{"a": hasTwo, "b": hasTwo, "c": hasTwo})
	if message := f.spec.Rollout.Message; !strings.Contains(message, "cannot return to revision 99, which is gone") {
		t.Errorf("the message is %q", message)
	}
}
