package changes_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

const unchanged = changes.Any

func TestTheChangedPartsOfABinding(t *testing.T) {
	tests := map[string]struct {
		change func(*hubv1.ResourceBinding)
		want   changes.Parts
	}{
		"a write of its status":                {func(b *hubv1.ResourceBinding) { b.Status.ObservedGeneration++ }, unchanged},
		"another generation":                   {func(b *hubv1.ResourceBinding) { b.Generation++ }, changes.Any | changes.Spec},
		"another one with its name":            {func(b *hubv1.ResourceBinding) { b.UID = "other" }, changes.Any | changes.Spec},
		"other labels":                         {func(b *hubv1.ResourceBinding) { b.Labels = map[string]string{"a": "b"} }, changes.Any | changes.Labels},
		"other settings":                       {func(b *hubv1.ResourceBinding) { b.Annotations[hubv1.SettingsAnnotation] = "{}" }, changes.Any | changes.Settings},
		"another annotation":                   {func(b *hubv1.ResourceBinding) { b.Annotations["a"] = "b" }, unchanged},
		"the beginning of its deletion":        {func(b *hubv1.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }, changes.Any | changes.Ending},
		"the removal of its finalizer":         {func(b *hubv1.ResourceBinding) { b.Finalizers = nil }, changes.Any | changes.Finalizers},
		"the settings and the spec at a time":  {func(b *hubv1.ResourceBinding) { b.Generation++; b.Annotations = nil }, changes.Any | changes.Spec | changes.Settings},
		"an event that repeats what was known": {func(*hubv1.ResourceBinding) {}, unchanged},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
				UID: "one", Generation: 1, Finalizers: []string{"f"}, Annotations: map[string]string{hubv1.SettingsAnnotation: `{"a":1}`},
			}}
			after := before.DeepCopy()
			tc.change(after)
			var got []changes.Parts
			feed := changes.NewFeed()
			feed.Bindings.On(changes.All, func(_ context.Context, c changes.Binding) { got = append(got, c.Parts) })
			feed.Bindings.Handler(t.Context()).OnUpdate(before, after)
			if diff := cmp.Diff([]changes.Parts{tc.want}, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheChangedPartsOfACluster(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: reason}}
	}
	tests := map[string]struct {
		change func(*hubv1.MemberCluster)
		want   changes.Parts
	}{
		"a later contact":            {func(c *hubv1.MemberCluster) { c.Status.LastObservedTime = &metav1.Time{} }, unchanged},
		"not Ready any more":         {func(c *hubv1.MemberCluster) { c.Status.Conditions = ready("False", "Unreachable") }, changes.Any | changes.Readiness},
		"Ready for another reason":   {func(c *hubv1.MemberCluster) { c.Status.Conditions = ready("True", "Other") }, changes.Any | changes.Readiness},
		"another version":            {func(c *hubv1.MemberCluster) { c.Status.Version.Kubernetes = "v2" }, changes.Any | changes.Facts},
		"another operator":           {func(c *hubv1.MemberCluster) { c.Status.Operators = []hubv1.OperatorFact{{Name: "rotors"}} }, changes.Any | changes.Facts},
		"more ready nodes":           {func(c *hubv1.MemberCluster) { c.Status.Nodes.Ready++ }, unchanged},
		"another region by its node": {func(c *hubv1.MemberCluster) { c.Status.Topology.Region = "us" }, changes.Any | changes.Facts | changes.Region},
		"a label": {
			func(c *hubv1.MemberCluster) { c.Labels = map[string]string{"a": "b"} }, changes.Any | changes.Labels | changes.Facts,
		},
		"other allowed namespaces": {func(c *hubv1.MemberCluster) {
			c.Generation++
			c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromNone
		}, changes.Any | changes.Spec | changes.AllowedNamespaces},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := &hubv1.MemberCluster{Status: hubv1.MemberClusterStatus{Conditions: ready("True", "Connected")}}
			before.Status.Topology.Region = "eu"
			after := before.DeepCopy()
			tc.change(after)
			got := changes.Parts(0)
			feed := changes.NewFeed()
			feed.Clusters.On(changes.All, func(_ context.Context, c changes.Cluster) { got = c.Parts })
			feed.Clusters.Handler(t.Context()).OnUpdate(before, after)
			if got != tc.want {
				t.Errorf("parts %b, want %b", got, tc.want)
			}
		})
	}
}

func TestEachHandlerGetsOnlyThePartsThatItAskedFor(t *testing.T) {
	var reported []string
	feed := changes.NewFeed()
	tell := func(who string) func(context.Context, changes.Namespace) {
		return func(_ context.Context, c changes.Namespace) {
			event := " of an update"
			switch {
			case c.Before == nil && c.Initial:
				event = " of one in the first list"
			case c.Before == nil:
				event = " of a new one"
			case c.After == nil:
				event = " of a deletion"
			}
			reported = append(reported, who+event)
		}
	}
	feed.Namespaces.On(changes.All, tell("all"))
	feed.Namespaces.On(changes.Labels, tell("labels"))
	feed.Namespaces.On(changes.Added|changes.Deleted, tell("lifetime"))
	plain := &corev1.Namespace{}
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	handler := feed.Namespaces.Handler(t.Context())
	for _, event := range []struct {
		happens func()
		want    []string
	}{
		{func() { handler.OnAdd(plain, true) }, []string{"all of one in the first list", "lifetime of one in the first list"}},
		{func() { handler.OnAdd(plain, false) }, []string{"all of a new one", "lifetime of a new one"}},
		{func() { handler.OnUpdate(plain, plain) }, []string{"all of an update"}},
		{func() { handler.OnUpdate(plain, labelled) }, []string{"all of an update", "labels of an update"}},
		{func() { handler.OnDelete(plain) }, []string{"all of a deletion", "lifetime of a deletion"}},
		{func() { handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: client.Object(plain)}) }, []string{"all of a deletion", "lifetime of a deletion"}},
	} {
		reported = nil
		event.happens()
		if diff := cmp.Diff(event.want, reported); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	}
}
