package decide

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestASpecIsReadOnceForEachGeneration(t *testing.T) {
	t.Parallel()
	var m Memo
	p := policy("web")
	first, err := m.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := m.Compile(p); again != first {
		t.Error("the same generation was read a second time")
	}
	p.Generation, p.Spec.Clusters = 2, hubv1.ClusterSelection{Expression: "name =="}
	if _, err := m.Compile(p); err == nil {
		t.Error("a new generation was taken for the one before")
	}
}

func TestAChangedClusterIsReadAgain(t *testing.T) {
	t.Parallel()
	var m Memo
	c := cluster("eu")
	c.UID, c.ResourceVersion = "u", "1"
	m.cluster(c)
	c.Spec.Unschedulable = true
	if m.cluster(c).Unschedulable {
		t.Error("an unchanged revision was looked at a second time")
	}
	c.ResourceVersion = "2"
	if !m.cluster(c).Unschedulable {
		t.Error("a cluster that has changed is seen as before")
	}
	revision := m.cluster(c).Revision
	c.ResourceVersion, c.Status.LastObservedTime = "3", &metav1.Time{Time: time.Unix(1, 0)}
	if got := m.cluster(c).Revision; got != revision {
		t.Errorf("that a cluster was observed made it another revision to decisions: %s, before %s", got, revision)
	}
}
