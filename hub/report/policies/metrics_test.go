package policies

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	prom "github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheMetricsOfOperatorsAreTheirStatuses(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	charted := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}, Status: hubv1.FederatedOperatorStatus{
		Chart: &hubv1.RenderedChart{Name: "rotor-operator", Version: "1.2.0", AppVersion: "v0.9"}, Total: 12, Ready: 11,
	}}
	plain := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "valves"}, Status: hubv1.FederatedOperatorStatus{Total: 2, Ready: 2}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(charted, plain).Build()
	registry := prom.NewPedanticRegistry()
	registry.MustRegister(operatorMetrics{c})
	series := func() []string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				text := f.GetName()
				for _, l := range m.GetLabel() {
					text += " " + l.GetName() + "=" + l.GetValue()
				}
				out = append(out, fmt.Sprintf("%s: %v", text, m.GetGauge().GetValue()))
			}
		}
		slices.Sort(out)
		return out
	}
	ofValves := []string{"hanse_operator_clusters operator=valves ready=false: 0", "hanse_operator_clusters operator=valves ready=true: 2"}
	want := append([]string{
		"hanse_operator_clusters operator=rotors ready=false: 1",
		"hanse_operator_clusters operator=rotors ready=true: 11",
	}, ofValves...)
	want = append(want, "hanse_operator_info app_version=v0.9 chart=rotor-operator operator=rotors version=1.2.0: 1")
	if diff := cmp.Diff(want, series()); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	t.Run("a deleted operator has no series", func(t *testing.T) {
		if err := c.Delete(t.Context(), charted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ofValves, series()); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	})
}
