package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
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
	return p.askGrants(ctx, c, made)
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

// ungrantedText is a part of the hub's answer about a kind that the member does not grant to the hub.
const ungrantedText = "not granted to the hub"

// grantQuestion is a kind that a cluster would get.
type grantQuestion struct {
	cluster string
	kind    schema.GroupKind
}

// askGrants asks each cluster that gets new copies whether it grants their kinds to the hub, by a list of one object.
// It adds a problem for each object whose kind is not granted. The members make no dry run of new copies, because the
// hub renders only the objects that it stores.
func (p *planRun) askGrants(ctx context.Context, c client.Client, made *preview.Plan) error {
	gained := map[preview.Object][]string{}
	asked := map[grantQuestion]string{} // the namespace of the list
	for o, clusters := range made.Gained() {
		gained[o] = clusters
		for _, cluster := range clusters {
			if asks := (grantQuestion{cluster, o.Identity().GroupKind()}); len(asked) < maxDryRuns {
				asked[asks] = o.Namespace
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	viewer, err := p.window.open(ctx, p.hub, c)
	if err != nil {
		return err
	}
	refused, unknown := askedGrants(ctx, viewer, asked)
	for _, text := range unknown {
		made.Notes = append(made.Notes, "not asked whether members grant all new kinds: "+text)
	}
	for _, o := range slices.SortedFunc(maps.Keys(gained), func(a, b preview.Object) int { return cmp.Compare(a.String(), b.String()) }) {
		kind := o.Identity().GroupKind()
		lacking := slices.DeleteFunc(gained[o], func(cluster string) bool { return !refused[grantQuestion{cluster, kind}] || made.Forbids(o, cluster) })
		if len(lacking) > 0 {
			made.AddProblem(preview.Problem{Object: o, Clusters: lacking, Reason: hubv1.ReasonForbidden, Message: fmt.Sprintf(
				"the hub may not write %s there: run hansectl join with --grant, or add the kind to grantedKinds of the chart hanse-member", kind)})
		}
	}
	return nil
}

// askedGrants asks the members. It returns the kinds that they do not grant, and why others could not be asked.
func askedGrants(ctx context.Context, viewer *views.Client, asked map[grantQuestion]string) (refused map[grantQuestion]bool, unknown []string) {
	var mu sync.Mutex
	refused = map[grantQuestion]bool{}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(readAtOnce)
	for q, namespace := range asked {
		asking.Go(func() error {
			err := viewer.Ask(ctx, q.cluster, wire.List, namespace, wire.ListRequest{Group: q.kind.Group, Kind: q.kind.Kind, Most: 1}, &wire.ListAnswer{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), ungrantedText):
				refused[q] = true
			case !slices.Contains(unknown, err.Error()):
				unknown = append(unknown, err.Error())
			}
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored
	slices.Sort(unknown)
	return refused, unknown[:min(len(unknown), maxUnknown)]
}

// maxUnknown is the maximum number of notes about members that could not be asked.
const maxUnknown = 3
