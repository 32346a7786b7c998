package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestABindingKeepsTheSettingsOfItsPlacement(t *testing.T) {
	no, yes := false, true
	standard := ApplyPolicy{
		Mode: ApplyEnforce, Adoption: AdoptionNever, FieldConflict: FieldConflictTake, UnknownFields: UnknownFieldsReject,
		Recreate: RecreateUntilCompleted, CreateNamespace: &yes,
	}
	tests := map[string]struct {
		spec PlacementSpec
		text string
		want PlacementSpec
	}{
		"nothing is kept of the defaults": {
			spec: PlacementSpec{Apply: standard, Deletion: DeletionPolicy{WhenDeleted: RemovalOrphan, Adopted: RemovalOrphan, PropagationPolicy: metav1.DeletePropagationBackground}},
		},
		"nor of a spec without settings": {},
		"what is not the default is kept": {
			spec: PlacementSpec{
				Apply:    ApplyPolicy{Mode: ApplyReportOnly, Adoption: AdoptionAlways, MemberOwnedFields: []string{"/spec/replicas"}, CreateNamespace: &no},
				Deletion: DeletionPolicy{WhenDeleted: RemovalOrphan, Adopted: RemovalDelete, PropagationPolicy: metav1.DeletePropagationForeground},
			},
			text: `{"apply":{"mode":"ReportOnly","memberOwnedFields":["/spec/replicas"],"createNamespace":false},"deletion":{"adopted":"Delete","propagationPolicy":"Foreground"}}`,
			want: PlacementSpec{
				Apply:    ApplyPolicy{Mode: ApplyReportOnly, MemberOwnedFields: []string{"/spec/replicas"}, CreateNamespace: &no},
				Deletion: DeletionPolicy{Adopted: RemovalDelete, PropagationPolicy: metav1.DeletePropagationForeground},
			},
		},
		"so are the rules of its status": {
			spec: PlacementSpec{Apply: standard, StatusAggregation: StatusAggregation{
				Mode: StatusOnObject, HealthExpression: "true", Reducers: []StatusReducer{{Path: "/status/a", Reducer: ReducerSum}},
				ConditionPolarity: []ConditionPolarity{{Type: "Slow", Polarity: PolarityNegative}},
			}},
			text: `{"statusAggregation":{"healthExpression":"true","reducers":[{"path":"/status/a","reducer":"Sum"}],"conditionPolarity":[{"type":"Slow","polarity":"Negative"}]}}`,
			want: PlacementSpec{StatusAggregation: StatusAggregation{
				HealthExpression: "true", Reducers: []StatusReducer{{Path: "/status/a", Reducer: ReducerSum}},
				ConditionPolarity: []ConditionPolarity{{Type: "Slow", Polarity: PolarityNegative}},
			}},
		},
		"and that it is not on the hub object": {
			spec: PlacementSpec{StatusAggregation: StatusAggregation{Mode: StatusBindingOnly}},
			text: `{"statusAggregation":{"mode":"BindingOnly"}}`,
			want: PlacementSpec{StatusAggregation: StatusAggregation{Mode: StatusBindingOnly}},
		},
		"so are the pod templates whose pods start anew": {
			spec: PlacementSpec{Apply: standard, References: []ReferenceRule{
				{Path: "/spec/template", Restart: RestartOnChange}, {Path: "/spec/other", Restart: RestartNever}, {Kind: "Secret", Path: "/spec/tls"},
				{Path: "/spec/jobs/*/template", Restart: RestartOnChange}, {Path: "/spec/template", Restart: RestartOnChange},
			}},
			text: `{"references":[{"path":"/spec/jobs/*/template","restart":"OnChange"},{"path":"/spec/template","restart":"OnChange"}]}`,
			want: PlacementSpec{References: []ReferenceRule{
				{Path: "/spec/jobs/*/template", Restart: RestartOnChange}, {Path: "/spec/template", Restart: RestartOnChange},
			}},
		},
		"a placement that is suspended does not stay so": {
			spec: PlacementSpec{Apply: standard, Suspend: SuspendPolicy{Dispatching: true, ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := tc.spec.Settings()
			if text != tc.text {
				t.Errorf("kept is %s, want %s", text, tc.text)
			}
			b := &ResourceBinding{}
			b.Annotations = map[string]string{SettingsAnnotation: text}
			if diff := cmp.Diff(tc.want, LastSettings(b)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsThatCannotBeReadForbidToWrite(t *testing.T) {
	b := &ResourceBinding{}
	b.Annotations = map[string]string{SettingsAnnotation: "{"}
	if got := LastSettings(b); got.Apply.Mode != ApplyReportOnly || got.StatusAggregation.Mode != StatusBindingOnly {
		t.Errorf("mode %q, of the status %q", got.Apply.Mode, got.StatusAggregation.Mode)
	}
}
