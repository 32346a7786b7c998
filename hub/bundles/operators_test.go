package bundles

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/hub/pace"
)

// renderWorld has a controller for operators, and counts how often it renders a chart. If fails is set, each rendering
// returns this error.
type renderWorld struct {
	control    *Controller
	clock      *testclock.FakeClock
	renderings int
	fails      error
}

func newRenderWorld() *renderWorld {
	w := &renderWorld{clock: testclock.NewFakeClock(time.Unix(1000, 0))}
	w.control = New(Options{Clock: w.clock, Render: func(context.Context, chart.Input) (chart.Rendered, error) {
		w.renderings++
		return chart.Rendered{Name: "rotors"}, w.fails
	}})
	return w
}

func (w *renderWorld) render(t *testing.T, value string) error {
	t.Helper()
	rendered, err := w.control.rendered(t.Context(), "rotors", chart.Input{Values: []map[string]any{{"value": value}}})
	if err == nil && rendered.Name != "rotors" {
		t.Errorf("rendered is %+v", rendered)
	}
	return err
}

func TestAnOlderChartIsAnEarlierVersionOfTheSameChart(t *testing.T) {
	t.Parallel()
	of := func(name, version string) *hubv1.RenderedChart {
		return &hubv1.RenderedChart{Name: name, Version: version}
	}
	for name, tt := range map[string]struct {
		chart, stored *hubv1.RenderedChart
		want          bool
	}{
		"an earlier version is older":                    {of("rotors", "1.9.0"), of("rotors", "1.10.0"), true},
		"a v before the number is no difference":         {of("rotors", "v1.9.0"), of("rotors", "1.10.0"), true},
		"a release candidate is older than its release":  {of("rotors", "2.0.0-rc.1"), of("rotors", "2.0.0"), true},
		"a later version is not older":                   {of("rotors", "1.10.0"), of("rotors", "1.9.0"), false},
		"the same version is not older":                  {of("rotors", "1.0.0"), of("rotors", "1.0.0"), false},
		"another chart is not older":                     {of("gears", "1.0.0"), of("rotors", "2.0.0"), false},
		"the first chart is not older":                   {of("rotors", "1.0.0"), nil, false},
		"manifests are not older":                        {nil, of("rotors", "1.0.0"), false},
		"a version that cannot be compared is not older": {of("rotors", "1"), of("rotors", "2.0.0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOlder(tt.chart, tt.stored); got != tt.want {
				t.Errorf("isOlder is %t", got)
			}
		})
	}
}

func TestAChartIsRenderedOncePerInput(t *testing.T) {
	t.Parallel()
	w := newRenderWorld()
	for _, values := range []string{`{}`, `{}`, `{"a": 1}`, `{"a": 1}`} {
		if err := w.render(t, values); err != nil {
			t.Fatal(err)
		}
	}
	if w.renderings != 2 {
		t.Errorf("it was rendered %d times for 2 inputs", w.renderings)
	}
	w.fails = errors.New("it fails")
	for range 2 {
		if err := w.render(t, `{"a": 2}`); err == nil || !strings.Contains(err.Error(), "it fails; the stored objects stay") {
			t.Errorf("the error is %v", err)
		}
	}
	if w.renderings != 3 {
		t.Errorf("after a failure it was rendered %d times for 3 inputs", w.renderings)
	}
	w.clock.SetTime(w.clock.Now().Add(pace.MaxSlowRetry))
	w.fails = nil
	if err := w.render(t, `{"a": 2}`); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}
