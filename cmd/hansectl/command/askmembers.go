package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// askedAtOnce is the number of members to which a command sends requests at the same time.
const askedAtOnce = 4

// readAtOnce is the number of members from which a command reads at the same time. The hub processes at most two slow
// requests of a user at the same time.
const readAtOnce = 2

// eachMember calls ask for every cluster, in the given order, and for several clusters at the same time. It returns the
// clusters for which ask has failed, sorted by name.
func eachMember(clusters []string, ask func(cluster string) error) (notAsked []view.ClusterNote) {
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(readAtOnce)
	for _, cluster := range clusters {
		asking.Go(func() error {
			if err := ask(cluster); err != nil {
				mu.Lock()
				defer mu.Unlock()
				notAsked = append(notAsked, view.ClusterNote{Cluster: cluster, Note: err.Error()})
			}
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored for each cluster
	slices.SortFunc(notAsked, func(a, b view.ClusterNote) int { return strings.Compare(a.Cluster, b.Cluster) })
	return notAsked
}

// noteMembers prints on standard error which clusters did not answer, and returns an error if there are any.
func (h *hub) noteMembers(notes, notAsked []view.ClusterNote) error {
	for _, n := range byNote(notes) {
		fmt.Fprintf(h.streams.ErrOut, "warning: %s: %s\n", n.Cluster, view.Printable(n.Note))
	}
	for _, n := range byNote(notAsked) {
		fmt.Fprintf(h.streams.ErrOut, "error: %s: %s\n", n.Cluster, view.Printable(n.Note))
	}
	if n := len(notAsked); n > 0 {
		return fmt.Errorf("%s could not be asked", counted(n, "cluster"))
	}
	return nil
}

// byNote merges clusters with the same note into one entry, such as "ap-se-1, cn-sha-1".
func byNote(notes []view.ClusterNote) []view.ClusterNote {
	var out []view.ClusterNote
	for _, n := range notes {
		i := slices.IndexFunc(out, func(o view.ClusterNote) bool { return o.Note == n.Note })
		if i < 0 {
			out = append(out, n)
			continue
		}
		out[i].Cluster += ", " + n.Cluster
	}
	return out
}

// memberQuestion names a copy about which a command asks a member.
type memberQuestion struct {
	cluster string
	object  hubv1.ObjectIdentity
}

// memberAnswer has the copy before and after a dry run, or the error of the dry run.
type memberAnswer struct {
	memberQuestion
	wire.DiffAnswer
	err error
}

// askMembers makes dry runs on members, for diff and plan --live. The dry runs use the override policies in the files.
// Package preview cannot compute the results, because only the members know their defaults, webhooks and drift.
func (h *hub) askMembers(ctx context.Context, w *window, c client.Client, questions []memberQuestion, files *fleetFiles) ([]memberAnswer, error) {
	views, err := w.open(ctx, h, c)
	if err != nil {
		return nil, err
	}
	out := make([]memberAnswer, len(questions))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for i, q := range questions {
		asking.Go(func() error {
			policies, err := files.policiesFor(q.object)
			if err != nil {
				return err
			}
			out[i].memberQuestion = q
			request := wire.DiffRequest{Object: wire.ObjectOf(q.object), Policies: policies}
			out[i].err = views.Ask(ctx, q.cluster, wire.Diff, q.object.Namespace, request, &out[i].DiffAnswer)
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// policiesFor returns the override policies of the files that may select an object.
func (f *fleetFiles) policiesFor(object hubv1.ObjectIdentity) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, p := range f.overrides {
		if ns := p.GetNamespace(); ns != "" && ns != object.Namespace {
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
