package views_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/view/wire"
)

var (
	listAll = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "namespaces"}, Verbs: []string{"list"}}}
	// listEverything is the right of an administrator.
	listEverything = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}}}
	mayPrune       = []rbacv1.PolicyRule{{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"view", "prune"}}}
)

// copied returns a copy on a member.
func (w *world) copied(kind, name string) member.Copy {
	c := member.Copy{
		Object: w.id(kind, name), UID: types.UID("copy-" + name), ResourceVersion: "7", Created: time.Unix(1000, 0), Source: epoch.ParseMark("3;10-a"),
	}
	if kind == "Namespace" {
		c.Object.Namespace = ""
	}
	c.GVK = c.Object.GroupKind().WithVersion("v1")
	return c
}

// configMapOn returns a ConfigMap of the hub.
func configMapOn(w *world, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": w.ns, "name": name, "annotations": map[string]any{hubv1.AcceptSourceAnnotation: "3;12-lost"},
	}}}
}

func shown(c member.Copy) wire.ShownCopy {
	return wire.ShownCopy{Object: wire.ObjectOf(c.Object), Version: c.GVK.Version, UID: c.UID, ResourceVersion: c.ResourceVersion}
}

func epochsOf(t *testing.T, text string) epoch.Epochs {
	t.Helper()
	l, ok := epoch.ParseEpochs(text)
	if !ok {
		t.Fatalf("reading %q", text)
	}
	return l
}

func TestUnclaimedCopiesAreListed(t *testing.T) {
	w := newWorld(t)
	adopted, newer := w.copied("ConfigMap", "adopted"), w.copied("ConfigMap", "newer")
	adopted.Adopted, newer.Source = true, epoch.ParseMark("3;12-lost")
	w.epochs.current = epochsOf(t, "10-a 11-b")
	w.members[here].copies = member.Copies{Notes: []string{"jobs.batch: could not be listed: InternalError"}, Copies: []member.Copy{
		w.copied("Namespace", "team"), w.copied("ConfigMap", "settings"), w.copied("ConfigMap", "far"), w.copied("ConfigMap", "lost"), adopted, newer,
		w.copied("Unknown", "x"),
	}}
	seen := func(token string) wire.UnclaimedAnswer {
		t.Helper()
		var answer wire.UnclaimedAnswer
		must(t, w.ask(token, here, wire.Unclaimed, wire.UnclaimedRequest{}, &answer))
		return answer
	}
	names := func(answer wire.UnclaimedAnswer) []string {
		var out []string
		for _, c := range answer.Copies {
			text := c.Object.Kind + " " + c.Object.Name + " " + string(c.Removal)
			if c.Newer {
				text += " newer"
			}
			out = append(out, text)
		}
		return out
	}

	t.Run("without those that a binding claims for the cluster, objects that others need last", func(t *testing.T) {
		answer := seen(w.user("admin", listEverything, slices.Concat(viewAll, listEverything)))
		want := []string{"ConfigMap adopted Orphan", "ConfigMap far Delete", "ConfigMap lost Delete", "ConfigMap newer Delete newer", "Unknown x Delete", "Namespace team Orphan"}
		if diff := cmp.Diff(want, names(answer)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(w.members[here].copies.Notes, answer.Notes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(shown(w.copied("ConfigMap", "far")), answer.Copies[1].ShownCopy); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("to a user of one namespace, of the kinds that the user may list there", func(t *testing.T) {
		answer := seen(w.user("tenant", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}, viewAll))
		if diff := cmp.Diff([]string{"ConfigMap adopted Orphan", "ConfigMap far Delete", "ConfigMap lost Delete", "ConfigMap newer Delete newer"}, names(answer)); diff != "" {
			t.Error(diff)
		}
		if last := answer.Notes[len(answer.Notes)-1]; last != "2 more copies of kinds that you may not list on the hub" {
			t.Errorf("it is not said that some are hidden: %v", answer.Notes)
		}
	})
	t.Run("not to a user who may not view the cluster", func(t *testing.T) {
		err := w.ask(w.user("blind", listAll, nil), here, wire.Unclaimed, wire.UnclaimedRequest{}, nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb view") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the text of a member's error is not passed on", func(t *testing.T) {
		w.members[here].fails = apierrors.NewForbidden(hubv1.GroupVersion.WithResource("x").GroupResource(), "x", errors.New("made up"))
		err := w.ask(w.user("other", listAll, viewAll), here, wire.Unclaimed, wire.UnclaimedRequest{}, nil)
		if !apierrors.IsServiceUnavailable(err) || strings.Contains(err.Error(), "made up") {
			t.Errorf("got %v", err)
		}
	})
}

func TestPruneNeedsItsVerb(t *testing.T) {
	w := newWorld(t)
	request := wire.PruneRequest{Copies: []wire.ShownCopy{shown(w.copied("ConfigMap", "lost"))}}
	err := w.ask(w.user("viewer", nil, slices.Concat(viewAll, listAll)), here, wire.Prune, request, nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb prune") {
		t.Errorf("got %v", err)
	}
	pruner := w.user("pruner", nil, mayPrune)
	var answer wire.PruneAnswer
	must(t, w.ask(pruner, here, wire.Prune, request, &answer))
	if got := answer.Copies[0]; got.Outcome != wire.PruneFailed || got.Message != "you may not list ConfigMap on the hub" {
		t.Errorf("a user who may not list the kind got %+v", got)
	}
	if pruned := w.members[here].pruned; len(pruned) > 0 {
		t.Errorf("pruned %+v", pruned)
	}
	for range 30 {
		request.Copies = append(request.Copies, request.Copies[0])
	}
	if err := w.ask(pruner, here, wire.Prune, request, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("31 copies at once: %v", err)
	}
	request.Copies = []wire.ShownCopy{{Object: w.object("ConfigMap", "lost"), Version: "v1", UID: "u"}}
	if err := w.ask(pruner, here, wire.Prune, request, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("a copy without a resourceVersion: %v", err)
	}
}

func TestPruneAsksTheMemberOfWhatNoBindingClaims(t *testing.T) {
	w := newWorld(t)
	pruner := w.user("pruner", nil, slices.Concat(mayPrune, listAll))
	m := w.members[here]
	var outcome member.Outcome
	m.prunes = func(member.PruneIntent) member.Outcome { return outcome }
	prune := func(c member.Copy) wire.PrunedCopy {
		t.Helper()
		m.pruned = nil
		var answer wire.PruneAnswer
		must(t, w.ask(pruner, here, wire.Prune, wire.PruneRequest{Copies: []wire.ShownCopy{shown(c)}}, &answer))
		return answer.Copies[0]
	}
	lost := w.copied("ConfigMap", "lost")

	t.Run("a copy that a binding claims by now stays, whatever the state of its entry", func(t *testing.T) {
		if got := prune(w.copied("ConfigMap", "settings")); got.Outcome != wire.PruneClaimed || len(m.pruned) > 0 {
			t.Errorf("got %+v, asked %+v", got, m.pruned)
		}
	})
	t.Run("nothing goes if the binding cannot be read uncached", func(t *testing.T) {
		w.uncached.err = errors.New("10.0.0.1 is away")
		defer func() { w.uncached.err = nil }()
		if got := prune(lost); got.Outcome != wire.PruneFailed || len(m.pruned) > 0 || strings.Contains(got.Message, "10.0.0.1") {
			t.Errorf("got %+v, asked %+v", got, m.pruned)
		}
	})
	t.Run("the member is asked for the copy as it was shown", func(t *testing.T) {
		outcome = member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn}
		if got := prune(lost); got.Outcome != wire.PruneRemoved {
			t.Errorf("got %+v", got)
		}
		want := member.PruneIntent{GVK: lost.GVK, Owner: lost.Object, UID: lost.UID, ResourceVersion: "7", Policy: hubv1.RemovalDelete}
		got := m.pruned[0]
		got.Source = epoch.State{}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(epoch.Epochs{})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a Namespace is orphaned", func(t *testing.T) {
		if prune(w.copied("Namespace", "team")); m.pruned[0].Policy != hubv1.RemovalOrphan {
			t.Errorf("asked %+v", m.pruned[0])
		}
	})
	t.Run("a hub object that goes to other clusters says which copies are newer", func(t *testing.T) {
		far := configMapOn(w, "far")
		must(t, hub.Create(t.Context(), far))
		prune(w.copied("ConfigMap", "far"))
		if got := m.pruned[0]; got.OwnerUID != far.GetUID() || got.Source.Accepted != "3;12-lost" || got.Source.Mark.Generation != far.GetGeneration() {
			t.Errorf("asked %+v", got)
		}
	})
	t.Run("a copy of a hub object without a binding stays, since that may be about to come", func(t *testing.T) {
		fresh := configMapOn(w, "lost")
		must(t, hub.Create(t.Context(), fresh))
		if got := prune(lost); got.Outcome != wire.PruneFailed || len(m.pruned) > 0 || !strings.Contains(got.Message, "no binding yet") {
			t.Errorf("got %+v, asked %+v", got, m.pruned)
		}
		must(t, hub.Delete(t.Context(), fresh))
	})
	t.Run("a copy is held only if an uncached read of the epochs says so too", func(t *testing.T) {
		w.epochs.current, w.epochs.fresh = epochsOf(t, "10-a"), epochsOf(t, "10-a 11-b")
		m.prunes = func(in member.PruneIntent) member.Outcome {
			mark := epoch.ParseMark("3;11-b")
			if in.Source.Newer(mark, false) {
				return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder, Message: "held", Newer: member.Newer{Mark: mark}}
			}
			return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn}
		}
		if got := prune(lost); got.Outcome != wire.PruneRemoved || len(m.pruned) != 2 {
			t.Errorf("got %+v, asked %d times", got, len(m.pruned))
		}
		w.epochs.fresh = epochsOf(t, "10-a 11-restored")
		if got := prune(lost); got.Outcome != wire.PruneHeld || got.Message != "held" || len(m.pruned) != 1 {
			t.Errorf("got %+v, asked %d times", got, len(m.pruned))
		}
	})
	m.prunes = func(member.PruneIntent) member.Outcome { return outcome }
	for name, test := range map[string]struct {
		outcome member.Outcome
		want    wire.PruneOutcome
	}{
		"a copy that was orphaned":   {member.Outcome{Applied: metav1.ConditionTrue, Message: "stays", Orphaned: &hubv1.OrphanedCopy{UID: "u"}}, wire.PruneOrphaned},
		"an object that is not ours": {member.Outcome{Applied: metav1.ConditionTrue, Message: "was left alone"}, wire.PruneNotOurs},
		"a copy that waits":          {member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFinalizersRemain, Message: "waits"}, wire.PruneDeleting},
		"a refused delete":           {member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden, Message: "may not"}, wire.PruneFailed},
	} {
		t.Run(name, func(t *testing.T) {
			outcome = test.outcome
			if got := prune(lost); got.Outcome != test.want || got.Message != test.outcome.Message {
				t.Errorf("got %+v", got)
			}
		})
	}
}
