package command

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// member creates a MemberCluster whose cluster does not exist.
func member(t *testing.T, name string) *hubv1.MemberCluster {
	t.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
		Connection: hubv1.Connection{
			Type:   hubv1.ConnectionDirect,
			Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"}},
		},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
	}}
	apply(t, onHub, m)
	return m
}

func TestACordonedClusterIsClosedUntilItIsUncordoned(t *testing.T) {
	fresh(t)
	m := member(t, "eu-fra-1")
	_, binding := settings(t)
	binding.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu-fra-1", State: hubv1.TargetPresent}}
	apply(t, onHub, binding)
	unschedulable := func(want bool) {
		t.Helper()
		must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		if m.Spec.Unschedulable != want {
			t.Errorf("spec.unschedulable is %v, want %v", m.Spec.Unschedulable, want)
		}
	}
	for _, step := range []struct {
		command, says string
		closed        bool
	}{
		{"uncordon", "membercluster/eu-fra-1             is not cordoned", false},
		{"cordon", "membercluster/eu-fra-1             cordoned: the cluster gets no new objects; 1 object on it stays", true},
		{"cordon", "membercluster/eu-fra-1             is cordoned already", true},
		{"uncordon", "membercluster/eu-fra-1             uncordoned: the cluster may get new objects", false},
	} {
		out, err := hansectl(t, step.command, "eu-fra-1")
		must(t, err)
		wants(t, out, step.says)
		unschedulable(step.closed)
	}
}

func TestOnlyAMemberCanBeCordoned(t *testing.T) {
	fresh(t)
	for _, command := range []string{"cordon", "uncordon"} {
		_, err := hansectl(t, command, "mars-1")
		refused(t, err, "the hub has no membercluster/mars-1: there are none")
		_, err = run(t, command, "mars-1", "--kubeconfig", onMember.kubeconfig)
		refused(t, err, "the cluster of your kubeconfig has no hub of Hanse")
		_, err = run(t, command)
		refused(t, err, "CLUSTER is missing")
	}
}
