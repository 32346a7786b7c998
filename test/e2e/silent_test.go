package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestCopiesOfAnUnobservedClusterAreUnknown checks that `hansectl status` does not show outdated rows as live, first
// while a member is paused, then while the hub is killed. A ConfigMap has no metadata.generation that would show its
// change.
func TestCopiesOfAnUnobservedClusterAreUnknown(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	place(t, ns, "settings", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "settings"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	cm := configMap(ns, "settings")
	must(t, suite.Hub.Create(ctx, cm))
	eventually(t, time.Minute, func() error { return statusSays(ctx, ns, "APPLIED 3/3", "HEALTHY 3/3") })

	t.Run("a member that hangs is as of when its watches last delivered", func(t *testing.T) {
		t.Cleanup(func() {
			lab(t, "resume", frankfurt)
			mendMember(t, frankfurt)
		})
		lab(t, "pause", frankfurt)
		paused := time.Now()
		var at time.Time
		eventually(t, time.Minute, func() (err error) {
			at, err = rowAsOf(ctx, ns, frankfurt)
			return err
		})
		if at.After(paused.Add(time.Second)) || at.Before(paused.Add(-20*time.Second)) {
			t.Errorf("%s was paused at %s, and is shown as of %s", frankfurt, paused.UTC().Format(time.RFC3339), at)
		}
		if out, err := suite.Hansectl(ctx, "status", "cm", "settings", "-n", ns); err != nil || strings.Contains(out, "--abandon") {
			t.Errorf("a member that was lost just now is offered to be given up: %v\n%s", err, out)
		}
	})
	t.Run("a hub that is killed is silent within 20 s, and what it did not bring is not applied", func(t *testing.T) {
		must(t, suite.hub.Kill())
		killed := time.Now()
		t.Cleanup(func() {
			startHub(t)
			must(t, poll(context.WithoutCancel(ctx), normal, func() error { return statusSays(ctx, ns, "APPLIED 3/3", " live ") }))
		})
		must(t, suite.Hub.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"other"}}`))))
		var began time.Time // start of the last hansectl run, which was the first to report that no hub runs
		eventually(t, normal, func() error {
			began = time.Now()
			return statusSays(ctx, ns, "no hub has run for", "APPLIED 0/3")
		})
		if after := began.Sub(killed); after > 20*time.Second {
			t.Errorf("the first hansectl that says that no hub runs was started %s after its end", after)
		}
		out, err := suite.Hansectl(ctx, "status", "cm", "settings", "-n", ns)
		if err != nil || strings.Contains(out, " live ") {
			t.Errorf("no hub runs, and something is called live: %v\n%s", err, out)
		}
	})
}

// statusSays returns nil if `hansectl status` of the ConfigMap settings prints all the words.
func statusSays(ctx context.Context, namespace string, words ...string) error {
	out, err := suite.Hansectl(ctx, "status", "cm", "settings", "-n", namespace)
	for _, want := range words {
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("hansectl status does not say %q:\n%s", want, out)
		}
	}
	return err
}

// rowAsOf returns the lastObservedTime of a cluster in the `hansectl status` of the ConfigMap settings. It returns an
// error if the row is live, because a live row has no such time.
func rowAsOf(ctx context.Context, namespace, cluster string) (time.Time, error) {
	out, err := suite.Hansectl(ctx, "status", "cm", "settings", "-n", namespace, "-o", "json")
	if err != nil {
		return time.Time{}, err
	}
	var reported struct {
		Clusters []struct {
			Cluster          string       `json:"cluster"`
			LastObservedTime *metav1.Time `json:"lastObservedTime"`
		} `json:"clusters"`
	}
	if err := json.Unmarshal([]byte(out), &reported); err != nil {
		return time.Time{}, fmt.Errorf("reading the status as JSON: %w", err)
	}
	for _, row := range reported.Clusters {
		if row.Cluster == cluster && row.LastObservedTime != nil {
			return row.LastObservedTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("the row of %s is live:\n%s", cluster, out)
}
