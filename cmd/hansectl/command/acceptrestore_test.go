package command

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/epoch"
)

func TestARestoreIsAcceptedByNewEpochs(t *testing.T) {
	fresh(t)
	_, err := hansectl(t, "accept-restore", "--yes")
	refused(t, err, "the hub has no ConfigMap hanse-system/hanse-epochs")

	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubv1.EpochsConfigMap}, Data: map[string]string{hubv1.EpochsKey: "10-a\n11-b\n"}}
	must(t, onHub.Create(t.Context(), list))
	t.Cleanup(func() { remove(t, onHub, list) })
	_, err = hansectl(t, "accept-restore")
	refused(t, err, "pass --yes to confirm")

	out, err := hansectl(t, "accept-restore", "--yes")
	must(t, err)
	wants(t, out, "restore accepted: the hub overwrites or removes ")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	now, ok := epoch.ParseEpochs(list.Data[hubv1.EpochsKey])
	if !ok || now.Len() != 1 || now.Foreign(epoch.Epoch{Sequence: 11, Random: "b"}) || now.Foreign(epoch.Epoch{Sequence: 12, Random: "lost"}) {
		t.Errorf("the list is %q", list.Data)
	}
}
