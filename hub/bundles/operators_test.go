package bundles

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/hub/pace"
)

// renderWorld has a controller for operators, and counts how often it renders a chart. If fails is set, each rendering
// returns this error.
type renderWorld struct {
	control    *Controller
	operator   *hubv1.FederatedOperator
	clock      *testclock.FakeClock
	renderings int
	fails      error
}

func newRenderWorld() *renderWorld {
	w := &renderWorld{operator: &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors", UID: "1"}}, clock: testclock.NewFakeClock(time.Unix(1000, 0))}
	w.control = New(Options{Clock: w.clock, Render: func(context.Context, chart.Input) (chart.Rendered, error) {
		w.renderings++
		return chart.Rendered{Name: "rotors"}, w.fails
	}})
	return w
}

func (w *renderWorld) render(t *testing.T, value string) error {
	t.Helper()
	rendered, err := w.control.rendered(t.Context(), w.operator, chart.Input{Values: []map[string]any{{"value": value}}})
	if err == nil && rendered.Name != "rotors" {
		t.Errorf("rendered is %+v", rendered)
	}
	return err
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
	for range 2 {
		w.operator.Annotations = map[string]string{hubv1.RegenerateValuesAnnotation: "a"}
		must(t, w.render(t, `{"a": 1}`))
	}
	if w.renderings != 3 {
		t.Errorf("after a request for new values it was rendered %d times", w.renderings)
	}
	w.operator.UID = "2"
	must(t, w.render(t, `{"a": 1}`))
	w.fails = errors.New("it fails")
	for range 2 {
		if err := w.render(t, `{"a": 2}`); err == nil || !strings.Contains(err.Error(), "it fails; the stored objects stay") {
			t.Errorf("the error is %v", err)
		}
	}
	if w.renderings != 5 {
		t.Errorf("after a failure it was rendered %d times for 5 inputs", w.renderings)
	}
	w.clock.SetTime(w.clock.Now().Add(pace.MaxSlowRetry))
	w.fails = nil
	if err := w.render(t, `{"a": 2}`); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}
