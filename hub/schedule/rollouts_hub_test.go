package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// contents stores parts of revisions, and records which of them are lost.
type contents struct {
	mu      sync.Mutex
	stored  map[string]bool
	content map[string][]byte
}

func (c *contents) Ensure(_ context.Context, p decide.Payload) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored == nil {
		c.stored, c.content = map[string]bool{}, map[string][]byte{}
	}
	c.stored[p.Digest], c.content[p.Digest] = true, p.Content
	return nil
}

func (c *contents) Template(_ context.Context, digest string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stored[digest] {
		return nil, decide.ErrRevisionMissing
	}
	return decide.ReadTemplate(c.content[digest])
}

func (c *contents) Lost(digest string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, known := c.stored[digest]
	return known && !stored
}

// lose deletes a part, as a user may do.
func (c *contents) lose(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[digest] = false
}

func (c *contents) has(digest string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored[digest]
}

// inWaves sets a rollout with three waves: the first cluster, the second cluster after a user's approval, and all other
// clusters.
func inWaves(p *hubv1.Placement, first, second string, onFailure hubv1.RolloutFailure) {
	p.Spec.Rollout = &hubv1.RolloutPolicy{
		SettleSeconds: ptr.To[int32](0), OnFailure: onFailure, HealthGate: hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)},
		Waves: []hubv1.RolloutWave{
			{Name: "first", Clusters: naming(first)}, {Name: "second", Clusters: naming(second), Approval: hubv1.ApprovalManual}, {Name: "rest"},
		},
	}
}

// reportRevisions acts as the members: each row reports the revision that its target names.
func reportRevisions(b *hubv1.ResourceBinding, now time.Time, degraded ...string) {
	at := metav1.NewTime(now).Rfc3339Copy()
	rows := []hubv1.ClusterRow{}
	for _, e := range b.Spec.Clusters {
		row := hubv1.ClusterRow{
			Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Revision: e.Revision, LastTransitionTime: &at, PassingSince: &at,
		}
		if slices.Contains(degraded, fmt.Sprintf("%s %d", e.Name, e.Revision)) {
			row.Health, row.PassingSince = hubv1.HealthDegraded, nil
		}
		if before := b.Status.Row(e.Name); before != nil && before.Revision == row.Revision && before.Health == row.Health {
			row = *before
		}
		rows = append(rows, row)
	}
	b.Status.Clusters, b.Status.ObservedGeneration = rows, b.Generation
}

// rollsOut waits until the rollout has this phase and wave, while the clusters report all wanted revisions.
func (s *scene) rollsOut(phase hubv1.RolloutPhase, wave string, degraded ...string) (b *hubv1.ResourceBinding) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the rollout is %s %q", phase, wave), func() (err error) {
		b, err = s.rolls(phase, wave, degraded...)
		return err
	})
	return b
}

// rolls returns an error if the rollout does not have this phase and wave. Before it returns the error, it writes the
// clusters' reports.
func (s *scene) rolls(phase hubv1.RolloutPhase, wave string, degraded ...string) (*hubv1.ResourceBinding, error) {
	b := s.binding()
	if b == nil || b.Spec.Rollout == nil {
		c, _, _, _ := scheduler.Decision(s.id.BindingKey())
		return nil, fmt.Errorf("there is no rollout: %s %s", c.Reason, c.Message)
	}
	r := *b.Spec.Rollout
	if r.Phase == phase && r.Wave == wave {
		return b, nil
	}
	reportRevisions(b, time.Now(), degraded...)
	return nil, errors.Join(fmt.Errorf("it is %+v", r), hubClient.Status().Update(s.t.Context(), b))
}

func (s *scene) change(value string) {
	objects.mu.Lock()
	o := objects.cached[s.id].DeepCopy()
	objects.mu.Unlock()
	o.SetGeneration(o.GetGeneration() + 1)
	_ = unstructured.SetNestedField(o.Object, value, "spec", "value")
	objects.set(s.id, o)
}

func holding(b *hubv1.ResourceBinding) string {
	var out []string
	for _, e := range b.Spec.Clusters {
		out = append(out, fmt.Sprintf("%s %d", e.Name[strings.LastIndex(e.Name, "-")+1:], e.Revision))
	}
	return strings.Join(out, ", ")
}

func TestAChangeWaitsForItsApprovalAndThenGoesOn(t *testing.T) {
	s := newScene(t, "waves", "ap", "eu", "us")
	p := s.place("staged", "ap", "eu", "us")
	inWaves(p, s.cluster("eu"), s.cluster("us"), hubv1.FailurePause)
	s.create(p)
	s.object()
	s.rollsOut(hubv1.RolloutComplete, "")
	s.change("new")
	b := s.rollsOut(hubv1.RolloutWaitingForApproval, "second")
	if got := holding(b); got != "ap 1, eu 2, us 1" {
		t.Fatalf("the targets are %s", got)
	}
	for _, r := range b.Spec.Revisions {
		if !stored.has(r.Template) || !stored.has(r.Policies) {
			t.Errorf("revision %d names contents that are not stored", r.Number)
		}
	}
	patch := fmt.Sprintf(`{"status":{"rollout":{"phase":"WaitingForApproval","approvals":[{"wave":"second","time":%q}]}}}`, time.Now().UTC().Format(time.RFC3339))
	if err := hubClient.Status().Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if got := holding(s.rollsOut(hubv1.RolloutComplete, "")); got != "ap 2, eu 2, us 2" {
		t.Errorf("the targets are %s", got)
	}
}

func TestALostPartOfARevisionIsStoredAgainIfTheHubStillHasItsContent(t *testing.T) {
	s := newScene(t, "lost", "ap", "eu", "us")
	p := s.place("staged", "ap", "eu", "us")
	inWaves(p, s.cluster("eu"), s.cluster("us"), hubv1.FailurePause)
	s.create(p)
	s.object()
	s.rollsOut(hubv1.RolloutComplete, "")
	current := func() *unstructured.Unstructured {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		return objects.cached[s.id].DeepCopy()
	}
	earlier := current()
	s.change("new")
	before := s.rollsOut(hubv1.RolloutWaitingForApproval, "second")
	first, second := before.Spec.Revision(1), before.Spec.Revision(2)
	for _, digest := range []string{first.Template, second.Template, second.Policies} {
		stored.lose(digest)
	}
	scheduler.RevisionsLost(s.id)
	s.eventually("the parts of the newest revision are stored again", func() error {
		if !stored.has(second.Template) || !stored.has(second.Policies) {
			return errors.New("they are not")
		}
		return nil
	})
	if after := s.binding(); after.Generation != before.Generation || stored.has(first.Template) {
		t.Errorf("the binding was written %d times, and the lost template of revision 1 is stored: %t", after.Generation-before.Generation, stored.has(first.Template))
	}

	// The hub does not have the content of revision 1 any more, until a user brings it back.
	o := current()
	o.SetAnnotations(map[string]string{hubv1.RolloutUndoAnnotation: "1"})
	objects.set(s.id, o)
	s.eventually("the undo to a lost revision says why it waits", func() error {
		if got := s.binding().Spec.Rollout.Message; !strings.Contains(got, "cannot return to revision 1, whose Secret is gone") {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	earlier.SetGeneration(o.GetGeneration() + 1)
	objects.set(s.id, earlier)
	s.eventually("the earlier template is stored again", func() error {
		if !stored.has(first.Template) {
			return errors.New("it is not")
		}
		return nil
	})
}

func TestAChangeThatSupersedesAnotherSaysSo(t *testing.T) {
	s := newScene(t, "superseded", "ap", "eu", "us")
	p := s.place("staged", "ap", "eu", "us")
	inWaves(p, s.cluster("eu"), s.cluster("us"), hubv1.FailurePause)
	s.create(p)
	s.object()
	s.rollsOut(hubv1.RolloutComplete, "")
	s.change("new")
	s.rollsOut(hubv1.RolloutWaitingForApproval, "second")
	if got := observed.of(s.id.Namespace); slices.Contains(got, hubv1.ReasonSuperseded) {
		t.Errorf("after one change, the events are %v", got)
	}
	s.change("newer")
	s.eventually("the second change waits for its approval", func() error {
		b, err := s.rolls(hubv1.RolloutWaitingForApproval, "second")
		if err == nil && b.Spec.Rollout.Revision != 3 {
			return fmt.Errorf("it is %+v", b.Spec.Rollout)
		}
		return err
	})
	reported := slices.DeleteFunc(observed.of(s.id.Namespace), func(reason string) bool { return reason != hubv1.ReasonSuperseded })
	if second := s.binding().Spec.Revision(2); len(reported) != 1 || second.SupersededBy != 3 {
		t.Errorf("there are %d events, and revision 2 is %+v", len(reported), second)
	}
}

func TestEachStepOfARolloutIsAnEventOfItsObject(t *testing.T) {
	s := newScene(t, "told", "ap", "eu", "us")
	p := s.place("staged", "ap", "eu", "us")
	inWaves(p, s.cluster("eu"), s.cluster("us"), hubv1.FailurePause)
	s.create(p)
	s.object()
	s.rollsOut(hubv1.RolloutComplete, "")
	reported := func() []string {
		return slices.DeleteFunc(observed.of(s.id.Namespace), func(reason string) bool {
			return reason != hubv1.ReasonWaveStarted && reason != hubv1.ReasonWaitingForApproval && reason != hubv1.ReasonRolloutComplete
		})
	}
	if got := reported(); len(got) > 0 {
		t.Errorf("the first revision has the events %v", got)
	}
	s.change("new")
	s.rollsOut(hubv1.RolloutWaitingForApproval, "second")
	want := []string{hubv1.ReasonWaveStarted, hubv1.ReasonWaitingForApproval}
	s.eventually("each step is told once", func() error {
		if got := reported(); !slices.Equal(got, want) {
			return fmt.Errorf("the events are %v, want %v", got, want)
		}
		return nil
	})
}

func TestAnOverridePolicyGoesInWaves(t *testing.T) {
	s := newScene(t, "policywaves", "ap", "eu", "us")
	p := s.place("staged", "ap", "eu", "us")
	inWaves(p, s.cluster("eu"), s.cluster("us"), hubv1.FailurePause)
	s.create(p)
	s.object()
	s.rollsOut(hubv1.RolloutComplete, "")
	marks := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.id.Namespace, Name: "marks"}}
	marks.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: s.id.Group, Kind: s.id.Kind}}
	marks.Spec.Rules = []hubv1.OverrideRule{{Name: "mark", Labels: map[string]string{"mark": "yes"}}}
	s.create(marks)
	if got := holding(s.rollsOut(hubv1.RolloutWaitingForApproval, "second")); got != "ap 1, eu 2, us 1" {
		t.Errorf("the targets are %s", got)
	}
}

func TestAnObjectThatFailsStopsTheOthersUntilItIsMended(t *testing.T) {
	web := newScene(t, "stopped", "ap", "eu", "us")
	p := web.place("staged", "ap", "eu", "us")
	inWaves(p, web.cluster("eu"), web.cluster("us"), hubv1.FailurePause)
	p.Spec.Rollout.Waves[1].Approval = hubv1.ApprovalAutomatic
	web.create(p)
	other := *web
	other.id.Name = "db"
	for _, s := range []*scene{web, &other} {
		o := template(uuid.NewUUID())
		o.SetNamespace(s.id.Namespace)
		o.SetName(s.id.Name)
		objects.set(s.id, o)
		s.rollsOut(hubv1.RolloutComplete, "")
	}
	web.change("bad")
	web.rollsOut(hubv1.RolloutFailed, "first", web.cluster("eu")+" 2")
	other.change("good")
	if got := holding(other.rollsOut(hubv1.RolloutWaitingForOthers, "first")); got != "ap 1, eu 1, us 1" {
		t.Errorf("beside an object that failed, the targets are %s", got)
	}
	web.change("mended")
	web.eventually("both rollouts are complete", func() error { // each object may wait for the rollout of the other
		_, err := web.rolls(hubv1.RolloutComplete, "")
		_, err2 := other.rolls(hubv1.RolloutComplete, "")
		return errors.Join(err, err2)
	})
	if got := holding(web.binding()) + "; " + holding(other.binding()); got != "ap 3, eu 3, us 3; ap 2, eu 2, us 2" {
		t.Errorf("the targets are %s", got)
	}
}

// crashing is a client that fails after a number of writes: the last write succeeds, and its answer is lost.
type crashing struct {
	client.Client
	contents *contents
	left     int
}

var errCrashed = errors.New("the leader has stopped")

func (c *crashing) write(f func() error) error {
	if c.left--; c.left < 0 {
		return errCrashed
	}
	if err := f(); err != nil || c.left > 0 {
		return err
	}
	return errCrashed
}

func (c *crashing) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c *crashing) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c *crashing) Ensure(ctx context.Context, p decide.Payload) error {
	return c.write(func() error { return c.contents.Ensure(ctx, p) })
}

func (c *crashing) Lost(digest string) bool { return c.contents.Lost(digest) }

func (c *crashing) Template(ctx context.Context, digest string) (*unstructured.Unstructured, error) {
	return c.contents.Template(ctx, digest)
}

// stagedKind is a kind that the scheduler of the other tests does not select.
var stagedKind = schema.GroupKind{Group: "example.com", Kind: "Staged"}

// leaders decide on one object one after the other, without a controller.
type leaders struct {
	t *testing.T
	*scene
	objects  *hubObjects
	contents *contents
	clock    *testclock.FakeClock
	bad      string // "cluster revision" of the copy that becomes Degraded
}

func newLeaders(t *testing.T, onFailure hubv1.RolloutFailure) *leaders {
	t.Helper()
	apiserver.Needed(t)
	objects.mu.Lock()
	objects.unlisted.Insert(stagedKind)
	objects.mu.Unlock()
	l := &leaders{t: t, scene: newScene(t, "leaders", "ap", "eu", "us"), contents: &contents{}, clock: testclock.NewFakeClock(time.Now())}
	l.id.Kind = stagedKind.Kind
	l.objects = &hubObjects{
		cached: map[key]*unstructured.Unstructured{}, live: map[key]*unstructured.Unstructured{}, unlisted: sets.New[schema.GroupKind](),
		asked: map[key]int{}, onChange: func(key) {},
	}
	p := policy("staged", func(p *hubv1.Placement) {
		p.ObjectMeta = metav1.ObjectMeta{Namespace: l.id.Namespace, Name: "staged"}
		p.Spec.ResourceSelectors[0].Kind = stagedKind.Kind
		p.Spec.Clusters = l.only("ap", "eu", "us")
	})
	inWaves(p, l.cluster("eu"), l.cluster("us"), onFailure)
	p.Spec.Rollout.Waves[1].Approval = hubv1.ApprovalAutomatic
	l.create(p)
	o := template("a")
	o.SetNamespace(l.id.Namespace)
	o.SetKind(stagedKind.Kind)
	o.SetGeneration(1)
	l.objects.set(l.id, o)
	return l
}

func (l *leaders) edit(value string) {
	o := l.objects.cached[l.id].DeepCopy()
	o.SetGeneration(o.GetGeneration() + 1)
	_ = unstructured.SetNestedField(o.Object, value, "spec", "value")
	l.objects.set(l.id, o)
}

// lead decides as a new leader until the rollout has the phase, or until the leader has made its last write. It returns
// the number of writes that are left.
func (l *leaders) lead(writes int, until hubv1.RolloutPhase) (left int) {
	l.t.Helper()
	c := &crashing{Client: hubClient, contents: l.contents, left: writes}
	s := New(Options{
		Client: c, APIReader: hubClient, Templates: l.objects, Recorder: &recorder{}, Kinds: Kinds{HubRunsWorkloads: func() bool { return false }},
		Clock: l.clock, Rollouts: Rollouts{Revisions: c, Key: canonical.Key("key")},
	})
	s.learnRollouts(l.t.Context())
	for range 60 {
		l.clock.Step(2 * time.Second)
		if _, err := s.Reconcile(l.t.Context(), l.id); errors.Is(err, errCrashed) {
			return 0
		} else if err != nil {
			l.t.Fatal(err)
		}
		b := l.binding()
		if b == nil {
			continue
		}
		l.keepsOrder(b)
		if r := b.Spec.Rollout; r != nil && r.Phase == until {
			return c.left
		}
		reportRevisions(b, l.clock.Now(), l.bad)
		if err := hubClient.Status().Update(l.t.Context(), b); err != nil {
			l.t.Fatal(err)
		}
	}
	l.t.Fatalf("the rollout does not become %s: %+v", until, l.binding().Spec.Rollout)
	return 0
}

// keepsOrder checks that a cluster has revision 2 only after the cluster of the previous wave has reported it as
// healthy. It also checks that the contents of every revision in the binding are stored.
func (l *leaders) keepsOrder(b *hubv1.ResourceBinding) {
	l.t.Helper()
	for _, r := range b.Spec.Revisions {
		if !l.contents.has(r.Template) || !l.contents.has(r.Policies) {
			l.t.Errorf("revision %d names contents that are not stored", r.Number)
		}
	}
	held := func(name string) int64 { return b.Spec.Target(l.cluster(name)).Revision }
	passed := func(name string) bool {
		row := b.Status.Row(l.cluster(name))
		return row != nil && row.Revision >= 2 && row.Health == hubv1.HealthHealthy
	}
	if held("us") == 2 && !passed("eu") || held("ap") == 2 && !passed("us") {
		l.t.Errorf("a cluster is ahead of its wave: %s", holding(b))
	}
}

// The short form stops a leader after every third write; the long form after each.
func TestANewLeaderEndsARolloutAfterEachWriteOfTheOneBefore(t *testing.T) {
	step := 3
	if os.Getenv("HANSE_LONG") != "" {
		step = 1
	}
	for name, tc := range map[string]struct {
		onFailure hubv1.RolloutFailure
		bad       bool
		end       hubv1.RolloutPhase
		holds     string
	}{
		"a good change":                   {hubv1.FailurePause, false, hubv1.RolloutComplete, "ap 2, eu 2, us 2"},
		"a bad change that is stopped":    {hubv1.FailurePause, true, hubv1.RolloutFailed, "ap 1, eu 2, us 1"},
		"a bad change that is taken back": {hubv1.FailureRollback, true, hubv1.RolloutRolledBack, "ap 1, eu 1, us 1"},
	} {
		t.Run(name, func(t *testing.T) {
			for writes := 1; ; writes += step {
				l := newLeaders(t, tc.onFailure)
				l.lead(1000, hubv1.RolloutComplete)
				l.edit("new")
				if tc.bad {
					l.bad = l.cluster("eu") + " 2"
				}
				left := l.lead(writes, tc.end)
				if left == 0 {
					l.lead(1000, tc.end)
				}
				if got := holding(l.binding()); got != tc.holds {
					t.Errorf("stopped after %d writes, the targets are %s, want %s", writes, got, tc.holds)
				}
				if left > 0 {
					t.Logf("the rollout takes %d writes", writes-left)
					break
				}
			}
		})
	}
}
