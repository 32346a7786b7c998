package console

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	members "github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view"
)

func TestADifferenceHasOnlyLinesOfTheObject(t *testing.T) {
	t.Parallel()
	d := differenceOf(view.ClusterDiff{Diff: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n@@ -9 +9 @@\n-c: 4\n"})
	want := []view.DiffLine{{Text: " a: 1"}, {Sign: "-", Text: "-b: 2"}, {Sign: "+", Text: "+b: 3"}, {Sign: "@", Text: "⋯"}, {Sign: "-", Text: "-c: 4"}}
	if diff := cmp.Diff(want, d.Lines); diff != "" || d.Cut {
		t.Errorf("the lines are (-want +got):\n%s", diff)
	}
	if d := differenceOf(view.ClusterDiff{Diff: strings.Repeat("+a\n", 2*maxDiffLines)}); len(d.Lines) != maxDiffLines || !d.Cut {
		t.Errorf("a long difference has %d lines, cut: %t", len(d.Lines), d.Cut)
	}
}

func TestTheApprovalShowsWhatItChanges(t *testing.T) {
	r := newRolling(t)
	says := func(colour string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"colour": colour}}}
	}
	r.serveViews(map[string]*stubMember{r.members[1]: {preview: members.Preview{Before: says("red"), After: says("<b>blue")}}})
	b := r.admin()
	page := b.get(r.page())
	page.shows(t, "What changes on "+r.members[1]+", revision 6 to 7", "-  colour: red", "&lt;b&gt;blue", "Approve wave rest")
	page.hides(t, "<b>blue")

	r.serveViews(map[string]*stubMember{r.members[1]: {hangs: true}})
	b.get(r.page()).shows(t, "The change is not shown: the member did not answer in time", "Approve wave rest")

	without := r.signedIn(r.token(steers(), reads()))
	page = without.get(r.page())
	page.shows(t, "The change is not shown: ", "Approve wave rest")
	page.hides(t, "colour: red")
}

func TestTheChangeIsThatOfAClusterThatAnswersAndWaits(t *testing.T) {
	t.Parallel()
	binding := &hubv1.ResourceBinding{}
	binding.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	binding.Spec.Clusters = []hubv1.BindingTarget{
		{Name: "away", State: hubv1.TargetPresent, Revision: 6}, {Name: "skipped", State: hubv1.TargetPresent, Revision: 6},
		{Name: "has-it", State: hubv1.TargetPresent, Revision: 7}, {Name: "leaves", State: hubv1.TargetAbsent, Revision: 6}, {Name: "waits", State: hubv1.TargetPresent, Revision: 6},
	}
	wave := waveOfPage{TimelineWave: view.TimelineWave{
		Objects: []view.RolloutObject{{Object: "gone", Rollout: &hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForApproval}}, {Object: "a", Rollout: &hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForApproval, Revision: 7, Since: metav1.Now()}}},
		OnClusters: []view.TimelineCluster{
			{Cluster: "away", State: view.WaveClusterUnknown}, {Cluster: "skipped", Skipped: true}, {Cluster: "has-it"}, {Cluster: "leaves"}, {Cluster: "elsewhere"}, {Cluster: "waits"},
		},
	}}
	change, _ := wave.change(map[string]hubv1.BindingObject{"a": binding})
	if change == nil || change.Cluster != "waits" || change.From != 6 || change.To != 7 {
		t.Errorf("the change is %+v", change)
	}
	if change, _ := wave.change(nil); change != nil {
		t.Errorf("without bindings, the change is %+v", change)
	}
}
