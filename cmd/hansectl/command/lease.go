package command

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

// holder is what the hub's Lease says, as far as it matters here. It is empty if there is no Lease.
type holder struct {
	name    string // empty if nobody holds it
	renewed time.Time
	lasts   time.Duration
}

func readHolder(ctx context.Context, hub client.Client) (holder, error) {
	key := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}
	var lease coordinationv1.Lease
	if err := client.IgnoreNotFound(hub.Get(ctx, key, &lease)); err != nil {
		return holder{}, fmt.Errorf("reading Lease %s: %w", key, err)
	}
	now := holder{name: ptr.Deref(lease.Spec.HolderIdentity, ""), lasts: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second}
	if lease.Spec.RenewTime != nil {
		now.renewed = lease.Spec.RenewTime.Time
	}
	return now, nil
}

// silentAfter is how much older than its term the hub's Lease may be before no hub runs: replicas change, and the user's clock is not the hub's.
const silentAfter = 30 * time.Second

// warnOfSilence says if no hub keeps up to date what a command is about to show.
func (h *hub) warnOfSilence(ctx context.Context, c client.Client) error {
	now := time.Now()
	silence, err := h.silence(ctx, c, now)
	if silence != nil {
		h.warn("warning: " + silence.Text(now) + "\n")
	}
	return err
}

// silence is nil while a hub renews its Lease, and for a user who may not see whether one does.
func (h *hub) silence(ctx context.Context, c client.Client, now time.Time) (*view.Silence, error) {
	lead, err := readHolder(ctx, c)
	switch {
	case err != nil:
		return nil, h.unlessForbidden(err, "whether a hub runs is not known")
	case lead.renewed.IsZero():
		return &view.Silence{}, nil
	case now.Sub(lead.renewed) <= lead.lasts+silentAfter:
		return nil, nil
	}
	return &view.Silence{Since: ptr.To(metav1.NewTime(lead.renewed))}, nil
}
