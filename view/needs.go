package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// Topic says what a problem is about.
type Topic string

// These are the topics of problems.
const (
	TopicObject  Topic = "Object"
	TopicCluster Topic = "Cluster"
	TopicRollout Topic = "Rollout"
	TopicRemoval Topic = "Removal"
	TopicPolicy  Topic = "Policy" // a placement, an override policy or a bundle
	TopicKind    Topic = "Kind"
)

// ProblemState is how bad a problem is.
type ProblemState string

// These are the states of problems, from the most to the least urgent. A problem without a state needs no user.
const (
	ProblemDegraded ProblemState = "Degraded" // the status of a copy reports a failure
	ProblemNotReady ProblemState = "NotReady" // the hub cannot do its work
	ProblemUnknown  ProblemState = "Unknown"  // a cluster does not answer
	ProblemWaits    ProblemState = "Waits"    // a rollout waits for a person
	ProblemHeld     ProblemState = "Held"     // a removal waits for a confirmation
	ProblemWarning  ProblemState = "Warning"  // nothing fails yet
)

var problemStates = []ProblemState{ProblemDegraded, ProblemNotReady, ProblemUnknown, ProblemWaits, ProblemHeld, ProblemWarning}

// Needs are the problems that need a user, the most urgent first. Several consequences of one cause are one entry. The
// copies on a cluster that is away count in the entry of the cluster. The objects of a placement without clusters count
// in the entry of its held removal.
type Needs struct {
	Entries []Problem
	// Of has the number of entries of each topic, also of those that a limit leaves out.
	Of map[Topic]int
}

// Total returns the number of all entries, also of those that a limit leaves out.
func (n Needs) Total() int {
	all := 0
	for _, count := range n.Of {
		all += count
	}
	return all
}

// Needs returns at most limit entries.
func (t *Gatherer) Needs(limit int) Needs {
	out := Needs{Entries: []Problem{}, Of: map[Topic]int{}}
	held := map[string]bool{}
	for _, p := range t.ofPolicies {
		held[p.Of] = held[p.Of] || p.Topic == TopicRemoval
	}
	for _, p := range slices.Concat(t.ofRollouts.list, t.clusterNeeds(), t.ofPolicies, t.kindProblems(), t.ofObjects) {
		if p.State == "" || p.Topic == TopicObject && held[t.kept[p.ID]] {
			continue
		}
		p.Rank = slices.Index(problemStates, p.State) + 1
		out.Of[p.Topic]++
		out.Entries = append(out.Entries, p)
	}
	slices.SortStableFunc(out.Entries, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), byTime(a.Since, b.Since), cmp.Compare(a.Of, b.Of))
	})
	out.Entries = out.Entries[:min(limit, len(out.Entries))]
	return out
}

// clusterNeeds returns the problems of clusters, with the numbers of copies on those that are away.
func (t *Gatherer) clusterNeeds() []Problem {
	out := slices.Clone(t.ofClusters)
	for i := range out {
		p := &out[i]
		m, copies := t.members[p.ID.Name], t.clusters[p.ID.Name]
		if p.State != ProblemUnknown && p.State != ProblemNotReady || m == nil || copies == nil {
			continue
		}
		p.Where, p.AsOf = counted(copies.Copies, "copy"), m.Status.LastObservedTime
	}
	return out
}

// aboutCluster adds the state and the action of a problem with a cluster.
func (p Problem) aboutCluster(condition string) Problem {
	p.Topic, p.State = TopicCluster, ProblemWarning
	switch {
	case condition == hubv1.ConditionRemovalHeld:
		return p.aboutRemoval()
	case condition == hubv1.ConditionReady && (p.Reason == hubv1.ReasonUnreachable || p.Reason == hubv1.ReasonPending):
		p.State, p.Do = ProblemUnknown, "hansectl problems --checks"
	case condition == hubv1.ConditionReady:
		p.State, p.Do = ProblemNotReady, "hansectl problems --checks"
	}
	if p.Reason == hubv1.ReasonUnauthorized || condition == hubv1.ConditionCredentialsExpireSoon || condition == hubv1.ConditionCredentialsValid {
		p.Do = "hansectl rotate " + p.ID.Name + " --member-kubeconfig FILE"
	}
	return p
}

// aboutPolicy adds the state and the action of a problem with a policy or a bundle.
func (p Problem) aboutPolicy(condition string) Problem {
	p.Topic, p.State = TopicPolicy, ProblemWarning
	switch condition {
	case hubv1.ConditionRemovalHeld:
		return p.aboutRemoval()
	case hubv1.ConditionAccepted, hubv1.ConditionScheduled, hubv1.ConditionStored:
		p.State = ProblemNotReady
	}
	return p
}

func (p Problem) aboutRemoval() Problem {
	p.Topic, p.State = TopicRemoval, ProblemHeld
	p.Message, p.Do = withoutCommand(p.Message)
	p.Message, _, _ = strings.Cut(p.Message, ". If the removal is a mistake")
	return p
}

// withoutCommand splits a message of the hub that names a command of hansectl into the sentence before the command, and
// the command.
func withoutCommand(message string) (sentence, command string) {
	sentence, command, found := strings.Cut(message, ": hansectl ")
	if !found {
		return message, ""
	}
	command, rest, more := strings.Cut(command, " (")
	if more && strings.HasSuffix(rest, " objects)") {
		sentence += " (" + rest
	}
	return sentence, "hansectl " + strings.TrimSuffix(strings.TrimSpace(command), ".")
}

// about adds the state of an object to its problem: what its worst copies say, and where they are. A problem whose
// cause is only that clusters are away gets no state, because the clusters have entries. The same is true for a copy
// that is still progressing.
func (t *Gatherer) about(p Problem, b hubv1.BindingObject, condition string) Problem {
	p.Topic, p.State = TopicObject, ProblemNotReady
	if ref := b.BindingSpec().PlacementRef; ref != nil && p.Reason == hubv1.ReasonNoClusterSelected {
		t.kept[p.ID] = ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
	}
	if condition == hubv1.ConditionScheduled || p.Reason == hubv1.ReasonTemplateMissing {
		return p
	}
	worst := t.worstCopies(b)
	switch {
	case worst.state == rollup.CopyDegraded:
		p.State = ProblemDegraded
	case worst.state == rollup.CopyNotApplied:
	case worst.away > 0, p.Reason == hubv1.ReasonProgressingOnSome:
		p.State = ""
	}
	return p.because(worst)
}

// because adds the sentence of the worst copies to a problem, and their clusters.
func (p Problem) because(worst worstCopies) Problem {
	if len(worst.clusters) == 0 {
		return p
	}
	p.Where = fmt.Sprintf("%d of %s: %s", len(worst.clusters), counted(worst.all, "cluster"), firstClusters(worst.clusters))
	if worst.reason != "" || worst.message != "" {
		p.Reason, p.Message = cmp.Or(worst.reason, p.Reason), worst.message
	}
	return p
}

// worstCopies are the copies of an object in the worst state of all copies whose clusters answer.
type worstCopies struct {
	state           rollup.CopyState
	clusters        []string
	reason, message string
	// all is the number of clusters that shall hold the object, and away of those that do not answer.
	all, away int
}

// worstCopies finds the copies that are degraded or not applied.
func (t *Gatherer) worstCopies(b hubv1.BindingObject) worstCopies {
	var out worstCopies
	for _, target := range b.BindingSpec().Clusters {
		if target.State != hubv1.TargetPresent {
			continue
		}
		out.all++
		row := b.BindingStatus().Row(target.Name)
		m := t.members[target.Name]
		refused := row != nil && row.Reason == hubv1.ReasonForbidden
		if m != nil && !isReady(m) || row != nil && row.LastObservedTime != nil && !refused {
			out.away++
			continue
		}
		if row == nil {
			continue
		}
		state := rollup.StateOf(target.State, row, true)
		if refused { // the cluster answers, but the hub may not watch the kind there, so it has not observed the copy
			state = rollup.CopyNotApplied
		}
		switch {
		case state != rollup.CopyDegraded && state != rollup.CopyNotApplied:
		case out.state == 0 || state < out.state:
			out.state, out.clusters, out.reason, out.message = state, []string{target.Name}, row.Reason, row.Message
		case state == out.state:
			out.clusters = append(out.clusters, target.Name)
		}
	}
	slices.Sort(out.clusters)
	return out
}

func isReady(m *hubv1.MemberCluster) bool {
	return meta.IsStatusConditionPresentAndEqual(m.Status.Conditions, hubv1.ConditionReady, metav1.ConditionTrue)
}
