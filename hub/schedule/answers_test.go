package schedule

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// askAgain is the time between two decisions that wait for answers.
const askAgain = 500 * time.Millisecond

// decide decides on an object, when the wait for answers began the given duration ago. It returns the shares of the
// clusters, and the time until the next decision.
func (a *answers) decide(in decide.Input, after time.Duration) (string, time.Duration) {
	in.Now = now.Add(after)
	kind := in.Object.ID.GroupKind()
	in.Limits = &decide.Limits{AnswersAwaited: a.awaited(kind, in.Now)}
	p := decide.Decide(in)
	a.claim(kind, p.Claims.Answers, in.Now)
	return shares(p.Spec), p.Again
}

func TestAFirstDivisionWaitsForAnswers(t *testing.T) {
	t.Parallel()
	silent := func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: "other.example.com", Kind: "Other"}}
	}
	var u answers
	in := inputFor(nil, only(policy("web", dividing(hubv1.DivideByWeight))), nil)
	at := func(after time.Duration, clusters ...*hubv1.MemberCluster) (string, time.Duration) {
		in.Facts.Clusters = clusters
		in.Object.Template.Object["spec"] = map[string]any{"size": int64(10)}
		return u.decide(in, after)
	}
	steps := []struct {
		after    time.Duration
		clusters []*hubv1.MemberCluster
		want     string
		again    time.Duration
		why      string
	}{
		{0, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", askAgain, "one has not answered"},
		{time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg")}, "eu=5 sg=5", 0, "all have"},
		{2 * time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", askAgain, "another object begins anew"},
		{11800 * time.Millisecond, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "no binding", 200 * time.Millisecond, "for a while"},
		{12 * time.Second, []*hubv1.MemberCluster{cluster("eu"), cluster("sg", silent)}, "eu=10", 0, "and no longer"},
	}
	for _, s := range steps {
		if got, again := at(s.after, s.clusters...); got != s.want || again != s.again {
			t.Errorf("%s: %q, again in %s; want %q, %s", s.why, got, again, s.want, s.again)
		}
	}
	in.Binding = divided(share("eu", 10))
	if got, again := at(time.Minute, cluster("eu"), cluster("sg", silent)); got != "eu=10" || again != 0 {
		t.Errorf("an object that is divided: %q, again in %s", got, again)
	}
}

func TestAFirstChoiceWaitsForAnswers(t *testing.T) {
	t.Parallel()
	silent := func(c *hubv1.MemberCluster) {
		c.Status.APIResources = []hubv1.ServedKind{{Group: "other.example.com", Kind: "Other"}}
	}
	one := func(p *hubv1.Placement) { p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)} }
	var u answers
	at := func(after time.Duration, held []hubv1.BindingTarget, clusters ...*hubv1.MemberCluster) (string, time.Duration) {
		in := inputFor(nil, only(policy("web", one)), clusters)
		if held != nil {
			in.Binding = bound(held...)
		}
		return u.decide(in, after)
	}
	if got, again := at(0, nil, cluster("eu", silent), cluster("sg")); got != "no binding" || again != askAgain {
		t.Errorf("one has not answered: %q, again in %s", got, again)
	}
	if got, again := at(time.Second, nil, cluster("eu"), cluster("sg")); got != "sg" || again != 0 {
		t.Errorf("all have: %q, again in %s", got, again)
	}
	if got, again := at(time.Second, []hubv1.BindingTarget{present("sg")}, cluster("eu", silent), cluster("sg")); got != "sg" || again != 0 {
		t.Errorf("an object that has its cluster: %q, again in %s", got, again)
	}
}
