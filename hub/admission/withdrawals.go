package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

const (
	// forecastWithin is the part of reviewWithin (the timeout of a review) for a forecast, which computes the copies that
	// an edit of a policy would delete. The wait for other forecasts is included.
	forecastWithin = reviewWithin / 8
	// maxBindings limits forecasts: if the hub has this number of bindings or more, there is no forecast.
	maxBindings = 50_000
	// forecastsAtOnce is the maximum number of concurrent forecasts. It limits their memory.
	forecastsAtOnce = 1
)

const tooManyToTell = "could not compute within 1 s which copies the policy would withdraw, because there are too many objects: run hansectl plan"

var errTooMany = errors.New("too many bindings")

// withdrawals returns a warning about the copies that the edited policy would delete. It never refuses the policy.
func (r *Reviewer) withdrawals(ctx context.Context, p client.Object) []string {
	ctx, cancel := context.WithTimeout(ctx, forecastWithin)
	defer cancel()
	giveBack, ok := r.forecasts.Take(ctx)
	if !ok {
		return []string{tooManyToTell}
	}
	defer giveBack()
	f := forecast{
		reviewer: r, policy: p, placements: map[string]guard.Scope{}, clusters: map[string]guard.Scope{}, copies: map[string]int{},
		objects: map[string]int{},
	}
	switch err := f.run(ctx); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTooMany):
		return []string{tooManyToTell}
	case err != nil:
		return []string{"could not compute which copies the policy would withdraw: " + err.Error()}
	}
	return f.warnings()
}

// forecast computes the copies that an edit of a policy would delete. For each affected object it makes two decisions:
// one with the policy before the edit, and one with the policy after it.
type forecast struct {
	reviewer *Reviewer
	policy   client.Object

	// copies is the current number of copies of each placement. objects is the current number of objects on each cluster.
	copies, objects map[string]int
	// before and after cache compiled placements and converted clusters. Decisions without the edit of the policy use
	// before, and decisions with the edit use after.
	before, after decide.Memo

	// removals are the copies that the edit would delete. Package guard judges whether there are too many removals.
	// placements and clusters have the limit and the number of present copies of each affected placement and cluster.
	removals             []guard.Removal
	placements, clusters map[string]guard.Scope
	losers               int    // objects that lose a copy
	first                string // the first object that the policy selects and that loses a copy
}

func (f *forecast) run(ctx context.Context) error {
	bindings, err := scopes.Bindings(ctx, f.reviewer.options.Client, "", client.UnsafeDisableDeepCopy, client.Limit(maxBindings))
	if err != nil {
		return err
	}
	if len(bindings) >= maxBindings {
		return errTooMany
	}
	var candidates []hubv1.BindingObject
	for _, b := range bindings {
		f.count(b)
		if b.GetDeletionTimestamp() == nil && f.concerns(b) {
			candidates = append(candidates, b)
		}
	}
	slices.SortFunc(candidates, func(a, b hubv1.BindingObject) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(hubv1.ObjectOf(a).String(), hubv1.ObjectOf(b).String()))
	})
	var before, after decide.Facts // facts of one namespace at a time
	for i, b := range candidates {
		if i == 0 || b.GetNamespace() != candidates[i-1].GetNamespace() {
			if before, err = scopes.Facts(ctx, f.reviewer.options.Client, b.GetNamespace(), client.UnsafeDisableDeepCopy); err != nil {
				return err
			}
			after = f.edited(before)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f.object(b, before, after)
	}
	return nil
}

// count adds a binding to the numbers of copies and objects, which the decisions and the limits of package guard need.
func (f *forecast) count(b hubv1.BindingObject) {
	owner := decide.OwnerOf(b.BindingSpec().PlacementRef).String()
	for _, e := range b.BindingSpec().Clusters {
		if e.State == hubv1.TargetPresent {
			f.objects[e.Name]++
			f.copies[owner]++
		}
	}
}

// concerns reports whether the edit may change the decision on the object of a binding. If the policy may apply to the
// binding's namespace, it returns true if the policy selects the kind of the object, or if the present decision comes
// from this policy.
func (f *forecast) concerns(b hubv1.BindingObject) bool {
	if ns := f.policy.GetNamespace(); ns != "" && ns != b.GetNamespace() {
		return false
	}
	selectors, _ := selectionOf(f.policy)
	return f.follows(b) || selectsKind(selectors, hubv1.ObjectOf(b).GroupKind())
}

func (f *forecast) follows(b hubv1.BindingObject) bool {
	p, ok := f.policy.(hubv1.PlacementObject)
	return ok && decide.OwnerOf(b.BindingSpec().PlacementRef) == decide.OwnerOf(decide.ReferenceTo(p))
}

// selectionOf returns the selectors of a policy, for objects and for namespaces.
func selectionOf(policy client.Object) ([]hubv1.ResourceSelector, *metav1.LabelSelector) {
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		return p.PlacementSpec().ResourceSelectors, p.SelectedNamespaces()
	case hubv1.OverridePolicyObject:
		return p.OverrideSpec().ResourceSelectors, p.SelectedNamespaces()
	}
	return nil, nil
}

// selects reports whether the policy selects an object. It returns false for an invalid selector.
func (f *forecast) selects(o hubv1.SelectableObject) bool {
	selectors, namespaces := selectionOf(f.policy)
	if _, places := f.policy.(hubv1.PlacementObject); places {
		o = o.Placed()
	}
	if ok, err := hubv1.InScope(f.policy.GetNamespace(), namespaces, o); !ok || err != nil {
		return false
	}
	matched, err := hubv1.Match(selectors, o)
	return err == nil && matched != hubv1.MatchesNot
}

// object adds to the forecast those copies of one object that the edit of the policy would delete.
func (f *forecast) object(b hubv1.BindingObject, factsBefore, factsAfter decide.Facts) {
	head, ok := f.reviewer.options.Templates.Head(hubv1.ObjectOf(b))
	if !ok || head.GetDeletionTimestamp() != nil {
		return // the decision does not depend on the policy
	}
	o := hubv1.Selectable(hubv1.ObjectOf(b), head, factsBefore.NamespaceLabels)
	selected := f.selects(o)
	if !selected && !f.follows(b) {
		return
	}
	template, ok := f.reviewer.options.Templates.Get(o.ObjectIdentity)
	if !ok {
		return
	}
	before := decide.Input{
		Object: decide.Object{ID: o.ObjectIdentity, Template: template}, Binding: b, Facts: factsBefore, Objects: f.objects,
		Now: time.Now(), Memo: &f.before,
	}
	after := before
	after.Facts, after.Memo = factsAfter, &f.after
	removals := decide.RemovalsOfEdit(before, after)
	if len(removals) == 0 {
		return
	}
	// The warning names only an object that the policy selects, because the author of the policy may read such an object.
	if f.losers++; f.first == "" && selected {
		f.first = o.String()
	}
	for _, r := range removals {
		f.add(o.String(), r, factsAfter)
	}
}

// edited returns the facts (the inputs of a decision) after the edit. They have the edited policy instead of its former
// state.
func (f *forecast) edited(facts decide.Facts) decide.Facts {
	switch p := f.policy.(type) {
	case hubv1.PlacementObject:
		facts.Placements = replaced(facts.Placements, p)
	case hubv1.OverridePolicyObject:
		facts.Overrides = replaced(facts.Overrides, p)
	}
	return facts
}

// replaced returns the policies after the edit: the list all, with the edited policy (by) instead of the policy with
// the same namespace and name.
func replaced[P client.Object](all []P, by P) []P {
	out := slices.DeleteFunc(slices.Clone(all), func(p P) bool { return p.GetNamespace() == by.GetNamespace() && p.GetName() == by.GetName() })
	return append(out, by)
}

// add records the removal of one copy. It also records the placement and the cluster of the copy, with their limits, as
// input of package guard.
func (f *forecast) add(object string, r decide.Removal, facts decide.Facts) {
	limit, placement := f.reviewer.options.RemovalLimit, r.Placement.String()
	if _, known := f.placements[placement]; !known {
		own := limit
		for _, p := range facts.Placements {
			if set := p.PlacementSpec().RemovalLimit; set != nil && decide.OwnerOf(decide.ReferenceTo(p)) == r.Placement {
				own = limit.With(set.Copies, set.Percent)
			}
		}
		f.placements[placement] = guard.Scope{Limit: own, Copies: f.copies[placement]}
	}
	f.clusters[r.Cluster] = guard.Scope{Limit: limit, Copies: f.objects[r.Cluster]}
	f.removals = append(f.removals, guard.Removal{Set: r.Owner.String(), Object: object, Group: placement, Cluster: r.Cluster, Last: r.Last})
}

// warnings returns a text with the numbers of copies and objects, the clusters that lose most copies, and one example.
// The text also says whether the hub would hold the deletions until a user confirms them.
func (f *forecast) warnings() []string {
	if len(f.removals) == 0 {
		return nil
	}
	lost := map[string]int{}
	for _, r := range f.removals {
		lost[r.Cluster]++
	}
	names := slices.SortedFunc(maps.Keys(lost), func(a, b string) int { return cmp.Or(lost[b]-lost[a], cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, lost[name])
	}
	text := fmt.Sprintf("the policy would withdraw %s of %s, from %s", counted(len(f.removals), "copy", "copies"), counted(f.losers, "object", "objects"), someOf(names, ", "))
	if f.first != "" {
		text += ": first " + f.first
	}
	return []string{text + "; " + f.verdict()}
}

// verdict returns as text whether the hub would carry out the deletions at once, or hold some of them until a user
// confirms them. It assumes that no other deletions are held.
func (f *forecast) verdict() string {
	held := guard.Judge(f.removals, f.placements, f.clusters)
	n := 0
	for _, r := range f.removals {
		if _, ok := held[r.Set]; ok {
			n++
		}
	}
	switch n {
	case 0:
		return "the removal is within the limit and needs no confirmation"
	case len(f.removals):
		return "the hub holds the removal until a user confirms it"
	}
	return fmt.Sprintf("the hub holds the removal of %s until a user confirms it", counted(n, "copy", "copies"))
}

// counted returns a number and its noun, such as "2 copies".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
