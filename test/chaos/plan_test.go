package chaos

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestASeedGivesTheSamePlanAgainAndAnotherSeedAnotherOne(t *testing.T) {
	for seed := range uint64(50) {
		if !reflect.DeepEqual(Plan(seed, 3), Plan(seed, 3)) {
			t.Errorf("seed %d gave two plans", seed)
		}
		if reflect.DeepEqual(Plan(seed, 3), Plan(seed+1, 3)) {
			t.Errorf("seeds %d and %d gave the same plan", seed, seed+1)
		}
	}
}

// TestEachFaultEndsAndNoTargetHasTwo checks the order of the steps of many plans: a restore meets no fault and follows
// a back-up.
func TestEachFaultEndsAndNoTargetHasTwo(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(400) {
		active, backedUp := map[string]Fault{}, false
		for _, s := range Plan(seed, 2) {
			seen[string(s.Action)] = true
			switch s.Action {
			case Begin:
				if active[s.Target] != "" {
					t.Fatalf("seed %d: %s begins during %s", seed, s, active[s.Target])
				}
				active[s.Target] = s.Fault
				seen[string(s.Fault)] = true
			case End:
				if active[s.Target] != s.Fault {
					t.Fatalf("seed %d: %s ends, and %q is active", seed, s, active[s.Target])
				}
				delete(active, s.Target)
			case BackUp:
				backedUp = true
			case Restore:
				if !backedUp || len(active) > 0 {
					t.Fatalf("seed %d: restore with faults %v, backed up: %t", seed, active, backedUp)
				}
			}
		}
		if len(active) > 0 {
			t.Errorf("seed %d: %v do not end", seed, active)
		}
	}
	every := []string{"apply", "delete", "recreate", "override", "bundle", "operate", "rest", "label", "cordon", "approve", "confirm", "drift", "destroy", "unbind", "forget", "undefine", "restore"}
	for _, f := range slices.Concat(proxyFaults, lies, []Fault{killAPI, stallAPI, stallEtcd, kill, stall, swap, mutate}) {
		every = append(every, string(f))
	}
	for _, name := range every {
		if !seen[name] {
			t.Errorf("no plan has %s", name)
		}
	}
}

func TestNoEditRemovesWhatIsKeptOrGuarded(t *testing.T) {
	for seed := range uint64(400) {
		for _, s := range Plan(seed, 2) {
			if (s.Action == Delete || s.Action == Recreate) && (s.Key.Namespace == kept || s.Key.Namespace == guarded) {
				t.Errorf("seed %d: %s", seed, s)
			}
			if s.Action == Unbind && s.Key.Namespace != kept {
				t.Errorf("seed %d: %s: a binding whose object may leave leaves its copies behind", seed, s)
			}
			if strings.HasPrefix(string(s.Fault), "lie ") && s.Target != liarMember {
				t.Errorf("seed %d: %s: this member has no proxy that lies", seed, s)
			}
		}
	}
}
