package health

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/operators"
)

// wrongVerdicts lists the states of the folder unseen whose verdict no expert accepts, one a line, with the verdict and
// its kind. Each verdict of the folder known must be right. The kinds are:
//
//   - lie: Healthy, although the expert says that it is not.
//   - Unknown: the status is not understood.
//   - misleading: any other wrong verdict.
const wrongVerdicts = "testdata/wrong_verdicts.txt"

func TestStatesOfOperators(t *testing.T) {
	var wrong []string
	for _, folder := range []string{"known", "unseen"} {
		figures := map[string]int{}
		for _, k := range operators.Kinds(t, folder) {
			for _, s := range k.States {
				v := Assess(k.In(t, s), conventionsOf(k))
				is := faultOf(v, s)
				figures[is]++
				if is == "right" {
					continue
				}
				fault := fmt.Sprintf("%s: %s %s, %s: %s (%s: %s)", is, k.Operator, k.Object.GetKind(), s.Name, v.Health, v.Reason, v.Message)
				if folder == "known" {
					t.Error(fault)
					continue
				}
				wrong = append(wrong, fault)
			}
		}
		t.Logf("%s: %d right, %d Unknown, %d misleading, %d lies", folder, figures["right"], figures["Unknown"], figures["misleading"], figures["lie"])
	}
	got := strings.Join(append(wrong, ""), "\n")
	if *update {
		if err := os.WriteFile(wrongVerdicts, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile(wrongVerdicts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(listed), got); diff != "" {
		t.Errorf("wrong verdicts (-listed +got), -update writes the list:\n%s", diff)
	}
}

func conventionsOf(k operators.Kind) Conventions {
	crd := k.CRD()
	if crd == nil {
		return Conventions{}
	}
	return ReadConventions(crd, k.Object.GroupVersionKind().Version)
}

func faultOf(v Verdict, s operators.State) string {
	switch {
	case slices.Contains(s.Health, v.Health) && strings.Contains(v.Message, s.Message):
		return "right"
	case v.Health == hubv1.HealthHealthy:
		return "lie"
	case v.Health == hubv1.HealthUnknown:
		return "Unknown"
	}
	return "misleading"
}
