package policies

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member/rollup"
)

// placements writes the status of Placements and ClusterPlacements.
type placements struct {
	Options
	// records has, for each placement, the time of the last write of its status and the last events. After a restart the
	// map is empty, which does no harm. It needs no lock, because the controller has only one worker.
	records map[types.NamespacedName]*record
}

// record has the time of the last write of a placement's status, and the last event about each kind of failure.
type record struct {
	wrote  time.Time // time of the last write of the placement's status
	events map[string]lastEvent
}

func newPlacement(key types.NamespacedName) hubv1.PlacementObject {
	if key.Namespace == "" {
		return &hubv1.ClusterPlacement{}
	}
	return &hubv1.Placement{}
}

func (p *placements) update(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	policy := newPlacement(key)
	if err := p.Client.Get(ctx, key, policy); err != nil {
		delete(p.records, key)
		return 0, unlessGone(err, policy, key)
	}
	of, err := p.read(ctx, key)
	if err != nil {
		return 0, err
	}
	of.suspend = policy.PlacementSpec().Suspend
	before := policy.DeepCopyObject().(client.Object)
	status := policy.PlacementStatus()
	was := *status.DeepCopy()

	facts := acceptance{
		policy: policy, kinds: p.Templates.State, watches: p.Templates.Watches, hubRunsWorkloads: p.HubRunsWorkloads(),
		scalePath: func(kind schema.GroupKind) string { return p.ScalePath(ctx, kind) },
		resource:  func(kind schema.GroupKind) string { return resourceOf(p.Client.RESTMapper(), kind) },
	}
	accepted, known := facts.condition()
	of.unreadable, again = unreadableKinds(policy, p.Templates, p.Clock.Now())
	away := fold(status, policy.GetGeneration(), of)
	refused := foldRollouts(status, policy, of.following, p.Clock.Now())
	if known {
		if len(refused) > 0 && accepted.Status == metav1.ConditionTrue {
			accepted = notAccepted(hubv1.ReasonRequestRefused, "%s", refused[0])
		}
		set(&status.Conditions, policy.GetGeneration(), accepted)
	}
	p.foldRemoval(kindOf(policy), policy, &status.RemovalHeld, &status.Conditions)
	set(&status.Conditions, policy.GetGeneration(), placementReady(status, policy.GetGeneration()))
	if equality.Semantic.DeepEqual(was, *status) {
		return again, nil
	}
	m, now := p.record(key), p.Clock.Now()
	if pause := m.wrote.Add(numbersEvery).Sub(now); pause > 0 && onlyNumbers(was, *status) {
		return earlier(pause, again), nil
	}
	if wrote, err := write(ctx, p.Client, before, policy); !wrote || err != nil {
		return again, err
	}
	m.wrote = now
	for _, e := range m.story(was, *status, away, now) {
		p.Events.Eventf(policy, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	return again, nil
}

// resourceOf returns the plural name of a kind's resource. If the mapper does not know the kind, it is a guess.
func resourceOf(mapper meta.RESTMapper, kind schema.GroupKind) string {
	if m, err := mapper.RESTMapping(kind); err == nil {
		return m.Resource.Resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion("v1"))
	return plural.Resource
}

func (p *placements) record(key types.NamespacedName) *record {
	if p.records[key] == nil {
		p.records[key] = &record{events: map[string]lastEvent{}}
	}
	return p.records[key]
}

// onlyNumbers reports whether two statuses differ at most in the numbers by region.
func onlyNumbers(a, b hubv1.PlacementStatus) bool {
	a.Topology, b.Topology = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

// read reads the inputs of a placement's status from the cache.
func (p *placements) read(ctx context.Context, key types.NamespacedName) (of selected, err error) {
	if of.following, err = bindings(ctx, p.Client, key.Namespace, client.MatchingFields{placementIndex: key.String()}); err != nil {
		return of, err
	}
	if of.lost, err = bindings(ctx, p.Client, key.Namespace, client.MatchingFields{otherIndex: key.String()}); err != nil {
		return of, err
	}
	now, err := p.Clusters.Current(ctx)
	if err != nil {
		return of, err
	}
	of.regions = make(map[string]string, len(now.Clusters))
	for _, c := range now.Clusters {
		of.regions[c.Name] = regionOf(c)
	}
	return of, nil
}

func regionOf(c *hubv1.MemberCluster) string { return c.SelectableLabels()[hubv1.RegionLabel] }

// selected has the inputs of a placement's status.
type selected struct {
	following []hubv1.BindingObject // bindings of the objects that follow the placement
	lost      []hubv1.BindingObject // bindings of objects that the placement selects, but that follow another one
	suspend   hubv1.SuspendPolicy
	regions   map[string]string // region of each cluster
	// unreadable says why the hub cannot read the objects of selected kinds.
	unreadable []string
}

// fold computes a placement's status from the bindings of the selected objects. away are the clusters that do not
// answer.
func fold(status *hubv1.PlacementStatus, generation int64, of selected) (away []string) {
	status.ObservedGeneration = generation
	clusters := map[string]bool{}
	objects := 0
	var topology rollup.Topology
	conditions := map[string]*tally{hubv1.ConditionScheduled: {}, hubv1.ConditionApplied: {}, hubv1.ConditionHealthy: {}}
	for _, b := range of.following {
		if b.GetDeletionTimestamp() != nil {
			continue
		}
		objects++
		for _, t := range b.BindingSpec().Clusters {
			if t.State == hubv1.TargetPresent {
				clusters[t.Name] = true
			}
		}
		topology.Add(b, func(cluster string) string { return of.regions[cluster] })
		for kind, tally := range conditions {
			tally.count(b, kind)
		}
	}
	status.Topology, status.OldestObservedTime = topology.Regions(), topology.OldestObservedTime()
	status.Objects, status.SelectedClusters = int32(objects), int32(len(clusters))
	set(&status.Conditions, generation, of.scheduled(conditions[hubv1.ConditionScheduled].condition(hubv1.ConditionScheduled, hubv1.ReasonScheduled), objects))
	set(&status.Conditions, generation, of.applied(conditions[hubv1.ConditionApplied].condition(hubv1.ConditionApplied, hubv1.ReasonAppliedEverywhere)))
	set(&status.Conditions, generation, conditions[hubv1.ConditionHealthy].condition(hubv1.ConditionHealthy, hubv1.ReasonHealthyEverywhere))
	return topology.Away()
}

// scheduled adds to the condition Scheduled how many selected objects follow another placement (which decides about
// them instead), whether the placement suspends scheduling, and which selected kinds the hub cannot read. following is
// the number of objects that follow this placement.
func (of selected) scheduled(c metav1.Condition, following int) metav1.Condition {
	if len(of.lost) > 0 {
		c.Message += fmt.Sprintf("; %d of the selected objects follow another placement, such as %s", len(of.lost), nameOf(of.lost[0]))
		if ref := of.lost[0].BindingSpec().PlacementRef; ref != nil {
			c.Message += fmt.Sprintf(", which follows %s/%s", ref.Kind, ref.Name)
		}
		if following == 0 {
			c.Reason = hubv1.ReasonOtherFollowed
		}
	}
	if of.suspend.Scheduling {
		c.Reason = hubv1.ReasonSuspended
		c.Message = "scheduling is suspended: every cluster keeps its copies, and new objects wait; " + c.Message
	}
	c = withUnreadable(c, of.unreadable)
	c.Message = cut(c.Message)
	return c
}

// applied adds a text about suspended writes to the condition Applied. The text says whether the placement suspends the
// writes to all clusters, to the clusters of a selector, or to a number of named clusters. Without a suspension, the
// condition does not change.
func (of selected) applied(c metav1.Condition) metav1.Condition {
	if of.suspend.Dispatching {
		c.Message = cut("writing to members is suspended; " + c.Message)
		return c
	}
	if selected := of.suspend.SelectedClusters(); selected != "" {
		c.Message = fmt.Sprintf("writing to %s is suspended (spec.suspend.clusterSelector); ", selected) + c.Message
	}
	if n := len(of.suspend.Clusters); n > 0 {
		c.Message = fmt.Sprintf("writing to %d of the clusters is suspended (spec.suspend.clusters); ", n) + c.Message
	}
	c.Message = cut(c.Message)
	return c
}

// tally counts bindings by the status of one condition type, such as Applied.
type tally struct {
	total           int
	failed, unknown []string // names of the failed objects, and of those with an unknown result
	reason, message string   // reason and message of the first failed binding that is not just in progress or waiting
	away            bool     // whether results are unknown because clusters are unreachable
}

func (t *tally) count(b hubv1.BindingObject, kind string) {
	t.total++
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind)
	switch {
	case c == nil, c.Status == metav1.ConditionUnknown, b.BindingStatus().ObservedGeneration != b.GetGeneration():
		t.unknown = append(t.unknown, nameOf(b))
		t.away = t.away || c != nil && (c.Reason == hubv1.ReasonPartiallyUnknown || c.Reason == hubv1.ReasonUnknownOnSome)
	case c.Status == metav1.ConditionFalse:
		t.failed = append(t.failed, nameOf(b))
		if t.reason == "" || t.reason == hubv1.ReasonProgressingOnSome || t.reason == hubv1.ReasonWaitingOnSome {
			t.reason, t.message = c.Reason, c.Message
		}
	}
}

// condition merges the conditions of all counted bindings. It is False if one of them is False. Otherwise it is Unknown
// if one is Unknown, or if there is no binding. Otherwise it is True, and its reason is the argument `good`.
func (t *tally) condition(kind, good string) metav1.Condition {
	switch {
	case t.total == 0:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonNothingSelected, Message: "no object follows this placement"}
	case len(t.failed) > 0:
		message := someOf(t.failed, t.total)
		if kind == hubv1.ConditionScheduled && t.message != "" {
			message = cut(message + "; the first has " + t.message) // such as "0 of 12 clusters: 7 not selected, 2 tainted"
		}
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: t.reason, Message: message}
	case t.away:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonPartiallyUnknown, Message: someOf(t.unknown, t.total)}
	case len(t.unknown) > 0:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonNotYetReported, Message: someOf(t.unknown, t.total)}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: good, Message: fmt.Sprintf("%d of %d objects", t.total, t.total)}
}

// nameOf returns the kind, namespace and name of a binding's object.
func nameOf(b hubv1.BindingObject) string {
	id := hubv1.ObjectOf(b)
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// set sets a condition in the list. Its lastTransitionTime changes only if its status changes.
func set(conditions *[]metav1.Condition, generation int64, c metav1.Condition) {
	c.ObservedGeneration = generation
	meta.SetStatusCondition(conditions, c)
}

// write patches the status, and reports whether the patch succeeded. After a conflict it returns no error, because the
// change that caused the conflict also queues the policy again.
func write(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	err := c.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		pace.Writes.WithLabelValues(kindOf(after), "status").Inc()
	}
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("writing the status of %s %s: %w", kindOf(after), client.ObjectKeyFromObject(after), err)
}

// unlessGone adds the kind and name of a policy to the error of a read of this policy. If the policy does not exist, or
// if err is nil, it returns nil.
func unlessGone(err error, o client.Object, key types.NamespacedName) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("reading %s %s: %w", kindOf(o), key, err)
}

// kindOf returns the kind of an object from its Go type, because objects from the cache have no kind.
func kindOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }
