package command

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAHeldRemovalIsShownAndConfirmed(t *testing.T) {
	fresh(t)
	m := member(t, "eu-fra-1")
	out, err := hansectl(t, "confirm", "membercluster", "eu-fra-1", "--yes")
	must(t, err)
	wants(t, out, "membercluster/eu-fra-1             holds no removal")

	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	m.Status.RemovalHeld = &hubv1.RemovalHeld{
		ID: "7f3a9c11", Since: metav1.Now(), Causes: []string{"ClusterLeaving: the MemberCluster is being deleted"}, Clusters: []string{"eu-fra-1"}, Copies: 120,
	}
	must(t, onHub.Status().Update(t.Context(), m))
	out, err = hansectl(t, "confirm", "mcl", "eu-fra-1")
	refused(t, err, "not a terminal: pass --yes to confirm")
	wants(t, out, "Copies:    120")
	wants(t, out, "Clusters:  eu-fra-1")
	wants(t, out, "Causes:    ClusterLeaving: the MemberCluster is being deleted")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if got := m.Annotations[hubv1.ConfirmRemovalAnnotation]; got != "" {
		t.Errorf("without a confirmation the annotation is %q", got)
	}

	out, err = hansectl(t, "confirm", "membercluster", "eu-fra-1", "--yes")
	must(t, err)
	wants(t, out, "removal 7f3a9c11 confirmed: the hub deletes 120 copies within seconds")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if got := m.Annotations[hubv1.ConfirmRemovalAnnotation]; got != "7f3a9c11" {
		t.Errorf("the annotation is %q", got)
	}
	out, err = hansectl(t, "confirm", "membercluster", "eu-fra-1", "--yes")
	must(t, err)
	wants(t, out, "removal 7f3a9c11 is confirmed already")
}

func TestTheHeldRemovalOfABundleIsConfirmed(t *testing.T) {
	b := bundleOnHub(t)
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Status.RemovalHeld = &hubv1.RemovalHeld{
		ID: "7f3a9c11", Since: metav1.Now(), Causes: []string{"ObjectDeleted: the bundle no longer contains the object"}, Clusters: []string{"ap-se-1"}, Copies: 2,
	}
	must(t, onHub.Status().Update(t.Context(), b))
	out, err := hansectl(t, "confirm", "bundle/web", "-n", "shop", "--yes")
	must(t, err)
	wants(t, out, "Causes:    ObjectDeleted: the bundle no longer contains the object", "bundle/web", "removal 7f3a9c11 confirmed: the hub deletes 2 copies within seconds")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	if got := b.Annotations[hubv1.ConfirmRemovalAnnotation]; got != "7f3a9c11" {
		t.Errorf("the annotation is %q", got)
	}
	out, err = hansectl(t, "confirm", "bundle", "web", "-n", "shop")
	must(t, err)
	wants(t, out, "removal 7f3a9c11 is confirmed already")
}

func TestOnlyWhatHoldsRemovalsCanBeConfirmed(t *testing.T) {
	fresh(t)
	_, err := hansectl(t, "confirm", "deployment", "web")
	refused(t, err, `KIND "deployment": want placement, clusterplacement, membercluster, bundle, clusterbundle or federatedoperator`)
	_, err = hansectl(t, "confirm", "fop", "rotors", "--yes")
	refused(t, err, "the hub has no fop/rotors")
	_, err = hansectl(t, "confirm", "placement", "web", "--yes")
	refused(t, err, "the hub has no")
}
