package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/memberview"
	"github.com/hanse-dev/hanse/plan"
)

// mostAskedLive is the maximum number of copies that are read from the members.
const mostAskedLive = 500

const changedItself = "the members were not asked: the files change the object itself, and the hub can try override policies alone"

// liveQuestion is the request for one copy on a member.
type liveQuestion struct {
	cluster string
	object  plan.Object
}

// ask reads from the members the copies that the plan changes.
func (p *planRun) ask(ctx context.Context, made *plan.Plan, files *fleetFiles) error {
	c, err := p.hub.reader(&p.window)
	if err != nil {
		return err
	}
	views, err := p.window.open(ctx, p.hub, c)
	if err != nil {
		return err
	}
	live := &liveAnswers{live: &plan.Live{}, fields: map[plan.Object]map[string][]plan.Field{}}
	questions := live.questions(made, files)
	if more := len(questions) - mostAskedLive; more > 0 {
		questions = questions[:mostAskedLive]
		made.Notes = append(made.Notes, fmt.Sprintf("the members were not asked about %s more: at most %d are asked about", counted(more, "copy"), mostAskedLive))
	}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for _, q := range questions {
		asking.Go(func() error {
			policies, err := files.policiesFor(q.object)
			if err != nil {
				return err
			}
			var answer memberview.DiffAnswer
			request := memberview.DiffRequest{Object: memberview.ObjectOf(q.object.Identity()), Policies: policies}
			err = views.ask(ctx, q.cluster, memberview.Diff, q.object.Namespace, request, &answer)
			live.add(q, answer, err)
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	made.Live = live.finish(made.Changes)
	return nil
}

// liveAnswers are the answers of members.
type liveAnswers struct {
	mu     sync.Mutex
	live   *plan.Live
	fields map[plan.Object]map[string][]plan.Field
}

// questions returns the copies whose fields change. It skips an object that is itself in the files.
func (l *liveAnswers) questions(made *plan.Plan, files *fleetFiles) []liveQuestion {
	var out []liveQuestion
	for _, c := range made.Changes {
		if slices.ContainsFunc(files.objects, func(u *unstructured.Unstructured) bool { return identityOf(u) == c.Object.Identity() }) {
			l.live.Refused = append(l.live.Refused, plan.Problem{Object: c.Object, Message: changedItself})
			continue
		}
		for _, g := range c.Groups {
			for _, cluster := range g.Clusters {
				out = append(out, liveQuestion{cluster, c.Object})
			}
		}
	}
	return out
}

// policiesFor returns the override policies of the files that may select an object.
func (f *fleetFiles) policiesFor(o plan.Object) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, p := range f.overrides {
		if ns := p.GetNamespace(); ns != "" && ns != o.Namespace {
			continue
		}
		text, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("writing the override policy %s: %w", p.GetName(), err)
		}
		out = append(out, text)
	}
	return out, nil
}

func (l *liveAnswers) add(q liveQuestion, answer memberview.DiffAnswer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.Asked++
	problem := plan.Problem{Object: q.object, Clusters: []string{q.cluster}}
	switch {
	case err != nil:
		problem.Message = err.Error()
	case answer.Refused != nil && answer.Refused.Reason != hubv1.ReasonIsTemplate:
		problem.Reason, problem.Message = answer.Refused.Reason, answer.Refused.Message
	}
	if problem.Message != "" {
		l.live.Refused = append(l.live.Refused, problem)
	}
	if answer.After == nil {
		return
	}
	before := answer.Before
	if before == nil {
		before = map[string]any{}
	}
	fields := plan.FieldsOf(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: answer.After})
	if len(fields) == 0 {
		return
	}
	if l.fields[q.object] == nil {
		l.fields[q.object] = map[string][]plan.Field{}
	}
	l.fields[q.object][q.cluster] = fields
}

// finish sorts the answers in the order of the plan's changes.
func (l *liveAnswers) finish(changes []plan.Change) *plan.Live {
	for _, c := range changes {
		if fields := l.fields[c.Object]; len(fields) > 0 {
			l.live.Changes = append(l.live.Changes, plan.Change{Object: c.Object, Groups: plan.Grouped(fields)})
		}
	}
	slices.SortFunc(l.live.Refused, func(a, b plan.Problem) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), slices.Compare(a.Clusters, b.Clusters))
	})
	return l.live
}
