package crd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// findingKey identifies a finding about a definition. Findings with the same key are merged.
type findingKey struct{ rule, path, version string }

// collected is a finding together with the indexes (in c.all) of all objects and the names of all clusters that it
// concerns.
type collected struct {
	Finding
	blocks   bool
	objects  sets.Set[int]
	clusters sets.Set[string]
}

// add adds a finding. If a finding with the same rule, path and version exists, add adds the objects to that finding.
// objects are indexes in c.all, the list of all checked objects. blocks is true if the change must block the new
// definition.
func (c *checker) add(f Finding, blocks bool, objects []int) *collected {
	key := findingKey{f.Rule, f.Path, f.Version}
	found := c.findings[key]
	if found == nil {
		f.CRD = c.after.Name
		found = &collected{Finding: f, objects: sets.New[int](), clusters: sets.New[string]()}
		c.findings[key] = found
	}
	found.blocks = found.blocks || blocks
	found.objects.Insert(objects...)
	for _, i := range objects {
		found.clusters.Insert(c.all[i].Clusters...)
	}
	return found
}

// report returns the blocking findings and the warnings, each sorted and cut to MaxFindings. A finding that a user has
// acknowledged becomes a warning. An acknowledgement that fits no finding also leads to a warning.
func (c *checker) report(acknowledged []hubv1.AcknowledgedChange) Report {
	open := sets.New[hubv1.AcknowledgedChange]()
	for _, a := range acknowledged {
		if a.CRD == c.after.Name {
			open.Insert(a)
		}
	}
	allowed := open.Clone()
	var r Report
	for _, found := range c.findings {
		f := found.Finding
		if found.objects.Len() > 0 {
			f.Object, f.Objects = c.first(found.objects)
		}
		f.Clusters = sets.List(found.clusters)
		name := hubv1.AcknowledgedChange{CRD: f.CRD, Rule: f.Rule, Path: f.Path}
		open.Delete(name)
		f.Acknowledged = found.blocks && allowed.Has(name)
		if found.blocks && !f.Acknowledged {
			r.Blocked = append(r.Blocked, f)
		} else {
			r.Warnings = append(r.Warnings, f)
		}
	}
	for a := range open {
		r.Warnings = append(r.Warnings, Finding{
			CRD: a.CRD, Rule: a.Rule, Path: a.Path, Message: "there is no such change: remove this acknowledgement",
		})
	}
	r.BlockedTotal, r.WarningsTotal = len(r.Blocked), len(r.Warnings)
	r.Blocked, r.Warnings = firstFindings(r.Blocked), firstFindings(r.Warnings)
	return r
}

// first returns the first of the objects by namespace and name, and the number of objects. An object that is in the set
// several times counts once. This happens because clusters may get different versions of one object.
func (c *checker) first(objects sets.Set[int]) (*hubv1.ObjectIdentity, int) {
	all := sets.New[hubv1.ObjectIdentity]()
	for i := range objects {
		all.Insert(hubv1.IdentityOf(c.all[i].Content))
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(all)), compareIdentities)
	return &first, all.Len()
}

// compareIdentities compares objects of one kind.
func compareIdentities(a, b hubv1.ObjectIdentity) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func firstFindings(all []Finding) []Finding {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Version, b.Version))
	})
	return all[:min(len(all), MaxFindings)]
}

// maxMessage limits the number of characters of a message, and maxClusters the number of clusters that it names.
const (
	maxMessage  = 1024 // in characters
	maxClusters = 3
)

// Message returns the message of a condition if the reports block new definitions. It lists the blocked changes with
// their objects, paths and clusters, and says what to do. It has at most 1024 characters. It is empty if no report
// blocks.
func Message(reports ...Report) string {
	return message(maxMessage, ". Clusters are unchanged. Migrate the objects, or accept a change by its crd, rule and path in spec.acknowledge", reports)
}

// Without returns the report without the findings that other reports about the same definition have too. An
// acknowledgement names a finding by its crd, rule and path, so these decide.
func (r Report) Without(others ...Report) Report {
	drop := func(list []Finding, total int, of func(Report) []Finding) ([]Finding, int) {
		kept := slices.DeleteFunc(slices.Clone(list), func(f Finding) bool {
			return slices.ContainsFunc(others, func(o Report) bool {
				return slices.ContainsFunc(of(o), func(g Finding) bool {
					return f.CRD == g.CRD && f.Rule == g.Rule && f.Path == g.Path && f.Version == g.Version && f.Acknowledged == g.Acknowledged
				})
			})
		})
		return kept, total - (len(list) - len(kept))
	}
	r.Blocked, r.BlockedTotal = drop(r.Blocked, r.BlockedTotal, func(o Report) []Finding { return o.Blocked })
	r.Warnings, r.WarningsTotal = drop(r.Warnings, r.WarningsTotal, func(o Report) []Finding { return o.Warnings })
	return r
}

// UndoMessage returns a text like that of Message, for a return to earlier definitions. limit is the maximum number of
// characters, because the caller writes its own text before the result. accept says how a user accepts the changes.
func UndoMessage(limit int, accept string, reports ...Report) string {
	return message(limit, ". Clusters are unchanged. Migrate the objects and update status.storedVersions on these clusters first, or "+accept, reports)
}

// maxWarning is the maximum number of characters of the result of Warning, which is the text of an event.
const maxWarning = 512

// Warning returns a text about the stored versions that no definition of the hub has had, with their clusters. It is
// empty if there are no such versions.
func Warning(reports ...Report) string {
	var lines []string
	for _, r := range reports {
		for _, f := range r.Warnings {
			if f.Rule == RuleUnknownVersion {
				lines = append(lines, f.String())
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	const effect = "Only these clusters keep their old definition, until their status.storedVersions lacks the version: "
	return hubv1.CutMessage(effect+strings.Join(lines, "; "), maxWarning)
}

// message returns a text about the blocked changes, with the advice at the end and at most the given number of
// characters. It is empty if no report blocks.
func message(limit int, advice string, reports []Report) string {
	total := 0
	var blocked []Finding
	for _, r := range reports {
		total += r.BlockedTotal
		blocked = append(blocked, r.Blocked...)
	}
	if len(blocked) == 0 {
		return ""
	}
	text := "1 change breaks objects in use: "
	if total > 1 {
		text = fmt.Sprintf("%d changes break objects in use: ", total)
	}
	for i, f := range blocked {
		line := hubv1.CutMessage(f.String(), limit/2) // at most half, so that the first line fits
		rest := ""
		if i < total-1 {
			rest = fmt.Sprintf("; and %d more", total-i-1)
		}
		if i > 0 {
			line = "; " + line
		}
		if utf8.RuneCountInString(text+line+rest+advice) > limit {
			return text + fmt.Sprintf("; and %d more", total-i) + advice
		}
		text += line
	}
	if more := total - len(blocked); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + advice
}

// String returns a line such as "crd lamps.example.com, version v1, rule maxLength, path /spec/colour: Lamp.example.com
// shop/desk on cluster eu-1: maxLength changes from 63 to 10".
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString("crd " + f.CRD)
	if f.Version != "" {
		b.WriteString(", version " + f.Version)
	}
	fmt.Fprintf(&b, ", rule %s, path %s: ", f.Rule, cmp.Or(f.Path, `""`))
	var concerns []string
	if f.Object != nil {
		concerns = append(concerns, hubv1.CutMessage(f.Object.String(), 200))
	}
	if f.Objects > 1 {
		concerns = append(concerns, fmt.Sprintf("and %d more", f.Objects-1))
	}
	if n := len(f.Clusters); n == 1 {
		concerns = append(concerns, "on cluster "+f.Clusters[0])
	} else if n > 1 {
		concerns = append(concerns, "on clusters "+strings.Join(f.Clusters[:min(n, maxClusters)], ", "))
	}
	if more := len(f.Clusters) - maxClusters; more > 0 {
		concerns = append(concerns, fmt.Sprintf("and %d more", more))
	}
	if len(concerns) > 0 {
		b.WriteString(strings.Join(concerns, " ") + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}
