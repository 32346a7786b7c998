package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAWrongLabelOnEveryClusterRemovesNothingUntilItIsConfirmed sets a misspelled label on all clusters and corrects
// it. Then it sets the misspelled label again and confirms the removal.
func TestAWrongLabelOnEveryClusterRemovesNothingUntilItIsConfirmed(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	tier := func(value string) {
		for _, m := range members {
			labelMember(t, m, map[string]string{ns: value}) // only this test uses this label key
		}
	}
	tier("prod")
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "widgets"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{everyWidget},
			Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ns: "prod"}}},
			// This is the default limit. The hub of the test suite has a higher one.
			RemovalLimit: &hubv1.RemovalLimit{Copies: ptr.To[int32](5), Percent: ptr.To[int32](20)},
		},
	}
	must(t, suite.Hub.Create(ctx, p))
	var widgets []*unstructured.Unstructured
	for i := range 6 {
		w := widget(ns, fmt.Sprintf("w-%d", i))
		must(t, suite.Hub.Create(ctx, w))
		widgets = append(widgets, w)
	}
	for _, w := range widgets {
		eventually(t, normal, func() error { return targetsAre(ctx, w, false) })
		for _, m := range members {
			eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
		}
	}
	before, versions := memberUIDs(ctx, t, ns), memberVersions(ctx, t, ns)

	tier("prdo")
	var held *hubv1.RemovalHeld
	eventually(t, normal, func() (err error) { held, err = allHeld(ctx, p, len(before)); return err })
	if held.ID == "" || held.Since.IsZero() || len(held.Causes) != 1 || !strings.HasPrefix(held.Causes[0], hubv1.ReasonNotSelected) {
		t.Errorf("held is %+v", held)
	}
	for _, w := range widgets {
		eventually(t, normal, func() error { return targetsAre(ctx, w, true) })
	}
	sameCopies(t, before, memberUIDs(ctx, t, ns))

	tier("prod")
	eventually(t, normal, func() error { return nothingHeld(ctx, p, hubv1.ReasonRemovalCancelled) })
	for _, w := range widgets {
		eventually(t, normal, func() error { return targetsAre(ctx, w, false) })
	}
	if diff := cmp.Diff(versions, memberVersions(ctx, t, ns)); diff != "" {
		t.Errorf("the mistake and its end wrote to members (-before +after):\n%s", diff)
	}

	tier("prdo")
	first := held.ID
	eventually(t, normal, func() (err error) { held, err = allHeld(ctx, p, len(before)); return err })
	if held.ID == first {
		t.Errorf("the second removal has the id %s of the first", first)
	}
	out, err := suite.Hansectl(ctx, "confirm", "placement", p.Name, "-n", ns, "--yes")
	must(t, err)
	if !strings.Contains(out, held.ID+" confirmed") {
		t.Errorf("hansectl confirm says\n%s", out)
	}
	began := time.Now()
	for _, w := range widgets {
		for _, m := range members {
			eventually(t, normal, func() error { return goneFrom(ctx, m, w) })
		}
	}
	t.Logf("after %s all copies were gone", time.Since(began).Round(10*time.Millisecond))
	eventually(t, normal, func() error { return nothingHeld(ctx, p, hubv1.ReasonRemovalConfirmed) })
}

// allHeld returns the held removals in the placement's status, once they contain this number of copies on all members.
func allHeld(ctx context.Context, p *hubv1.Placement, copies int) (*hubv1.RemovalHeld, error) {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return nil, err
	}
	held, c := now.Status.RemovalHeld, meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionRemovalHeld)
	if held == nil || int(held.Copies) != copies || !slices.Equal(held.Clusters, members) || c == nil || c.Status != metav1.ConditionTrue {
		return nil, fmt.Errorf("removalHeld is %+v, the condition is %+v", held, c)
	}
	return held, nil
}

// nothingHeld returns nil if the placement reports, with this reason, that it holds no removals.
func nothingHeld(ctx context.Context, p *hubv1.Placement, reason string) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	c := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionRemovalHeld)
	if now.Status.RemovalHeld != nil || c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
		return fmt.Errorf("removalHeld is %+v, the condition is %+v, want %s", now.Status.RemovalHeld, c, reason)
	}
	return nil
}

// targetsAre returns nil if the binding's spec.clusters has all members with the state Present. If held is true, the
// binding must also hold the removal from each member. If held is false, the binding must hold no removal.
func targetsAre(ctx context.Context, obj *unstructured.Unstructured, held bool) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	for _, m := range members {
		if e := b.BindingSpec().Target(m); e == nil || e.State != hubv1.TargetPresent || (e.Removal != nil) != held {
			err = errors.Join(err, fmt.Errorf("the entry of %s for %s is %+v", obj.GetName(), m, e))
		}
	}
	return err
}
