package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// TestChaosLosesNothingDeletesNothingWithoutACauseAndTellsNoLie runs rounds of edits and faults on the lab. The folder
// of the lab is kept after a failure.
func TestChaosLosesNothingDeletesNothingWithoutACauseAndTellsNoLie(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	config, ok := fleet.FromEnvironment(root)
	if !ok {
		t.Skip("needs the lab: make test-chaos")
	}
	o := Options{
		Seed: uint64(setting(t, "HANSE_CHAOS_SEED", 1)), Replicas: setting(t, "HANSE_CHAOS_REPLICAS", 2), Root: root,
		For: time.Duration(setting(t, "HANSE_CHAOS_MINUTES", 3)) * time.Minute,
	}
	config.Topology = filepath.Join(root, "lab", "topologies", "bench.yaml")
	if config.Dir, err = os.MkdirTemp("", "hanse-chaos-"); err != nil {
		t.Fatal(err)
	}
	ctx, end := fleet.UntilInterrupted(config, config.Dir)
	f, result, err := Run(ctx, config, o)
	end()
	if f != nil {
		if _, downErr := f.LabCommand(context.WithoutCancel(t.Context()), "down", "--keep"); downErr != nil {
			t.Error(downErr)
		}
	}
	if err != nil {
		t.Fatalf("%v\nthe log of the steps, audit logs and logs of the hub are in %s\nreplay: HANSE_CHAOS_SEED=%d HANSE_CHAOS_REPLICAS=%d make test-chaos",
			err, config.Dir, o.Seed, o.Replicas)
	}
	t.Log(result)
	if err := os.RemoveAll(config.Dir); err != nil {
		t.Error(err)
	}
}

// setting returns the number in a variable of the environment.
func setting(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}
