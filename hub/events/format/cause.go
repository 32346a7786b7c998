package format

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// trouble is a kind of failure. Its reasons begin or renew it, and relief ends it.
type trouble struct {
	name            string
	reasons, relief []string
	// one is true if all objects of a placement share the failure. Then only an event on the placement ends it.
	one bool
}

// troubles are the failures that end with an event. docs/notifications.md lists them.
var troubles = []trouble{
	{name: "accept", reasons: []string{"NotAccepted"}, relief: []string{"Accepted"}, one: true},
	{
		name: "schedule", relief: []string{"Scheduled"}, one: true,
		reasons: []string{
			"NotScheduled", hubv1.ReasonNoClusterSelected, hubv1.ReasonHubWouldRun, hubv1.ReasonNamespaceRefused, hubv1.ReasonSecretTypeRefused,
			hubv1.ReasonPlacementGone, hubv1.ReasonOverrideInvalid, hubv1.ReasonDivisionRefused, hubv1.ReasonReplicasUnplaced, hubv1.ReasonNoReplacement,
			hubv1.ReasonTooManyAway,
		},
	},
	{name: "apply", reasons: []string{"ApplyFailed", hubv1.ReasonHubIsOlder}, relief: []string{"Applied"}, one: true},
	{name: "health", reasons: []string{"Degraded"}, relief: []string{"Healthy"}, one: true},
	{name: "away", reasons: []string{hubv1.EventClustersAway}, relief: []string{"ClustersBack"}, one: true},
	{
		name: "removal", reasons: []string{hubv1.ReasonRemovalHeld}, relief: []string{hubv1.ReasonRemovalConfirmed, hubv1.ReasonRemovalCancelled},
	},
	{
		name: "rollout", one: true,
		reasons: []string{hubv1.ReasonWaitingForApproval, hubv1.ReasonWaitingForClusters, hubv1.ReasonRolloutFailed, hubv1.ReasonRolledBack},
		relief:  []string{hubv1.ReasonRolloutApproved, hubv1.ReasonWaveStarted, hubv1.ReasonRolloutComplete},
	},
	{
		name: "connection", relief: []string{hubv1.ReasonConnected, hubv1.ReasonCredentialsTaken},
		reasons: []string{
			hubv1.ReasonUnreachable, hubv1.ReasonWatchesStalled, hubv1.ReasonThrottled, hubv1.ReasonSecretMissing, hubv1.ReasonKubeconfigInvalid,
			hubv1.ReasonKubeconfigRefused, hubv1.ReasonCertificateUnknown, hubv1.ReasonForbidden, hubv1.ReasonIdentityChanged,
			hubv1.ReasonDuplicateCluster, hubv1.ReasonClusterIDClaimed, hubv1.ReasonUnauthorized,
		},
	},
}

// state says what a notice does to an incident.
type state int

const (
	nothing state = iota
	begins
	ends
)

// incident returns what a notice does to which incident. key is the same for the event that begins the incident and for
// the one that ends it.
func (n Notice) incident(hub string) (does state, key string) {
	of := n.Regarding
	name := n.Reason
	does = nothing
	if n.Type == corev1.EventTypeWarning {
		does = begins
	}
	for _, t := range troubles {
		starts, stops := slices.Contains(t.reasons, n.Reason) && does == begins, slices.Contains(t.relief, n.Reason) && does == nothing
		if !starts && !stops {
			continue
		}
		name = t.name
		if placement := n.placement(); t.one && placement != nil {
			of = *placement
		}
		if stops && subject(of) == subject(n.Regarding) { // an object of a placement does not end what all of its objects share
			does = ends
		}
		break
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{hub, subject(of), name}, "\n")))
	return does, hex.EncodeToString(sum[:])
}

// EndsIncident reports whether a notice can end an incident. A filter must not drop such a notice, because the incident
// would stay open.
func (n Notice) EndsIncident() bool {
	does, _ := n.incident("")
	return does == ends
}

// Cause returns a key that is the same for notices that most likely have one cause, if they are recorded within some
// seconds: all that concern one placement, the same clusters that are away, or MemberClusters.
func (n Notice) Cause() string {
	of := n.Subject()
	switch placement := n.placement(); {
	case n.Reason == hubv1.EventClustersAway, n.Reason == "ClustersBack":
		of = n.Reason
	case placement != nil:
		of = subject(*placement)
	case isOurs(n.Regarding) && n.Regarding.Kind == "MemberCluster":
		of = n.Regarding.Kind
	}
	return n.Type + " " + of
}
