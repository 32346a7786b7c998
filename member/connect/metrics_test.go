package connect

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hanse-dev/hanse/member"
)

func TestALinkThatIsBackIsCounted(t *testing.T) {
	t.Parallel()
	const cluster = "counted"
	counted := func() int {
		t.Helper()
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "hanse_member_reconnects_total" && m.GetLabel()[0].GetValue() == cluster {
					return int(m.GetCounter().GetValue())
				}
			}
		}
		return -1
	}
	is := func(when string, want int) {
		t.Helper()
		if got := counted(); got != want {
			t.Errorf("%s: %d reconnects, want %d", when, got, want)
		}
	}
	p := New(Options{})
	p.Ensure(cluster, by(nil), "")
	l := p.link(cluster)
	ready := func(s metav1.ConditionStatus) { l.setState(member.LinkState{Ready: s}) }
	is("a new link", 0)
	ready(metav1.ConditionTrue)
	is("the first connection", 0)
	ready(metav1.ConditionFalse)
	ready(metav1.ConditionFalse)
	is("a lost link", 0)
	ready(metav1.ConditionTrue)
	ready(metav1.ConditionTrue)
	is("the link is back", 1)
	ready(metav1.ConditionFalse)
	p.Remove(cluster)
	is("the member has left", -1)
	ready(metav1.ConditionTrue)
	is("a late state of the removed link", -1)
	p.Ensure(cluster, by(nil), "")
	is("a member of that name joins", 0)
}
