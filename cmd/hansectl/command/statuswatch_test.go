package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// statusWith returns the status of an object on one cluster.
func statusWith(health hubv1.Health) view.Status {
	return view.Status{
		Object: view.Object{Kind: "Widget", Name: "web", State: view.Present},
		Federated: view.Federated{
			StatusTo: &view.StatusTo{Mode: "OnObject"}, Summary: &hubv1.BindingSummary{Desired: 1},
			Clusters: []view.Row{{Cluster: "a", State: hubv1.TargetPresent, Report: view.Report{Applied: metav1.ConditionTrue, Health: health}}},
		},
	}
}

func TestWatchShowsEachStatusOnce(t *testing.T) {
	const (
		head    = "Widget web   status: OnObject\nAPPLIED 0/1   HEALTHY 0/1   Healthy=Unknown (not yet reported)\nCLUSTER   REGION   GEN   APPLIED   READY   HEALTH        AS OF   WHY\n"
		slow    = head + "a         -        -     True      -       Progressing   live    -\n"
		headTwo = "Widget web   status: OnObject\nAPPLIED 0/1   HEALTHY 0/1   Healthy=Unknown (not yet reported)\nCLUSTER   REGION   GEN   APPLIED   READY   HEALTH    AS OF   WHY\n"
		good    = headTwo + "a         -        -     True      -       Healthy   live    -\n"
	)
	statuses := []view.Status{statusWith(hubv1.HealthProgressing), statusWith(hubv1.HealthProgressing), statusWith(hubv1.HealthHealthy)}
	times := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	tests := map[string]struct {
		out     output
		inPlace bool
		want    string
	}{
		"one after the other, with the time between": {want: slow + "\nTIME\n" + good + "\nThe object and its copies are deleted.\n"},
		"in place on a terminal":                     {inPlace: true, want: clearScreen + slow + clearScreen + good + "\nThe object and its copies are deleted.\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			s := &screen{to: &got, out: tc.out, inPlace: tc.inPlace}
			for _, status := range statuses {
				must(t, s.show(status, status.Undated(tc.out.format == "wide")))
			}
			must(t, s.end())
			if diff := cmp.Diff(tc.want, times.ReplaceAllString(got.String(), "TIME")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("what the text does not show, and ages, are no change", func(t *testing.T) {
		var got bytes.Buffer
		s := &screen{to: &got, out: output{format: "wide"}}
		for i := range 4 {
			status, seen := statusWith(hubv1.HealthUnknown), metav1.NewTime(time.Now().Add(-time.Duration(i)*time.Hour))
			row := &status.Clusters[0]
			row.Away, row.LastObservedTime, row.LastTransitionTime = true, &seen, &seen
			status.Conditions = []metav1.Condition{{Type: hubv1.ConditionApplied, Message: fmt.Sprint(i)}}
			status.Rollout = &hubv1.BindingRollout{Since: seen}
			must(t, s.show(status, status.Undated(true)))
		}
		if n := strings.Count(got.String(), "Widget web"); n != 1 {
			t.Errorf("it is shown %d times:\n%s", n, got.String())
		}
	})
	t.Run("for programs nothing is between", func(t *testing.T) {
		var got, want bytes.Buffer
		s := &screen{to: &got, out: output{format: "json"}}
		for i, status := range statuses {
			must(t, s.show(status, status.Undated(false)))
			if i != 1 {
				must(t, s.out.print(&want, status))
			}
		}
		must(t, s.end())
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	gone := fmt.Errorf("%w Widget web", errNoObject)
	tests := map[string]struct {
		looks   []error // errors of the reads; nil: a read succeeds. The last read ends the context
		err     error
		wantErr string
		out     string
		warning string
	}{
		"an object that is not there at first is an error": {looks: []error{gone}, wantErr: "the hub has no Widget web"},
		"one that goes ends it":                            {looks: []error{nil, gone}, out: "The object and its copies are deleted."},
		"a hub that does not answer does not": {
			looks: []error{nil, errors.New("refused"), errors.New("refused"), nil}, warning: "warning: refused; trying again\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, warnings bytes.Buffer
			h := &hub{streams: genericiooptions.IOStreams{Out: &out, ErrOut: &warnings}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			looks := 0
			err := h.watchStatus(ctx, output{}, func(context.Context) (view.Status, error) {
				err := tc.looks[looks]
				if looks++; looks == len(tc.looks) && !errors.Is(err, errNoObject) {
					cancel()
				}
				return statusWith(hubv1.HealthHealthy), err
			})
			switch {
			case tc.wantErr != "":
				refused(t, err, tc.wantErr)
			case err != nil:
				t.Error(err)
			}
			if tc.out != "" {
				wants(t, out.String(), tc.out)
			}
			if diff := cmp.Diff(tc.warning, warnings.String()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
