package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errLost = errors.New("the answer is lost")

// away is the client of an API server whose answers are lost.
type away struct{ client.Client }

func (away) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errLost
}
func (away) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errLost
}
func (away) Delete(context.Context, client.Object, ...client.DeleteOption) error { return errLost }

// TestAnEditRecordsItsCausesAlthoughItsAnswerIsLost checks which deletions each edit permits.
func TestAnEditRecordsItsCausesAlthoughItsAnswerIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		step           Step
		member         string
		permits, stays []Key
	}{
		"a change":                              {step: Step{Action: Apply, Key: common}, stays: []Key{common, sized}},
		"a deletion":                            {step: Step{Action: Delete, Key: common}, permits: []Key{common}, stays: []Key{sized}},
		"an object that is made anew":           {step: Step{Action: Recreate, Key: common}, permits: []Key{common}, stays: []Key{sized}},
		"a Widget that names another ConfigMap": {step: Step{Action: Apply, Key: naming, Text: "config-1"}, permits: []Key{named, unnamed}, stays: []Key{naming}},
		"a Widget that names nothing more":      {step: Step{Action: Delete, Key: naming}, permits: []Key{naming, named}, stays: []Key{common}},
		"a label that unselects": {
			step: Step{Action: Label, Target: "member-1", Text: "tier=dev"}, permits: []Key{prod}, stays: []Key{common, limited},
		},
		"a label that unselects another cluster": {step: Step{Action: Label, Target: "member-2", Text: "tier=dev"}, stays: []Key{prod}},
		"a label that selects":                   {step: Step{Action: Label, Target: "member-1", Text: "tier=prod"}, stays: []Key{prod}},
		"a label whose removals are held":        {step: Step{Action: Label, Target: "member-1", Text: "ring=b"}, stays: []Key{limited}},
		"a Bundle with one object": {
			step: Step{Action: Bundle, Keys: []Key{bundleKey(0)}}, permits: []Key{bundleKey(1)}, stays: []Key{bundleKey(0)},
		},
		"an override": {step: Step{Action: Override, Target: "member-1", Value: 2}, stays: []Key{sized}},
		"a cordon":    {step: Step{Action: Cordon, Target: "member-1"}, stays: []Key{common, prod}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{expected: expected{regions: map[string]int64{}}, users: users{admin: away{}, teams: map[string]client.Client{}}}
			for _, ns := range Namespaces {
				r.users.teams[ns] = away{}
			}
			if err := r.edit(t.Context(), tc.step); !errors.Is(err, errLost) {
				t.Fatalf("the edit ends with %v", err)
			}
			without := func(k Key) bool {
				return len(r.expected.causes.Without([]Deletion{{At: time.Now().Add(time.Second), Member: "member-1", Key: k}})) > 0
			}
			for _, k := range tc.permits {
				if without(k) {
					t.Errorf("the deletion of %s has no cause", k)
				}
			}
			for _, k := range tc.stays {
				if !without(k) {
					t.Errorf("the deletion of %s has a cause", k)
				}
			}
		})
	}
}
