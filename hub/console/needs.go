package console

import (
	"context"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// maxReviews is the maximum number of access reviews for the waves that wait, for one page.
const maxReviews = 10

// need is an entry of what needs the user, with one action: a page, or a command.
type need struct {
	view.Problem
	State state
	// Path is the path of the page with the details, and Action says what the page is for. Path is empty if there is no
	// page, and Action if a command is the action.
	Path, Action string
	// Mine is true for a wave that the user may approve.
	Mine bool
}

// Title returns the kind and the name of the thing.
func (n need) Title() string {
	if n.Wave != "" {
		return "Wave " + n.Wave + " of " + n.Of
	}
	if n.Topic == view.TopicRemoval {
		return "Removal by " + n.Of
	}
	if n.Topic == view.TopicObject && n.ID.Name != "" {
		return titleOf(n.ID)
	}
	return strings.Replace(n.Of, "MemberCluster ", "Cluster ", 1)
}

// Because returns the reason, unless the state and the message say the same.
func (n need) Because() string {
	if n.Message != "" && (n.Problem.State == view.ProblemWaits || n.Problem.State == view.ProblemHeld) {
		return ""
	}
	return n.Reason
}

// needsOf returns the entries with their states and actions. It reviews whether the user may approve the waves that
// wait for an approval.
func (v *visit) needsOf(ctx context.Context, problems []view.Problem) ([]need, error) {
	var out []need
	reviews := 0
	for _, p := range problems {
		n := need{Problem: p, State: problemState(p), Path: problemPath(p, v.namespace), Action: "See why"}
		switch {
		case p.Topic == view.TopicCluster && p.Do != "":
			n.Action = "" // the command is the action
		case p.Topic == view.TopicRemoval:
			n.Action = "Review"
		case p.Topic == view.TopicRollout && p.State == view.ProblemWaits:
			n.Action = "Review"
			if p.Reason == string(hubv1.RolloutWaitingForApproval) && reviews < maxReviews {
				reviews++
				may, err := v.mayApprove(ctx, p.Of)
				if err != nil {
					return nil, err
				}
				if may {
					n.Mine, n.State.Word = true, "waits for you"
				}
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// mayApprove reports whether the user may approve waves of a placement, such as "Placement shop/web".
func (v *visit) mayApprove(ctx context.Context, of string) (bool, error) {
	namespace, name, ok := placementOf(of)
	if !ok {
		return false, nil
	}
	var p hubv1.PlacementObject = &hubv1.Placement{}
	if namespace == "" {
		p = &hubv1.ClusterPlacement{}
	}
	p.SetNamespace(namespace)
	p.SetName(name)
	right := resourceOf(p)
	for _, verb := range []string{"rollout-approve", "patch"} {
		right.Verb = verb
		if may, err := v.user.may(ctx, right); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// placementOf returns the namespace and the name in a text such as "Placement shop/web" or "ClusterPlacement fleet".
func placementOf(of string) (namespace, name string, ok bool) {
	if rest, is := strings.CutPrefix(of, "ClusterPlacement "); is {
		return "", rest, true
	}
	rest, is := strings.CutPrefix(of, "Placement ")
	if !is {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// problemState returns the display of a problem.
func problemState(p view.Problem) state {
	word := spaced(p.Reason)
	switch p.State {
	case view.ProblemDegraded:
		return state{"bad", "degraded"}
	case view.ProblemUnknown:
		return state{"unknown", "unknown"}
	case view.ProblemWaits:
		return state{"held", word}
	case view.ProblemHeld:
		return state{"held", "removal held"}
	case view.ProblemWarning:
		return state{"held", "warning"}
	}
	switch p.Topic {
	case view.TopicObject:
		return state{"down", "not applied"}
	case view.TopicCluster:
		return state{"down", "not ready"}
	}
	return state{"down", word}
}
