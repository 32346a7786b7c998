package v1alpha1

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SettingsAnnotation of a binding has the settings of its placement that the hub needs after the placement is deleted,
// because the copies stay. These are apply, deletion, statusAggregation and the references with restart, without values
// that are defaults.
const SettingsAnnotation = Prefix + "settings"

// Settings returns the value of the SettingsAnnotation. It is empty if all settings are defaults. It does not contain
// adoption, because no cluster is added without a placement. It does not contain suspend, because no user could end the
// suspension.
func (s *PlacementSpec) Settings() string {
	apply := s.Apply
	apply.Adoption = ""
	unset(&apply.Mode, ApplyEnforce)
	unset(&apply.FieldConflict, FieldConflictTake)
	unset(&apply.UnknownFields, UnknownFieldsReject)
	unset(&apply.Recreate, RecreateUntilCompleted)
	if apply.CreateNamespace != nil && *apply.CreateNamespace {
		apply.CreateNamespace = nil
	}
	deletion := DeletionPolicy{Adopted: s.Deletion.Adopted, PropagationPolicy: s.Deletion.PropagationPolicy}
	unset(&deletion.Adopted, RemovalOrphan)
	unset(&deletion.PropagationPolicy, metav1.DeletePropagationBackground)
	status := s.StatusAggregation
	unset(&status.Mode, StatusOnObject)

	kept := map[string]any{} // as in a PlacementSpec
	if !reflect.DeepEqual(apply, ApplyPolicy{}) {
		kept["apply"] = apply
	}
	if deletion != (DeletionPolicy{}) {
		kept["deletion"] = deletion
	}
	if !reflect.DeepEqual(status, StatusAggregation{}) {
		kept["statusAggregation"] = status
	}
	var restarts []ReferenceRule
	for _, path := range s.RestartPaths() {
		restarts = append(restarts, ReferenceRule{Path: path, Restart: RestartOnChange})
	}
	if len(restarts) > 0 {
		kept["references"] = restarts
	}
	if len(kept) == 0 {
		return ""
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "" // strings and booleans can always be marshalled
	}
	return string(text)
}

func unset[T ~string](v *T, standard T) {
	if *v == standard {
		*v = ""
	}
}

// LastSettings returns the recorded settings of the placement of a binding, as a spec. If they cannot be parsed, the
// spec forbids writes to members and to the status of the hub object.
func LastSettings(b BindingObject) PlacementSpec {
	var s PlacementSpec
	text := b.GetAnnotations()[SettingsAnnotation]
	if text == "" {
		return s
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return PlacementSpec{Apply: ApplyPolicy{Mode: ApplyReportOnly}, StatusAggregation: StatusAggregation{Mode: StatusBindingOnly}}
	}
	return s
}
