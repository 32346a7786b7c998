package command

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestDrainState(t *testing.T) {
	tests := map[string]struct {
		status *hubv1.DrainStatus
		state  string
		done   bool
		fails  error
	}{
		"before the hub has looked": {nil, "waiting for the hub to look at it", false, nil},
		"while objects move": {
			&hubv1.DrainStatus{Remaining: 12, Moving: 10, Message: "waiting for Widget shop/web on us-1"},
			"12 objects to go, 10 moving: waiting for Widget shop/web on us-1", false, nil,
		},
		"one is blocked and one moves": {
			&hubv1.DrainStatus{Remaining: 3, Moving: 1, Blocked: 1, Staying: 1, Message: "Widget shop/db: 0 of 2 clusters"},
			"2 objects to go, 1 moving, 1 blocked, beside 1 object that the placement wants on every cluster: Widget shop/db: 0 of 2 clusters", false, nil,
		},
		"all that is left is blocked": {
			&hubv1.DrainStatus{Remaining: 2, Blocked: 1, Staying: 1, Message: "Widget shop/db: 0 of 2 clusters"},
			"1 object to go, 1 blocked, beside 1 object that the placement wants on every cluster: Widget shop/db: 0 of 2 clusters", false, errBlocked,
		},
		"nothing is left":                   {&hubv1.DrainStatus{}, "drained: nothing is left", true, nil},
		"what is left is wanted everywhere": {&hubv1.DrainStatus{Remaining: 2, Staying: 2}, "drained: what is left is 2 objects that the placement wants on every cluster", true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &hubv1.MemberCluster{Spec: hubv1.MemberClusterSpec{Drain: &hubv1.DrainPolicy{}}, Status: hubv1.MemberClusterStatus{Drain: tc.status}}
			state, done, err := drainState(m)
			if state != tc.state || done != tc.done || !errors.Is(err, tc.fails) {
				t.Errorf("got %q, %v, %v; want %q, %v, %v", state, done, err, tc.state, tc.done, tc.fails)
			}
		})
	}
	if _, _, err := drainState(&hubv1.MemberCluster{}); err == nil {
		t.Error("a drain that somebody ends is waited for")
	}
}

// drains plays the hub: it writes status.drain.
func drains(ctx context.Context, name string, status *hubv1.DrainStatus) error {
	var m hubv1.MemberCluster
	if err := onHub.Get(ctx, client.ObjectKey{Name: name}, &m); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(m.Status.Drain, status) {
		return nil
	}
	m.Status.Drain = status
	return onHub.Status().Update(ctx, &m)
}

func TestDrainAsksAndWaits(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	m := member(t, "eu-fra-1")
	read := func() *hubv1.DrainPolicy {
		t.Helper()
		must(t, onHub.Get(ctx, client.ObjectKeyFromObject(m), m))
		return m.Spec.Drain
	}
	t.Run("it can be asked for without waiting", func(t *testing.T) {
		out, err := hansectl(t, "drain", "eu-fra-1", "--wait=false")
		must(t, err)
		wants(t, out, "membercluster/eu-fra-1             draining: it gets no new objects, and at most 10 objects move at a time")
		if d := read(); d == nil || ptr.Deref(d.MaxUnavailable, 0) != hubv1.MostUnavailable {
			t.Errorf("spec.drain is %+v", d)
		}
	})
	t.Run("without a hub the time runs out, and the drain stays", func(t *testing.T) {
		out, err := hansectl(t, "drain", "eu-fra-1", "--max-unavailable", "1", "--timeout", "1s")
		refused(t, err, "draining membercluster/eu-fra-1: timed out after 1s: waiting for the hub to look at it", "the drain goes on", "hansectl uncordon eu-fra-1 ends it")
		wants(t, out, "is being drained already", "at most 1 object move at a time")
		if d := read(); d == nil || ptr.Deref(d.MaxUnavailable, 0) != 1 {
			t.Errorf("spec.drain is %+v", d)
		}
	})
	t.Run("interrupted it says that the drain goes on", func(t *testing.T) {
		must(t, drains(ctx, "eu-fra-1", &hubv1.DrainStatus{Remaining: 5, Moving: 1}))
		ctx, cancel := context.WithCancel(ctx)
		out := &interrupting{on: "5 objects to go, 1 moving", cancel: cancel}
		root := New("hansectl", "test", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
		root.SetArgs([]string{"drain", "eu-fra-1", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir()})
		if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wants(t, out.String(), "the drain goes on: hansectl drain eu-fra-1 shows how far it is")
		if read() == nil {
			t.Error("the drain was ended")
		}
	})
	t.Run("what is blocked is an error that names it", func(t *testing.T) {
		must(t, drains(ctx, "eu-fra-1", &hubv1.DrainStatus{Remaining: 1, Blocked: 1, Message: "Widget shop/db: 0 of 1 clusters"}))
		_, err := hansectl(t, "drain", "eu-fra-1")
		refused(t, err, "the drain cannot go on: 1 object to go, 1 blocked: Widget shop/db: 0 of 1 clusters", "hansectl uncordon eu-fra-1 ends the drain")
	})
	t.Run("it ends when nothing is left", func(t *testing.T) {
		must(t, drains(ctx, "eu-fra-1", &hubv1.DrainStatus{}))
		out, err := hansectl(t, "drain", "eu-fra-1")
		must(t, err)
		wants(t, out, "drained: nothing is left")
	})
	t.Run("uncordon ends it", func(t *testing.T) {
		out, err := hansectl(t, "uncordon", "eu-fra-1")
		must(t, err)
		wants(t, out, "uncordoned: its drain is ended; it may get new objects")
		if d := read(); d != nil {
			t.Errorf("spec.drain is %+v", d)
		}
	})
}

// interrupting cancels once a text was written.
type interrupting struct {
	bytes.Buffer
	on     string
	cancel func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.on)) {
		i.cancel()
	}
	return i.Buffer.Write(p)
}

func TestDrainRefusesWhatItCannotDo(t *testing.T) {
	for want, args := range map[string][]string{
		"CLUSTER is missing":                      {"drain"},
		"--max-unavailable 0: want 1 to 10000":    {"drain", "a", "--max-unavailable", "0"},
		"--timeout -1s: want 0 or more":           {"drain", "a", "--timeout", "-1s"},
		`invalid argument "many" for "--max-unav`: {"drain", "a", "--max-unavailable", "many"},
	} {
		_, err := run(t, args...)
		refused(t, err, want, "--help")
	}
}
