package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// Problems is the output of the command problems.
type Problems struct {
	// Objects and Copies are the numbers of objects and copies that the command has examined.
	Objects int `json:"objects"`
	Copies  int `json:"copies"`
	// Needs are the problems of the next five lists together that need a user, the most urgent first, see Needs.
	Needs []Problem `json:"needs"`
	// OfRollouts are waves that wait for a user, revisions that have failed, and objects whose clusters have an older
	// revision than the hub object.
	OfRollouts []Problem `json:"rolloutProblems"`
	// OfKinds are kinds whose copies never become Healthy, because no convention understands their status.
	OfKinds []Problem `json:"kindProblems"`
	// OfClusters, OfPolicies and OfObjects are conditions that need a user's action.
	OfClusters []Problem `json:"clusterProblems"`
	OfPolicies []Problem `json:"policyProblems"`
	OfObjects  []Problem `json:"objectProblems"`
	// Clusters are the clusters whose copies have differed from the wanted state for the longest time.
	Clusters  []SlowCluster    `json:"slowestClusters"`
	Drift     []DriftedCopy    `json:"oldestDrift"`
	Contested []ContestedField `json:"mostContestedFields"`
	// Checks are the results of --checks.
	Checks []Check `json:"checks,omitempty"`
}

// Problem is a rollout, or a condition of a cluster, a policy or an object of the hub.
type Problem struct {
	Of string `json:"of"`
	// Topic and State say what the problem is about, and how bad it is. State is empty if no user has to act: the cause is
	// another problem, or goes away by itself. Rank is 1 for the most urgent state. It is set only in Problems.Needs.
	Topic Topic        `json:"topic"`
	State ProblemState `json:"state,omitempty"`
	Rank  int          `json:"rank,omitempty"`
	// ID is the identity of the MemberCluster or object. It is empty for a policy and for a wave.
	ID      hubv1.ObjectIdentity `json:"-"`
	Since   *metav1.Time         `json:"since,omitempty"`
	Reason  string               `json:"reason"`
	Message string               `json:"message,omitempty"`
	// Wave is the wave that waits. Where names the clusters with the worst copies of an object, or counts the copies of a
	// cluster as of the time AsOf. Do is a command that helps.
	Wave  string       `json:"wave,omitempty"`
	Where string       `json:"where,omitempty"`
	AsOf  *metav1.Time `json:"asOf,omitempty"`
	Do    string       `json:"do,omitempty"`
}

// SlowCluster is a cluster with copies that are not up to date.
type SlowCluster struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	Ready   string `json:"ready"` // True, False or Unknown
	// Copies is the number of copies that the cluster shall hold. Behind is the number of copies that are not up to date.
	Copies int `json:"copies"`
	Behind int `json:"behind"`
	// Object, Reason and Message belong to the copy with the longest delay. Since is the time at which this delay began.
	Object  string       `json:"object"`
	Since   *metav1.Time `json:"since,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
}

// DriftedCopy is a copy that differs from the hub's manifest and that the hub does not correct.
type DriftedCopy struct {
	Object  string       `json:"object"`
	Cluster string       `json:"cluster"`
	Since   *metav1.Time `json:"since,omitempty"`
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
}

// ContestedField is a field that another field manager changes repeatedly.
type ContestedField struct {
	// Field is the field that another field manager changes. It is empty if another client repeatedly deletes the copy, or
	// its Hanse labels and annotations.
	Field   string `json:"field,omitempty"`
	Manager string `json:"manager,omitempty"`
	Copies  int    `json:"copies"`
	// Object and Cluster belong to the copy with the longest conflict. Since is the time at which this conflict began.
	Object  string       `json:"object"`
	Cluster string       `json:"cluster"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// Gatherer collects problems from bindings and policies.
type Gatherer struct {
	members         map[string]*hubv1.MemberCluster
	ofRollouts      rolloutProblems
	ofClusters      []Problem
	ofPolicies      []Problem
	ofObjects       []Problem
	objects, copies int
	clusters        map[string]*SlowCluster
	drift           []DriftedCopy
	contested       map[[2]string]*ContestedField // contested fields, by field and manager
	kinds           map[schema.GroupKind]*understanding
	// kept has the placements of objects whose placement selects no cluster any more.
	kept map[hubv1.ObjectIdentity]string
}

// NewGatherer returns a Gatherer that has no bindings and policies yet.
func NewGatherer(members []hubv1.MemberCluster) *Gatherer {
	g := &Gatherer{members: map[string]*hubv1.MemberCluster{}, clusters: map[string]*SlowCluster{}, contested: map[[2]string]*ContestedField{}, kinds: map[schema.GroupKind]*understanding{}, kept: map[hubv1.ObjectIdentity]string{}}
	for i := range members {
		m := &members[i]
		g.members[m.Name] = m
		of, id := "MemberCluster "+m.Name, hubv1.ObjectIdentity{Group: hubv1.GroupVersion.Group, Kind: "MemberCluster", Name: m.Name}
		if c := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
			g.ofClusters = append(g.ofClusters, problem(of, c).with(id).aboutCluster(hubv1.ConditionReady))
		} else if c := unusableKubeconfig(m); c != nil {
			g.ofClusters = append(g.ofClusters, problem(of, c).with(id).aboutCluster(hubv1.ConditionCredentialsValid))
		}
		for _, t := range problemConditions {
			if c := meta.FindStatusCondition(m.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue {
				g.ofClusters = append(g.ofClusters, problem(of, c).with(id).aboutCluster(t))
			}
		}
	}
	return g
}

// unusableKubeconfig returns the condition CredentialsValid if a new kubeconfig does not work, and otherwise nil. The
// hub uses the earlier kubeconfig until the hub restarts, so the cluster is still Ready.
func unusableKubeconfig(m *hubv1.MemberCluster) *metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionCredentialsValid)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason == hubv1.ReasonConnecting {
		return nil
	}
	return c
}

// problemConditions are the condition types of MemberClusters and placements that are True while a user must act.
var problemConditions = []string{
	hubv1.ConditionCredentialsExpireSoon, hubv1.ConditionTopologyChanged, hubv1.ConditionAnswersTooLarge, hubv1.ConditionUnclaimed, hubv1.ConditionRemovalHeld,
}

// problem returns a condition of an object as a Problem. of is the kind and name of the object. If c is nil, the hub
// has not written the condition yet.
func problem(of string, c *metav1.Condition) Problem {
	if c == nil {
		return Problem{Of: of, Reason: hubv1.ReasonPending, Message: "the hub has not processed the object yet"}
	}
	return Problem{Of: of, Since: &c.LastTransitionTime, Reason: c.Reason, Message: c.Message}
}

func (p Problem) with(id hubv1.ObjectIdentity) Problem {
	p.ID = id
	return p
}

// AddPolicy examines the conditions of a placement or an override policy. The argument "of" is the policy's kind and
// name.
func (t *Gatherer) AddPolicy(of string, conditions []metav1.Condition) {
	if c := meta.FindStatusCondition(conditions, hubv1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		t.ofPolicies = append(t.ofPolicies, problem(of, c).aboutPolicy(c.Type))
	}
	if c := meta.FindStatusCondition(conditions, hubv1.ConditionScheduled); c != nil && c.Reason == hubv1.ReasonKindUnreadable {
		t.ofPolicies = append(t.ofPolicies, problem(of, c).aboutPolicy(c.Type))
	}
	for _, trouble := range problemConditions {
		if c := meta.FindStatusCondition(conditions, trouble); c != nil && c.Status == metav1.ConditionTrue {
			t.ofPolicies = append(t.ofPolicies, problem(of, c).aboutPolicy(c.Type))
		}
	}
}

// AddBundle examines whether the hub has stored the objects of a bundle, and can roll them out to all clusters. It also
// examines whether the hub holds the removal of copies of objects that the bundle no longer contains, and whether a
// certificate that it keeps expires soon.
func (t *Gatherer) AddBundle(b hubv1.BundleObject) {
	for _, needed := range []string{hubv1.ConditionStored, hubv1.ConditionScheduled} {
		if c := meta.FindStatusCondition(b.BundleStatus().Conditions, needed); c != nil && c.Status == metav1.ConditionFalse {
			t.ofPolicies = append(t.ofPolicies, problem(hubv1.ReferenceTo(b).String(), c).aboutPolicy(c.Type))
		}
	}
	for _, trouble := range []string{hubv1.ConditionRemovalHeld, hubv1.ConditionCertificateExpiresSoon} {
		if c := meta.FindStatusCondition(b.BundleStatus().Conditions, trouble); c != nil && c.Status == metav1.ConditionTrue {
			t.ofPolicies = append(t.ofPolicies, problem(hubv1.ReferenceTo(b).String(), c).aboutPolicy(c.Type))
		}
	}
}

// addObject adds the first condition of a binding that is False, or that says that the hub object cannot be read. It
// ignores later conditions, because they may follow from the first one.
func (t *Gatherer) addObject(name string, b hubv1.BindingObject) {
	t.addOrphans(name, b)
	for _, kind := range []string{hubv1.ConditionScheduled, hubv1.ConditionApplied, hubv1.ConditionHealthy} {
		if c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind); c != nil && (c.Status == metav1.ConditionFalse || c.Reason == hubv1.ReasonTemplateMissing) {
			p := t.about(problem(name, c).with(hubv1.ObjectOf(b)), b, kind)
			if t.ofRollouts.has(name) {
				p.State = "" // the entry of the rollout has the sentence of the worst copy
			}
			t.ofObjects = append(t.ofObjects, p)
			return
		}
	}
}

// addOrphans adds an object whose placement was deleted. Its copies stay, and get no changes.
func (t *Gatherer) addOrphans(name string, b hubv1.BindingObject) {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, hubv1.ConditionScheduled)
	if c == nil || c.Reason != hubv1.ReasonPlacementGone || len(b.BindingSpec().Clusters) == 0 {
		return
	}
	id := hubv1.ObjectOf(b)
	p := problem(name, c).with(id)
	p.Topic, p.State, p.Do = TopicObject, ProblemWarning, "hansectl withdraw "+id.Kind+" "+id.Name
	if id.Namespace != "" {
		p.Do += " -n " + id.Namespace
	}
	p.Where = counted(len(b.BindingSpec().Clusters), "cluster")
	t.ofObjects = append(t.ofObjects, p)
}

// AddDeleting adds a hub object whose deletion waits for finalizers. o has the metadata of an object that is being
// deleted.
func (t *Gatherer) AddDeleting(o *metav1.PartialObjectMetadata) {
	if len(o.Finalizers) == 0 {
		return
	}
	id := hubv1.ObjectIdentity{Group: o.GroupVersionKind().Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	t.ofObjects = append(t.ofObjects, Problem{
		Of: id.String(), Topic: TopicObject, State: ProblemNotReady, ID: id, Since: o.DeletionTimestamp, Reason: hubv1.ReasonFinalizersRemain,
		Message: fmt.Sprintf("the deletion on the hub waits for the finalizers %s: only a client of the hub can remove them, because members do not get finalizers", strings.Join(o.Finalizers, ", ")),
	})
}

// Add examines the binding of one object, and its copies.
func (t *Gatherer) Add(b hubv1.BindingObject) {
	t.objects++
	name := hubv1.ObjectOf(b).String() + bundleIn(BundleOf(b.BindingSpec().ObjectRef))
	t.ofRollouts.add(name, b, t.worstCopies)
	t.addObject(name, b)
	kind := hubv1.ObjectOf(b).GroupKind()
	if t.kinds[kind] == nil {
		t.kinds[kind] = &understanding{}
	}
	for _, target := range b.BindingSpec().Clusters {
		if target.State != hubv1.TargetPresent {
			continue
		}
		t.copies++
		row := b.BindingStatus().Row(target.Name)
		if row == nil {
			row = &hubv1.ClusterRow{Name: target.Name, Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonPending}
		}
		t.addToCluster(name, row)
		t.kinds[kind].add(row)
		switch {
		case driftReasons[row.Reason]:
			t.drift = append(t.drift, DriftedCopy{Object: name, Cluster: row.Name, Since: row.LastTransitionTime, Reason: row.Reason, Message: row.Message})
		case row.ChangedByCluster != "":
			t.drift = append(t.drift, DriftedCopy{
				Object: name, Cluster: row.Name, Since: row.LastTransitionTime,
				Reason: hubv1.ReasonChangedByCluster, Message: member.ChangedMessage(row.ChangedByCluster),
			})
		}
		if row.Reason == hubv1.ReasonContested {
			t.addContested(name, row)
		}
	}
}

// driftReasons are the reasons that mean: the copy differs from the hub's manifest, and the hub does not correct it. A
// copy whose values the cluster has changed may have another reason in its row.
var driftReasons = map[string]bool{
	hubv1.ReasonDiffers: true, hubv1.ReasonMissing: true, hubv1.ReasonNotRecreated: true, hubv1.ReasonPaused: true, hubv1.ReasonContested: true,
}

func (t *Gatherer) addToCluster(object string, row *hubv1.ClusterRow) {
	c := t.clusters[row.Name]
	if c == nil {
		c = &SlowCluster{Cluster: row.Name, Ready: string(metav1.ConditionUnknown)}
		if m := t.members[row.Name]; m != nil {
			c.Region = region(m)
			if ready := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady); ready != nil {
				c.Ready = string(ready.Status)
			}
		}
		t.clusters[row.Name] = c
	}
	c.Copies++
	if row.Applied == metav1.ConditionTrue {
		return
	}
	if c.Behind++; c.Behind == 1 || before(row.LastTransitionTime, c.Since) {
		c.Object, c.Since, c.Reason, c.Message = object, row.LastTransitionTime, row.Reason, row.Message
	}
}

func (t *Gatherer) addContested(object string, row *hubv1.ClusterRow) {
	// Package hub/dispatch writes messages such as "field manager kubectl-edit keeps changing .spec.replicas; the hub
	// ...".
	manager, rest, named := strings.Cut(strings.TrimPrefix(row.Message, "field manager "), " keeps changing ")
	field, _, _ := strings.Cut(rest, ";")
	if !named {
		manager = ""
	}
	f := t.contested[[2]string{field, manager}]
	if f == nil {
		f = &ContestedField{Field: field, Manager: manager}
		t.contested[[2]string{field, manager}] = f
	}
	if f.Copies++; f.Copies == 1 || before(row.LastTransitionTime, f.Since) {
		f.Object, f.Cluster, f.Since = object, row.Name, row.LastTransitionTime
	}
}

// before reports whether time a is before time b. A nil time is after all other times.
func before(a, b *metav1.Time) bool { return a != nil && (b == nil || a.Before(b)) }

func byTime(a, b *metav1.Time) int {
	switch {
	case before(a, b):
		return -1
	case before(b, a):
		return 1
	}
	return 0
}

// Worst returns the worst problems. limit is the maximum number of rows in each list.
func (t *Gatherer) Worst(limit int) Problems {
	out := Problems{Objects: t.objects, Copies: t.copies, Needs: t.Needs(limit).Entries, Clusters: []SlowCluster{}, Drift: []DriftedCopy{}, Contested: []ContestedField{}}
	for _, name := range slices.Sorted(maps.Keys(t.clusters)) {
		if c := t.clusters[name]; c.Behind > 0 {
			out.Clusters = append(out.Clusters, *c)
		}
	}
	slices.SortStableFunc(out.Clusters, func(a, b SlowCluster) int { return byTime(a.Since, b.Since) })
	out.Drift = append(out.Drift, t.drift...)
	slices.SortStableFunc(out.Drift, func(a, b DriftedCopy) int {
		return cmp.Or(byTime(a.Since, b.Since), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Cluster, b.Cluster))
	})
	for _, f := range t.contested {
		out.Contested = append(out.Contested, *f)
	}
	slices.SortFunc(out.Contested, func(a, b ContestedField) int {
		return cmp.Or(cmp.Compare(b.Copies, a.Copies), byTime(a.Since, b.Since), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Manager, b.Manager))
	})
	ofKinds := t.kindProblems()
	for _, p := range []struct{ from, to *[]Problem }{
		{&ofKinds, &out.OfKinds}, {&t.ofRollouts.list, &out.OfRollouts}, {&t.ofClusters, &out.OfClusters}, {&t.ofPolicies, &out.OfPolicies}, {&t.ofObjects, &out.OfObjects},
	} {
		*p.to = append([]Problem{}, *p.from...)
		slices.SortStableFunc(*p.to, func(a, b Problem) int { return cmp.Or(byTime(a.Since, b.Since), cmp.Compare(a.Of, b.Of)) })
		*p.to = (*p.to)[:min(limit, len(*p.to))]
	}
	out.Clusters = out.Clusters[:min(limit, len(out.Clusters))]
	out.Drift = out.Drift[:min(limit, len(out.Drift))]
	out.Contested = out.Contested[:min(limit, len(out.Contested))]
	return out
}

func (t *Gatherer) kindProblems() []Problem {
	var out []Problem
	for kind, u := range t.kinds {
		if u.never() {
			out = append(out, Problem{Of: kind.String(), Topic: TopicKind, State: ProblemWarning, Reason: health.ReasonStatusNotUnderstood, Message: u.message()})
		}
	}
	return out
}

// Write writes a table of the problems that need a user, and then one table for each kind of delay.
func (l Problems) Write(w io.Writer, now time.Time) {
	fmt.Fprintf(w, "OBJECTS %d   COPIES %d\n", l.Objects, l.Copies)
	var rows [][]string
	for _, p := range l.Needs {
		of := p.Of
		if p.Wave != "" {
			of = "wave " + p.Wave + " of " + of
		}
		text := why(p.Reason, p.Message)
		if p.Do != "" {
			text += "; do: " + p.Do
		}
		rows = append(rows, []string{string(p.State), of, since(p.Since, now), p.Where, text})
	}
	part(w, "What needs you", "nothing", []string{"STATE", "OF", "FOR", "WHERE", "WHY"}, rows)
	rows = nil
	for _, c := range l.Clusters {
		rows = append(rows, []string{c.Cluster, c.Region, c.Ready, fmt.Sprintf("%d/%d", c.Behind, c.Copies), since(c.Since, now), c.Object, why(c.Reason, c.Message)})
	}
	part(w, "Slowest clusters", "none is behind", []string{"CLUSTER", "REGION", "READY", "BEHIND", "FOR", "OLDEST", "WHY"}, rows)
	rows = nil
	for _, d := range l.Drift {
		rows = append(rows, []string{d.Object, d.Cluster, since(d.Since, now), why(d.Reason, d.Message)})
	}
	part(w, "Oldest drift", "no copy has lasting differences", []string{"OBJECT", "CLUSTER", "FOR", "WHY"}, rows)
	rows = nil
	for _, f := range l.Contested {
		rows = append(rows, []string{cmp.Or(f.Field, "(copy or marks deleted)"), f.Manager, strconv.Itoa(f.Copies), since(f.Since, now), f.Object, f.Cluster})
	}
	part(w, "Most contested fields", "no field is contested", []string{"FIELD", "MANAGER", "COPIES", "FOR", "OLDEST", "CLUSTER"}, rows)
	if l.Checks != nil {
		fmt.Fprint(w, "\nChecks\n")
		Checks{l.Checks}.Write(w, now)
	}
}

func part(w io.Writer, title, none string, header []string, rows [][]string) {
	if len(rows) == 0 {
		fmt.Fprintf(w, "\n%s: %s\n", title, none)
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	table(w, header, rows)
}
