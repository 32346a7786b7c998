package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
)

var (
	widgetV1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgetV2 = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}
)

// noting is a member that records the group, version and kind of each request.
type noting struct {
	*fakeMember

	mu                          sync.Mutex
	watched, applied, withdrawn []schema.GroupVersionKind
	digests                     []string
}

func (n *noting) Observe(gvk schema.GroupVersionKind, _ types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.watched, gvk) {
		n.watched = append(n.watched, gvk)
	}
}

func (n *noting) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	n.mu.Lock()
	n.applied, n.digests = append(n.applied, in.Manifest.GroupVersionKind()), append(n.digests, in.Digest)
	n.mu.Unlock()
	return n.fakeMember.Apply(ctx, in)
}

func (n *noting) Withdraw(_ context.Context, in member.WithdrawIntent) member.Outcome {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.withdrawn = append(n.withdrawn, in.GVK)
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn}
}

// versionRun returns a run. The hub reads the object at v2. The cluster serves the given versions.
func versionRun(t *testing.T, others, served []string, state hubv1.TargetState) (*noting, *run) {
	t.Helper()
	n := &noting{fakeMember: takes("eu")}
	w := newWorld(t, n.fakeMember)
	b := w.add(widgetV2, "web")
	w.dispatcher.opts.HubObject = func(_ context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured) (hubv1.HubObject, error) {
		o := hubv1.HubObjectOf(ref, template)
		o.OtherVersions = others
		return o, nil
	}
	q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
	if err != nil {
		t.Fatal(err)
	}
	target := b.Spec.Target("eu")
	if target.State = state; state == hubv1.TargetAbsent {
		target.Absent = &hubv1.Absence{Reason: hubv1.ReasonNotSelected, UID: "web", Policy: hubv1.RemovalDelete}
	}
	mcl := &hubv1.MemberCluster{}
	mcl.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	mcl.Status.APIResources = []hubv1.ServedKind{{Group: widgetV1.Group, Kind: widgetV1.Kind, Versions: served}}
	r := &run{queue: q, cluster: n, key: hubv1.ObjectOf(b).BindingKey(), binding: b, target: target, in: gathered{mcl: mcl}}
	r.in.object.ObjectIdentity = hubv1.ObjectOf(b)
	return n, r
}

func TestACopyIsSentAndWatchedAtAVersionThatItsClusterServes(t *testing.T) {
	for name, tc := range map[string]struct {
		others, served []string
		want           schema.GroupVersionKind
	}{
		"the hub's version":                        {[]string{"v1"}, []string{"v1", "v2"}, widgetV2},
		"another version":                          {[]string{"v1"}, []string{"v1"}, widgetV1},
		"the hub's version if none can be used":    {nil, []string{"v1"}, widgetV2},
		"the hub's version if nothing is known of": {[]string{"v1"}, nil, widgetV2},
	} {
		n, r := versionRun(t, tc.others, tc.served, hubv1.TargetPresent)
		if o, known := r.apply(t.Context()); !known || o.Applied != metav1.ConditionTrue || o.HubGeneration != 1 {
			t.Errorf("%s: outcome %+v, known %t", name, o, known)
		}
		if want := []schema.GroupVersionKind{tc.want}; !slices.Equal(n.applied, want) || !slices.Equal(n.watched, want) {
			t.Errorf("%s: sent at %v, watched at %v, want %s", name, n.applied, n.watched, tc.want)
		}
	}
}

func TestACopyKeepsItsDigestWhenTheHubPrefersAnotherVersion(t *testing.T) {
	n, r := versionRun(t, []string{"v1"}, []string{"v1"}, hubv1.TargetPresent)
	r.apply(t.Context())
	w := newWorld(t, takes("eu"))
	w.add(widgetV1, "web")
	template, _ := templatesOf{w}.Get(r.in.object.ObjectIdentity)
	manifest, _, err := r.render(t.Context(), template, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.digest(manifest); !slices.Equal(n.digests, []string{got}) {
		t.Errorf("digests %v, want that of an object which the hub reads at v1, %s", n.digests, got)
	}
}

func TestACopyIsWithdrawnAtAnyVersionThatItsClusterServes(t *testing.T) {
	for name, tc := range map[string]struct {
		others, served []string
		want           schema.GroupVersionKind
	}{
		"the hub's version":               {[]string{"v1"}, []string{"v1", "v2"}, widgetV2},
		"another version":                 {[]string{"v1"}, []string{"v1"}, widgetV1},
		"one at which it cannot be sent":  {nil, []string{"v1"}, widgetV1},
		"the hub's, if it is not known":   {[]string{"v1"}, nil, widgetV2},
		"the kind is not served any more": {[]string{"v1"}, []string{}, widgetV2},
	} {
		n, r := versionRun(t, tc.others, tc.served, hubv1.TargetAbsent)
		if o, _ := r.withdraw(t.Context()); o.Reason != hubv1.ReasonWithdrawn {
			t.Errorf("%s: outcome %+v", name, o)
		}
		if want := []schema.GroupVersionKind{tc.want}; !slices.Equal(n.withdrawn, want) {
			t.Errorf("%s: withdrawn at %v, want %s", name, n.withdrawn, tc.want)
		}
	}
}

func TestNothingIsWrittenWhileTheVersionsAreNotKnown(t *testing.T) {
	n, r := versionRun(t, []string{"v1"}, []string{"v1"}, hubv1.TargetPresent)
	r.queue.opts.HubObject = func(_ context.Context, ref hubv1.ObjectReference, template *unstructured.Unstructured) (hubv1.HubObject, error) {
		return hubv1.HubObjectOf(ref, template), errors.New("the hub does not answer")
	}
	if o, known := r.apply(t.Context()); known || o.Retry != member.RetrySoon || len(n.applied) > 0 {
		t.Errorf("outcome %+v, known %t, sent at %v", o, known, n.applied)
	}
}

func TestAClusterThatServesOtherVersionsIsLookedAtAgain(t *testing.T) {
	w := newWorld(t, takes("eu"), takes("us"))
	w.add(widgetV2, "web")
	w.add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}, "other")
	w.engage()
	for _, cluster := range []string{"eu", "us"} {
		w.eventually(10*time.Second, func() string {
			if w.holds(cluster) < 2 {
				return "the objects are not on " + cluster
			}
			return ""
		})
	}
	before := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	after := before.DeepCopy()
	after.Status.APIResources = []hubv1.ServedKind{{Group: widgetV1.Group, Kind: widgetV1.Kind, Versions: []string{"v1"}}}
	w.mu.Lock()
	clear(w.outcomes["eu"])
	clear(w.outcomes["us"])
	w.mu.Unlock()
	feed := changes.NewFeed()
	feed.Clusters.On(changes.Served, w.dispatcher.ClusterChanged)
	feed.Clusters.Handler(t.Context()).OnUpdate(before, after)
	w.eventually(10*time.Second, func() string {
		if w.outcome("eu", "web").Applied != metav1.ConditionTrue {
			return "nothing was done about the object"
		}
		return ""
	})
	if o := w.outcome("eu", "other"); o.Applied != "" {
		t.Errorf("the object of another kind was looked at: %+v", o)
	}
	if o := w.outcome("us", "web"); o.Applied != "" {
		t.Errorf("another cluster was looked at: %+v", o)
	}
}
