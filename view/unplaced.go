package view

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Unplaced has the clusters that the placement selects and that do not get the object.
type Unplaced struct {
	// Selected is the number of clusters that the placement selects, including the clusters that hold the object.
	Selected int `json:"selected"`
	// Count is the number of selected clusters without the object. Clusters has up to 20 of them for each reason.
	Count    int               `json:"count"`
	Clusters []UnplacedCluster `json:"clusters"`
}

// UnplacedCluster is a selected cluster without the object.
type UnplacedCluster struct {
	Cluster string `json:"cluster"`
	// Reason is the reason why the decision did not choose the cluster, such as TaintNotTolerated.
	Reason string `json:"reason"`
}

// keptAway maps the reason why a selected cluster does not get an object to a text for messages about one cluster.
// Package decide has the texts for messages about several clusters.
var keptAway = map[string]string{
	hubv1.ReasonTaintNotTolerated:   "tainted",
	hubv1.ReasonUnschedulable:       "cordoned",
	hubv1.ReasonDraining:            "draining",
	hubv1.ReasonClusterNotReady:     "not Ready",
	hubv1.ReasonNamespaceNotAllowed: "does not allow the namespace",
	hubv1.ReasonKindNotServed:       "does not serve the kind",
	hubv1.ReasonVersionNotServed:    "does not serve the version",
	hubv1.ReasonExpressionFailed:    "the expression fails",
	hubv1.ReasonTopologyMissing:     "in no domain",
}

// unplacedOf returns the selected clusters without the object. It is nil if every selected cluster has the object, or
// if the placement limits the number of clusters.
func unplacedOf(b hubv1.BindingObject) *Unplaced {
	d := b.BindingStatus().Decision
	if d == nil || slices.ContainsFunc(d.Reasons, func(c hubv1.ChosenCluster) bool { return c.Reason == hubv1.ReasonScheduled }) {
		return nil
	}
	u := Unplaced{}
	for _, t := range b.BindingSpec().Clusters {
		if t.State == hubv1.TargetPresent {
			u.Selected++
		}
	}
	for _, group := range d.Rejected {
		if keptAway[group.Reason] == "" {
			continue
		}
		u.Count += int(group.Count)
		for _, example := range group.Examples {
			name, _, _ := strings.Cut(example, ": ")
			u.Clusters = append(u.Clusters, UnplacedCluster{Cluster: name, Reason: group.Reason})
		}
	}
	if u.Count == 0 {
		return nil
	}
	u.Selected += u.Count
	return &u
}

// text returns a summary: "1 of 2 selected clusters: eu-fra-1 tainted".
func (u Unplaced) text() string {
	var names []string
	for _, c := range u.Clusters[:min(len(u.Clusters), maxNamed)] {
		names = append(names, c.Cluster+" "+keptAway[c.Reason])
	}
	text := fmt.Sprintf("%d of %d selected clusters: %s", u.Selected-u.Count, u.Selected, strings.Join(names, ", "))
	if more := u.Count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Withdrawing returns the number of clusters from which the object is being removed, as text. It returns an empty text
// if there are none, or if b is nil.
func Withdrawing(b hubv1.BindingObject) string {
	if b == nil {
		return ""
	}
	absent, all := 0, b.BindingSpec().Clusters
	for _, t := range all {
		if t.State == hubv1.TargetAbsent {
			absent++
		}
	}
	return withdrawing(absent, len(all))
}

// withdrawing returns the number of clusters from which an object is being removed, as text. It is empty if there are
// none.
func withdrawing(absent, all int) string {
	switch {
	case absent == 0:
		return ""
	case absent < all:
		return fmt.Sprintf("being withdrawn from %d of %d clusters", absent, all)
	case all == 1:
		return "being withdrawn from 1 cluster"
	}
	return fmt.Sprintf("being withdrawn from %d clusters", all)
}
