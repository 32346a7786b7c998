package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
	"github.com/hanse-dev/hanse/view/wire"
)

// maxDryRuns is the maximum number of copies for which one plan makes dry runs on members.
const maxDryRuns = 500

const changedItself = "the members were not asked: the files change the object itself, and the hub can try override policies alone"

// ask makes dry runs on members for the copies that the plan changes, and adds the results to the plan.
func (p *planRun) ask(ctx context.Context, made *preview.Plan, files *fleetFiles) error {
	c, err := p.hub.reader(&p.window)
	if err != nil {
		return err
	}
	made.Live = &preview.Live{}
	questions := questionsOf(made, files)
	if more := len(questions) - maxDryRuns; more > 0 {
		questions = questions[:maxDryRuns]
		made.Notes = append(made.Notes, fmt.Sprintf("the members were not asked about %s more: at most %d are asked about", counted(more, "copy"), maxDryRuns))
	}
	answers, err := p.hub.askMembers(ctx, &p.window, c, questions, files)
	if err != nil {
		return err
	}
	answered(made, answers)
	return nil
}

// questionsOf returns the copies whose fields the plan changes. It skips objects that are themselves in the files,
// because dry runs on members can only use other override policies.
func questionsOf(made *preview.Plan, files *fleetFiles) []memberQuestion {
	var out []memberQuestion
	for _, c := range made.Changes {
		if files.bundled[c.Object.Identity()] || slices.ContainsFunc(files.objects, func(u *unstructured.Unstructured) bool { return hubv1.IdentityOf(u) == c.Object.Identity() }) {
			made.Live.Refused = append(made.Live.Refused, preview.Problem{Object: c.Object, Message: changedItself})
			continue
		}
		for _, g := range c.Groups {
			for _, cluster := range g.Clusters {
				out = append(out, memberQuestion{cluster, c.Object.Identity()})
			}
		}
	}
	return out
}

// answered adds the results of the dry runs to the plan.
func answered(made *preview.Plan, answers []memberAnswer) {
	live, fields, copies := made.Live, map[hubv1.ObjectIdentity]map[string][]preview.Field{}, map[memberQuestion]wire.DiffAnswer{}
	live.Asked = len(answers)
	for _, a := range answers {
		problem := preview.Problem{Object: preview.Object(a.object), Clusters: []string{a.cluster}}
		switch {
		case a.err != nil:
			problem.Message = a.err.Error()
		case a.Refused != nil && a.Refused.Reason != hubv1.ReasonIsTemplate:
			problem.Reason, problem.Message = a.Refused.Reason, a.Refused.Message
		}
		if problem.Message != "" {
			live.Refused = append(live.Refused, problem)
		}
		differs := preview.FieldsOf(&unstructured.Unstructured{Object: a.Before}, &unstructured.Unstructured{Object: a.After})
		if a.After != nil && len(differs) > 0 {
			if fields[a.object] == nil {
				fields[a.object] = map[string][]preview.Field{}
			}
			fields[a.object][a.cluster] = differs
			copies[a.memberQuestion] = a.DiffAnswer
		}
	}
	for _, c := range made.Changes {
		if of := fields[c.Object.Identity()]; len(of) > 0 {
			live.Changes = append(live.Changes, preview.Change{Object: c.Object, Groups: preview.Grouped(of, func(cluster string) (before, after map[string]any) {
				a := copies[memberQuestion{cluster, c.Object.Identity()}]
				return a.Before, a.After
			})})
		}
	}
	slices.SortFunc(live.Refused, func(a, b preview.Problem) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), slices.Compare(a.Clusters, b.Clusters))
	})
}
