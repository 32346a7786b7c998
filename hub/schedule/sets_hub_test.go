package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// storedLists replaces the Secrets with the lists and parts of bundles.
type storedLists struct {
	mu    sync.Mutex
	lists map[string]decide.SetList
	parts map[string][]byte
}

func (l *storedLists) EnsureSet(_ context.Context, list decide.Payload, parts []decide.Payload) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range parts {
		l.parts[p.Digest] = p.Content
	}
	read, err := decide.ReadSetList(list.Content)
	l.lists[list.Digest] = read
	return err
}

func (l *storedLists) SetList(_ context.Context, digest string) (decide.SetList, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list, ok := l.lists[digest]; ok {
		return list, nil
	}
	return nil, decide.ErrRevisionMissing
}

func (l *storedLists) SetPart(_ context.Context, digest string) (*unstructured.Unstructured, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if content, ok := l.parts[digest]; ok {
		return decide.ReadTemplate(content)
	}
	return nil, decide.ErrRevisionMissing
}

func (l *storedLists) SetRules(_ context.Context, digest string) (*decide.HeldRules, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if content, ok := l.parts[digest]; ok {
		return decide.ReadRules(content)
	}
	return nil, decide.ErrRevisionMissing
}

// setScene is a bundle whose objects change together. The rows of its clusters are written by the test.
type setScene struct {
	*scene
	of         hubv1.BundleReference
	bundle     *hubv1.Bundle
	placement  *hubv1.Placement
	generation int64
	broken     string // "cluster object=value" that is Degraded
}

// newSetScene returns a bundle on three clusters, which get a change in this order: ap, eu, us.
func newSetScene(t *testing.T, name string) *setScene {
	t.Helper()
	s := &setScene{scene: newScene(t, name, "ap", "eu", "us")}
	s.of = hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: s.id.Namespace, Name: "web"}
	s.placement = s.placeBundles("staged", hubv1.ResourceSelector{Name: "web"}, "ap", "eu", "us")
	inWaves(s.placement, s.cluster("ap"), s.cluster("eu"), hubv1.FailureRollback)
	s.placement.Spec.Rollout.Waves[1].Approval = ""
	s.bundle = &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.of.Namespace, Name: s.of.Name}}
	s.bundle.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}}
	s.create(s.bundle)
	s.create(s.placement)
	return s
}

func (s *setScene) named(name string) key {
	id := s.id
	id.Name = name
	return id
}

// brings stores a content of the bundle, as hub/bundles does: the list first, then its name, then the objects.
func (s *setScene) brings(content map[string]string) {
	s.t.Helper()
	s.generation++
	list, packed := decide.SetList{}, []decide.Payload{}
	manifests := map[key]*unstructured.Unstructured{}
	for name, value := range content {
		u := template("")
		unstructured.RemoveNestedField(u.Object, "metadata", "uid")
		u.SetNamespace(s.id.Namespace)
		u.SetName(name)
		_ = unstructured.SetNestedField(u.Object, value, "spec", "value")
		p, err := decide.PackPart(canonical.Key("key"), u)
		if err != nil {
			s.t.Fatal(err)
		}
		list[s.named(name)], manifests[s.named(name)], packed = p.Digest, u, append(packed, p)
	}
	p, err := list.Pack(canonical.Key("key"))
	if err == nil {
		err = setLists.EnsureSet(s.t.Context(), p, packed)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the list is named", func() error { return s.name(p.Digest) })
	for id, u := range manifests {
		u.SetUID(s.bundle.UID)
		u.SetGeneration(s.generation)
		u.SetCreationTimestamp(metav1.Now())
		u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: s.of}.Annotation()})
		objects.set(id, u)
	}
}

func (s *setScene) name(list string) error {
	newest := hubv1.SetList{List: list, Generation: s.generation, Time: metav1.Now()}
	record := s.record()
	if record == nil {
		k := s.of.SetRolloutKey(setNamespace)
		return hubClient.Create(s.t.Context(), &hubv1.SetRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
			Spec:       hubv1.SetRolloutSpec{Bundle: s.of, BundleUID: s.bundle.UID, Newest: newest},
		})
	}
	record.Spec.Newest = newest
	return hubClient.Update(s.t.Context(), record)
}

func (s *setScene) record() *hubv1.SetRollout {
	r := &hubv1.SetRollout{}
	if hubClient.Get(s.t.Context(), s.of.SetRolloutKey(setNamespace), r) != nil {
		return nil
	}
	return r
}

// value returns the value of the object in a revision of its binding.
func (s *setScene) value(id key, r *hubv1.ObjectRevision) string {
	setLists.mu.Lock()
	defer setLists.mu.Unlock()
	for _, content := range setLists.parts {
		u, err := decide.ReadTemplate(content)
		if err != nil || r == nil || hubv1.IdentityOf(u) != id {
			continue
		}
		if names, err := decide.NamesOf(canonical.Key("key"), u, nil, nil); err == nil && slices.Contains(names, r.Template) {
			value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
			return value
		}
	}
	return "?"
}

// reports acts as the members: each cluster carries out the decisions on all objects. It returns what the clusters
// have, such as "ap: a=1 b=1".
func (s *setScene) reports() (map[string]string, error) {
	has := map[string][]string{}
	var bindings hubv1.ResourceBindingList
	if err := hubClient.List(s.t.Context(), &bindings, client.InNamespace(s.id.Namespace)); err != nil {
		return nil, err
	}
	var failed error
	for i := range bindings.Items {
		b := &bindings.Items[i]
		id := hubv1.ObjectOf(b)
		var degraded []string
		for _, e := range b.Spec.Clusters {
			short := strings.TrimPrefix(e.Name, s.id.Namespace+"-")
			if e.State == hubv1.TargetAbsent {
				continue
			}
			copied := id.Name + "=" + s.value(id, b.Spec.Revision(e.Revision))
			has[short] = append(has[short], copied)
			if s.broken == short+" "+copied {
				degraded = append(degraded, fmt.Sprintf("%s %d", e.Name, e.Revision))
			}
		}
		before := b.Status.DeepCopy()
		reportRevisions(b, time.Now(), degraded...)
		for i, e := range b.Spec.Clusters {
			if e.State == hubv1.TargetAbsent {
				b.Status.Clusters[i] = hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn}
			}
		}
		if !maps.Equal(rowsOf(b), rowsOf(&hubv1.ResourceBinding{Status: *before})) || before.ObservedGeneration != b.Generation {
			failed = errors.Join(failed, hubClient.Status().Update(s.t.Context(), b))
		}
	}
	out := map[string]string{}
	for name, copies := range has {
		slices.Sort(copies)
		out[name] = strings.Join(copies, " ")
	}
	return out, failed
}

// rolls waits until the bundle has this phase and the clusters have these objects, while the clusters report. It
// returns the states of the fleet until then.
func (s *setScene) rolls(phase hubv1.RolloutPhase, want ...string) (states []string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the bundle is %s with %q", phase, want), func() error {
		has, err := s.reports()
		state := []string{has["ap"], has["eu"], has["us"]}
		if text := strings.Join(state, "|"); len(states) == 0 || states[len(states)-1] != text {
			states = append(states, text)
		}
		r := s.record()
		if r == nil || r.Spec.Rollout == nil {
			return errors.Join(err, fmt.Errorf("there is no rollout; the clusters have %q", state))
		}
		if r.Spec.Rollout.Phase != phase || !slices.Equal(state, want) {
			return errors.Join(err, fmt.Errorf("it is %+v with %q", r.Spec.Rollout, state))
		}
		return nil
	})
	return states
}

func TestTheObjectsOfABundleChangeTogetherWaveByWave(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "sets")
	one, two := "a=1 b=1 c=1", "a=1 b=2 d=2"
	s.brings(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.rolls(hubv1.RolloutComplete, one, one, one)

	s.brings(map[string]string{"a": "1", "b": "2", "d": "2"})
	states := s.rolls(hubv1.RolloutComplete, two, two, two)
	for _, state := range states {
		clusters := strings.Split(state, "|")
		if clusters[1] != one && clusters[0] != two || clusters[2] != one && clusters[1] != two {
			t.Errorf("a later wave was ahead: %q", states)
		}
	}
	if s.record().Spec.Rollout.Passed != s.record().Spec.Rollout.Newest {
		t.Errorf("the revision has not passed: %+v", s.record().Spec.Rollout)
	}
}

func TestAFailedWaveOfABundleReturnsAllItsObjects(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setfails")
	one := "a=1 b=1 c=1"
	s.brings(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.rolls(hubv1.RolloutComplete, one, one, one)

	s.broken = "eu b=2"
	s.brings(map[string]string{"a": "1", "b": "2", "d": "2"})
	states := s.rolls(hubv1.RolloutRolledBack, one, one, one)
	seen := false
	for _, state := range states {
		clusters := strings.Split(state, "|")
		if clusters[2] != one {
			t.Errorf("the last wave was changed: %q", states)
		}
		seen = seen || strings.Contains(clusters[1], "d=2")
	}
	if !seen {
		t.Errorf("the second wave has not got the change: %q", states)
	}
	s.eventually("the failure and the return are told once", func() error {
		told := slices.DeleteFunc(observed.of(s.id.Namespace), func(reason string) bool { return reason == hubv1.ReasonWaveStarted })
		if want := []string{hubv1.ReasonRolloutFailed, hubv1.ReasonRolledBack}; !slices.Equal(told, want) {
			return fmt.Errorf("the events are %q, want %q", told, want)
		}
		return nil
	})
}

// undoes requests an undo of the bundle.
func (s *setScene) undoes(value string) {
	s.t.Helper()
	before := s.bundle.DeepCopy()
	s.bundle.Annotations = map[string]string{hubv1.RolloutUndoAnnotation: value}
	if err := hubClient.Patch(s.t.Context(), s.bundle, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

func TestAnUndoReturnsTheWholeBundleUntilItsNextChange(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setundo")
	one, two, three := "a=1 b=1 c=1", "a=1 b=2 d=2", "a=1 b=3"
	s.brings(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.rolls(hubv1.RolloutComplete, one, one, one)
	first := s.record().Spec.Rollout.Revision
	s.brings(map[string]string{"a": "1", "b": "2", "d": "2"})
	s.rolls(hubv1.RolloutComplete, two, two, two)

	s.undoes("99")
	s.eventually("the undo to an unknown revision is refused", func() error {
		if r := s.record().Spec.Rollout; !strings.Contains(r.Message, "cannot return to revision 99") {
			return fmt.Errorf("the rollout is %+v", r)
		}
		return nil
	})
	s.undoes(fmt.Sprint(first))
	for _, state := range s.rolls(hubv1.RolloutRolledBack, one, one, one) {
		clusters := strings.Split(state, "|")
		for i, later := range clusters[1:] { // a wave does not wait until removed objects have left
			if strings.Contains(later, "b=1") && !strings.HasPrefix(clusters[i], one) {
				t.Errorf("a later wave returned first: %q", state)
			}
		}
	}
	if r := s.record().Spec.Rollout; r.Revision != first || r.Newest == first || r.Failed != 0 {
		t.Errorf("the rollout is %+v", r)
	}
	s.brings(map[string]string{"a": "1", "b": "3"})
	s.rolls(hubv1.RolloutComplete, three, three, three)
}

// An upgrade of the hub finds objects of a bundle that have followed rollouts of their own.
func TestTheHubAdoptsWhatTheClustersOfABundleHold(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setadopts")
	for _, name := range []string{"a", "b"} {
		u := template(s.bundle.UID)
		u.SetNamespace(s.id.Namespace)
		u.SetName(name)
		u.SetGeneration(1)
		u.SetCreationTimestamp(metav1.Now())
		_ = unstructured.SetNestedField(u.Object, "1", "spec", "value")
		u.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: s.of}.Annotation()})
		objects.set(s.named(name), u)
	}
	versions := func() map[string]int64 {
		out := map[string]int64{}
		var bindings hubv1.ResourceBindingList
		if err := hubClient.List(t.Context(), &bindings, client.InNamespace(s.id.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, b := range bindings.Items {
			if b.Spec.Rollout != nil && b.Spec.Rollout.Phase == hubv1.RolloutComplete {
				out[b.Spec.ObjectRef.Name] = b.Generation
			}
		}
		return out
	}
	s.eventually("each object is complete", func() error {
		_, err := s.reports()
		if got := versions(); len(got) != 2 {
			return errors.Join(err, fmt.Errorf("they are %v", got))
		}
		return err
	})
	before := map[types.UID]string{}
	var bindings hubv1.ResourceBindingList
	if err := hubClient.List(t.Context(), &bindings, client.InNamespace(s.id.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		before[b.UID] = fmt.Sprint(b.Spec.Clusters, b.Spec.Revisions)
	}
	s.brings(map[string]string{"a": "1", "b": "1"})
	one := "a=1 b=1"
	s.rolls(hubv1.RolloutComplete, one, one, one)
	if err := hubClient.List(t.Context(), &bindings, client.InNamespace(s.id.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		if now := fmt.Sprint(b.Spec.Clusters, b.Spec.Revisions); now != before[b.UID] {
			t.Errorf("the binding of %s had %s, and has %s", b.Spec.ObjectRef.Name, before[b.UID], now)
		}
	}
	for _, c := range s.record().Spec.Clusters {
		if !c.Adopted {
			t.Errorf("%s is not adopted", c.Name)
		}
	}
	s.brings(map[string]string{"a": "2", "c": "2"})
	two := "a=2 c=2"
	states := s.rolls(hubv1.RolloutComplete, two, two, two)
	for _, state := range states {
		if clusters := strings.Split(state, "|"); clusters[2] != one && clusters[1] != two {
			t.Errorf("a later wave was ahead: %q", states)
		}
	}
}

func TestALostSetRolloutChangesNothingOnTheClusters(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setlost")
	s.edit(s.placement, func() { s.placement.Spec.Rollout.Waves[1].Approval = hubv1.ApprovalManual })
	one, two := "a=1 b=1 c=1", "a=1 b=2 d=2"
	s.brings(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.rolls(hubv1.RolloutComplete, one, one, one)
	s.brings(map[string]string{"a": "1", "b": "2", "d": "2"})
	s.rolls(hubv1.RolloutWaitingForApproval, two, one, one)

	lost := s.record()
	if err := hubClient.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	s.eventually("the bindings wait", func() error {
		has, err := s.reports()
		if has["ap"] != two || has["eu"] != one || has["us"] != one {
			t.Fatalf("the clusters have %q", has)
		}
		if c, _, _, _ := scheduler.Decision(s.named("b").BindingKey()); c.Reason != hubv1.ReasonPending {
			return errors.Join(err, fmt.Errorf("the decision is %s: %s", c.Reason, c.Message))
		}
		return err
	})
	if err := s.name(lost.Spec.Newest.List); err != nil {
		t.Fatal(err)
	}
	states := s.rolls(hubv1.RolloutWaitingForApproval, two, one, one)
	if len(states) != 1 {
		t.Errorf("the clusters had %q", states)
	}
}

func TestABundleWhosePlacementLosesItsRolloutGoesToAllClustersAtOnce(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setends")
	s.edit(s.placement, func() { s.placement.Spec.Rollout.Waves[1].Approval = hubv1.ApprovalManual })
	one, two := "a=1 b=1 c=1", "a=1 b=2 d=2"
	s.brings(map[string]string{"a": "1", "b": "1", "c": "1"})
	s.rolls(hubv1.RolloutComplete, one, one, one)
	s.brings(map[string]string{"a": "1", "b": "2", "d": "2"})
	s.rolls(hubv1.RolloutWaitingForApproval, two, one, one)
	s.edit(s.placement, func() { s.placement.Spec.Rollout = nil })
	on := func(id key) string {
		b := &hubv1.ResourceBinding{}
		if err := hubClient.Get(t.Context(), id.BindingKey(), b); err != nil {
			return err.Error()
		}
		var out []string
		for _, e := range b.Spec.Clusters {
			out = append(out, fmt.Sprintf("%s %s %d", strings.TrimPrefix(e.Name, s.id.Namespace+"-"), e.State, e.Revision))
		}
		return strings.Join(out, ", ")
	}
	s.eventually("the newest content is on all clusters", func() error {
		for _, name := range []string{"a", "b", "d"} {
			if got := on(s.named(name)); got != "ap Present 0, eu Present 0, us Present 0" {
				return fmt.Errorf("%s is on %s", name, got)
			}
		}
		return nil
	})
	if got := on(s.named("c")); strings.Contains(got, "ap Present") || !strings.Contains(got, "us Present 1") {
		t.Errorf("the object that the bundle no longer has is on %s", got)
	}
	if r := s.record(); r.Spec.Rollout != nil || r.Spec.Clusters != nil {
		t.Errorf("the SetRollout is %+v", r.Spec)
	}
}
