package rollout_test

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// A change goes to one cluster first, and to the other two when that cluster is healthy.
func ExampleStep() {
	in := rollout.Input{
		Policy: &hubv1.RolloutPolicy{
			Waves:         []hubv1.RolloutWave{{Name: "canary", Clusters: &hubv1.RuleClusters{Names: []string{"fra"}}}, {Name: "rest"}},
			SettleSeconds: ptr.To[int32](0),
		},
		Live:    hubv1.ObjectRevision{Template: "digest of nginx 1.28", Policies: "digest of no rules"},
		Targets: []rollout.Target{{Cluster: "fra", Wave: 0}, {Cluster: "par", Wave: 1}, {Cluster: "sin", Wave: 1}},
		Now:     time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
	}
	// step shows one decision, stores it as a binding does, and lets the clusters carry it out within a minute.
	step := func() {
		result := rollout.Step(in)
		fmt.Printf("%s %s: fra %d, par %d, sin %d\n", result.Rollout.Phase, result.Rollout.Wave, result.Holds["fra"], result.Holds["par"], result.Holds["sin"])
		in.Before, in.Revisions = &result.Rollout, result.Revisions
		moved := in.Now
		in.Now = in.Now.Add(time.Minute)
		for i := range in.Targets {
			t := &in.Targets[i]
			if slices.Contains(result.Moved, t.Cluster) {
				t.Since = moved
			}
			t.Holds = result.Holds[t.Cluster]
			t.Row = rollout.Row{Revision: t.Holds, Applied: true, Health: hubv1.HealthHealthy, PassingSince: in.Now, Observes: true}
		}
	}
	step() // the first revision
	step() // the first revision has passed
	in.Live.Template = "digest of nginx 1.29"
	step()
	step()
	step()
	// Output:
	// Progressing : fra 1, par 1, sin 1
	// Complete : fra 1, par 1, sin 1
	// Progressing canary: fra 2, par 1, sin 1
	// Progressing rest: fra 2, par 2, sin 2
	// Complete : fra 2, par 2, sin 2
}
