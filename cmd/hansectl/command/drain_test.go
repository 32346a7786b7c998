package command

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// drains acts as the hub: it writes status.drain.
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
		if d := read(); d == nil || ptr.Deref(d.MaxUnavailable, 0) != hubv1.DefaultMaxUnavailable {
			t.Errorf("spec.drain is %+v", d)
		}
	})
	t.Run("without a hub the time runs out, and the drain stays", func(t *testing.T) {
		out, err := hansectl(t, "drain", "eu-fra-1", "--max-unavailable", "1", "--timeout", "1s")
		refused(t, err, "draining membercluster/eu-fra-1: timed out after 1s: waiting for the hub to process the drain", "the drain goes on", "hansectl uncordon eu-fra-1 ends it")
		wants(t, out, "is being drained already", "at most 1 object move at a time")
		if d := read(); d == nil || ptr.Deref(d.MaxUnavailable, 0) != 1 {
			t.Errorf("spec.drain is %+v", d)
		}
	})
	t.Run("interrupted it says that the drain goes on", func(t *testing.T) {
		must(t, drains(ctx, "eu-fra-1", &hubv1.DrainStatus{Total: 6, Remaining: 5, Moving: 1}))
		ctx, cancel := context.WithCancel(ctx)
		out := &interrupting{on: "1 of 6 objects moved", cancel: cancel}
		root := New("hansectl", "test", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
		root.SetArgs([]string{"drain", "eu-fra-1", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir()})
		if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wants(t, out.String(), "the drain goes on: hansectl drain eu-fra-1 shows the progress")
		if read() == nil {
			t.Error("the drain was ended")
		}
	})
	t.Run("a drain that somebody ends is not waited for", func(t *testing.T) {
		out := &interrupting{on: "1 of 6 objects moved", cancel: func() {
			read()
			m.Spec.Drain = nil
			must(t, onHub.Update(ctx, m))
		}}
		root := New("hansectl", "test", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
		root.SetArgs([]string{"drain", "eu-fra-1", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir()})
		refused(t, root.ExecuteContext(ctx), "spec.drain was unset during the drain: objects that have not begun to move stay")
	})
	_, binding := settings(t)
	binding.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu-fra-1", State: hubv1.TargetPresent}}
	apply(t, onHub, binding)
	t.Run("what cannot move is named, and the exit code is 3", func(t *testing.T) {
		for _, left := range []*hubv1.DrainStatus{
			{Total: 14, Remaining: 14, Staying: 14, Message: "14 objects stay"}, {Total: 14, Remaining: 14, Blocked: 14, Message: "14 objects cannot go"},
		} {
			must(t, drains(ctx, "eu-fra-1", left))
			out, err := hansectl(t, "drain", "eu-fra-1")
			refused(t, err, "draining membercluster/eu-fra-1: not all objects could be moved: 0 of 14 objects moved; "+left.Message)
			exits(t, err, 3)
			wants(t, out, "LEFT                      PLACEMENT", "ConfigMap shop/settings   Placement/all", "hansectl uncordon eu-fra-1 ends it", "spec.spread.numberOfClusters")
		}
	})
	t.Run("it ends when nothing is left", func(t *testing.T) {
		must(t, drains(ctx, "eu-fra-1", &hubv1.DrainStatus{Total: 14}))
		out, err := hansectl(t, "drain", "eu-fra-1")
		must(t, err)
		wants(t, out, "drained: 14 of 14 objects moved")
	})
	t.Run("uncordon ends it", func(t *testing.T) {
		out, err := hansectl(t, "uncordon", "eu-fra-1")
		must(t, err)
		wants(t, out, "uncordoned: its drain is ended; the cluster may get new objects")
		if d := read(); d != nil {
			t.Errorf("spec.drain is %+v", d)
		}
	})
}

// interrupting calls cancel when a given text was written.
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

func TestTheClustersOfARegionAreDrainedAndUncordoned(t *testing.T) {
	fresh(t)
	for name, region := range map[string]string{"eu-fra-1": "eu", "eu-fra-2": "eu", "us-1": "us"} {
		m := member(t, name)
		m.Labels = map[string]string{hubv1.RegionLabel: region}
		must(t, onHub.Update(t.Context(), m))
		must(t, drains(t.Context(), name, &hubv1.DrainStatus{Total: 2}))
	}
	draining := func(want ...string) {
		t.Helper()
		var list hubv1.MemberClusterList
		must(t, onHub.List(t.Context(), &list))
		var got []string
		for _, m := range list.Items {
			if m.Spec.Drain != nil {
				got = append(got, m.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("drained are %v, want %v", got, want)
		}
	}
	must(t, drains(t.Context(), "eu-fra-1", &hubv1.DrainStatus{Total: 2, Remaining: 2, Staying: 2}))
	out, err := hansectl(t, "drain", "--region", "eu")
	exits(t, err, 3)
	wants(t, out, "eu-fra-2: drained: 2 of 2 objects moved")
	draining("eu-fra-1", "eu-fra-2")
	out, err = hansectl(t, "uncordon", "--region", "eu")
	must(t, err)
	wants(t, out, "membercluster/eu-fra-1             uncordoned", "membercluster/eu-fra-2             uncordoned")
	draining()
	_, err = hansectl(t, "cordon", "--region", "mars")
	refused(t, err, `no cluster is in region "mars"; the regions are eu, us`)
	out, err = run(t, "__complete", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir(), "drain", "--region", "u")
	must(t, err)
	wants(t, out, "us\n")
}

func TestDrainRefusesWhatItCannotDo(t *testing.T) {
	for want, args := range map[string][]string{
		"CLUSTER is missing":                      {"drain"},
		`unexpected argument "a" beside --region`: {"drain", "a", "--region", "eu"},
		"--max-unavailable 0: want 1 to 10000":    {"drain", "a", "--max-unavailable", "0"},
		"--timeout -1s: want 0 or more":           {"drain", "a", "--timeout", "-1s"},
		`invalid argument "many" for "--max-unav`: {"drain", "a", "--max-unavailable", "many"},
	} {
		_, err := run(t, args...)
		refused(t, err, want, "--help")
	}
}
