package view

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Finding is the result of one check of the hub and its members.
type Finding string

const (
	// FindingOK means that the check found no problem, and no action is needed.
	FindingOK Finding = "OK"
	// FindingWarning means that the checked part of Hanse may not work, will stop working soon, or is turned off.
	FindingWarning Finding = "Warning"
	// FindingFailed means that the checked part of Hanse does not work.
	FindingFailed Finding = "Failed"
	// FindingUnknown means that the user lacks a right that the check needs.
	FindingUnknown Finding = "Unknown"
)

// Check is one check of the hub and its members.
type Check struct {
	Name    string  `json:"name"`
	Result  Finding `json:"result"`
	Message string  `json:"message,omitempty"`
	// Do says how the user can fix the problem. It is empty if there is no problem.
	Do string `json:"do,omitempty"`
}

// Checks are the checks of hansectl problems --checks. They are the whole output if the problems cannot be read.
type Checks struct {
	Checks []Check `json:"checks"`
}

// Failed returns the number of failed checks.
func (cs Checks) Failed() int {
	n := 0
	for _, c := range cs.Checks {
		if c.Result == FindingFailed {
			n++
		}
	}
	return n
}

// Write writes a table with one row for each check.
func (cs Checks) Write(w io.Writer, _ time.Time) {
	var rows [][]string
	for _, c := range cs.Checks {
		text := c.Message
		if c.Do != "" {
			text += "; do: " + c.Do
		}
		rows = append(rows, []string{c.Name, string(c.Result), text})
	}
	table(w, []string{"CHECK", "RESULT", "MESSAGE"}, rows)
}

const (
	// clockTolerance is the accepted difference between two clocks. With a larger difference, a machine may refuse a new
	// token or certificate as not valid yet. The hub's clock is read from its Lease, which is renewed every 0.75 s. The
	// error of this reading is less than the tolerance.
	clockTolerance = 5 * time.Second
	// soon is the time before the expiry of a certificate or credential at which a check starts to warn.
	soon = 7 * 24 * time.Hour
)

// CheckClock compares the user's clock with the clock of the hub's leading replica. renewed is the time at which this
// replica last renewed its Lease, by its own clock.
func CheckClock(renewed, now time.Time) Check {
	if ahead := renewed.Sub(now); ahead > clockTolerance {
		return Check{
			"clock", FindingWarning, fmt.Sprintf("the hub's clock is %s ahead of this machine's", ahead.Round(time.Second)),
			"set both clocks by NTP: hansectl computes ages and 'live' with this machine's clock",
		}
	}
	return Check{Name: "clock", Result: FindingOK, Message: "the hub's clock is not ahead of this machine's"}
}

// CheckVersions compares the versions of hansectl and the hub. If hub is empty, unknown is the reason why the hub's
// version is not known.
func CheckVersions(client, hub, unknown string) Check {
	if hub == "" {
		return Check{Name: "version", Result: FindingUnknown, Message: unknown}
	}
	message := fmt.Sprintf("the hub is %s, hansectl is %s", hub, client)
	switch skew := SkewOf(client, hub); {
	case client == hub:
		return Check{Name: "version", Result: FindingOK, Message: hub}
	case skew == SkewUnknown:
		return Check{Name: "version", Result: FindingOK, Message: message + ": development builds are not compared"}
	case skew == SkewTooWide:
		return Check{"version", FindingWarning, message + ": more than one minor version apart", "use hansectl of the hub's version"}
	}
	return Check{Name: "version", Result: FindingOK, Message: message}
}

// CheckCA checks the CA bundle with which the API server verifies a webhook of the hub.
func CheckCA(webhook string, bundle []byte, now time.Time) Check {
	const do = "restart the hub, which writes the CA into the webhook configurations hanse-hub"
	name := webhook + " certificate"
	until, err := lastValid(bundle)
	switch {
	case err != nil:
		return Check{name, FindingFailed, fmt.Sprintf("clientConfig.caBundle: %v", err), do}
	case now.After(until):
		return Check{name, FindingFailed, "the CA expired at " + until.UTC().Format(time.RFC3339), do}
	case until.Sub(now) < soon:
		return Check{name, FindingWarning, "the CA expires at " + until.UTC().Format(time.RFC3339), do}
	}
	return Check{Name: name, Result: FindingOK, Message: "the CA is valid until " + until.UTC().Format(time.RFC3339)}
}

var errNoCertificate = errors.New("there is no certificate")

// lastValid returns the latest expiry of the certificates of a bundle.
func lastValid(bundle []byte) (time.Time, error) {
	var until time.Time
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return until, fmt.Errorf("reading a certificate: %w", err)
		}
		if certificate.NotAfter.After(until) {
			until = certificate.NotAfter
		}
	}
	if until.IsZero() {
		return until, errNoCertificate
	}
	return until, nil
}

// CheckMember checks whether the hub reaches one member and observes it, and whether a condition of the member needs a
// user's action.
func CheckMember(m *hubv1.MemberCluster, now time.Time) Check {
	name := "member " + m.Name
	ready := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady)
	switch {
	case ready == nil:
		return Check{Name: name, Result: FindingWarning, Message: "the hub has not processed the MemberCluster yet"}
	case ready.Status != metav1.ConditionTrue:
		return Check{Name: name, Result: FindingFailed, Message: why(ready.Reason, ready.Message)}
	case m.IsOverdue(now):
		return Check{name, FindingWarning, "no replica of the hub has observed the cluster for " + age(*m.Status.LastObservedTime, now), "find the replica that does not run: kubectl get pods -n " + hubv1.SystemNamespace}
	}
	if c := unusableKubeconfig(m); c != nil {
		return Check{Name: name, Result: FindingWarning, Message: why(c.Reason, c.Message)}
	}
	for _, t := range problemConditions {
		if c := meta.FindStatusCondition(m.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue {
			return Check{Name: name, Result: FindingWarning, Message: why(c.Reason, c.Message)}
		}
	}
	if c := m.Status.Credentials; c != nil && c.ExpireTime != nil && c.ExpireTime.Sub(now) < soon && c.TokenSecret == nil {
		return Check{
			name, FindingWarning, "its credentials expire at " + c.ExpireTime.UTC().Format(time.RFC3339) + " and the hub does not renew them",
			"hansectl rotate " + m.Name + " --member-kubeconfig FILE",
		}
	}
	return Check{Name: name, Result: FindingOK, Message: ready.Reason}
}

// LostRevisions counts the copies that wait for a revision of which a part is stored no more.
type LostRevisions struct {
	copies int
	first  string // one of these copies
}

// Add counts the copies of one object.
func (l *LostRevisions) Add(b hubv1.BindingObject) {
	for i := range b.BindingStatus().Clusters {
		row := &b.BindingStatus().Clusters[i]
		if row.Reason != hubv1.ReasonRevisionMissing {
			continue
		}
		if l.copies++; l.copies == 1 {
			l.first = hubv1.ObjectOf(b).String() + " on " + row.Name
		}
	}
}

// Checks returns a failed check if there are such copies, and else none.
func (l *LostRevisions) Checks() []Check {
	if l.copies == 0 {
		return nil
	}
	return []Check{{
		"revisions", FindingFailed,
		fmt.Sprintf("%d copies are not updated, such as %s: a Secret with their revision was deleted in hanse-system", l.copies, l.first),
		"change the objects, or, during a rollout, run hansectl rollout promote PLACEMENT --full --reason TEXT",
	}}
}

// Unaccepted are the placements that the hub does not accept, so that it places none or only a part of their objects.
type Unaccepted struct {
	placements int
	texts      []string // of the first ones
}

// maxUnaccepted is the maximum number of placements that a check names.
const maxUnaccepted = 3

// Add adds a placement, such as "Placement shop/web", unless it is accepted or not processed yet.
func (u *Unaccepted) Add(placement string, conditions []metav1.Condition) {
	c := meta.FindStatusCondition(conditions, hubv1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	if u.placements++; len(u.texts) < maxUnaccepted {
		u.texts = append(u.texts, placement+": "+why(c.Reason, c.Message))
	}
}

// Checks returns a failed check if there are such placements, and else one with the result OK.
func (u *Unaccepted) Checks() []Check {
	if u.placements == 0 {
		return []Check{{Name: "placements", Result: FindingOK, Message: "all are accepted"}}
	}
	message := strings.Join(u.texts, "; ")
	if more := u.placements - len(u.texts); more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return []Check{{Name: "placements", Result: FindingFailed, Message: message}}
}

// Lacks counts the objects that the hub cannot write. For each cluster and reason, it has a map from kinds to numbers
// of objects.
type Lacks map[lack]map[string]int

type lack struct{ cluster, reason string }

// Add counts the clusters on which the hub cannot write one object, because the kind is forbidden or not served.
func (l Lacks) Add(b hubv1.BindingObject) {
	id := hubv1.ObjectOf(b)
	for i := range b.BindingStatus().Clusters {
		row := &b.BindingStatus().Clusters[i]
		if row.Reason != hubv1.ReasonForbidden && row.Reason != hubv1.ReasonKindNotServed {
			continue
		}
		key := lack{row.Name, row.Reason}
		if l[key] == nil {
			l[key] = map[string]int{}
		}
		l[key][id.GroupKind().String()]++
	}
}

// grantsOf returns the kinds in the syntax of the flag --grant of join, separated by commas.
func grantsOf(kinds map[string]int) string {
	var out []string
	for kind := range maps.Keys(kinds) {
		out = append(out, strings.ToLower(kind))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// Checks returns one check for each cluster and reason. If there are none, it returns one check with the result OK, or
// Unknown if the hub does not accept some placements: their objects have no copies, which members could refuse.
func (l Lacks) Checks(unaccepted *Unaccepted) []Check {
	switch {
	case len(l) == 0 && unaccepted.placements > 0:
		return []Check{{Name: "grants", Result: FindingUnknown, Message: fmt.Sprintf(
			"no member refuses an object, but the objects of %s are not sent yet: see the check placements", counted(unaccepted.placements, "placement"))}}
	case len(l) == 0:
		return []Check{{Name: "grants", Result: FindingOK, Message: "no member refuses or lacks the kind of a placed object"}}
	}
	keys := slices.SortedFunc(maps.Keys(l), func(a, b lack) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.reason, b.reason))
	})
	var out []Check
	for _, k := range keys {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(l[k])) {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, l[k][kind]))
		}
		c := Check{Name: "grants of " + k.cluster, Result: FindingFailed}
		if k.reason == hubv1.ReasonForbidden {
			c.Message = "the member does not let the hub write objects of " + strings.Join(kinds, ", ")
			c.Do = "hansectl join " + k.cluster + " --member-kubeconfig FILE --grant " + grantsOf(l[k]) + ", or set grantedKinds of the chart hanse-member"
		} else {
			c.Message = "the member does not serve " + strings.Join(kinds, ", ")
			c.Do = "install the CustomResourceDefinition on the member, or place it with its objects"
		}
		out = append(out, c)
	}
	return out
}
