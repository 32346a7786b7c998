package membership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAClusterJoins(t *testing.T) {
	s := newScene(t, "joins")
	s.secret(s.name)
	s.join()
	s.linked(&want{s.name, ""})
	s.is(hubv1.ConditionReady, metav1.ConditionUnknown, hubv1.ReasonConnecting, "under way")
	links.become(s.name, connected("joins-id"))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "watches deliver")
	s.is(hubv1.ConditionCredentialsValid, metav1.ConditionTrue, hubv1.ReasonCredentialsTaken, "taken")
	s.is(hubv1.ConditionTopologyChanged, metav1.ConditionFalse, hubv1.ReasonTopologyStable, "")
	s.linked(&want{s.name, "joins-id"})

	got := s.get()
	if !controllerutil.ContainsFinalizer(got, hubv1.WithdrawFinalizer) {
		t.Error("there is no finalizer")
	}
	want := hubv1.MemberClusterStatus{
		ObservedGeneration: got.Generation, ClusterID: "joins-id", Version: hubv1.ClusterVersion{Kubernetes: "v1.36.3"},
		Topology: hubv1.ClusterTopology{Region: "eu", Zones: []string{"eu-a", "eu-b"}},
		Capacity: cpus("12"), Allocatable: cpus("9"), Nodes: hubv1.NodeSummary{Total: 3, Ready: 3},
		CapacityGrowth: &hubv1.CapacityGrowth{Base: cpus("12"), Since: got.Status.CapacityGrowth.Since},
		Conditions:     got.Status.Conditions, LastObservedTime: got.Status.LastObservedTime,
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Error(diff)
	}
	s.unchanged("a status without news", func() {
		for range 5 {
			later := connected("joins-id")
			later.LastObserved = time.Now().Add(time.Hour)
			links.become(s.name, later)
		}
	})
	s.unchanged("the status after a restart", func() { links.become(s.name, connecting) })

	links.become(s.name, away(connected("joins-id")))
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable, "refuses")
	links.become(s.name, connected("joins-id"))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
}

func TestTheSecretIsFollowed(t *testing.T) {
	s := newScene(t, "secret")
	s.join()
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "hanse-system/secret")
	s.is(hubv1.ConditionCredentialsValid, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "hanse-system/secret")
	s.linked(nil)

	s.secret("one")
	s.is(hubv1.ConditionReady, metav1.ConditionUnknown, hubv1.ReasonConnecting, "")
	links.become("one", connected("secret-id"))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
	s.secret("two")
	s.linked(&want{"two", "secret-id"})

	s.must(hub.Patch(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: s.name}},
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"kubeconfig":null,"other":"eA=="}}`))))
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "no key kubeconfig")
	s.linked(nil)
	s.secret("one")
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")

	s.must(hub.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: s.name}}))
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "does not exist: create the Secret")
	s.linked(nil)
	if id := s.get().Status.ClusterID; id != "secret-id" {
		t.Errorf("clusterID is %q", id)
	}
}

func TestTheHubMayBeAMember(t *testing.T) {
	s := newScene(t, "hub-itself")
	s.ready(hubID, func(c *hubv1.MemberCluster) { c.Spec.Hub = true })
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "the hub's own cluster")
	s.linked(&want{s.name, hubID})
	if id := s.get().Status.ClusterID; id != hubID {
		t.Errorf("clusterID is %q", id)
	}
}

// TestAClusterThatOnceClaimedToBeTheHubHasNoLink begins with a status that only an older version of Hanse could write:
// status.clusterID is the ID of the hub, although spec.hub is not set.
func TestAClusterThatOnceClaimedToBeTheHubHasNoLink(t *testing.T) {
	s := newScene(t, "claimed")
	s.join()
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "")
	c := s.get()
	c.Status.ClusterID = hubID
	s.must(hub.Status().Update(t.Context(), c))
	links.become(s.name, connected(hubID))
	s.secret(s.name)
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonClusterIDClaimed, "set spec.hub: true")
	s.linked(nil)
	s.must(hub.Patch(t.Context(), s.get(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hub":true}}`))))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "the hub's own cluster")
	s.linked(&want{s.name, hubID})
}

func TestTopologyIsPinnedInTheStatus(t *testing.T) {
	s := newScene(t, "pinned")
	s.ready("pinned-id")
	moved := connected("pinned-id")
	moved.Facts.Region, moved.Facts.Zones = "us", []string{"us-a"}
	links.become(s.name, moved)
	s.is(hubv1.ConditionTopologyChanged, metav1.ConditionTrue, hubv1.ReasonNodesMoved, "us")
	if diff := cmp.Diff(hubv1.ClusterTopology{Region: "eu", Zones: []string{"eu-a", "eu-b"}}, s.get().Status.Topology); diff != "" {
		t.Error(diff)
	}
	s.must(hub.Patch(t.Context(), s.get(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"topology.kubernetes.io/region":"us","topology.kubernetes.io/zone":"us-a"}}}`))))
	s.is(hubv1.ConditionTopologyChanged, metav1.ConditionFalse, hubv1.ReasonTopologyStable, "")
	if diff := cmp.Diff(hubv1.ClusterTopology{Region: "us", Zones: []string{"us-a"}}, s.get().Status.Topology); diff != "" {
		t.Error(diff)
	}
}

func TestCapacityIsWrittenOnceAMinute(t *testing.T) {
	s := newScene(t, "capacity")
	s.ready("capacity-id")
	more := connected("capacity-id")
	more.Facts.Capacity, more.Facts.Nodes = cpus("16"), hubv1.NodeSummary{Total: 4, Ready: 4}
	s.unchanged("capacity that was written just now", func() { links.become(s.name, more) })

	reconciler.records.change(s.name, func(written *record) { written.capacityWritten = time.Now().Add(-2 * time.Minute) })
	reconciler.Wake(s.name)
	s.eventually("the new capacity", func() string { return cmp.Diff(cpus("16"), s.get().Status.Capacity) })
}

func TestAClusterJoinsOnce(t *testing.T) {
	first, second := newScene(t, "rival-first"), newScene(t, "rival-second")
	first.ready("rival-id")
	links.become(second.name, connected("rival-id"))
	second.secret(second.name)
	second.join()
	second.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonDuplicateCluster, first.name)
	second.is(hubv1.ConditionCredentialsValid, metav1.ConditionTrue, hubv1.ReasonCredentialsTaken, "")
	second.linked(nil)
	first.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
	if id := second.get().Status.ClusterID; id != "" {
		t.Errorf("the refused one has clusterID %q", id)
	}

	// After it gets the kubeconfig of another cluster, the hub connects the refused MemberCluster.
	links.become("elsewhere", connected("rival-other-id"))
	second.secret("elsewhere")
	second.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
	if id := second.get().Status.ClusterID; id != "rival-other-id" {
		t.Errorf("clusterID is %q", id)
	}
}

func TestARefusedClusterJoinsWhenTheOtherHasLeft(t *testing.T) {
	first, second := newScene(t, "heir-first"), newScene(t, "heir-second")
	first.ready("heir-id")
	links.become(second.name, connected("heir-id"))
	second.secret(second.name)
	second.join()
	second.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonDuplicateCluster, first.name)
	second.must(hub.Delete(t.Context(), first.get()))
	first.gone()
	second.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
}

func TestTheMemberClusterThatHoldsAClusterKeepsIt(t *testing.T) {
	older, newer := newScene(t, "holder-older"), newScene(t, "holder-newer")
	older.join() // the MemberCluster has no Secret yet
	older.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "")
	newer.ready("holder-id")
	links.become(older.name, connected("holder-id"))
	older.secret(older.name)
	older.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonDuplicateCluster, newer.name)
	newer.linked(&want{newer.name, "holder-id"})
}

func TestOfTwoMemberClustersTheOlderKeepsTheCluster(t *testing.T) {
	older, newer := newScene(t, "both-a-older"), newScene(t, "both-b-newer")
	older.ready("both-id")
	newer.join()
	newer.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "")
	c := newer.get()
	c.Status.ClusterID = "both-id"
	newer.must(hub.Status().Update(t.Context(), c))
	newer.secret(newer.name)
	newer.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonDuplicateCluster, older.name)
	older.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonConnected, "")
}
