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
	"github.com/hanse-dev/hanse/view"
)

// holder has the fields of the hub's Lease that hansectl needs. They are zero if there is no Lease.
type holder struct {
	name    string // empty if no replica holds the Lease
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

// renewedWithin is how long a hub's Lease may be expired until a standby replica takes it: the replica tries every 2 s.
// Before hansectl says that no hub runs, it watches an expired Lease for this time, because its own clock may differ
// from the hub's.
const renewedWithin = 2 * time.Second

// warnOfSilence warns if no hub runs, because the displayed state may then be out of date.
func (h *hub) warnOfSilence(ctx context.Context, c client.Client) (*view.Silence, error) {
	silence, err := h.silence(ctx, c)
	if silence != nil {
		h.warn("warning: " + silence.Text(time.Now()) + "\n")
	}
	return silence, err
}

// silence tells since when no hub runs. It returns nil if a hub renews its Lease, or if the user may not read the
// Lease.
func (h *hub) silence(ctx context.Context, c client.Client) (*view.Silence, error) {
	for {
		lead, err := readHolder(ctx, c)
		if err != nil {
			h.blind = true
			return nil, h.unlessForbidden(err, "hansectl cannot check whether a hub runs")
		}
		silent, known := h.lead.see(lead, time.Now())
		switch {
		case !known:
		case !silent:
			return nil, nil
		case lead.renewed.IsZero():
			return &view.Silence{}, nil
		default:
			return &view.Silence{Since: ptr.To(metav1.NewTime(lead.renewed))}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(renewedWithin / 4):
		}
	}
}

// observed returns a function that reports whether the hub observes a cluster. silence is nil while a hub runs.
func (h *hub) observed(ctx context.Context, c client.Client, silence *view.Silence) (func(cluster string) bool, error) {
	var members hubv1.MemberClusterList
	if err := h.unlessForbidden(c.List(ctx, &members), "states of clusters are missing"); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	return view.Observed(members.Items, silence, time.Now()), nil
}

// silenceWatch has the last state of a Lease that seems to have expired, and the time at which hansectl first read this
// state.
type silenceWatch struct {
	last  holder
	since time.Time // when this state was first seen; zero if the Lease did not look old
}

// see reports whether no hub runs. The argument "now" is the state of the Lease, and "at" is the time at which hansectl
// read it. known is false if the Lease seems to have expired, but hansectl has not watched it for 2 s yet
// (renewedWithin).
func (w *silenceWatch) see(now holder, at time.Time) (silent, known bool) {
	switch {
	case now.renewed.IsZero():
		return true, true
	case at.Sub(now.renewed) <= now.lasts+renewedWithin:
		*w = silenceWatch{}
		return false, true
	case w.since.IsZero():
		*w = silenceWatch{last: now, since: at}
		return false, false
	case w.last != now: // the hub renews the Lease, but its clock is behind
		*w = silenceWatch{last: now, since: at}
		return false, true
	}
	silent = at.Sub(w.since) >= renewedWithin
	return silent, silent
}
